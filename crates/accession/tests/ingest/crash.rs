//! A process that dies at the worst moment, and another that finishes its work.

use crate::support::packages::{archive, bag, directory};
use crate::support::world::{World, failpoints};
use rand::{Rng, SeedableRng};
use std::path::PathBuf;
use std::time::Duration;

/// A directory of many small files and a large one, so that every portion and file is passed.
fn package(world: &World, number: usize) -> PathBuf {
    let path = world.path(&format!("package-{number}"));
    for n in 0..2100 {
        let sub = path.join(format!("{}", n % 7));
        std::fs::create_dir_all(&sub).unwrap();
        std::fs::write(sub.join(format!("{n}.txt")), format!("{n} of {number}")).unwrap();
    }
    std::fs::write(path.join("large.bin"), vec![number as u8; 3 << 20]).unwrap();
    path
}

#[test]
fn killed_at_every_failpoint_it_is_finished_by_another() {
    let world = World::local(2);
    let web = crate::support::web::serve(world.dir.path());
    for (number, name) in failpoints().iter().enumerate() {
        let path = match number % 3 {
            0 => package(&world, number),
            1 => {
                let path = world.path(&format!("bag-{number}"));
                bag(&path, &[("a.txt", "one"), ("b/c.txt", "two")]);
                archive(&path, "tar.gz")
            }
            _ => directory(&world.path(&format!("dir-{number}")), &[("a.txt", name)]),
        };
        let path = if name.contains("portion") || name.contains("file") {
            package(&world, 1000 + number)
        } else {
            path
        };
        // What is here passes downloading by, and provisioning where it takes no space.
        let fetched = name.starts_with("downloading") || name == "provisioning";
        let path = match fetched {
            true => {
                std::fs::write(world.path(&format!("file-{number}")), name).unwrap();
                format!("{web}/file-{number}").into()
            }
            false => path,
        };
        let batch = world.deposit(&path, &["--local-id", name]);
        let reached = world.work_until(name);
        // No manifest is fetched here; identifiers from outside have a test of their own.
        let not_on_this_way = name == "downloading.portion" || name == "resolving.minted";
        assert!(reached || not_on_this_way, "{name} was never passed");
        world.work();
        let report = world.batch(batch);
        assert_eq!(report["state"], "completed", "{name}: {report:#}");
        assert_eq!(report["objects"][0]["version"], 1, "{name}");
    }
    world.check();
}

#[test]
fn killed_on_postgres_and_s3_it_is_finished_by_another() {
    let Some(world) = World::remote() else {
        testing::skip("ACCESSION_TEST_POSTGRES is not set");
        return;
    };
    let names = [
        "validating.end",
        "storing.end",
        "verifying.verified",
        "verifying.inventory",
        "recording.sealed",
        "recording.end",
    ];
    for name in names {
        let path = world.path(name);
        bag(&path, &[("a.txt", name), ("b/c.txt", "two")]);
        let batch = world.deposit(&archive(&path, "tar"), &["--local-id", name]);
        assert!(world.work_until(name), "{name} was never passed");
        world.work();
        assert_eq!(world.batch(batch)["state"], "completed", "{name}");
    }
    world.check();
}

/// Workers are killed at random while deposits, some of the same object, flow through.
fn killed_at_random(world: &World, seed: u64) {
    println!("seed {seed}");
    let mut random = rand::rngs::SmallRng::seed_from_u64(seed);
    let mut batches = Vec::new();
    for n in 0..30 {
        let path = world.path(&format!("in-{n}"));
        directory(&path, &[("a.txt", format!("content {n}").as_str()), ("b.txt", "same")]);
        let object = format!("object-{}", n % 20);
        batches.push(world.deposit(&path, &["--local-id", &object]));
    }
    // Fewer than the interruptions after which a job is left to a person.
    for _ in 0..4 {
        let _killed = world.worker();
        std::thread::sleep(Duration::from_millis(random.random_range(20..700)));
    }
    world.work();
    for batch in batches {
        let report = world.batch(batch);
        assert_eq!(report["state"], "completed", "seed {seed}: {report:#}");
    }
    for n in 0..10 {
        let name = format!("object-{n}");
        assert_eq!(world.versions(&name), 2, "seed {seed}: {name}");
    }
    world.check();
}

#[test]
fn killed_at_random_nothing_is_lost_or_doubled() {
    let seed = std::env::var("ACCESSION_CHAOS_SEED").ok().and_then(|s| s.parse().ok());
    let seed = seed.unwrap_or_else(|| rand::rng().random());
    World::both(|world| killed_at_random(world, seed));
}
