//! Group commit: closures of one group succeed and fail each on its own.

use crate::{IDS, both, ids, insert, open};
use db::{Db, Error, Statement};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Barrier};
use tokio::task::block_in_place;

fn fresh() -> (tempfile::TempDir, Db) {
    let directory = tempfile::tempdir().unwrap();
    let db = open(&directory.path().join("a.db")).unwrap();
    (directory, db)
}

/// A closure that holds the writer until `go`, so that what is written meanwhile forms one group.
fn hold_writer(db: &Db) -> (Arc<Barrier>, impl Future<Output = Result<(), Error>> + use<>) {
    let go = Arc::new(Barrier::new(2));
    let (inside, first) = (go.clone(), AtomicBool::new(true));
    let held = db.write(move |_| {
        // It may run again, with others of its group that failed.
        if first.swap(false, Ordering::SeqCst) {
            inside.wait();
        }
        Ok(())
    });
    (go, held)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_closure_rolls_back_alone() {
    let (_directory, db) = fresh();
    let (go, held) = hold_writer(&db);
    let mut answers = Vec::new();
    for id in 0..20 {
        answers.push(db.write(move |tx| {
            insert(tx, id)?;
            match id % 4 {
                1 => Err(Error::Other("letter".to_string(), "unreadable".to_string())),
                2 => panic!("a letter bomb"),
                _ => Ok(id),
            }
        }));
    }
    go.wait();
    held.await.unwrap();
    for (id, answer) in (0..20).zip(answers) {
        match (id % 4, answer.await) {
            (1, Err(Error::Other(..))) => {}
            (2, Err(Error::Panic(text))) => assert_eq!(text, "a letter bomb"),
            (_, answer) => assert_eq!(answer.unwrap(), id),
        }
    }
    let expected: Vec<i64> = (0..20).filter(|id| !matches!(id % 4, 1 | 2)).collect();
    assert_eq!(block_in_place(|| ids(&db)), expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_statement_undoes_only_its_closure() {
    const WRONG: Statement = both("insert into letters (id, body) values ($1, null)");
    let (_directory, db) = fresh();
    let (go, held) = hold_writer(&db);
    let good = db.write(|tx| insert(tx, 1));
    let bad = db.write::<(), Error, _>(|tx| {
        insert(tx, 2)?;
        tx.execute(&WRONG, &db::params![3]).map(|_| ())
    });
    let swallowed = db.write::<(), Error, _>(|tx| {
        insert(tx, 4)?;
        let _ = tx.execute(&WRONG, &db::params![5]);
        Ok(())
    });
    go.wait();
    held.await.unwrap();
    good.await.unwrap();
    assert!(matches!(bad.await, Err(Error::Constraint(_))));
    assert!(swallowed.await.is_err(), "a failed statement is not passed over in silence");
    assert_eq!(block_in_place(|| ids(&db)), [1]);
}

/// "Dropping the future may skip a closure that has not begun, and changes nothing else."
#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_future_skips_its_closure() {
    let (_directory, db) = fresh();
    let (go, held) = hold_writer(&db);
    drop(db.write(|tx| insert(tx, 1)));
    let kept = db.write(|tx| insert(tx, 2));
    go.wait();
    held.await.unwrap();
    kept.await.unwrap();
    assert_eq!(block_in_place(|| ids(&db)), [2]);
}

#[test]
fn a_savepoint_fails_alone_within_its_closure() {
    let (_directory, db) = fresh();
    db.write_blocking::<_, Error, _>(|tx| {
        insert(tx, 1)?;
        let inner: Result<(), Error> = tx.savepoint(|tx| {
            insert(tx, 2)?;
            Err(Error::Closed)
        });
        assert!(inner.is_err());
        tx.savepoint(|tx| insert(tx, 3))
    })
    .unwrap();
    assert_eq!(ids(&db), [1, 3]);
}

#[test]
fn a_reader_cannot_write_and_sees_one_moment() {
    let (_directory, db) = fresh();
    db.write_blocking(|tx| insert(tx, 1)).unwrap();
    let refused = db.read_blocking(|tx| insert(tx, 2));
    assert!(matches!(refused, Err(Error::ReadOnly(_))), "{refused:?}");
    let (inner, runs) = (db.clone(), AtomicU32::new(0));
    let seen = db.read_blocking::<_, Error, _>(move |tx| {
        let before = tx.query::<(i64,)>(&IDS, &[])?.len();
        let id = i64::from(runs.fetch_add(1, Ordering::Relaxed)) + 10;
        inner.write_blocking(move |tx| insert(tx, id))?;
        Ok((before, tx.query::<(i64,)>(&IDS, &[])?.len()))
    });
    assert_eq!(seen.unwrap(), (1, 1));
    assert_eq!(ids(&db).len(), 2);
}

#[test]
fn a_panicking_reader_answers_and_reads_on() {
    let (_directory, db) = fresh();
    let panicked = db.read_blocking::<(), Error, _>(|_| panic!("no glasses"));
    assert!(matches!(panicked, Err(Error::Panic(text)) if text == "no glasses"));
    assert_eq!(ids(&db), Vec::<i64>::new());
}
