//! Statements that are sent and not waited for: done in their order, and whoever comes next hears
//! of their errors.

use crate::server::PrivateServer;
use crate::{INSERT, LETTERS, ids, insert, open};
use db::{Address, Db, Error, Options, Result, Tx, Value};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

fn send(tx: &mut Tx<'_>, id: i64) -> Result<()> {
    tx.send(&INSERT, &[Value::Int(id), Value::Text("Dear Ann")])
}

/// A letter without a body, which the table refuses.
fn send_bad(tx: &mut Tx<'_>, id: i64) -> Result<()> {
    tx.send(&INSERT, &[Value::Int(id), Value::Null])
}

fn on_both(test: fn(&Db)) {
    let directory = tempfile::tempdir().unwrap();
    test(&open(&directory.path().join("a.db")).unwrap());
    let Some(server) = PrivateServer::start() else { return };
    test(&Db::open(&server.address(""), &[LETTERS], &Options::default()).unwrap());
}

#[test]
fn what_is_sent_is_there_for_what_follows() {
    on_both(|db| {
        let seen = db.write_blocking::<_, Error, _>(|tx| {
            send(tx, 1)?;
            let rows = [[Value::Int(2), Value::Text("a")], [Value::Int(3), Value::Text("b")]];
            match tx.engine() {
                db::Engine::Sqlite => tx.send_each(&INSERT, &[], &rows)?,
                db::Engine::Postgres => tx.send_each(&EACH, &[], &rows)?,
            }
            tx.query::<(i64,)>(&crate::IDS, &[])
        });
        assert_eq!(seen.unwrap(), [(1,), (2,), (3,)]);
        assert_eq!(ids(db), [1, 2, 3]);
    });
}

const EACH: db::Statement = crate::both(
    "insert into letters (id, body) select * from unnest(cast($1 as bigint[]), cast($2 as text[]))",
);

#[test]
fn two_questions_are_answered_in_their_order() {
    on_both(|db| {
        let seen = db.write_blocking::<_, Error, _>(|tx| {
            send(tx, 1)?;
            tx.query_both::<(i64,), (i64,)>((&crate::IDS, &[]), (&TWICE, &[]))
        });
        assert_eq!(seen.unwrap(), (vec![(1,)], vec![(2,)]));
        let failed = db.write_blocking::<_, Error, _>(|tx| {
            let bad = [Value::Int(2), Value::Null];
            tx.query_both::<(i64,), (i64,)>((&INSERT, &bad), (&crate::IDS, &[]))
        });
        assert!(matches!(failed.unwrap_err(), Error::Constraint(_)));
        assert_eq!(ids(db), [1]);
    });
}

const TWICE: db::Statement = crate::both("select id * 2 from letters order by id");

#[test]
fn more_than_the_line_holds_goes_through_it() {
    on_both(|db| {
        let long = "x".repeat(30_000);
        db.write_blocking::<_, Error, _>(move |tx| {
            (0..300).try_for_each(|id| tx.send(&INSERT, &db::params![id, &long]))
        })
        .unwrap();
        assert_eq!(ids(db), (0..300).collect::<Vec<_>>());
    });
}

#[test]
fn an_error_is_said_by_what_follows_and_undoes_everything() {
    on_both(|db| {
        let followed = db.write_blocking::<_, Error, _>(|tx| {
            insert(tx, 1)?;
            send_bad(tx, 2)?;
            insert(tx, 3)
        });
        let error = followed.unwrap_err();
        assert!(matches!(error, Error::Constraint(_)), "{error}");
        // The last one of a transaction is followed by its commit.
        let last = db.write_blocking::<_, Error, _>(|tx| {
            insert(tx, 4)?;
            send_bad(tx, 5)
        });
        assert!(matches!(last.unwrap_err(), Error::Constraint(_)));
        assert_eq!(ids(db), Vec::<i64>::new());
        db.write_blocking(|tx| send(tx, 6)).unwrap();
        assert_eq!(ids(db), [6]);
    });
}

#[test]
fn a_savepoint_hears_of_what_was_sent_within_it() {
    on_both(|db| {
        db.write_blocking::<_, Error, _>(|tx| {
            send(tx, 1)?;
            let inner: Result<()> = tx.savepoint(|tx| {
                send(tx, 2)?;
                send_bad(tx, 3)
            });
            assert!(matches!(inner.unwrap_err(), Error::Constraint(_)));
            tx.savepoint(|tx| send(tx, 4))
        })
        .unwrap();
        assert_eq!(ids(db), [1, 4]);
        // What failed before a savepoint is not its matter.
        let outer = db.write_blocking::<_, Error, _>(|tx| {
            send(tx, 5)?;
            send_bad(tx, 6)?;
            let _: Result<()> = tx.savepoint(|tx| send(tx, 7));
            send(tx, 8)
        });
        outer.unwrap_err();
        assert_eq!(ids(db), [1, 4]);
    });
}

/// A row of the same key, added by another: sent, found at the commit, and run again.
#[test]
fn a_collision_at_the_commit_runs_the_closure_again() {
    const TAKEN: db::Statement = crate::both("select body from letters where id = $1");
    let Some(server) = PrivateServer::start() else { return };
    let db = Db::open(&server.address(""), &[LETTERS], &Options::default()).unwrap();
    let unique = crate::both("create unique index one on letters (id)");
    db.write_blocking::<_, Error, _>(move |tx| tx.execute(&unique, &[])).unwrap();
    let (other, runs) = (db.clone(), Arc::new(AtomicU32::new(0)));
    let counted = runs.clone();
    let added = db.write_blocking::<_, Error, _>(move |tx| {
        if tx.first::<(String,)>(&TAKEN, &db::params![1])?.is_some() {
            return Ok(false);
        }
        if counted.fetch_add(1, Ordering::SeqCst) == 0 {
            other.write_blocking(|tx| send(tx, 1))?;
        }
        send(tx, 1).map(|()| true)
    });
    assert_eq!((added.unwrap(), runs.load(Ordering::SeqCst)), (false, 1));
    assert_eq!(ids(&db), [1]);
}

#[test]
fn a_server_is_reached_by_its_socket() {
    let Some(server) = PrivateServer::start() else { return };
    let (sockets, port) = (server.sockets().display(), server.port);
    // Also beside one that is not there; and it is never encrypted, as with libpq.
    for (id, query) in [
        format!("host={sockets}&port={port}"),
        format!("host={sockets}&port={port}&sslmode=require"),
        format!("host=127.0.0.1,{sockets}&port=1,{port}&sslmode=require"),
    ]
    .iter()
    .enumerate()
    {
        let address = Address::parse(&format!("postgres://postgres@/postgres?{query}")).unwrap();
        let db = Db::open(&address, &[LETTERS], &Options::default()).unwrap();
        db.write_blocking(move |tx| send(tx, id as i64)).unwrap();
        assert_eq!(ids(&db).len(), id + 1);
    }
}
