//! `sslmode` as libpq users know it, against a server with a self-signed certificate.

use crate::server::{PrivateServer, is_root, run};
use db::{Address, Db, Error, Options, Statement};
use std::path::Path;
use std::process::{Command, Stdio};

/// A certificate as PostgreSQL's manual tells people to make one, for the name `localhost`.
fn certify(data: &Path) {
    let (key, certificate) = (data.join("server.key"), data.join("server.crt"));
    let mut command = Command::new("openssl");
    command.args(["req", "-new", "-x509", "-days", "30", "-nodes", "-newkey", "rsa:2048"]);
    command.args(["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]);
    command.arg("-keyout").arg(&key).arg("-out").arg(&certificate);
    run(command.stderr(Stdio::null()));
    run(Command::new("chmod").arg("600").arg(&key));
    if is_root() {
        run(Command::new("chown").arg("postgres").arg(&key).arg(&certificate));
    }
    // Without TLS nobody is let in, and Ann only with her password.
    let rules = "hostssl all ann all scram-sha-256\nhostssl all all all trust\n";
    std::fs::write(data.join("pg_hba.conf"), rules).unwrap();
}

#[test]
fn sslmode_means_what_libpq_means() {
    if Command::new("openssl").arg("version").output().is_err() {
        testing::skip("openssl was not found");
        return;
    }
    let prepared = tempfile::tempdir().unwrap();
    let root = prepared.path().join("root.crt");
    let copy = |data: &Path| {
        certify(data);
        std::fs::copy(data.join("server.crt"), &root).unwrap();
    };
    let Some(server) = PrivateServer::start_with("ssl = on", &copy) else { return };
    let open = |host: &str, query: &str| {
        let url = format!("postgres://postgres@{host}:{}/postgres?{query}", server.port);
        Db::open(&Address::parse(&url).unwrap(), &[crate::LETTERS], &Options::default())
    };
    let trusting = format!("sslrootcert={}", root.display());
    for good in ["sslmode=require", "sslmode=prefer", ""] {
        let db = open("127.0.0.1", good).unwrap_or_else(|e| panic!("{good}: {e}"));
        db.write_blocking(|tx| crate::insert(tx, 1)).unwrap();
    }
    open("localhost", &format!("sslmode=verify-full&{trusting}")).unwrap();
    open("127.0.0.1", &format!("sslmode=verify-ca&{trusting}")).unwrap();
    open("127.0.0.1", &format!("sslmode=require&{trusting}")).unwrap();
    const ANN: Statement = crate::both("create role ann superuser login password 'hunter2'");
    let db = open("127.0.0.1", "").unwrap();
    db.write_blocking::<_, Error, _>(|tx| tx.execute(&ANN, &[])).unwrap();
    let by_ann = |password: &str| {
        let place = format!("127.0.0.1:{}/postgres?channel_binding=require", server.port);
        let address = Address::parse(&format!("postgres://ann:{password}@{place}")).unwrap();
        Db::open(&address, &[crate::LETTERS], &Options::default())
    };
    by_ann("hunter2").unwrap();
    assert!(matches!(by_ann("hunter3").err(), Some(Error::CannotOpen(..))));
    let refused = |host: &str, query: &str| {
        let error = open(host, query).err().unwrap_or_else(|| panic!("{query} was let in"));
        assert!(matches!(error, Error::CannotOpen(..) | Error::Unavailable(..)), "{error:?}");
        error.to_string()
    };
    assert!(refused("127.0.0.1", "sslmode=disable").contains("pg_hba"));
    // The certificate is for another name, is nobody's that is trusted, or another one is.
    refused("127.0.0.1", &format!("sslmode=verify-full&{trusting}"));
    refused("localhost", "sslmode=verify-full");
    refused("localhost", "sslmode=verify-ca");
    let stranger = prepared.path().join("data");
    std::fs::create_dir(&stranger).unwrap();
    certify(&stranger);
    let other = format!("sslrootcert={}", stranger.join("server.crt").display());
    refused("localhost", &format!("sslmode=verify-full&{other}"));
    refused("localhost", &format!("sslmode=require&{other}"));
    refused("localhost", "sslmode=verify-full&sslrootcert=/no/such/file");
}
