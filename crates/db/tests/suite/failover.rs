//! Servers that change roles.

use crate::server::PrivateServer;
use crate::{LETTERS, ids, insert};
use db::{Address, Db, Error, Options};

/// Every commit is on both servers before it is acknowledged; then the first is lost.
#[test]
fn a_standby_takes_over() {
    let Some(first) = PrivateServer::start_with("synchronous_standby_names = '*'", &|_| {}) else {
        return;
    };
    let second = first.standby("synchronous_standby_names = ''");
    let (one, other) = (second.port, first.port);
    let both = format!("postgres://postgres@127.0.0.1:{one},127.0.0.1:{other}/postgres");
    let address = Address::parse(&both).unwrap();
    let db = Db::open(&address, &[LETTERS], &Options::default()).unwrap();
    db.write_blocking::<_, Error, _>(|tx| insert(tx, 1)).unwrap();
    first.stop("immediate");
    second.promote();
    db.write_blocking::<_, Error, _>(|tx| insert(tx, 2)).unwrap();
    assert_eq!(ids(&db), [1, 2]);
}
