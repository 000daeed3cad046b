//! Time is the server's, also where nobody waits to be told it.

use crate::server::PrivateServer;
use crate::{LETTERS, both, ids, insert};
use db::{Db, Error, Options, Result, Statement, Tx};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

const HOUR: i64 = 3_600_000_000;

const OFFSET: Statement = both("create table clock_offset (hours bigint not null)");
const NONE: Statement = both("insert into clock_offset values (0)");
const LATER: Statement = both("update clock_offset set hours = hours + 1");
/// Stands before the server's own in the search path.
const CLOCK: Statement = both(
    "create function clock_timestamp() returns timestamptz language sql as
     'select pg_catalog.clock_timestamp() + hours * interval ''1 hour'' from public.clock_offset'",
);
const BEGUN: Statement = both(
    "create function now() returns timestamptz language sql as
     'select pg_catalog.now() + hours * interval ''1 hour'' from public.clock_offset'",
);
const PATH: Statement = both("alter role postgres set search_path = public, pg_catalog");

fn later(tx: &mut Tx<'_>) -> Result<()> {
    tx.execute(&LATER, &[]).map(drop)
}

/// Two handles on a server whose clock one of them sets.
fn with_a_clock_to_set(test: fn(&Db, &Db)) {
    let Some(server) = PrivateServer::start() else { return };
    let one = Options { connections: 1, ..Options::default() };
    let prepare = Db::open(&server.address(""), &[LETTERS], &one).unwrap();
    prepare
        .write_blocking::<_, Error, _>(|tx| {
            [OFFSET, NONE, CLOCK, BEGUN, PATH].iter().try_for_each(|s| tx.execute(s, &[]).map(drop))
        })
        .unwrap();
    drop(prepare);
    let open = || Db::open(&server.address(""), &[LETTERS], &one).unwrap();
    test(&open(), &open());
}

#[test]
fn a_clock_that_was_set_is_noticed_before_anything_is_committed() {
    with_a_clock_to_set(|db, other| {
        let before = db.write_blocking::<_, Error, _>(|tx| Ok(tx.now())).unwrap();
        other.write_blocking(later).unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let mine = seen.clone();
        db.write_blocking::<_, Error, _>(move |tx| {
            mine.lock().unwrap().push(tx.now());
            insert(tx, 1)
        })
        .unwrap();
        let seen = seen.lock().unwrap().clone();
        assert_eq!(seen.len(), 2, "it runs again by the right time");
        assert!(seen[0] - before < HOUR / 2 && seen[1] - before > HOUR / 2, "{before} {seen:?}");
        assert_eq!(ids(db), [1]);
    });
}

#[test]
fn what_was_only_sent_is_not_committed_by_a_wrong_time_either() {
    with_a_clock_to_set(|db, other| {
        db.write_blocking::<_, Error, _>(|tx| insert(tx, 1)).unwrap();
        other.write_blocking(later).unwrap();
        let runs = Arc::new(AtomicU32::new(0));
        let mine = runs.clone();
        db.write_blocking::<_, Error, _>(move |tx| {
            let run = i64::from(mine.fetch_add(1, Ordering::Relaxed));
            // The first news of a connection takes a question of its own before the COMMIT.
            tx.wake(7);
            tx.send(&crate::INSERT, &db::params![10 + run, "Dear Ann"])
        })
        .unwrap();
        assert_eq!(runs.load(Ordering::Relaxed), 2);
        assert_eq!(ids(db), [1, 11]);
    });
}

#[test]
fn a_clock_that_goes_right_is_not_asked_and_runs_nothing_twice() {
    with_a_clock_to_set(|db, _| {
        let runs = Arc::new(AtomicU32::new(0));
        for id in 0..20 {
            let mine = runs.clone();
            db.write_blocking::<_, Error, _>(move |tx| {
                mine.fetch_add(1, Ordering::Relaxed);
                insert(tx, id)
            })
            .unwrap();
        }
        assert_eq!(runs.load(Ordering::Relaxed), 20);
    });
}
