//! The operator's first look: what is wrong, how much of it, since when, by whom, and what to do.

use crate::support::packages::directory;
use crate::support::world::World;
use serde_json::Value;

/// What is shown, in which no line is wider than a terminal.
fn shown(world: &World) -> String {
    let text = world.done(&["status"]);
    for line in text.lines().filter(|line| !line.trim_start().starts_with("$ ")) {
        assert!(line.chars().count() <= 80, "{} columns: {line}", line.chars().count());
    }
    text
}

fn finding(status: &Value, code: &str) -> Value {
    let findings = status["findings"].as_array().unwrap();
    let found = findings.iter().find(|finding| finding["code"] == code);
    found.unwrap_or_else(|| panic!("no {code} in {findings:#?}")).clone()
}

/// Runs the commands that findings name: what is advised can be typed.
fn try_advice(world: &World, status: &Value) {
    for finding in status["findings"].as_array().unwrap() {
        let command = finding["command"].as_str().unwrap();
        if command == "accession work" {
            continue;
        }
        let words: Vec<String> =
            command.split(' ').skip(1).map(|word| word.trim_matches('\'').to_string()).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let ended = world.run(&words);
        assert!(ended.status.success(), "{command}: {}", ended.stderr);
    }
}

#[test]
fn a_new_archive_has_nothing_wrong() {
    World::both(|world| {
        let text = shown(world);
        assert!(text.lines().next().unwrap().ends_with("nothing is wrong"), "{text}");
        assert!(
            text.contains("0 objects, 0 files") && text.contains("none under way, none failed"),
            "{text}"
        );
        assert!(text.lines().count() <= 12, "{text}");
        let status = world.json(&["status"]).remove(0);
        assert_eq!(status["findings"].as_array().unwrap().len(), 0, "{status}");
    });
}

#[test]
fn what_was_stopped_says_by_whom_and_what_failed_says_how_often() {
    World::both(|world| {
        let good = directory(&world.path("good"), &[("a.txt", "good")]);
        world.deposit(&good, &[]);
        for name in ["broken", "torn"] {
            let path = directory(&world.path(name), &[("bagit.txt", "no bag"), ("data/a", name)]);
            world.deposit(&path, &[]);
        }
        world.work();
        world.done(&["collection", "create", "maps"]);
        let by = |reason| ["--as", "ann", "--reason", reason];
        world.done(&[&["collection", "freeze", "maps"][..], &by("moving house")].concat());
        world
            .done(&[&["jobs", "pause", "ingest", "--stage", "storing"][..], &by("disks")].concat());
        let held = world.deposit(&good, &["--collection", "maps"]).to_string();
        world.done(&[&["batches", "hold", &held][..], &by("the depositor asked")].concat());
        world.deposit(&directory(&world.path("more"), &[("a.txt", "more")]), &[]);

        let text = shown(world);
        assert!(text.contains(" are stopped"), "{text}");
        for part in [
            "2 jobs of ingest failed with ",
            "2 batches are not preserved in full; preserved of each: 3 (0 of 1), 2 (0 of 1)",
            "no worker is running, and ",
            "ingest/storing is paused by ann since ",
            "collection maps is held by ann since ",
            "batch 4 is held by ann since ",
            "the depositor asked",
            "$ accession jobs unpause ingest --stage storing",
            "$ accession collection release maps",
            "$ accession batches release 4",
            "$ accession jobs failed ingest",
            "$ accession work",
        ] {
            let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(flat.contains(part.trim()), "{part} is not in:\n{text}");
        }
        let status = world.json(&["status"]).remove(0);
        let paused = finding(&status, "paused");
        assert_eq!((&paused["who"], &paused["reason"]), (&"ann".into(), &"disks".into()));
        assert_eq!(status["pauses"][0]["stage"], "storing");
        assert_eq!(finding(&status, "collection_held")["reason"], "moving house");
        assert_eq!(finding(&status, "jobs_failed")["count"], 2);
        assert_eq!(status["failures"]["shown"][0]["unseen"], 2);
        assert_eq!(finding(&status, "batches_failed")["count"], 2);
        assert_eq!(finding(&status, "no_worker")["level"], "wrong");
        let since = finding(&status, "batch_held")["since"].as_str().unwrap().to_string();
        assert!(since.ends_with('Z') && since.starts_with("20"), "{since}");
        assert_eq!(status["holds"]["total"], 2);
        assert_eq!(status["registry"]["objects"], 1);
        try_advice(world, &status);
        let status = world.json(&["status"]).remove(0);
        assert_eq!(status["pauses"].as_array().unwrap().len(), 0);
        assert_eq!(status["holds"]["total"], 0);
    });
}

/// A batch is held with its collection, and a job that runs is held when its run ends: both are shown as
/// what they are.
#[test]
fn what_is_held_with_its_collection_or_while_it_runs_shows_as_held() {
    World::both(|world| {
        world.done(&["collection", "hold", "default", "--as", "ann", "--reason", "moving house"]);
        world.deposit(&directory(&world.path("good"), &[("a.txt", "good")]), &[]);
        let text = shown(world);
        assert!(text.contains("held (pending)") && text.contains("1 pending (1 held)"), "{text}");
        let status = world.json(&["status"]).remove(0);
        assert_eq!(status["batches"]["open"]["shown"][0]["held"], true, "{status:#}");
        let held = status["batch_counts"].as_array().unwrap().iter().map(|count| &count["held"]);
        assert_eq!(held.collect::<Vec<_>>(), [1]);

        let go = world.path("go");
        let program = format!("while ! test -e {}; do sleep 0.02; done", go.display());
        world.done(&["queue", "create", "files"]);
        world.done(&["queue", "add", "files", "a"]);
        let jobs = || world.json(&["queue", "list", "files"]).remove(0)["jobs"][0].clone();
        let job = jobs()["id"].to_string();
        let work = ["queue", "work", "files", "--exec", &program, "--until-empty"];
        let mut worker = world.command(&work).spawn().unwrap();
        world.until_some("the job to run", || (jobs()["status"] == "running").then_some(()));
        world.done(&["queue", "hold", &job, "--as", "bob", "--reason", "wait for Ann"]);
        let status = world.json(&["status"]).remove(0);
        let held = finding(&status, "job_held");
        std::fs::write(&go, "").unwrap();
        assert!(worker.wait().unwrap().success());
        let text = held["text"].as_str().unwrap();
        assert!(text.starts_with(&format!("job {job} ")) && text.contains(" by bob "), "{text}");
        assert_eq!(held["command"], format!("accession jobs release {job}").as_str());
    });
}

#[test]
fn of_hundreds_a_few_are_shown_and_how_many_there_are() {
    let world = World::local(1);
    let paths: Vec<_> =
        (0..120).map(|n| directory(&world.path(&format!("box-{n}")), &[("a.txt", "a")])).collect();
    let mut args = vec!["deposit"];
    args.extend(paths.iter().map(|path| path.to_str().unwrap()));
    world.done(&args);
    for batch in 1..=7 {
        world.done(&["batches", "hold", &batch.to_string(), "--as", "ann", "--reason", "wait"]);
    }
    let text = shown(&world);
    assert!(text.contains("the newest 5 of 120 under way shown"), "{text}");
    assert!(text.contains("120 pending (7 held)"), "{text}");
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        flat.contains("2 more batches, collections or jobs are held; the newest 5 of 7 are shown"),
        "{text}"
    );
    assert!(text.lines().count() < 45, "{} lines:\n{text}", text.lines().count());
    let status = world.json(&["status"]).remove(0);
    assert_eq!(status["batches"]["open"]["total"], 120);
    assert_eq!(status["batches"]["open"]["shown"].as_array().unwrap().len(), 5);
    assert_eq!(finding(&status, "more_held")["count"], 2);
}

/// A name that could move the cursor is shown, and not obeyed.
#[test]
fn names_are_shown_and_not_obeyed() {
    let world = World::local(1);
    let path = directory(&world.path("one"), &[("a.txt", "one")]);
    world.deposit(&path, &[]);
    world.done(&["batches", "hold", "1", "--as", "ann\u{1b}[2J", "--reason", "\u{1b}[31mred"]);
    let text = shown(&world);
    assert!(!text.contains('\u{1b}') && text.contains("\\u{1b}[2J"), "{text}");
}
