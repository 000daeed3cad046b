//! PostgreSQL that collides, stops, and loses answers: every acknowledged write is there once.

use crate::server::PrivateServer;
use crate::{INSERT, LETTERS, both, ids, insert};
use db::{Address, Db, Error, Migration, Options, Statement};
use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, AtomicU32, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::time::Duration;

const KEYS: Migration = Migration {
    number: 2,
    name: "keys",
    sqlite: "create table keys (name text primary key, value integer not null)",
    postgres: "create table keys (name text primary key, value bigint not null)",
};

fn connect(address: &Address) -> Db {
    let options = Options { timeout: Duration::from_secs(60), ..Options::default() };
    Db::open(address, &[LETTERS, KEYS], &options).unwrap()
}

/// Two closures that lock two rows in opposite orders: the server ends one, and it is run again.
#[test]
fn a_deadlock_runs_the_closure_again() {
    const ADD: Statement = both("update keys set value = value + 1 where name = $1");
    const KEY: Statement = both("insert into keys (name, value) values ($1, 0)");
    let Some(server) = PrivateServer::start_with("deadlock_timeout = '50ms'", &|_| {}) else {
        return;
    };
    let db = connect(&server.address(""));
    for name in ["left", "right"] {
        db.write_blocking::<_, Error, _>(move |tx| tx.execute(&KEY, &db::params![name])).unwrap();
    }
    let (both_inside, runs) = (Arc::new(Barrier::new(2)), Arc::new(AtomicU32::new(0)));
    std::thread::scope(|scope| {
        for order in [["left", "right"], ["right", "left"]] {
            let (db, both_inside, runs) = (db.clone(), both_inside.clone(), runs.clone());
            scope.spawn(move || {
                let first = AtomicBool::new(true);
                db.write_blocking::<_, Error, _>(move |tx| {
                    runs.fetch_add(1, Ordering::SeqCst);
                    tx.execute(&ADD, &db::params![order[0]])?;
                    if first.swap(false, Ordering::SeqCst) {
                        both_inside.wait();
                    }
                    tx.execute(&ADD, &db::params![order[1]])
                })
                .unwrap();
            });
        }
    });
    let sum: Statement = both("select cast(sum(value) as bigint) from keys");
    let (sum,): (i64,) = db.read_blocking::<_, Error, _>(move |tx| tx.one(&sum, &[])).unwrap();
    assert_eq!((sum, runs.load(Ordering::SeqCst)), (4, 3));
}

/// Two closures that both find a key missing: the second is run again and finds it.
#[test]
fn a_unique_collision_runs_the_closure_again() {
    const FIND: Statement = both("select value from keys where name = $1");
    const KEY: Statement = both("insert into keys (name, value) values ($1, $2)");
    let Some(server) = PrivateServer::start() else { return };
    let db = connect(&server.address(""));
    let both_looked = Arc::new(Barrier::new(2));
    let answers: Vec<(bool, i64)> = std::thread::scope(|scope| {
        let threads: Vec<_> = [10, 20]
            .into_iter()
            .map(|mine| {
                let (db, both_looked) = (db.clone(), both_looked.clone());
                scope.spawn(move || {
                    let first = AtomicBool::new(true);
                    db.write_blocking::<_, Error, _>(move |tx| {
                        if let Some((value,)) = tx.first::<(i64,)>(&FIND, &db::params!["k"])? {
                            return Ok((false, value));
                        }
                        if first.swap(false, Ordering::SeqCst) {
                            both_looked.wait();
                        }
                        tx.execute(&KEY, &db::params!["k", mine])?;
                        Ok((true, mine))
                    })
                    .unwrap()
                })
            })
            .collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    });
    assert_eq!(answers.iter().filter(|a| a.0).count(), 1, "one of them made it: {answers:?}");
    assert_eq!(answers[0].1, answers[1].1, "and both know which");
}

/// The server is stopped at once in the middle of many writes, and started again.
#[test]
fn a_server_that_stops_loses_and_doubles_nothing() {
    let Some(server) = PrivateServer::start() else { return };
    let db = connect(&server.address(""));
    let (next, stop) = (AtomicI64::new(0), AtomicBool::new(false));
    let outcomes: Mutex<HashMap<i64, bool>> = Mutex::default();
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                while !stop.load(Ordering::SeqCst) {
                    let id = next.fetch_add(1, Ordering::SeqCst);
                    let written = db.write_blocking(move |tx| insert(tx, id)).is_ok();
                    outcomes.lock().unwrap().insert(id, written);
                }
            });
        }
        for round in 1..=3 {
            while outcomes.lock().unwrap().len() < round * 150 {
                std::thread::yield_now();
            }
            server.stop("immediate");
            server.begin();
        }
        let seen = outcomes.lock().unwrap().len();
        while outcomes.lock().unwrap().len() < seen + 50 {
            std::thread::yield_now();
        }
        stop.store(true, Ordering::SeqCst);
    });
    let mut counts: HashMap<i64, usize> = HashMap::new();
    ids(&db).into_iter().for_each(|id| *counts.entry(id).or_default() += 1);
    for (id, written) in outcomes.into_inner().unwrap() {
        let count = counts.remove(&id).unwrap_or(0);
        assert!(
            count == 1 || (!written && count == 0),
            "letter {id} ({written}) is there {count} times"
        );
    }
    assert!(counts.is_empty(), "letters that nobody wrote: {counts:?}");
}

/// A server that is down is an error that says so once timeout is over, and nothing was done.
#[test]
fn a_server_that_stays_away_is_said_to_be() {
    let Some(server) = PrivateServer::start() else { return };
    let options = Options { timeout: Duration::from_millis(300), ..Options::default() };
    let db = Db::open(&server.address(""), &[LETTERS, KEYS], &options).unwrap();
    db.write_blocking(|tx| insert(tx, 1)).unwrap();
    server.stop("immediate");
    let answer = db.write_blocking(|tx| insert(tx, 2));
    assert!(matches!(answer, Err(Error::Unavailable(..))), "{answer:?}");
    server.begin();
    let patient = Options { timeout: Duration::from_secs(30), ..Options::default() };
    let again = Db::open(&server.address(""), &[LETTERS, KEYS], &patient).unwrap();
    again.write_blocking(|tx| insert(tx, 3)).unwrap();
    assert_eq!(ids(&again), [1, 3]);
}

/// A server that takes connections and says nothing, or nothing after it agreed to encrypt them, is
/// given up in time.
#[test]
fn a_server_that_says_nothing_is_given_up() {
    for first in [&b""[..], b"S"] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || {
            let mut kept = Vec::new();
            for mut client in listener.incoming().flatten() {
                client.write_all(first).unwrap();
                kept.push(client);
            }
        });
        let url = format!("postgres://ann@127.0.0.1:{port}/x?sslmode=require&connect_timeout=1");
        let refused = Db::open(&Address::parse(&url).unwrap(), &[], &Options::default()).err();
        let Some(Error::Unavailable(_, why)) = refused else { panic!("{first:?}: {refused:?}") };
        assert!(why.contains("does not answer"), "{why}");
    }
}

/// What a proxy does with the next COMMIT it sees.
const PASS: u8 = 0;
/// Passes it on, waits for the server's answer, and cuts the connection instead of answering.
const CUT_AFTER: u8 = 1;
/// Cuts the connection before the server has seen it.
const CUT_BEFORE: u8 = 2;

/// A way to the server that loses things on demand.
struct Proxy {
    port: u16,
    plan: Arc<AtomicU8>,
}

impl Proxy {
    fn start(server: u16) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let plan = Arc::new(AtomicU8::new(PASS));
        let told = plan.clone();
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let Ok(upstream) = TcpStream::connect(("127.0.0.1", server)) else { continue };
                let plan = told.clone();
                std::thread::spawn(move || pump(client, upstream, &plan));
            }
        });
        Proxy { port, plan }
    }
}

fn pump(mut client: TcpStream, mut upstream: TcpStream, plan: &AtomicU8) {
    // Set while the server's answers to this client are to be lost.
    let mute = Arc::new(AtomicBool::new(false));
    let (mut back_from, mut back_to) = (upstream.try_clone().unwrap(), client.try_clone().unwrap());
    let silent = mute.clone();
    std::thread::spawn(move || {
        let mut buffer = [0; 16384];
        while let Ok(length @ 1..) = back_from.read(&mut buffer) {
            if silent.load(Ordering::SeqCst) {
                break;
            }
            if back_to.write_all(&buffer[..length]).is_err() {
                break;
            }
        }
        let _ = back_to.shutdown(Shutdown::Both);
        let _ = back_from.shutdown(Shutdown::Both);
    });
    let mut buffer = [0; 16384];
    while let Ok(length @ 1..) = client.read(&mut buffer) {
        let is_commit = buffer[..length].windows(7).any(|w| w == b"COMMIT\0");
        if is_commit {
            match plan.swap(PASS, Ordering::SeqCst) {
                CUT_BEFORE => break,
                CUT_AFTER => mute.store(true, Ordering::SeqCst),
                _ => {}
            }
        }
        if upstream.write_all(&buffer[..length]).is_err() {
            break;
        }
    }
    if !mute.load(Ordering::SeqCst) {
        let _ = upstream.shutdown(Shutdown::Both);
        let _ = client.shutdown(Shutdown::Both);
    }
}

/// "no double execution when the answer to a COMMIT is lost".
#[test]
fn a_lost_answer_to_commit_is_looked_up() {
    let Some(server) = PrivateServer::start() else { return };
    let proxy = Proxy::start(server.port);
    let url = format!("postgres://postgres@127.0.0.1:{}/postgres?sslmode=disable", proxy.port);
    let db = connect(&Address::parse(&url).unwrap());
    for (plan, expected_runs) in [(CUT_AFTER, 1), (CUT_BEFORE, 2), (PASS, 1)] {
        for id in 0..5 {
            let runs = Arc::new(AtomicU32::new(0));
            let counted = runs.clone();
            proxy.plan.store(plan, Ordering::SeqCst);
            let id = i64::from(plan) * 100 + id;
            db.write_blocking(move |tx| {
                counted.fetch_add(1, Ordering::SeqCst);
                // Waited for or not: a statement that is only sent is lost with its commit or kept.
                match id % 2 {
                    0 => insert(tx, id),
                    _ => tx.send(&INSERT, &db::params![id, "Dear Ann"]),
                }
            })
            .unwrap();
            assert_eq!(runs.load(Ordering::SeqCst), expected_runs, "plan {plan}");
            assert_eq!(
                proxy.plan.load(Ordering::SeqCst),
                PASS,
                "the commit went through the proxy"
            );
        }
    }
    let direct = connect(&server.address(""));
    let expected: Vec<i64> = (0..3).flat_map(|plan| (0..5).map(move |n| plan * 100 + n)).collect();
    assert_eq!(ids(&direct), expected, "each once");
}

/// A wrong database, user or password is an error at once, and never shows the password.
#[test]
fn refusals_are_final_and_keep_the_password() {
    let Some(server) = PrivateServer::start() else { return };
    let url = format!("postgres://nobody:hunter2@127.0.0.1:{}/postgres", server.port);
    let refused = Db::open(&Address::parse(&url).unwrap(), &[], &Options::default()).err().unwrap();
    assert!(matches!(refused, Error::CannotOpen(..)), "{refused}");
    assert!(!format!("{refused} {refused:?}").contains("hunter2"));
    let missing = Address::parse(&server.url_of("no_such_database", "")).unwrap();
    let refused = Db::open(&missing, &[], &Options::default()).err().unwrap();
    assert!(refused.to_string().contains("no_such_database"), "{refused}");
}
