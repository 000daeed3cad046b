//! What people do around ingests, on both set-ups.

use crate::support::packages::{bag, directory};
use crate::support::world::{World, finish};
use std::process::Stdio;

#[test]
fn collections_are_made_changed_held_and_released() {
    World::both(|world| {
        world.done(&["collection", "create", "maps", "owner=Map department"]);
        world.done(&["collection", "set", "maps", "fixity_days=30", "update_mode=add"]);
        let again = world.run(&["collection", "create", "maps"]);
        assert_eq!(again.status.code(), Some(2), "{}", again.stderr);
        let shown = world.json(&["collection", "show", "maps"]).remove(0);
        assert_eq!(
            (&shown["owner"], &shown["fixity_days"]),
            (&"Map department".into(), &30.into())
        );
        assert!(world.done(&["collection", "list"]).contains("maps"));
        world.done(&["collection", "hold", "maps", "--reason", "moving house"]);
        assert_eq!(world.json(&["collection", "show", "maps"])[0]["held"], true);
        let path = directory(&world.path("atlas"), &[("a.txt", "a map")]);
        let batch = world.deposit(&path, &["--collection", "maps"]);
        world.work();
        assert!(world.jobs().is_empty(), "nothing of it is read");
        assert_eq!(world.batch(batch)["held"], true, "a batch of a held collection is held");
        world.done(&["collection", "release", "maps"]);
        world.work();
        assert_eq!(world.batch(batch)["state"], "completed");
        world.check();
    });
}

/// Scripts hear of it by the exit status.
#[test]
fn a_worker_ends_with_1_if_a_job_failed() {
    let world = World::local(1);
    let work = || world.run(&["work", "--until-empty", "-q"]).status.code();
    let path = directory(&world.path("letters"), &[("a.txt", "Dear Ann")]);
    world.deposit(&path, &[]);
    assert_eq!(work(), Some(0));
    let damaged = bag(&world.path("damaged"), &[("a.txt", "good")]);
    std::fs::write(damaged.join("data/a.txt"), "evil").unwrap();
    world.deposit(&damaged, &[]);
    assert_eq!(work(), Some(1));
}

/// Someone may pause before anything was ever deposited.
#[test]
fn a_fresh_archive_can_be_paused() {
    World::both(|world| {
        world.done(&["jobs", "pause", "ingest", "--reason", "not today"]);
        let path = directory(&world.path("letters"), &[("a.txt", "Dear Ann")]);
        let batch = world.deposit(&path, &[]);
        let mut worker = world.worker();
        world.until("a job that waits", |jobs| jobs.len() == 1 && jobs[0]["status"] == "queued");
        let why = world.done(&["jobs", "why", &world.jobs()[0]["id"].to_string()]);
        assert!(why.contains("paused"), "{why}");
        worker.kill();
        world.done(&["jobs", "unpause", "ingest"]);
        world.work();
        assert_eq!(world.batch(batch)["state"], "completed");
    });
}

/// Whoever reads the output may go away, and nobody complains.
#[test]
fn an_export_ends_quietly_when_its_reader_goes_away() {
    let world = World::local(1);
    world.ingest(&directory(&world.path("letters"), &[("a.txt", "Dear Ann")]), &[]);
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = world.command(&["export", "premis", "letters"]);
    let child = command.stdout(writer).stderr(Stdio::piped()).spawn().unwrap();
    let ended = child.wait_with_output().unwrap();
    assert_eq!((ended.status.code(), ended.stderr.as_slice()), (Some(141), &b""[..]));
    let whole = finish(world.command(&["export", "premis", "letters"]), "export");
    assert!(whole.status.success() && whole.stdout.contains("premis"), "{}", whole.stderr);
}
