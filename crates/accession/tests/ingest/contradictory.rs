//! A store whose lists contradict themselves.

use crate::support::packages;
use crate::support::world::World;

/// A list that is cut off without saying where it goes on is no shorter archive: whatever counts
/// objects fails, and says why.
#[test]
fn a_list_that_is_cut_off_is_no_shorter_archive() {
    let world = World::half_remote();
    let path = world.path("box");
    packages::directory(&path, &packages::small(3, "cut"));
    world.ingest(&path, &[]);
    let root = world.stores[0].1.clone();
    let commands: [&[&str]; 5] = [
        &["ocfl", "ls", &root],
        &["ocfl", "ls", "--paths", &root],
        &["ocfl", "validate", &root],
        &["registry", "rebuild", "--from", "s1"],
        &["ocfl", "sweep", &root],
    ];
    for command in commands {
        assert!(world.run(command).status.success(), "{command:?} before");
    }
    let control = &world.s3.as_ref().unwrap().control;
    let cut = ("<IsTruncated>false</IsTruncated>", "<IsTruncated>true</IsTruncated>");
    *control.list_says.lock().unwrap() = Some(cut);
    for command in commands {
        let ended = world.run(command);
        assert!(!ended.status.success(), "{command:?}: {}", ended.stdout);
        let said = format!("{}{}", ended.stdout, ended.stderr);
        assert!(said.contains("cut off"), "{command:?}: {said}");
    }
    *control.list_says.lock().unwrap() = None;
    world.check();
}
