//! A real small file system that fills up under an SQLite database.

use crate::server::{is_root, run};
use crate::{ids, insert, open};
use db::Error;
use std::path::Path;
use std::process::Command;
use tokio::task::block_in_place;

struct SmallDisk {
    directory: tempfile::TempDir,
}

impl SmallDisk {
    fn mount() -> Option<SmallDisk> {
        if !is_root() {
            testing::skip("mounting a small file system needs root");
            return None;
        }
        let disk = SmallDisk { directory: tempfile::tempdir().unwrap() };
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=2m", "tmpfs"]).arg(disk.directory.path());
        if !mount.status().is_ok_and(|s| s.success()) {
            testing::skip("a tmpfs cannot be mounted here");
            return None;
        }
        Some(disk)
    }

    fn grow(&self) {
        run(Command::new("mount").args(["-o", "remount,size=32m"]).arg(self.directory.path()));
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Lazily, because the database's threads may still be closing their files.
        let _ = Command::new("umount").arg("-l").arg(self.directory.path()).status();
    }
}

/// Writes pairs of rows until the disk is full; the ids that were acknowledged.
fn fill(db: &db::Db, from: i64) -> (Vec<i64>, Error) {
    let mut written = Vec::new();
    for id in from..from + 1_000_000 {
        let body = "x".repeat(8000);
        let answer = db.write_blocking::<_, Error, _>(move |tx| {
            tx.execute(&crate::INSERT, &db::params![id, &body])?;
            insert(tx, id)
        });
        match answer {
            Ok(()) => written.push(id),
            Err(error) => return (written, error),
        }
    }
    panic!("the disk never filled up");
}

fn twice(list: &[i64]) -> Vec<i64> {
    list.iter().flat_map(|id| [*id, *id]).collect()
}

fn check(path: &Path, expected: &[i64]) {
    let again = open(path).unwrap();
    assert_eq!(ids(&again), twice(expected), "exactly what was acknowledged is there");
}

/// "A full disk under SQLite loses nothing that was acknowledged, and work goes on when there is
/// room again."
#[test]
fn a_full_disk_loses_nothing_and_work_goes_on() {
    let Some(disk) = SmallDisk::mount() else { return };
    let path = disk.directory.path().join("a.db");
    let db = open(&path).unwrap();
    let (mut written, error) = fill(&db, 0);
    assert!(matches!(error, Error::NoSpace(_)), "{error:?}");
    assert!(error.to_string().contains("make room"), "{error}");
    assert!(written.len() > 10);
    // Still full, and still said so, without harm.
    for id in 5_000_000..5_000_005 {
        let body = "y".repeat(100_000);
        let refused = db.write_blocking::<_, Error, _>(move |tx| {
            tx.execute(&crate::INSERT, &db::params![id, &body]).map(|_| ())
        });
        assert!(matches!(refused, Err(Error::NoSpace(_))), "{refused:?}");
    }
    assert_eq!(ids(&db), twice(&written), "reading goes on");
    disk.grow();
    for id in 2_000_000..2_000_050 {
        db.write_blocking(move |tx| insert(tx, id).and_then(|()| insert(tx, id))).unwrap();
        written.push(id);
    }
    assert_eq!(ids(&db), twice(&written));
    drop(db);
    check(&path, &written);
}

/// The same with many closures in each group: those of a group that failed are told so, all of them.
#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_under_groups_of_closures() {
    let Some(disk) = SmallDisk::mount() else { return };
    let path = disk.directory.path().join("a.db");
    let db = open(&path).unwrap();
    let write = |id: i64| {
        let body = "x".repeat(2000);
        db.write::<_, Error, _>(move |tx| {
            tx.execute(&crate::INSERT, &db::params![id, &body])?;
            insert(tx, id).map(|()| id)
        })
    };
    // However the others are grouped, one is written, and more come than there is room for.
    let (mut written, mut refused) = (vec![write(0).await.unwrap()], 0);
    let answers: Vec<_> = (1..3000).map(write).collect();
    for answer in answers {
        match answer.await {
            Ok(id) => written.push(id),
            Err(Error::NoSpace(_)) => refused += 1,
            Err(other) => panic!("{other:?}"),
        }
    }
    assert!(refused > 0 && !written.is_empty());
    assert_eq!(block_in_place(|| ids(&db)), twice(&written));
    disk.grow();
    db.write(|tx| insert(tx, 9_000_000).and_then(|()| insert(tx, 9_000_000))).await.unwrap();
    written.push(9_000_000);
    drop(db);
    block_in_place(|| check(&path, &written));
}
