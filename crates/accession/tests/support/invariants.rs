//! What must hold when all is done, whatever happened on the way.

use super::world::{World, finish};
use db::{Address, Db, Statement};
use std::path::Path;

/// What jobs that did not end well may have left.
#[derive(Clone, Copy, PartialEq)]
pub enum Failed {
    None,
    /// Their staged data and unsealed versions are kept for a while.
    Some,
}

/// Asks everything there is to ask.
pub fn check(world: &World, failed: Failed) {
    registry(world);
    tables(world);
    stores(world, failed);
    if failed == Failed::None {
        work_space(world);
    }
    rebuilt(world);
}

fn database(world: &World) -> Db {
    let address = Address::parse(&world.database).unwrap();
    let options = db::Options { connections: 1, readers: 1, ..db::Options::default() };
    Db::open(&address, archive::MIGRATIONS, &options).unwrap()
}

fn statement(sql: &'static str) -> Statement {
    Statement { name: sql, sqlite: sql, postgres: sql }
}

fn count(world: &World, sql: &'static str) -> i64 {
    let found: archive::Result<(i64,)> =
        database(world).read_blocking(move |tx| Ok(tx.one(&statement(sql), &[])?));
    found.unwrap().0
}

/// Changes the database behind the back of the rules. Returns how many rows that changed.
pub fn execute(world: &World, sql: &'static str) -> u64 {
    let changed: archive::Result<u64> =
        database(world).write_blocking(move |tx| Ok(tx.execute(&statement(sql), &[])?));
    changed.unwrap()
}

/// Jobs that ended and were not cleaned up after; 4 is succeeded, 5 cancelled.
pub fn uncleaned(world: &World) -> i64 {
    count(
        world,
        "select count(*) from ingests i join jobs j on j.id = i.job
         where i.cleaned_at is null and j.status in (4, 5)",
    )
}

fn none(world: &World, what: &str, sql: &'static str) {
    assert_eq!(count(world, sql), 0, "{what}");
}

/// One version for each job that succeeded and changed something, and each event once.
fn registry(world: &World) {
    // 4 is succeeded.
    none(
        world,
        "jobs that succeeded without exactly one version",
        "select count(*) from ingests i join jobs j on j.id = i.job where j.status = 4
         and (select count(*) from versions v where v.job = i.job)
           <> case when i.unchanged = 1 then 0 else 1 end",
    );
    none(
        world,
        "versions of jobs that did not succeed",
        "select count(*) from versions v join jobs j on j.id = v.job where j.status <> 4",
    );
    none(
        world,
        "objects whose head is not their last version",
        "select count(*) from objects o where o.head
         <> (select count(*) from versions v where v.object = o.id)",
    );
    none(
        world,
        "versions with an event missing or twice",
        "select count(*) from versions v where exists (
           select 1 from (select 'ingestion' as kind union select 'validation'
             union select 'message digest calculation' union select 'format identification') k
           where (select count(*) from events e where e.object = v.object
             and e.version = v.number and e.kind = k.kind) <> 1)",
    );
    none(
        world,
        "versions without one fixity check for each copy",
        "select count(*) from versions v where
           (select count(*) from events e where e.object = v.object and e.version = v.number
              and e.kind = 'fixity check' and e.job is not null)
           <> (select count(*) from copies c where c.object = v.object)",
    );
    none(
        world,
        "fixity checks that compared nothing",
        "select count(*) from events e where e.kind = 'fixity check' and e.outcome = 'success'
         and (e.detail is null or e.detail like '0 %' or e.detail not like '%compared%')",
    );
    none(
        world,
        "copies verified after their first version without a check that read them",
        "select count(*) from copies c join versions v on v.object = c.object and v.number = 1
         where c.checked_at is null and c.verified_at > v.created_at",
    );
    let ended = world.run(&["check", "--content"]);
    assert!(ended.status.success(), "{}{}", ended.stdout, ended.stderr);
}

/// What only the way needs is gone when it is over: 4 is succeeded, 5 cancelled.
fn tables(world: &World) {
    none(
        world,
        "ingest_files",
        "select count(*) from ingest_files f join jobs j on j.id = f.job where j.status in (4, 5)",
    );
    none(
        world,
        "ingest_directories",
        "select count(*) from ingest_directories f join jobs j on j.id = f.job
         where j.status in (4, 5)",
    );
    none(
        world,
        "ingest_events",
        "select count(*) from ingest_events f join jobs j on j.id = f.job where j.status in (4, 5)",
    );
    none(
        world,
        "space_reservations",
        "select count(*) from space_reservations f join jobs j on j.id = f.job
         where j.status in (4, 5)",
    );
}

fn stores(world: &World, failed: Failed) {
    for (name, url) in &world.stores {
        let valid = world.run(&["ocfl", "validate", url]);
        assert!(valid.status.success(), "{name}: {}{}", valid.stdout, valid.stderr);
        if failed == Failed::None {
            // A seal that was cut short may leave traces; sweep knows them all, and nothing else.
            world.done(&["ocfl", "sweep", "--older-than", "0", url]);
            let unsealed = Path::new(url).join("extensions/unsealed-versions");
            let mut left: Vec<_> =
                std::fs::read_dir(unsealed).into_iter().flatten().flatten().collect();
            left.retain(|entry| entry.file_name() != "temporaries");
            assert!(left.is_empty(), "leftovers in {name}: {left:?}");
        }
    }
}

fn work_space(world: &World) {
    // Where packages of buckets are put stays, without them.
    let below = |path: &Path| std::fs::read_dir(path).into_iter().flatten().flatten();
    let space = world.path("data/work");
    let left = below(&space).filter(|e| e.file_name() != "received");
    let left: Vec<_> = left.chain(below(&space.join("received"))).map(|e| e.path()).collect();
    assert!(left.is_empty(), "left in the work space: {left:?}");
}

/// A registry that is made from each store alone says the same.
fn rebuilt(world: &World) {
    let dump = world.done(&["registry", "dump"]);
    for (name, _) in &world.stores {
        let fresh = tempfile::tempdir().unwrap();
        world.configure_in(fresh.path(), "");
        let there = |args: &[&str]| {
            let mut command = world.command(args);
            command.env("ACCESSION_DATA", fresh.path()).env(
                "ACCESSION_DATABASE",
                format!("sqlite://{}", fresh.path().join("fresh.db").display()),
            );
            let ended = finish(command, "rebuild");
            assert!(ended.status.success(), "{}{}", ended.stdout, ended.stderr);
            ended.stdout
        };
        there(&["registry", "rebuild", "--from", name]);
        let again = there(&["registry", "dump"]);
        let (was, is) = (known_to(&dump, name), known_to(&again, name));
        let lost: Vec<_> = was.iter().filter(|line| !is.contains(*line)).take(3).collect();
        let more: Vec<_> = is.iter().filter(|line| !was.contains(*line)).take(3).collect();
        assert!(lost.is_empty() && more.is_empty(), "lost: {lost:#?}\nmore: {more:#?}");
    }
}

/// A store knows nothing of the copies in others.
fn known_to<'d>(dump: &'d str, store: &str) -> std::collections::BTreeSet<&'d str> {
    let of_store = |line: &&str| {
        let words: Vec<&str> = line.split(' ').collect();
        words[0] != "copy" || words.get(2) == Some(&store)
    };
    dump.lines().filter(of_store).collect()
}
