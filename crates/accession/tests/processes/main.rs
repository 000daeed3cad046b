//! Real processes on one database: workers killed with SIGKILL and stopped with SIGSTOP beyond
//! their lease while jobs run, and a PostgreSQL that stops at once and starts again. What the
//! executed programs logged themselves is checked afterwards.
//!
//! `$ACCESSION_TORTURE_SECONDS` says for how long (default 12), `$ACCESSION_TORTURE_SEED` repeats.

#![allow(clippy::unwrap_used)]

#[path = "../support/answers.rs"]
mod answers;
mod chaos;
mod cli;
mod exec;
mod log;
mod outage;
#[path = "../support/schema.rs"]
mod schema;
mod server;

use chaos::Chaos;
use cli::Accession;
use std::time::Duration;

fn seconds() -> Duration {
    let text = std::env::var("ACCESSION_TORTURE_SECONDS").unwrap_or_default();
    Duration::from_secs(text.parse().unwrap_or(12))
}

#[test]
fn nothing_is_lost_or_doubled_on_sqlite() {
    let dir = tempfile::tempdir().unwrap();
    let accession = Accession::new(&format!("sqlite://{}", dir.path().join("queue.db").display()));
    Chaos::new(accession, dir.path()).run(seconds(), &mut |_| {});
}

#[test]
fn nothing_is_lost_or_doubled_on_postgres_that_crashes() {
    let Some(mut server) = server::Server::start() else {
        testing::skip("no PostgreSQL binaries found");
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let accession = Accession::new(&server.url());
    let mut crashed = false;
    Chaos::new(accession, dir.path()).run(seconds(), &mut |progress| {
        if progress > 0.5 && !crashed {
            crashed = true;
            server.crash();
            server.restart();
        }
    });
    assert!(crashed, "the server was never stopped");
}
