//! Each step of a schema is run once, from the one before, with data in it.

use crate::server::PrivateServer;
use crate::{LETTERS, both};
use db::{Address, Db, Error, Migration, Options, Statement, Value};

const SENDERS: Migration = Migration {
    number: 2,
    name: "senders",
    sqlite: "create table senders (id integer primary key, name text not null);
             insert into senders select distinct id, 'sender of ' || body from letters;
             alter table letters add sender integer;
             update letters set sender = id",
    postgres: "create table senders (id bigint primary key, name text not null);
             insert into senders select distinct id, 'sender of ' || body from letters;
             alter table letters add sender bigint;
             update letters set sender = id",
};
const BROKEN: Migration = Migration {
    number: 3,
    name: "broken",
    sqlite: "create table stamps (id integer); insert into nowhere values (1)",
    postgres: "create table stamps (id bigint); insert into nowhere values (1)",
};

const NAMES: Statement =
    both("select l.id, s.name from letters l join senders s on s.id = l.sender order by l.id");
const VERSIONS: Statement = both("select version, name from schema_versions order by version");

fn from_the_one_before(address: &Address) {
    let open = |migrations: &[Migration]| Db::open(address, migrations, &Options::default());
    let db = open(&[LETTERS]).unwrap();
    for id in 1..=3 {
        db.write_blocking(move |tx| crate::insert(tx, id)).unwrap();
    }
    drop(db);
    let db = open(&[LETTERS, SENDERS]).unwrap();
    let names: Vec<(i64, String)> =
        db.read_blocking::<_, Error, _>(|tx| tx.query(&NAMES, &[])).unwrap();
    assert_eq!(names, [1, 2, 3].map(|id| (id, "sender of Dear Ann".to_string())));
    drop(db);
    // A step that fails is not half there, and the data is as it was.
    assert!(open(&[LETTERS, SENDERS, BROKEN]).is_err());
    let db = open(&[LETTERS, SENDERS]).unwrap();
    let versions: Vec<(i64, String)> =
        db.read_blocking::<_, Error, _>(|tx| tx.query(&VERSIONS, &[])).unwrap();
    assert_eq!(versions, [(1, "letters".to_string()), (2, "senders".to_string())]);
    let stamps: Statement = both("select count(*) from stamps");
    assert!(
        db.read_blocking::<Vec<(i64,)>, Error, _>(move |tx| tx.query(&stamps, &[])).is_err(),
        "the failed step left a table behind"
    );
    db.write_blocking::<_, Error, _>(|tx| {
        tx.execute(&crate::INSERT, &[Value::Int(4), Value::Text("x")])
    })
    .unwrap();
    let refused = open(&[LETTERS]).err().unwrap();
    assert!(matches!(refused, Error::TooNew(_, 2, 1)), "{refused}");
}

#[test]
fn sqlite_migrates_from_the_one_before() {
    let directory = tempfile::tempdir().unwrap();
    from_the_one_before(&Address::sqlite(directory.path().join("a.db")));
}

#[test]
fn postgres_migrates_from_the_one_before() {
    let Some(server) = PrivateServer::start() else { return };
    from_the_one_before(&server.address(""));
}

/// Many processes that start at once run each step once.
#[test]
fn openers_at_once_migrate_once() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.db");
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                let address = Address::sqlite(&path);
                Db::open(&address, &[LETTERS, SENDERS], &Options::default()).unwrap();
            });
        }
    });
}
