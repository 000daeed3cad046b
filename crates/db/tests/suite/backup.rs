//! Copies of a database in use, restored and compared.

use crate::server::PrivateServer;
use crate::{ids, insert, open};
use db::{Address, Db, Error, Options};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

/// A backup taken while others write is one moment of the database: all that was acknowledged
/// before it began, and whole transactions only.
#[test]
fn a_backup_while_writing_is_one_moment() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.db");
    let db = open(&path).unwrap();
    for id in 0..500 {
        db.write_blocking(move |tx| insert(tx, id)).unwrap();
    }
    let (stop, pairs) = (AtomicBool::new(false), AtomicI64::new(1000));
    let copy = directory.path().join("copy.db");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::SeqCst) {
                let id = pairs.fetch_add(1, Ordering::SeqCst);
                // Each transaction writes the same id twice.
                db.write_blocking(move |tx| insert(tx, id).and_then(|()| insert(tx, id))).unwrap();
            }
        });
        while pairs.load(Ordering::SeqCst) < 1010 {
            std::thread::yield_now();
        }
        db::backup(&path, &copy, &mut |_, _| {}).unwrap();
        stop.store(true, Ordering::SeqCst);
    });
    let restored = directory.path().join("restored.db");
    db::restore(&copy, &restored, &mut |_, _| {}).unwrap();
    let again = ids(&open(&restored).unwrap());
    assert_eq!(again[..500], (0..500).collect::<Vec<i64>>());
    assert!(again.len() > 510, "what was acknowledged before is in it");
    assert!(again[500..].chunks(2).all(|pair| pair.len() == 2 && pair[0] == pair[1]));
    assert_eq!(dump(&copy), dump(&restored));
}

/// Every row of every table, as text.
fn dump(path: &std::path::Path) -> Vec<String> {
    let connection = rusqlite::Connection::open(path).unwrap();
    let texts = |sql: &str| -> Vec<String> {
        let mut statement = connection.prepare(sql).unwrap();
        let columns = statement.column_count();
        let row = |r: &rusqlite::Row<'_>| {
            (0..columns)
                .map(|c| r.get::<_, rusqlite::types::Value>(c).map(|v| format!("{v:?}")))
                .collect::<Result<Vec<_>, _>>()
        };
        statement.query_map([], row).unwrap().map(|r| r.unwrap().join(" ")).collect()
    };
    let mut all = texts("select type, name, sql from sqlite_schema order by name");
    let tables = connection
        .prepare("select name from sqlite_schema where type = 'table' order by name")
        .unwrap()
        .query_map([], |r| r.get::<_, String>(0))
        .unwrap()
        .map(|r| r.unwrap())
        .collect::<Vec<_>>();
    for table in tables {
        all.extend(texts(&format!("select * from {table}")));
    }
    all
}

#[test]
fn nothing_is_overwritten_and_nothing_foreign_restored() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.db");
    drop(open(&path).unwrap());
    let copy = directory.path().join("copy.db");
    db::backup(&path, &copy, &mut |_, _| {}).unwrap();
    assert!(db::backup(&path, &copy, &mut |_, _| {}).is_err());
    assert!(db::restore(&copy, &path, &mut |_, _| {}).is_err());
    let missing = directory.path().join("missing.db");
    assert!(db::backup(&missing, &directory.path().join("b.db"), &mut |_, _| {}).is_err());
    let foreign = directory.path().join("foreign.db");
    rusqlite::Connection::open(&foreign).unwrap().execute_batch("create table t (a)").unwrap();
    let to = directory.path().join("to.db");
    let refused = db::restore(&foreign, &to, &mut |_, _| {}).err().unwrap();
    assert!(matches!(refused, Error::NotOurs(..)), "{refused}");
    let mut damaged = std::fs::read(&copy).unwrap();
    damaged[4096..].fill(0x55);
    std::fs::write(&foreign, damaged).unwrap();
    assert!(db::restore(&foreign, &to, &mut |_, _| {}).is_err());
    assert!(!to.exists());
}

/// The commands of docs: `pg_dump --format=custom`, and `pg_restore` into a new database.
#[test]
fn postgres_is_dumped_and_restored_by_its_own_programs() {
    let Some(server) = PrivateServer::start() else { return };
    let db = Db::open(&server.address(""), &[crate::LETTERS], &Options::default()).unwrap();
    for id in 0..50 {
        db.write_blocking(move |tx| insert(tx, id)).unwrap();
    }
    let file = tempfile::tempdir().unwrap();
    let dump = file.path().join("accession.dump");
    let run = |program: &str, arguments: &[&str]| {
        let output = Command::new(server.program(program)).args(arguments).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    let (from, to, dump) = (server.url(""), server.url_of("restored", ""), dump.to_str().unwrap());
    run("pg_dump", &["--format=custom", "--file", dump, &from]);
    run("psql", &["--quiet", "--command", "create database restored", &from]);
    run("pg_restore", &["--exit-on-error", "--dbname", &to, dump]);
    let address = Address::parse(&to).unwrap();
    let restored = Db::open(&address, &[crate::LETTERS], &Options::default()).unwrap();
    assert_eq!(ids(&restored), ids(&db));
    restored.write_blocking(|tx| insert(tx, 50)).unwrap();
}
