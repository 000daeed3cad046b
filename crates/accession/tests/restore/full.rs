//! Destinations that fill up.

use crate::damage::{tree, unpack};
use crate::support::disk::SmallDisk;
use crate::support::packages::{directory, noise};
use crate::support::world::World;

#[test]
fn a_destination_that_fills_up_has_nothing_that_looks_finished_and_is_completed_later() {
    let Some(disk) = SmallDisk::mount(4) else { return };
    let world = World::local(1);
    let files: Vec<(String, Vec<u8>)> =
        (0..8).map(|n| (format!("f{n}.bin"), noise(1 << 20, n))).collect();
    let package = directory(&world.path("box"), &files);
    world.ingest(&package, &[]);
    for (form, name) in [("directory", "out"), ("tar", "out.tar")] {
        let out = disk.path().join(name);
        let to = out.to_str().unwrap();
        world.done(&["restore", "box", "--as", form, "--to", to, "--enqueue", "-q"]);
        let mut worker = world.worker();
        let job = world.until_some("its job", || {
            let jobs = world.json(&["jobs", "list", "restore-object"]).remove(0);
            let newest = &jobs["jobs"][0];
            (newest["status"] != "succeeded").then(|| newest["id"].as_i64())?
        });
        let job = job.to_string();
        let why = world.until_some("a disk that is full", || {
            let shown = world.json(&["jobs", "show", &job]).remove(0);
            let text = shown.to_string();
            text.contains("destination_full").then_some(text)
        });
        worker.kill();
        assert!(why.contains("there is no room left"), "{why}");
        assert!(!out.exists(), "{form}");
        disk.grow(40);
        world.until_some("a package that is complete", || {
            let shown = world.json(&["jobs", "show", &job]).remove(0);
            if shown.to_string().contains("\"status\":\"failed\"") {
                world.run(&["jobs", "requeue", &job, "--reason", "there is room"]);
            }
            world.work();
            out.exists().then_some(())
        });
        match form {
            "directory" => assert!(tree(&out) == tree(&package)),
            _ => {
                unpack(&out, &world.path("unpacked"));
                assert!(tree(&world.path("unpacked")) == tree(&package));
            }
        }
        std::fs::remove_dir_all(&out).or_else(|_| std::fs::remove_file(&out)).unwrap();
        disk.grow(4);
    }
}
