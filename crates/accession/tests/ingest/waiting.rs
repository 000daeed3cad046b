//! What waits says for what, who is to blame, and how it goes on; what cannot be says so.

use crate::support::packages::directory;
use crate::support::web;
use crate::support::world::{Worker, World};
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::sync::mpsc;
use std::time::Duration;

/// Starts an ingest, gives what it says first of waiting, lets it go on, and waits for its end.
fn ingest_that_waits(world: &World, go_on: &[&str]) -> String {
    let path = directory(&world.path("one"), &[("a.txt", "one")]);
    let (mut child, said) = said_by(world, &["ingest", path.to_str().unwrap()]);
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

/// I9: nothing of a held collection is claimed, the job that reads what was deposited among it.
#[test]
fn nothing_of_a_held_collection_is_begun() {
    World::both(|world| {
        let path = directory(&world.path("one"), &[("a.txt", "one")]);
        world.done(&["collection", "hold", "default", "--as", "ann", "--reason", "audit"]);
        let one = world.deposit(&path, &[]);
        world.done(&["collection", "release", "default"]);
        let two = world.deposit(&directory(&world.path("two"), &[("a.txt", "two")]), &[]);
        world.done(&["collection", "hold", "default", "--as", "ann", "--reason", "audit"]);
        world.work();
        let jobs = world.jobs();
        assert_eq!(jobs.len(), 0, "no batch is expanded: {jobs:#?}");
        for batch in [one, two] {
            let shown = world.done(&["batches", "show", &batch.to_string()]);
            assert!(shown.contains("held (pending)"), "{shown}");
            assert!(shown.contains("collection `default` is held by ann since "), "{shown}");
        }
        let held = world.json(&["jobs", "list", "batch", "--status", "held"]).remove(0);
        assert_eq!(held["jobs"].as_array().map(Vec::len), Some(2), "{held:#}");
        world.done(&["collection", "release", "default"]);
        world.work();
        assert_eq!(world.batch(two)["state"], "completed");
        world.check();
    });
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

/// Starts a command and hands over the lines of its standard error as they come.
fn said_by(world: &World, args: &[&str]) -> (Worker, mpsc::Receiver<String>) {
    let mut command = world.command(args);
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = Worker(command.spawn().unwrap());
    let (send, said) = mpsc::channel();
    let stderr = child.0.stderr.take().unwrap();
    std::thread::spawn(move || {
        let lines = BufReader::new(stderr).lines().map_while(Result::ok);
        lines.for_each(|line| drop(send.send(line)));
    });
    (child, said)
}

#[test]
fn a_deposit_that_waits_says_that_no_worker_is_running_and_when_one_is() {
    World::both(|world| {
        // So that it is not over before anything can be said.
        world.done(&["jobs", "pause", "ingest", "--reason", "not yet"]);
        let path = directory(&world.path("one"), &[("a.txt", "one")]);
        let (mut child, said) = said_by(world, &["deposit", path.to_str().unwrap(), "--wait"]);
        let next = || {
            let mut lines = std::iter::repeat_with(|| {
                said.recv_timeout(Duration::from_secs(60)).expect("nothing was said")
            });
            lines.find(|line| !line.contains("is paused by")).unwrap()
        };
        assert_eq!(next(), "no worker is running; start one with `accession work`");
        let mut some = world.command(&["work", "--lease", "5", "--stages", "batch,estimating"]);
        let some = Worker(some.stderr(Stdio::null()).stdout(Stdio::null()).spawn().unwrap());
        let line = next();
        assert!(line.starts_with("no running worker works on ingest/provisioning, "), "{line}");
        let _worker = world.worker();
        assert_eq!(next(), "a worker is running now");
        world.done(&["jobs", "unpause", "ingest"]);
        assert!(child.0.wait().unwrap().success());
        drop(some);
    });
}

/// Nobody stopped it, and nothing of it runs: the work space is full.
#[test]
fn an_ingest_of_which_nothing_runs_says_what_it_waits_for() {
    let mut world = World::local(1);
    for (key, percent) in [("ADMIT", "1"), ("STOP", "2")] {
        world.env.push((format!("ACCESSION_WORK_SPACE_{key}_PERCENT"), percent.to_string()));
    }
    let files = directory(&world.path("web"), &[("a.txt", "one")]);
    let url = format!("{}/a.txt", web::serve(&files));
    let (_child, said) = said_by(&world, &["ingest", &url]);
    let mut lines = std::iter::repeat_with(|| {
        said.recv_timeout(Duration::from_secs(60)).expect("nothing was said")
    });
    let line = lines.find(|line| line.starts_with("batch ")).unwrap();
    assert!(line.starts_with("batch 1 waits: ") && line.contains("work space"), "{line}");
}

#[test]
fn a_worker_says_what_it_works_on_and_what_became_of_each_object() {
    let world = World::local(1);
    let folder = world.path("drop");
    std::fs::create_dir(&folder).unwrap();
    let watch = format!("[[watch]]\npath = \"{}\"\ncollection = \"default\"\n", folder.display());
    world.configure(&watch);
    world.deposit(&directory(&world.path("one"), &[("a.txt", "one")]), &[]);
    let broken = directory(&world.path("broken"), &[("bagit.txt", "no bag"), ("data/a", "a")]);
    world.deposit(&broken, &[]);
    let ended = world.run(&["work", "--until-empty", "--stages", "batch,ingest,report,callback"]);
    assert!(
        ended.stdout.contains("works on batch, ingest, report, callback of sqlite://"),
        "{}",
        ended.stdout
    );
    assert!(!ended.stdout.contains("watches"), "{}", ended.stdout);
    let lines = |part: &str| ended.stdout.lines().filter(|line| line.contains(part)).count();
    assert_eq!(lines("preserved  one as ark:/"), 1, "{}", ended.stdout);
    assert_eq!(lines("version 1: 1 file, 3 B"), 1, "{}", ended.stdout);
    assert_eq!(lines("FAILED     broken in validating: "), 1, "{}", ended.stdout);
    assert_eq!(lines("taken in   "), 2, "{}", ended.stdout);
    // Nothing that only goes on to its next stage.
    assert_eq!(lines("estimating"), 0, "{}", ended.stdout);
    for quiet in ["-q", "--json"] {
        let said = world.run(&["work", "--until-empty", "--stages", "ingest", quiet]).stdout;
        assert!(!said.contains("works on"), "{said}");
    }
    let mut worker = world.worker();
    let log = || std::fs::read_to_string(world.path("worker.log")).unwrap();
    let line = format!("watches {} every", folder.display());
    world.until_some("the folder that is watched", || log().contains(&line).then_some(()));
    assert!(log().contains("goes on until it is stopped; Ctrl-C"), "{}", log());
    worker.kill();
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
