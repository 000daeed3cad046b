//! Databases on the private PostgreSQL that `$ACCESSION_TEST_POSTGRES` names.

use postgres::{Client, NoTls};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

/// A database that one test has to itself. Making one takes longer than most tests, so it is
/// emptied and used again by the next test of this process; the private server goes with them all.
pub struct FreshDatabase {
    pub url: String,
}

static FREE: Mutex<Vec<String>> = Mutex::new(Vec::new());

impl FreshDatabase {
    /// Returns a database with no rows, which may have the schema; None where no server is named.
    pub fn create() -> Option<FreshDatabase> {
        let free = FREE.lock().unwrap().pop();
        if let Some(url) = free {
            connect(&url).batch_execute(EMPTY).unwrap();
            return Some(FreshDatabase { url });
        }
        FreshDatabase::create_without_schema()
    }

    /// Returns a database that nothing has used; None where no server is named.
    pub fn create_without_schema() -> Option<FreshDatabase> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let server = std::env::var("ACCESSION_TEST_POSTGRES").ok()?;
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("test_{}_{number}", std::process::id());
        let mut client = connect(&server);
        client.batch_execute(&format!("drop database if exists {name} with (force)")).unwrap();
        client.batch_execute(&format!("create database {name}")).unwrap();
        let (base, _) = server.rsplit_once('/').unwrap();
        Some(FreshDatabase { url: format!("{base}/{name}") })
    }
}

impl Drop for FreshDatabase {
    fn drop(&mut self) {
        FREE.lock().unwrap().push(std::mem::take(&mut self.url));
    }
}

/// Everything but the schema, and all ids begin at 1 again.
/// (Deleting a few rows is quicker than giving two dozen tables new files.)
pub const EMPTY: &str = "do $$ declare name text; begin
    set local session_replication_role = replica;
    for name in select tablename from pg_tables where schemaname = 'public' and tablename <> 'schema_versions' loop
      execute 'delete from ' || quote_ident(name);
    end loop;
    for name in select sequencename from pg_sequences where schemaname = 'public' loop
      execute 'alter sequence ' || quote_ident(name) || ' restart';
    end loop;
  end $$";

pub fn connect(url: &str) -> Client {
    Client::connect(url, NoTls).unwrap()
}
