//! A process that dies at the worst moment: nothing looks finished that is not, and another goes on.

use crate::damage::{tree, unpack};
use crate::support::packages::{Files, directory, noise};
use crate::support::world::{World, failpoints_of_restores};

fn many() -> Files {
    let mut files: Files =
        (0..40).map(|n| (format!("d{}/f{n:02}.bin", n % 3), noise(40_000 + n, n as u64))).collect();
    files.push(("large.bin".into(), noise(2 << 20, 99)));
    files
}

/// In the order in which a package of an object passes them.
const FAILPOINTS: [&str; 8] = [
    "thawing",
    "packaging",
    "packaging.prepared",
    "packaging.written",
    "delivering",
    "delivering.verified",
    "delivering.published",
    "notifying",
];

#[test]
fn every_failpoint_is_met() {
    let mut known: Vec<&str> = FAILPOINTS.to_vec();
    // Only one file by itself is written where it is delivered.
    known.push("delivering.written");
    known.sort_unstable();
    assert_eq!(failpoints_of_restores(), known);
    let world = World::local(1);
    let package = directory(&world.path("box"), &many());
    world.ingest(&package, &[]);
    let out = world.path("large.bin");
    let args = ["restore", "box", "--path", "data/large.bin", "--enqueue", "-q", "--to"];
    world.done(&[&args[..], &[out.to_str().unwrap()]].concat());
    assert!(world.work_until("delivering.written"));
    assert!(!out.exists());
    world.work();
    assert_eq!(std::fs::read(out).unwrap(), noise(2 << 20, 99));
}

#[test]
fn a_kill_at_any_point_leaves_nothing_that_looks_finished() {
    World::both(|world| {
        let package = directory(&world.path("box"), &many());
        world.ingest(&package, &[]);
        for (at, failpoint) in FAILPOINTS.iter().enumerate() {
            for form in ["directory", "tar", "zip"] {
                let name = match form {
                    "directory" => format!("out{at}"),
                    _ => format!("out{at}.{form}"),
                };
                let out = world.path(&name);
                world.done(&["restore", "box", "--to", out.to_str().unwrap(), "--enqueue", "-q"]);
                assert!(world.work_until(failpoint), "{failpoint} was not met");
                let is_late = matches!(*failpoint, "delivering.published" | "notifying");
                assert_eq!(out.exists(), is_late, "{failpoint} {form}");
                world.work();
                let found = match form {
                    "directory" => tree(&out),
                    _ => {
                        let to = world.path(&format!("unpacked-{name}"));
                        unpack(&out, &to);
                        tree(&to)
                    }
                };
                assert!(found == tree(&package), "{failpoint} {form}");
            }
        }
        let left = std::fs::read_dir(world.dir.path()).unwrap().flatten();
        let hidden: Vec<String> = left
            .map(|entry| entry.file_name().into_string().unwrap())
            .filter(|name| name.starts_with(".accession"))
            .collect();
        assert!(hidden.is_empty(), "{hidden:?}");
        let events = world.json(&["objects", "events", "box"]).remove(0);
        let told = events["events"].as_array().unwrap().iter();
        assert_eq!(told.filter(|e| e["kind"] == "dissemination").count(), FAILPOINTS.len() * 3);
        world.check();
    });
}

/// What was written and is as it should be stays when the restore goes on; what is not is written anew.
#[test]
fn an_unfinished_package_is_compared_and_goes_on_where_it_is_right() {
    let world = World::local(1);
    let package = directory(&world.path("box"), &many());
    world.ingest(&package, &[]);
    for (form, harm) in
        [("tar", "cut"), ("tar", "flip"), ("directory", "cut"), ("directory", "flip")]
    {
        let name = format!("{form}-{harm}{}", if form == "tar" { ".tar" } else { "" });
        let out = world.path(&name);
        world.done(&["restore", "box", "--to", out.to_str().unwrap(), "--enqueue", "-q"]);
        assert!(world.work_until("packaging.written"));
        let holder = std::fs::read_dir(world.dir.path()).unwrap().flatten().find_map(|entry| {
            let name = entry.file_name().into_string().unwrap();
            name.starts_with(".accession-restore").then(|| entry.path())
        });
        let unfinished = holder.unwrap().join("package");
        let target = match form {
            "tar" => unfinished,
            _ => unfinished.join("d1/f19.bin"),
        };
        let mut bytes = std::fs::read(&target).unwrap();
        match harm {
            "cut" => bytes.truncate(bytes.len() / 2),
            _ => {
                let middle = bytes.len() / 2;
                bytes[middle] ^= 1;
            }
        }
        std::fs::write(&target, bytes).unwrap();
        world.work();
        let found = match form {
            "tar" => {
                let to = world.path(&format!("unpacked-{name}"));
                unpack(&out, &to);
                tree(&to)
            }
            _ => tree(&out),
        };
        assert!(found == tree(&package), "{name}");
    }
}

/// What was packaged and then changed on its way is found when it is read again, and made anew.
#[test]
fn what_changes_before_it_is_delivered_is_not_delivered() {
    let world = World::local(1);
    let package = directory(&world.path("box"), &many());
    world.ingest(&package, &[]);
    let out = world.path("out.tar");
    world.done(&["restore", "box", "--to", out.to_str().unwrap(), "--enqueue", "-q"]);
    assert!(world.work_until("delivering"));
    let holder = std::fs::read_dir(world.dir.path()).unwrap().flatten().find_map(|entry| {
        let name = entry.file_name().into_string().unwrap();
        name.starts_with(".accession-restore").then(|| entry.path())
    });
    crate::damage::flip(&holder.unwrap().join("package"));
    world.work();
    let to = world.path("unpacked");
    unpack(&out, &to);
    assert!(tree(&to) == tree(&package));
}
