//! News between handles on PostgreSQL.

use crate::server::PrivateServer;
use crate::{LETTERS, both, ids, insert};
use db::{Db, Error, Options, Statement};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tokio::sync::watch;

fn open(server: &PrivateServer) -> Db {
    Db::open(&server.address(""), &[LETTERS], &Options::default()).unwrap()
}

fn write_and_wake(db: &Db, id: i64) {
    let written = db.write_blocking::<_, Error, _>(move |tx| {
        tx.wake(7);
        insert(tx, id)
    });
    written.unwrap();
}

fn hear(runtime: &tokio::runtime::Runtime, news: &mut watch::Receiver<u64>) {
    let heard = async { tokio::time::timeout(Duration::from_secs(10), news.changed()).await };
    runtime.block_on(heard).expect("it is heard").unwrap();
}

/// A handle that hears of something has a transaction begun already: it serves whatever comes next,
/// reading or writing, in time or too late.
#[test]
fn whoever_waits_hears_of_every_commit_and_goes_on() {
    let Some(server) = PrivateServer::start() else { return };
    let (one, two) = (open(&server), open(&server));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut news = two.subscribe(7);
    // Whatever was said before it listened is not known, and so is news.
    hear(&runtime, &mut news);
    let mut expected = Vec::new();
    for id in (0..60).step_by(2) {
        write_and_wake(&one, id);
        expected.push(id);
        hear(&runtime, &mut news);
        match id % 3 {
            0 => assert_eq!(ids(&two), expected),
            1 => {
                two.write_blocking::<_, Error, _>(move |tx| insert(tx, id + 1)).unwrap();
                expected.push(id + 1);
            }
            _ => {}
        }
    }
    assert_eq!(ids(&two), expected);
}

/// The transaction is over when the news is told.
#[test]
fn a_commit_stands_also_if_its_news_cannot_be_told() {
    const PATH: Statement = both("alter role postgres set search_path = public, pg_catalog");
    const REFUSAL: Statement = both(
        "create function pg_notify(text, text) returns void language plpgsql as
         'begin raise exception ''nobody is told''; end'",
    );
    let Some(server) = PrivateServer::start() else { return };
    let prepared = open(&server).write_blocking::<_, Error, _>(|tx| {
        [REFUSAL, PATH].iter().try_for_each(|s| tx.execute(s, &[]).map(drop))
    });
    prepared.unwrap();
    let (db, runs) = (open(&server), Arc::new(AtomicU32::new(0)));
    for id in 0..3 {
        let counted = runs.clone();
        let written = db.write_blocking::<_, Error, _>(move |tx| {
            counted.fetch_add(1, Ordering::SeqCst);
            tx.wake(7);
            insert(tx, id)
        });
        written.unwrap();
    }
    assert_eq!((ids(&db), runs.load(Ordering::SeqCst)), (vec![0, 1, 2], 3));
}
