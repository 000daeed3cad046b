//! A PostgreSQL that goes away for longer than anyone waits for an answer: it is told once, and
//! once that it is back, and the work goes on.

use crate::server::Server;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Longer than a transaction waits for the server.
const AWAY: Duration = Duration::from_secs(33);
const TIMEOUT: Duration = Duration::from_secs(60);

struct Worker(Child);

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn accession(server: &Server, data: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_accession"));
    command.args(args).env("ACCESSION_DATABASE", server.url()).env("ACCESSION_DATA", data);
    command.stdin(Stdio::null());
    command
}

fn lines_with(log: &Path, part: &str) -> usize {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    text.lines().filter(|line| line.contains(part)).count()
}

fn until(what: &str, log: &Path, holds: impl Fn() -> bool) {
    let began = Instant::now();
    while !holds() {
        let text = || std::fs::read_to_string(log).unwrap_or_default();
        assert!(began.elapsed() < TIMEOUT, "never: {what}\n{}", text());
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_worker_says_once_that_it_waits_for_the_database_and_once_that_it_is_back() {
    let Some(mut server) = Server::start() else {
        testing::skip("no PostgreSQL binaries found");
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let (data, log) = (dir.path().join("data"), dir.path().join("log"));
    std::fs::create_dir(&data).unwrap();
    let out = std::fs::File::create(&log).unwrap();
    let mut command = accession(&server, &data, &["work", "--lease", "5"]);
    command.stdout(out.try_clone().unwrap()).stderr(out);
    let _worker = Worker(command.spawn().unwrap());
    until("a worker", &log, || lines_with(&log, "Ctrl-C") == 1);
    let ready = || {
        let asked = accession(&server, &data, &["queue", "workers", "--json"]).output().unwrap();
        String::from_utf8_lossy(&asked.stdout).contains("live")
    };
    until("a live worker", &log, ready);

    server.crash();
    until("a word of the outage", &log, || lines_with(&log, "waiting for the database since") > 0);
    std::thread::sleep(AWAY);
    let during = std::fs::read_to_string(&log).unwrap();
    server.restart();
    until("a word of its end", &log, || lines_with(&log, "the database is back after") > 0);

    std::fs::write(dir.path().join("a.txt"), "Dear Ann").unwrap();
    let path = dir.path().join("a.txt").display().to_string();
    let deposit = accession(&server, &data, &["deposit", &path, "--wait"]).output().unwrap();
    assert!(deposit.status.success(), "{}", String::from_utf8_lossy(&deposit.stderr));
    until("the object's line", &log, || lines_with(&log, "preserved  a.txt as ark:/") == 1);

    let text = std::fs::read_to_string(&log).unwrap();
    assert_eq!(lines_with(&log, "waiting for the database since"), 1, "{text}");
    assert_eq!(lines_with(&log, "the database is back after"), 1, "{text}");
    let warnings = during.lines().filter(|line| line.contains("\"WARN\"")).count();
    assert_eq!(warnings, 1, "a flood during the outage:\n{during}");
    let warnings = text.lines().filter(|line| line.contains("\"WARN\"")).count();
    assert!(warnings <= 4, "a flood after the outage:\n{text}");
}
