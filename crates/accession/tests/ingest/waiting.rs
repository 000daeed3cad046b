//! What waits says for what, who is to blame, and how it goes on; what cannot be says so.

use crate::support::packages::directory;
use crate::support::world::{Worker, World};
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::sync::mpsc;
use std::time::Duration;

/// Starts an ingest, gives what it says first of waiting, lets it go on, and waits for its end.
fn ingest_that_waits(world: &World, go_on: &[&str]) -> String {
    let path = directory(&world.path("one"), &[("a.txt", "one")]);
    let mut command = world.command(&["ingest", path.to_str().unwrap()]);
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = Worker(command.spawn().unwrap());
    let (send, said) = mpsc::channel();
    let stderr = child.0.stderr.take().unwrap();
    std::thread::spawn(move || {
        let lines = BufReader::new(stderr).lines().map_while(Result::ok);
        lines.for_each(|line| drop(send.send(line)));
    });
    let line = said.recv_timeout(Duration::from_secs(60)).expect("nothing was said");
    world.done(go_on);
    assert!(child.0.wait().unwrap().success(), "{:?}", said.try_iter().collect::<Vec<_>>());
    line
}

#[test]
fn an_ingest_says_that_ingest_is_paused() {
    let world = World::local(1);
    assert!(
        world
            .run(&["jobs", "pause", "ingest", "--as", "ann", "--reason", "disks"])
            .status
            .success()
    );
    let said = ingest_that_waits(&world, &["jobs", "unpause", "ingest"]);
    assert!(said.starts_with("batch 1 waits: `ingest` is paused by ann since "), "{said}");
    assert!(said.ends_with(": disks; `accession jobs unpause ingest` lets it go on"), "{said}");
}

#[test]
fn an_ingest_says_that_its_collection_is_held() {
    let world = World::local(1);
    let hold = ["collection", "hold", "default", "--as", "ann", "--reason", "audit"];
    assert!(world.run(&hold).status.success());
    let said = ingest_that_waits(&world, &["collection", "release", "default"]);
    assert!(
        said.starts_with("batch 1 waits: collection `default` is held by ann since "),
        "{said}"
    );
    assert!(
        said.ends_with(": audit; `accession collection release default` lets it go on"),
        "{said}"
    );
}

#[test]
fn a_held_batch_says_by_whom_and_why() {
    let world = World::local(1);
    let batch = world.deposit(&directory(&world.path("one"), &[("a.txt", "one")]), &[]).to_string();
    let hold = ["batches", "hold", &batch, "--as", "ann", "--reason", "the depositor asked"];
    assert!(world.run(&hold).status.success());
    let shown = world.run(&["batches", "show", &batch]).stdout;
    assert!(shown.contains("held (pending)"), "{shown}");
    assert!(shown.contains("the batch is held by ann since "), "{shown}");
    assert!(shown.contains(": the depositor asked; `accession batches release 1` lets"), "{shown}");
    assert!(world.run(&["batches", "release", &batch]).status.success());
    let shown = world.run(&["batches", "show", &batch]).stdout;
    assert!(!shown.contains("held") && !shown.contains("Waits:"), "{shown}");
}

#[test]
fn what_is_not_there_is_an_answer() {
    let world = World::local(1);
    let path = directory(&world.path("one"), &[("a.txt", "one")]);
    world.ingest(&path, &[]);
    for args in [
        ["objects", "show", "nothing"].as_slice(),
        &["objects", "files", "one", "--version", "9"],
        &["export", "premis", "nothing"],
        &["check", "nothing"],
        &["batches", "show", "99"],
        &["batches", "report", "99"],
        &["batches", "cancel", "99"],
        &["jobs", "show", "99"],
        &["jobs", "why", "99"],
    ] {
        let asked = world.run(args);
        let said = asked.stderr;
        assert_eq!(asked.status.code(), Some(1), "{args:?}: {said}");
        assert!(!said.contains("accession queue"), "{args:?}: {said}");
    }
}

#[test]
fn advice_fits_what_was_asked() {
    let world = World::local(1);
    let missing = world.run(&["deposit", "/nowhere/at/all"]);
    let said = missing.stderr;
    assert_eq!(missing.status.code(), Some(2), "{said}");
    assert!(said.contains("check the path") && !said.contains("requeue"), "{said}");
    let all = world.run(&["jobs", "retry"]);
    assert_eq!(all.status.code(), Some(2));
    assert!(all.stderr.contains("--all"), "{}", all.stderr);
    assert!(world.run(&["jobs", "retry", "--all"]).status.success());
}

#[test]
fn doctor_goes_on_after_a_wrong_configuration() {
    let world = World::local(1);
    let file = world.path("data/accession.toml");
    std::fs::write(&file, "[stores.s1]\nurl = \"stores/s1\"\ncolour = 1\n").unwrap();
    let looked = world.run(&["doctor"]);
    let said = looked.stdout;
    assert_eq!(looked.status.code(), Some(1), "{said}");
    assert!(said.contains("colour") && said.contains("SQLite"), "{said}");
}
