//! Everything moves from SQLite to PostgreSQL and back, or nothing does.

use crate::support::invariants::{self, Failed};
use crate::support::packages::{bag, directory};
use crate::support::world::{World, database_of_its_own, finish, finish_within};
use db::{Address, Db, Engine, Error, Move, Options, Statement};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

/// The engine's own tables.
const OWN: [&str; 3] = ["schema_versions", "counters", "commit_marks"];

/// Text that a test makes, as a statement of both engines.
fn said(sql: String) -> Statement {
    let sql: &'static str = Box::leak(sql.into_boxed_str());
    Statement { name: sql, sqlite: sql, postgres: sql }
}

fn open(address: &Address) -> Db {
    let options = Options { connections: 1, readers: 1, ..Options::default() };
    Db::open(address, archive::MIGRATIONS, &options).unwrap()
}

fn execute(db: &Db, sql: String) -> db::Result<u64> {
    let statement = said(sql);
    db.write_blocking(move |tx| tx.execute(&statement, &[]))
}

/// Tables and how many rows each has, as the database's own catalog knows them.
fn counts(db: &Db) -> BTreeMap<String, i64> {
    let tables = said(
        match db.engine() {
            Engine::Sqlite => {
                "select name from sqlite_schema where type = 'table' and name not like 'sqlite_%'"
            }
            Engine::Postgres => {
                "select cast(table_name as text) from information_schema.tables
                 where table_schema = current_schema() and table_type = 'BASE TABLE'"
            }
        }
        .to_string(),
    );
    let names: Vec<(String,)> =
        db.read_blocking::<_, Error, _>(move |tx| tx.query(&tables, &[])).unwrap();
    let names = names.into_iter().map(|row| row.0).filter(|name| !OWN.contains(&name.as_str()));
    names
        .map(|name| {
            let count = said(format!("select count(*) from {name}"));
            let counted = db.read_blocking::<(i64,), Error, _>(move |tx| tx.one(&count, &[]));
            (name, counted.unwrap().0)
        })
        .collect()
}

/// Every row of every table of an SQLite file.
fn dump(db: &Db) -> BTreeMap<String, Vec<String>> {
    let columns = said(
        "select m.name, group_concat('quote(\"' || p.name || '\")', ' || '','' || ')
         from sqlite_schema m join pragma_table_info(m.name) p where m.type = 'table' group by m.name"
            .to_string(),
    );
    let tables: Vec<(String, String)> =
        db.read_blocking::<_, Error, _>(move |tx| tx.query(&columns, &[])).unwrap();
    let tables = tables.into_iter().filter(|(name, _)| !OWN.contains(&name.as_str()));
    tables
        .map(|(name, columns)| {
            let rows = said(format!("select {columns} from {name} order by 1"));
            let rows: Vec<(String,)> =
                db.read_blocking::<_, Error, _>(move |tx| tx.query(&rows, &[])).unwrap();
            (name, rows.into_iter().map(|row| row.0).collect())
        })
        .collect()
}

/// Two rows in every table: one with a value in each column, one with as few as may be.
fn fill(db: &Db) {
    let columns = said(
        "select m.name, p.name, lower(p.type), max(p.\"notnull\", p.pk)
         from sqlite_schema m join pragma_table_info(m.name) p
         where m.type = 'table' and m.name not like 'sqlite_%' order by m.name, p.cid"
            .to_string(),
    );
    let columns: Vec<(String, String, String, i64)> =
        db.read_blocking::<_, Error, _>(move |tx| tx.query(&columns, &[])).unwrap();
    let mut tables: BTreeMap<String, Vec<(String, String, bool)>> = BTreeMap::new();
    for (table, column, kind, needed) in columns {
        if !OWN.contains(&table.as_str()) {
            tables.entry(table).or_default().push((column, kind, needed > 0));
        }
    }
    // A stage refers to its pipeline.
    let mut tables: Vec<_> = tables.into_iter().collect();
    tables.sort_by_key(|(table, _)| table != "pipelines");
    for (table, columns) in tables {
        for (number, all) in [(71, true), (72, false)] {
            let columns: Vec<_> = columns.iter().filter(|(_, _, needed)| all || *needed).collect();
            let names: Vec<String> =
                columns.iter().map(|(name, ..)| format!("\"{name}\"")).collect();
            let values: Vec<String> = columns
                .iter()
                .map(|(_, kind, _)| match kind.as_str() {
                    "integer" => number.to_string(),
                    "text" => format!("'{number} ünïcode, \"quotes\", \\ and\n\tlines'"),
                    _ => "x'00ff0d0a5c'".to_string(),
                })
                .collect();
            let (names, values) = (names.join(", "), values.join(", "));
            execute(db, format!("insert into {table} ({names}) values ({values})")).unwrap();
        }
    }
}

fn transfer(from: &Address, to: &Address) -> db::Result<db::Moved> {
    let moved = Move {
        from,
        to,
        migrations: archive::MIGRATIONS,
        ranged: queue::RANGED_SEQUENCES,
        options: Options { timeout: Duration::from_secs(5), ..Options::default() },
    };
    db::transfer(&moved, |_| Ok(()), &mut |_| {})
}

/// Fails when a table is added that is not copied, whatever is in it: each has rows here, and what there
/// is is asked of the databases themselves.
#[test]
fn every_row_of_every_table_moves_to_postgres_and_back() {
    let Some(server) = database_of_its_own() else { return };
    let dir = tempfile::tempdir().unwrap();
    let (first, last) = (dir.path().join("first.db"), dir.path().join("last.db"));
    let (first, last) = (Address::sqlite(first), Address::sqlite(last));
    let server = Address::parse(&server).unwrap();
    let source = open(&first);
    fill(&source);
    let ids = |db: &Db| -> Vec<i64> {
        let names = ["job_ids", "message_ids", "ark_numbers", "history_ids"];
        let taken = db.write_blocking::<_, Error, _>(move |tx| {
            let mut ids = Vec::new();
            for name in names {
                ids.extend(tx.next_ids::<i64>(name, 5)?);
            }
            ids.extend(tx.next_range("tokens", 9000)?.last());
            Ok(ids)
        });
        taken.unwrap()
    };
    ids(&source);
    let before = ids(&source);
    let (rows, counted) = (dump(&source), counts(&source));
    assert!(counted.len() > 35 && counted.values().all(|count| *count == 2), "{counted:?}");

    let moved = transfer(&first, &server).unwrap();
    assert!(moved.tables.iter().all(|table| table.rows == 2 && table.digest.len() == 64));
    let target = open(&server);
    assert_eq!(counts(&target), counted, "a table is not copied");
    let after = ids(&target);
    assert!(
        after.iter().zip(&before).all(|(after, before)| after > before),
        "{after:?} {before:?}"
    );
    assert_eq!(after[..20], before[..20].iter().map(|id| id + 5).collect::<Vec<_>>());
    // Rows with ids of their own go on after the largest.
    let file = "insert into files (object, path, since, size, sha512) values (1, 'p', 1, 1, 's')";
    execute(&target, file.to_string()).unwrap();
    execute(&target, "delete from files where path = 'p'".to_string()).unwrap();

    // Who had it open is refused as well as who opens it; and what is there can be read.
    let name = "update collections set created_by = 'x'";
    let refused = execute(&source, name.to_string()).unwrap_err();
    assert!(
        matches!(&refused, Error::Moved(why) if why.contains("was moved, to postgres")),
        "{refused}"
    );
    assert_eq!(dump(&source), rows);
    let refused = Db::open(&first, archive::MIGRATIONS, &Options::default()).err().unwrap();
    assert!(
        matches!(&refused, Error::Moved(why) if why.contains("was moved to postgres")),
        "{refused}"
    );
    let again = transfer(&first, &server).unwrap_err();
    assert!(matches!(again, Error::Moved(_)), "{again}");

    let moved = transfer(&server, &last).unwrap();
    assert!(moved.tables.iter().all(|table| table.rows == 2));
    let end = open(&last);
    assert_eq!(dump(&end), rows);
    assert!(ids(&end).iter().zip(&after).all(|(end, after)| end > after));
    let refused = execute(&target, name.to_string()).unwrap_err();
    assert!(
        matches!(&refused, Error::Moved(why) if why.contains("was moved, to sqlite")),
        "{refused}"
    );
    // The way back.
    drop(target);
    let reopened = db::reopen(&server, archive::MIGRATIONS, &Options::default()).unwrap().unwrap();
    assert!(reopened.is_complete && reopened.address == last.to_string());
    execute(&open(&server), name.to_string()).unwrap();
    drop(source);
    db::reopen(&first, archive::MIGRATIONS, &Options::default()).unwrap().unwrap();
    assert_eq!(execute(&open(&first), name.to_string()).unwrap(), 2);
    assert_eq!(db::reopen(&first, archive::MIGRATIONS, &Options::default()).unwrap(), None);
}

/// What people see of an archive.
fn seen(world: &World) -> Vec<Value> {
    let questions: [&[&str]; 7] = [
        &["objects", "list"],
        &["objects", "show", "box-17"],
        &["objects", "versions", "box-17"],
        &["jobs", "list", "ingest", "--limit", "100"],
        &["jobs", "show", "2"],
        &["batches", "show", "1"],
        &["collection", "show", "default"],
    ];
    questions.iter().flat_map(|question| world.json(question)).collect()
}

fn archive_with_a_past() -> World {
    let world = World::local(1);
    let path = world.path("box-17");
    bag(&path, &[("a.txt", "one"), ("b.txt", "two")]);
    world.ingest(&path, &["--what", "Box 17", "--local-id", "box-17"]);
    std::fs::remove_dir_all(&path).unwrap();
    bag(&path, &[("a.txt", "ONE"), ("ü.txt", "three")]);
    world.ingest(&path, &["--what", "Box 17", "--local-id", "box-17"]);
    bag(&world.path("torn"), &[("page.txt", "whole")]);
    std::fs::write(world.path("torn/data/page.txt"), "whxle").unwrap();
    world.ingest(&world.path("torn"), &[]);
    let later = directory(&world.path("later"), &[("a.txt", "later")]);
    world.deposit(&later, &["--local-id", "later"]);
    world
}

fn migrate(world: &World, to: &str) -> Value {
    let done = world.json(&["db", "migrate", "--to", to]).remove(0);
    assert!(done["rows"].as_u64().is_some_and(|rows| rows > 50), "{done}");
    done
}

#[test]
fn an_archive_goes_on_where_it_was_moved_to_and_back_again() {
    let Some(server) = database_of_its_own() else { return };
    let mut world = archive_with_a_past();
    let before = seen(&world);
    let old = world.database.clone();
    migrate(&world, &server);
    let refused = world.run(&["objects", "list"]);
    assert_eq!(refused.status.code(), Some(3));
    assert!(refused.stderr.contains("[database_moved]"), "{}", refused.stderr);
    assert!(refused.stderr.contains("accession db reopen"), "{}", refused.stderr);

    world.database.clone_from(&server);
    assert_eq!(seen(&world), before);
    world.work();
    assert_eq!(world.files("later", None), ["data/a.txt"], "what had waited");
    bag(&world.path("box-18"), &[("c.txt", "new")]);
    world.ingest(&world.path("box-18"), &[]);
    invariants::check(&world, Failed::Some);

    let new = format!("sqlite://{}", world.path("data/new.db").display());
    let before = seen(&world);
    migrate(&world, &new);
    world.database = new;
    assert_eq!(seen(&world), before);
    bag(&world.path("box-19"), &[("d.txt", "newer")]);
    world.ingest(&world.path("box-19"), &[]);
    invariants::check(&world, Failed::Some);
    // The first one can be used again, and is as it was left.
    world.database = old;
    let reopened = world.json(&["db", "reopen"]).remove(0);
    assert_eq!(reopened["was_complete"], true);
    assert_eq!(world.json(&["objects", "list"]).len(), 1);
}

fn refused(world: &World, to: &str, code: &str) -> String {
    let ended = world.run(&["db", "migrate", "--to", to]);
    assert!(!ended.status.success());
    assert!(ended.stderr.contains(&format!("[{code}]")), "{code}: {}", ended.stderr);
    // It can be used as before.
    world.done(&["objects", "list"]);
    ended.stderr
}

#[test]
fn a_move_is_refused_while_workers_run_and_to_what_is_not_empty() {
    let Some(server) = database_of_its_own() else { return };
    let world = archive_with_a_past();
    let mut worker = world.worker();
    world.until_some("a worker", || {
        world.done(&["queue", "workers", "--json"]).contains("\"pid\"").then_some(())
    });
    let said = refused(&world, &server, "refused");
    assert!(said.contains("pid "), "{said}");
    worker.kill();
    world.work();
    // A worker that was killed counts until its lease has run out: here, a second.
    refused(
        &world,
        &format!("sqlite://{}/b.db", world.dir.path().display()),
        "database_not_movable",
    );
    refused(&world, "postgres://ann:s3cret@127.0.0.1:1/none", "database_unavailable");
    let missing =
        world.run(&["--database", "sqlite:///none/a.db", "db", "migrate", "--to", &server]);
    assert!(missing.stderr.contains("no such file"), "{}", missing.stderr);

    let full = open(&Address::parse(&server).unwrap());
    execute(&full, "insert into told_reviews (job, at) values (1, 1)".to_string()).unwrap();
    let said = refused(&world, &server, "database_not_empty");
    assert!(said.contains("told_reviews has 1 row"), "{said}");
    execute(&full, "delete from told_reviews".to_string()).unwrap();
    drop(full);
    migrate(&world, &server);
    let mut there = archive_with_a_past();
    let file = world.database.clone();
    there.database.clone_from(&server);
    let said = refused(&there, &file, "database_not_empty");
    assert!(said.contains("the file exists already"), "{said}");
}

#[test]
fn passwords_are_not_printed() {
    let Some(server) = database_of_its_own() else { return };
    let world = archive_with_a_past();
    let secret = server.replace("postgres://postgres@", "postgres://postgres:s3cret@");
    assert_ne!(secret, server);
    let ended = world.run(&["db", "migrate", "-vv", "--to", &secret]);
    let later = world.run(&["objects", "list"]);
    let back = world.run(&["db", "reopen"]);
    for said in [&ended, &later, &back] {
        assert!(!said.stdout.contains("s3cret") && !said.stderr.contains("s3cret"));
    }
    assert!(ended.status.success(), "{}", ended.stderr);
    assert!(later.stderr.contains("was moved to postgres://postgres:***@"), "{}", later.stderr);
}

/// Killed at the worst moments, in both directions; the same command goes on.
#[test]
fn a_move_that_is_killed_is_run_again() {
    for failpoint in ["db/frozen", "db/copying:9", "db/committed"] {
        let Some(server) = database_of_its_own() else { return };
        let mut world = archive_with_a_past();
        let before = seen(&world);
        let new = format!("sqlite://{}", world.path("data/new.db").display());
        for to in [server, new] {
            let mut command = world.command(&["db", "migrate", "--to", &to]);
            command.env("ACCESSION_FAILPOINT", failpoint);
            assert!(!finish(command, failpoint).status.success(), "{failpoint}");
            let half = world.run(&["objects", "list"]);
            assert!(half.stderr.contains("is being moved to"), "{failpoint}: {}", half.stderr);
            assert!(half.stderr.contains("[database_moved]"), "{failpoint}: {}", half.stderr);
            if failpoint != "db/committed" {
                let empty = match to.strip_prefix("sqlite://") {
                    Some(path) => !Path::new(path).exists(),
                    None => {
                        let target = open(&Address::parse(&to).unwrap());
                        counts(&target).values().all(|count| *count == 0)
                    }
                };
                assert!(empty, "{failpoint}: half of it is at {to}");
                // Another place would be a second copy, if the first one had been complete.
                let elsewhere = format!("sqlite://{}", world.path("other.db").display());
                let other = world.run(&["db", "migrate", "--to", &elsewhere]);
                assert!(!other.status.success());
            }
            let again = world.json(&["db", "migrate", "--to", &to]).remove(0);
            assert_eq!(again["was_complete"], failpoint == "db/committed", "{again}");
            world.database = to;
            assert_eq!(seen(&world), before, "{failpoint}");
        }
        world.work();
        invariants::check(&world, Failed::Some);
    }
}

#[test]
fn an_interrupted_move_can_be_given_up() {
    let Some(server) = database_of_its_own() else { return };
    let world = archive_with_a_past();
    let before = seen(&world);
    let mut command = world.command(&["db", "migrate", "--to", &server]);
    command.env("ACCESSION_FAILPOINT", "db/copying:5");
    assert!(!finish(command, "killed").status.success());
    let reopened = world.json(&["db", "reopen"]).remove(0);
    assert_eq!(reopened["was_complete"], false);
    assert_eq!(seen(&world), before);
    world.work();
    migrate(&world, &server);
}

/// Rows are neither gathered in memory nor in one message.
#[test]
fn many_jobs_are_moved_in_bounded_memory() {
    use std::io::Write;
    const JOBS: usize = 60_000;
    let Some(server) = database_of_its_own() else { return };
    let mut world = World::local(1);
    world.done(&["queue", "create", "letters"]);
    let mut command = world.command(&["queue", "add", "letters", "--from", "-", "-q"]);
    command.stdin(Stdio::piped()).stdout(Stdio::null());
    let mut child = command.spawn().unwrap();
    let mut stdin = std::io::BufWriter::new(child.stdin.take().unwrap());
    // 60 MB, in the columns of several tables.
    let long = "x".repeat(900);
    for number in 0..JOBS {
        writeln!(stdin, "{number}-{long}").unwrap();
    }
    drop(stdin);
    assert!(child.wait().unwrap().success());
    for to in [server, format!("sqlite://{}", world.path("data/new.db").display())] {
        let command = world.command(&["db", "migrate", "--to", &to, "-q"]);
        let ended = finish_within(Duration::from_secs(300), command, "migrate");
        assert!(ended.status.success(), "{}", ended.stderr);
        assert!(ended.peak_kib < 160 * 1024, "{} KiB", ended.peak_kib);
        world.database = to;
    }
    let file = world.path("data/new.db");
    assert!(std::fs::metadata(file).unwrap().len() > 100 << 20, "more than may be in memory");
}
