//! SQLite's log: moved into the database file beside the writer, and begun anew long before it is at
//! its bound.

use crate::{INSERT, insert, open};
use db::{Db, Error, Value};
use std::path::Path;
use std::time::{Duration, Instant};

/// What the log has in its header; another value whenever it begins anew.
fn salt(path: &Path) -> Vec<u8> {
    let log = std::fs::read(path.with_extension("db-wal")).unwrap();
    log.get(16..24).unwrap().to_vec()
}

fn size(path: &Path) -> u64 {
    std::fs::metadata(path).unwrap().len()
}

fn write_pages(db: &Db, pages: usize) {
    let body = "x".repeat(4096 * 50);
    for id in 0..pages / 50 {
        let (id, body) = (i64::try_from(id).unwrap(), body.clone());
        db.write_blocking::<_, Error, _>(move |tx| {
            tx.execute(&INSERT, &[Value::Int(id), Value::Text(&body)])
        })
        .unwrap();
    }
}

#[test]
fn the_log_is_moved_meanwhile_and_begins_anew() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.db");
    let db = open(&path).unwrap();
    let (first, began) = (salt(&path), Instant::now());
    write_pages(&db, 2500);
    // Far below the 16,000 pages at which the writer would do it all by itself.
    let mut commits = 0;
    while salt(&path) == first {
        assert!(began.elapsed() < Duration::from_secs(60), "the log never began anew");
        std::thread::sleep(Duration::from_millis(10));
        db.write_blocking(move |tx| insert(tx, 1_000_000 + commits)).unwrap();
        commits += 1;
    }
    assert!(size(&path) > 2000 * 4096, "{} bytes were moved", size(&path));
}
