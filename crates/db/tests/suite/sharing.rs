//! Several handles and processes on one SQLite file, and files that cannot be used.

use crate::{LETTERS, ids, insert, open};
use db::{Address, Db, Error, Migration, Options};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tokio::task::block_in_place;

/// The other process: writes letters until its standard input is closed.
#[test]
#[ignore = "run by other tests as a process of its own"]
fn another_process() {
    let (Ok(path), Ok(first)) = (std::env::var("LETTERS_FILE"), std::env::var("LETTERS_FIRST"))
    else {
        panic!("this is run by other tests");
    };
    let db = open(Path::new(&path)).unwrap();
    let first: i64 = first.parse().unwrap();
    let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let told = stop.clone();
    std::thread::spawn(move || {
        let _ = std::io::Read::read(&mut std::io::stdin(), &mut [0]);
        told.store(true, std::sync::atomic::Ordering::SeqCst);
    });
    let mut id = first;
    while !stop.load(std::sync::atomic::Ordering::SeqCst) {
        db.write_blocking(move |tx| insert(tx, id)).unwrap();
        id += 1;
    }
    println!("wrote {}", id - first);
}

fn spawn_writer(path: &Path, first: i64) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "sharing::another_process", "--ignored", "--nocapture"])
        .env("LETTERS_FILE", path)
        .env("LETTERS_FIRST", first.to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Processes that write without pause do not lock one another out, nor starve one that writes now
/// and then; and what each was told is written is there.
#[test]
fn processes_share_a_file_in_turns() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.db");
    let db = open(&path).unwrap();
    let mut others: Vec<Child> = (1..=2).map(|n| spawn_writer(&path, n * 1_000_000)).collect();
    while ids(&db).len() < 20 {
        std::thread::yield_now();
    }
    let mut slowest = Duration::ZERO;
    for id in 0..50 {
        let began = Instant::now();
        db.write_blocking(move |tx| insert(tx, id)).unwrap();
        slowest = slowest.max(began.elapsed());
    }
    let mut wrote = 0;
    for other in &mut others {
        drop(other.stdin.take());
    }
    for other in others {
        let output = other.wait_with_output().unwrap();
        assert!(output.status.success(), "a writer was locked out");
        let text = String::from_utf8(output.stdout).unwrap();
        let line = text.lines().find_map(|l| l.split("wrote ").nth(1)).unwrap();
        wrote += line.trim().parse::<usize>().unwrap();
    }
    assert_eq!(ids(&db).len(), wrote + 50);
    assert!(slowest < Duration::from_secs(5), "one write waited {slowest:?}");
}

/// A commit in one handle wakes whoever waits in another.
#[tokio::test(flavor = "multi_thread")]
async fn handles_wake_one_another() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.db");
    let (one, two) = (open(&path).unwrap(), open(&path).unwrap());
    let mut news = two.subscribe(7);
    one.write::<_, Error, _>(|tx| {
        tx.wake(7);
        insert(tx, 1)
    })
    .await
    .unwrap();
    tokio::time::timeout(Duration::from_secs(5), news.changed()).await.unwrap().unwrap();
    assert_eq!(block_in_place(|| ids(&two)), [1]);
}

/// Nobody is woken where nobody else listens; whoever begins to is.
#[test]
fn a_bell_is_rung_for_others_only() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.db");
    let bell = || std::fs::metadata(directory.path().join("a.db-bell")).unwrap().len();
    let one = open(&path).unwrap();
    let write = |id| {
        let written = one.write_blocking::<_, Error, _>(move |tx| {
            tx.wake(7);
            insert(tx, id)
        });
        written.unwrap();
    };
    // It is rung after the answer, before the next commit.
    write(1);
    write(2);
    assert_eq!(bell(), 0, "it was rung, and nobody is there");
    let two = open(&path).unwrap();
    write(3);
    write(4);
    assert_eq!(bell(), 1, "it was not rung");
    drop(two);
}

#[test]
fn a_file_of_another_program_is_refused_and_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let text = directory.path().join("notes.txt");
    std::fs::write(
        &text,
        "these are my notes, and they are longer than a header of SQLite is. ".repeat(30),
    )
    .unwrap();
    let before = std::fs::read(&text).unwrap();
    let refused = open(&text).err().unwrap();
    assert!(matches!(refused, Error::NotOurs(..)), "{refused}");
    assert_eq!(std::fs::read(&text).unwrap(), before);

    let other = directory.path().join("other.db");
    let connection = rusqlite::Connection::open(&other).unwrap();
    connection.execute_batch("create table birds (name text)").unwrap();
    drop(connection);
    let refused = open(&other).err().unwrap();
    assert!(refused.to_string().contains("another program"), "{refused}");
}

#[test]
fn a_newer_schema_is_refused_with_both_versions() {
    const NEWER: Migration = Migration {
        number: 2,
        name: "stamps",
        sqlite: "alter table letters add stamp text",
        postgres: "alter table letters add stamp text",
    };
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.db");
    drop(Db::open(&Address::sqlite(&path), &[LETTERS, NEWER], &Options::default()).unwrap());
    let refused = open(&path).err().unwrap();
    assert!(matches!(refused, Error::TooNew(_, 2, 1)), "{refused}");
    assert!(refused.to_string().contains("newer program"), "{refused}");
}

/// Root may write anything, so this needs a file system that is read-only for it too.
#[test]
fn a_read_only_database_is_refused_in_one_line() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.db");
    drop(open(&path).unwrap());
    let mount = |arguments: &[&str]| {
        Command::new("mount").args(arguments).arg(directory.path()).stderr(Stdio::null()).status()
    };
    let shown = directory.path().to_str().unwrap().to_string();
    let bound = mount(&["--bind", &shown]).is_ok_and(|s| s.success());
    if bound {
        assert!(mount(&["-o", "remount,bind,ro"]).unwrap().success());
    } else {
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o444)).unwrap();
        std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o555)).unwrap();
    }
    let refused = open(&path).err();
    if bound {
        assert!(Command::new("umount").arg(directory.path()).status().unwrap().success());
    } else {
        std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let refused = refused.expect("it must not be opened");
    assert!(matches!(refused, Error::ReadOnly(_)), "{refused}");
    assert!(!refused.to_string().contains('\n'));
}

#[test]
fn a_missing_directory_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let refused = open(&directory.path().join("no/such/a.db")).err().unwrap();
    assert!(matches!(refused, Error::CannotOpen(..)), "{refused}");
    assert!(refused.to_string().contains("no/such/a.db"), "{refused}");
}
