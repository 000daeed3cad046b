//! The process aborts at every named place of every stage, and another finishes the job.
//!
//! Without more being said, a shape meets those failpoints where it goes a way of its own;
//! `$ACCESSION_FAILPOINTS=all` has every shape meet every one, with one store and with two.

use crate::support::invariants::{self, Failed};
use crate::support::packages::{self, Files};
use crate::support::web;
use crate::support::world::{World, failpoints};
use std::collections::BTreeSet;

/// What is deposited.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Shape {
    /// A bag in a tar.gz.
    Bag,
    /// A directory of many small files and a large one.
    Directory,
    /// An object manifest, its files by URL.
    Manifest,
    /// A bag by URL.
    Fetched,
    /// A second version of an object.
    Again,
}

/// A large file, and more small ones than one portion holds where `many`.
fn files(name: &str, many: bool) -> Files {
    let mut files = packages::small(if many { 1200 } else { 12 }, name);
    files.push(("large.bin".to_string(), packages::noise(3 << 20, name.len() as u64)));
    files
}

/// Deposits an object of a shape; a version before it is already in.
pub fn deposit(world: &World, shape: Shape, name: &str) {
    let path = world.path(name);
    match shape {
        Shape::Directory => {
            packages::directory(&path, &files(name, true));
            world.deposit(&path, &[]);
        }
        Shape::Manifest => {
            let files = files(name, false);
            let base = web::serve(&packages::directory(&path, &files));
            let manifest =
                packages::manifest(&world.path(&format!("{name}.checkm")), &base, &files);
            world.deposit(&manifest, &[]);
        }
        Shape::Bag | Shape::Fetched => {
            packages::bag(&path, &files(name, false));
            let archive = packages::archive(&path, "tar.gz");
            match shape {
                Shape::Bag => world.deposit(&archive, &[]),
                _ => {
                    let base = web::serve(world.dir.path());
                    world.deposit(&format!("{base}/{name}.tar.gz"), &[])
                }
            };
        }
        Shape::Again => {
            let mut content = files(name, false);
            packages::directory(&path, &content);
            world.deposit(&path, &[]);
            world.work();
            content.remove(0);
            content[0].1 = b"changed".to_vec();
            content.push(("new.bin".to_string(), packages::noise(2 << 20, 77)));
            std::fs::remove_dir_all(&path).unwrap();
            packages::directory(&path, &content);
            world.deposit(&path, &[]);
        }
    }
}

/// Every failpoint in one archive, an object for each; those that were met.
pub fn each(world: &World, shape: Shape, wanted: impl Fn(&str) -> bool) -> BTreeSet<String> {
    let mut met = BTreeSet::new();
    for (number, failpoint) in failpoints().into_iter().filter(|name| wanted(name)).enumerate() {
        let name = format!("{shape:?}-{number}");
        deposit(world, shape, &name);
        if world.work_until(&failpoint) {
            met.insert(failpoint.clone());
            // Half of them are killed again at the same place, or the next time it is passed.
            if number % 2 == 0 {
                world.work_until(&format!("{failpoint}:1"));
            }
            world.work();
        }
        let jobs = world.jobs();
        let open: Vec<_> = jobs.iter().filter(|j| j["status"] != "succeeded").collect();
        assert!(open.is_empty(), "{shape:?} after {failpoint}: {open:#?}");
    }
    invariants::check(world, Failed::None);
    met
}

/// Where a shape goes a way of its own.
fn matters(shape: Shape, name: &str) -> bool {
    let of = |stages: &[&str]| stages.iter().any(|stage| name.starts_with(stage));
    match shape {
        Shape::Bag | Shape::Again => true,
        Shape::Directory => name.contains('.') && of(&["validating", "storing", "verifying"]),
        Shape::Manifest => of(&["estimating", "provisioning", "downloading", "cleaning"]),
        Shape::Fetched => of(&["downloading"]),
    }
}

/// Archives that share the failpoints of a shape: most of the time is waiting for leases to end.
const PARTS: usize = 3;

const SHAPES: [Shape; 5] =
    [Shape::Bag, Shape::Directory, Shape::Manifest, Shape::Fetched, Shape::Again];

/// An abort at any place is made good by the next worker, and each place is met.
#[test]
fn every_failpoint_on_sqlite_and_local_stores() {
    let everything = std::env::var("ACCESSION_FAILPOINTS").is_ok_and(|v| v == "all");
    let met: Vec<BTreeSet<String>> = std::thread::scope(|scope| {
        let runs: Vec<_> = SHAPES
            .into_iter()
            .flat_map(|shape| [1, 2].map(|stores| (shape, stores)))
            .filter(|(shape, stores)| everything || (*stores == 2) == (*shape != Shape::Again))
            .flat_map(|(shape, stores)| (0..PARTS).map(move |part| (shape, stores, part)))
            .map(|(shape, stores, part)| {
                scope.spawn(move || {
                    let names = failpoints();
                    let here = |name: &str| {
                        names.iter().position(|n| n == name).is_some_and(|at| at % PARTS == part)
                    };
                    each(&World::local(stores), shape, |name| {
                        here(name) && (everything || matters(shape, name))
                    })
                })
            })
            .collect();
        runs.into_iter().map(|run| run.join().unwrap()).collect()
    });
    let met: BTreeSet<String> = met.into_iter().flatten().collect();
    // An identifier from outside is minted only where EZID is configured: see `ingest/ezid.rs`.
    let missed: Vec<_> =
        failpoints().into_iter().filter(|f| !met.contains(f) && f != "resolving.minted").collect();
    assert!(missed.is_empty(), "no shape met {missed:?}");
}
