//! An object as it is stored, valid to other tools.

use crate::damage::{content, flip, tree, unpack};
use crate::support::packages::{directory, noise};
use crate::support::world::World;

#[test]
fn the_object_goes_out_as_it_is_stored() {
    World::both(|world| {
        let package = directory(
            &world.path("box"),
            &[("a.txt", b"one".to_vec()), ("b.bin", noise(1 << 20, 3))],
        );
        world.ingest(&package, &[]);
        directory(&package, &[("a.txt", "two"), ("c.txt", "new")]);
        world.ingest(&package, &[]);
        for name in ["stored", "stored.tar", "stored.zip"] {
            let out = world.path(name);
            let to = out.to_str().unwrap();
            let answer = world.json(&["restore", "box", "--as", "ocfl", "--to", to]).remove(0);
            assert_eq!(answer["state"], "completed", "{answer:#}");
            let object = match name {
                "stored" => out,
                _ => {
                    let unpacked = world.path(&format!("unpacked-{name}"));
                    unpack(&out, &unpacked);
                    unpacked
                }
            };
            world.done(&["ocfl", "validate", object.to_str().unwrap(), "-q"]);
            let found = tree(&object);
            assert!(
                found.contains_key("v2/inventory.json") && found.contains_key("0=ocfl_object_1.1")
            );
        }
    });
}

/// The structure comes from one store, and content from any that has it intact.
#[test]
fn damaged_content_comes_from_another_store_and_damaged_inventories_make_no_object() {
    let world = World::local(2);
    let package = directory(&world.path("box"), &[("a.txt", "one"), ("b.txt", "other")]);
    world.ingest(&package, &[]);
    flip(&content(&world, "s1", "a.txt"));
    let to = |name: &str| world.path(name).to_str().unwrap().to_string();
    world.done(&["restore", "box", "--as", "ocfl", "--to", &to("one"), "-q"]);
    world.done(&["ocfl", "validate", &to("one"), "-q"]);
    flip(&content(&world, "s2", "a.txt"));
    let ended = world.run(&["restore", "box", "--as", "ocfl", "--to", &to("two"), "-q"]);
    assert_eq!(ended.status.code(), Some(1), "{}", ended.stderr);
    assert!(ended.stdout.contains("restore it as a directory or a bag"), "{}", ended.stdout);
    assert!(!world.path("two").exists());
}
