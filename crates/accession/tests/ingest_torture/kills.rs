//! Workers killed at random moments while deposits flow through.
//!
//! `$ACCESSION_TORTURE_SEED` repeats; `$ACCESSION_TORTURE_SECONDS` bounds the time under fire.

use crate::support::invariants::{self, Failed};
use crate::support::packages;
use crate::support::world::{Worker, World};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::time::{Duration, Instant};

const OBJECTS: usize = 40;
const DEPOSITS: usize = 60;
const WORKERS: usize = 3;

/// Deposits everything, kills workers meanwhile, works the rest off in peace, and checks.
pub fn torture(world: &World) {
    let seed = std::env::var("ACCESSION_TORTURE_SEED").ok().and_then(|s| s.parse().ok());
    let seed: u64 = seed.unwrap_or_else(rand::random);
    println!("ACCESSION_TORTURE_SEED={seed}");
    let mut random = StdRng::seed_from_u64(seed);
    let seconds = std::env::var("ACCESSION_TORTURE_SECONDS").ok().and_then(|s| s.parse().ok());
    let fire = Duration::from_secs(seconds.unwrap_or(6));
    let mut workers: Vec<Worker> = (0..WORKERS).map(|_| world.worker()).collect();
    let (began, mut deposited, mut kills) = (Instant::now(), 0, 0);
    while began.elapsed() < fire || deposited < DEPOSITS {
        if deposited < DEPOSITS {
            // The last twenty are new versions of the first objects, while those may be on their way.
            let (object, round) = (deposited % OBJECTS, deposited / OBJECTS);
            let path = world.path(&format!("round-{round}/box-{object}"));
            packages::bag(&path, &packages::small(4, &format!("{object} {round}")));
            let archive = packages::archive(&path, ["tar", "tar.gz"][object % 2]);
            // From another folder, a name alone would not say which object it is.
            world.deposit(&archive, &["--local-id", &format!("box-{object}")]);
            deposited += 1;
        }
        std::thread::sleep(Duration::from_millis(random.random_range(5..120)));
        if random.random_bool(0.4) {
            workers[random.random_range(0..WORKERS)] = world.worker();
            kills += 1;
        }
    }
    drop(workers);
    println!("{kills} workers killed");
    // A job that was cut short too often waits for a person; here, nobody is to blame.
    world.work();
    for job in world.jobs().iter().filter(|job| job["status"] == "failed") {
        assert!(job["error"].as_str().unwrap_or("").contains("interrupt"), "{job:#?}");
        world.done(&["jobs", "requeue", &job["id"].to_string(), "--reason", "killed by the test"]);
    }
    world.work();
    let jobs = world.jobs();
    assert_eq!(jobs.len(), DEPOSITS);
    let open: Vec<_> = jobs.iter().filter(|j| j["status"] != "succeeded").collect();
    assert!(open.is_empty(), "{open:#?}");
    let dump = world.done(&["registry", "dump"]);
    assert_eq!(dump.lines().filter(|l| l.starts_with("version ")).count(), DEPOSITS);
    assert_eq!(dump.lines().filter(|l| l.starts_with("object ")).count(), OBJECTS);
    invariants::check(world, Failed::None);
}

#[test]
fn killed_at_random_on_sqlite_and_local_stores() {
    torture(&World::local(2));
}
