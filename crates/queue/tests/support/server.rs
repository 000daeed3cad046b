//! Databases on the private PostgreSQL that `$ACCESSION_TEST_POSTGRES` names.

use postgres::{Client, NoTls};
use std::sync::atomic::{AtomicU32, Ordering};

/// A database made for one test, and dropped with it.
pub struct FreshDatabase {
    pub url: String,
    name: String,
    server: String,
}

impl FreshDatabase {
    /// None where no server is named.
    pub fn create() -> Option<FreshDatabase> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let server = std::env::var("ACCESSION_TEST_POSTGRES").ok()?;
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("test_{}_{number}", std::process::id());
        let mut client = connect(&server);
        client.batch_execute(&format!("drop database if exists {name} with (force)")).unwrap();
        client.batch_execute(&format!("create database {name}")).unwrap();
        let (base, _) = server.rsplit_once('/').unwrap();
        Some(FreshDatabase { url: format!("{base}/{name}"), name, server })
    }
}

impl Drop for FreshDatabase {
    fn drop(&mut self) {
        let drop = format!("drop database if exists {} with (force)", self.name);
        connect(&self.server).batch_execute(&drop).unwrap();
    }
}

pub fn connect(url: &str) -> Client {
    Client::connect(url, NoTls).unwrap()
}
