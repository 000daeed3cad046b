//! Objects that only cold storage has: each file is asked for once, and the wait holds no worker.

use crate::damage::tree;
use crate::support::packages::{directory, small};
use crate::support::world::World;
use std::path::PathBuf;
use std::sync::atomic::Ordering;

/// An archive whose only copy of `box` is cold, and the folder that was deposited. What is deposited
/// later goes elsewhere.
fn frozen(files: usize) -> (World, PathBuf) {
    let mut world = World::half_remote();
    let package = directory(&world.path("box"), &small(files, "cold"));
    world.ingest(&package, &[]);
    let warm = world.path("data/stores/warm").display().to_string();
    world.stores.push(("s2".to_string(), warm));
    world.configure("[collections.default]\nstores = [\"s2\"]\n");
    for (name, value) in [("STORAGE_CLASS", "GLACIER"), ("THAW_LOOK_SECONDS", "1")] {
        world.env.push((format!("ACCESSION_STORES_S1_{name}"), value.to_string()));
    }
    let freezer = &world.s3.as_ref().unwrap().control.freezer;
    freezer.thaw_millis.store(1500, Ordering::SeqCst);
    freezer.is_on.store(true, Ordering::SeqCst);
    (world, package)
}

/// How often each file was asked for.
fn asked(world: &World) -> Vec<usize> {
    let freezer = &world.s3.as_ref().unwrap().control.freezer;
    freezer.asked.lock().unwrap().values().map(Vec::len).collect()
}

fn enqueue(world: &World, to: &str) -> PathBuf {
    let out = world.path(to);
    world.done(&["restore", "box", "--to", out.to_str().unwrap(), "--enqueue", "-q"]);
    out
}

/// The sentence about the only restore.
fn why(world: &World) -> String {
    let jobs = world.json(&["jobs", "list", "restore-object"]).remove(0);
    world.done(&["jobs", "why", &jobs["jobs"][0]["id"].to_string()])
}

#[test]
fn each_file_is_asked_for_once_whatever_dies_meanwhile() {
    let (world, package) = frozen(40);
    if world.s3.as_ref().unwrap().real.is_some() {
        return testing::skip("a server that freezes is part of the test");
    }
    let dry = world.done(&["restore", "box", "--dry-run", "--to", "/nonexistent/out"]);
    assert!(dry.contains("s1, thawed first"), "{dry}");
    let freezer = &world.s3.as_ref().unwrap().control.freezer;
    freezer.thaw_millis.store(60_000, Ordering::SeqCst);
    let out = enqueue(&world, "out");
    for _ in 0..3 {
        let mut worker = world.worker();
        world.until_some("files that are asked for", || (asked(&world).len() == 40).then_some(()));
        let said = world.until_some("a job that waits", || {
            Some(why(&world)).filter(|why| why.contains("0 of 40 files thawed"))
        });
        assert!(said.contains("to be expected by"), "{said}");
        worker.kill();
    }
    freezer.thaw_millis.store(10, Ordering::SeqCst);
    world.work();
    assert_eq!(tree(&out), tree(&package));
    assert!(asked(&world).iter().all(|times| *times == 1), "{:?}", asked(&world));
}

#[test]
fn what_is_cold_again_before_the_rest_is_back_is_asked_for_again() {
    let (world, package) = frozen(10);
    if world.s3.as_ref().unwrap().real.is_some() {
        return testing::skip("a server that freezes is part of the test");
    }
    let freezer = &world.s3.as_ref().unwrap().control.freezer;
    freezer.thaw_millis.store(60_000, Ordering::SeqCst);
    let out = enqueue(&world, "out");
    let mut worker = world.worker();
    world.until_some("files that are asked for", || (asked(&world).len() == 10).then_some(()));
    worker.kill();
    // One of them was back, and nobody has come for it: it is as if it had never been asked for.
    freezer.asked.lock().unwrap().values_mut().next().unwrap().clear();
    freezer.thaw_millis.store(10, Ordering::SeqCst);
    world.work();
    assert_eq!(tree(&out), tree(&package));
    assert!(asked(&world).iter().all(|times| *times == 1), "{:?}", asked(&world));
}

#[test]
fn a_store_that_refuses_to_thaw_fails_clearly_and_one_that_is_busy_is_asked_later() {
    let (world, package) = frozen(3);
    if world.s3.as_ref().unwrap().real.is_some() {
        return testing::skip("a server that freezes is part of the test");
    }
    let freezer = &world.s3.as_ref().unwrap().control.freezer;
    freezer.refusal.store(403, Ordering::SeqCst);
    let out = enqueue(&world, "out");
    world.work();
    let failed = world.json(&["jobs", "failed"]).remove(0);
    assert_eq!(failed["jobs"][0]["error_code"], "thaw_refused", "{failed:#}");
    freezer.refusal.store(503, Ordering::SeqCst);
    let job = failed["jobs"][0]["id"].to_string();
    world.done(&["jobs", "requeue", &job, "--reason", "it may now"]);
    let mut worker = world.worker();
    world.until_some("a job that waits for a busy store", || {
        why(&world).contains("some could not be asked for now").then_some(())
    });
    worker.kill();
    freezer.refusal.store(0, Ordering::SeqCst);
    world.work();
    assert_eq!(tree(&out), tree(&package));
}

/// A file that only the cold copy has intact is thawed when the warm one turns out damaged.
#[test]
fn a_cold_copy_serves_what_the_warm_one_has_lost() {
    let mut world = World::half_remote();
    if world.s3.as_ref().unwrap().real.is_some() {
        return testing::skip("a server that freezes is part of the test");
    }
    let warm = world.path("data/stores/s2").display().to_string();
    world.stores.push(("s2".to_string(), warm));
    world.configure("");
    let package = directory(&world.path("box"), &[("a.txt", "one"), ("b.txt", "two")]);
    world.ingest(&package, &[]);
    world.configure("[collections.default]\nstores = [\"s2\"]\n");
    for (name, value) in [("STORAGE_CLASS", "GLACIER"), ("THAW_LOOK_SECONDS", "1")] {
        world.env.push((format!("ACCESSION_STORES_S1_{name}"), value.to_string()));
    }
    let freezer = &world.s3.as_ref().unwrap().control.freezer;
    freezer.thaw_millis.store(500, Ordering::SeqCst);
    freezer.is_on.store(true, Ordering::SeqCst);
    crate::damage::flip(&crate::damage::content(&world, "s2", "b.txt"));
    let out = enqueue(&world, "out");
    world.work();
    assert_eq!(tree(&out), tree(&package));
}
