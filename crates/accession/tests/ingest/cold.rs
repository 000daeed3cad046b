//! Stores whose content cannot be read back at once.

use crate::support::packages;
use crate::support::world::World;

/// A worker refuses to start where nothing would vouch for what it stores, and says why.
#[test]
fn a_cold_store_that_keeps_no_checksums_is_refused_as_a_required_one() {
    let mut world = World::half_remote();
    let path = packages::directory(&world.path("box"), &packages::small(3, "cold"));
    world.deposit(&path, &[]);
    let class = ("ACCESSION_STORES_S1_STORAGE_CLASS".to_string(), "DEEP_ARCHIVE".to_string());
    world.env.push(class);
    let refused = world.run(&["work", "--until-empty", "-q"]);
    assert!(!refused.status.success());
    for part in ["collection default", "store s1", "DEEP_ARCHIVE", "nothing vouches for the bytes"]
    {
        assert!(refused.stderr.contains(part), "{part}: {}", refused.stderr);
    }
    assert_eq!(world.jobs().iter().filter(|job| job["status"] == "failed").count(), 0);
    // In a class that can be read it goes on.
    world.env.pop();
    world.work();
    world.check();
}
