//! Objects and stores are found by the names that people know them by.

use crate::support::packages::directory;
use crate::support::world::World;

fn identifiers(world: &World, args: &[&str]) -> Vec<String> {
    let page = world.json(&[&["objects", "list"], args].concat()).remove(0);
    let listed = page["objects"].as_array().unwrap();
    listed.iter().map(|o| o["identifier"].as_str().unwrap().to_string()).collect()
}

/// Three objects; their identifiers.
fn fill(world: &World) -> Vec<String> {
    world.done(&["collection", "create", "maps"]);
    let deposits: [(&str, &[&str]); 3] = [
        ("box-17", &["--what", "Letters from 100% Ann", "--local-id", "box-17"]),
        ("box-18", &["--what", "Maps_of the North", "--collection", "maps"]),
        ("atlas", &["--local-id", "Box-19", "--local-id", "shelf/3"]),
    ];
    for (name, options) in deposits {
        world.ingest(&directory(&world.path(name), &[("a.txt", name)]), options);
    }
    identifiers(world, &[])
}

#[test]
fn objects_are_listed_with_their_names_and_found_by_a_part_of_one() {
    World::both(|world| {
        let all = fill(world);
        assert_eq!(all.len(), 3);
        let shown = world.done(&["objects", "list"]);
        for name in ["box-17", "Letters from 100% Ann", "Box-19 (+1)", "Maps_of the North"] {
            assert!(shown.contains(name), "{name} is not in:\n{shown}");
        }
        let ark = all[1].clone();
        let parts: [(&str, &[usize]); 9] = [
            ("BOX-1", &[0, 1, 2]),
            ("letters", &[0]),
            ("100%", &[0]),
            ("s_of", &[1]),
            ("sxof", &[]),
            ("shelf", &[2]),
            ("e_t", &[]),
            (&ark[8..], &[1]),
            ("nothing", &[]),
        ];
        for (part, wanted) in parts {
            let wanted: Vec<String> = wanted.iter().map(|n| all[*n].clone()).collect();
            assert_eq!(identifiers(world, &[part]), wanted, "{part}");
        }
        assert_eq!(identifiers(world, &["box", "--collection", "maps"]), all[1..2]);
        let csv = world.done(&["objects", "list", "--csv"]);
        assert!(csv.contains("\"Box-19 | shelf/3\""), "{csv}");
    });
}

#[test]
fn objects_are_listed_by_date_and_page_by_page() {
    let world = World::local(1);
    let all = fill(&world);
    for (args, wanted) in [
        (["--from", "2020"].as_slice(), 3),
        (&["--until", "2020-12-31"], 0),
        (&["--from", "2020-01-01", "--until", "2199-12"], 3),
        (&["--from", "2199-12-31T23:00:00Z"], 0),
        (&["--to", "2199"], 3),
    ] {
        assert_eq!(identifiers(&world, args).len(), wanted, "{args:?}");
    }
    let wrong = world.run(&["objects", "list", "--from", "yesterday"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(wrong.stderr.contains("2026-11-18"), "{}", wrong.stderr);

    let (mut after, mut paged) = (serde_json::json!(0), Vec::new());
    while !after.is_null() {
        let args = ["objects", "list", "--limit", "1", "--after", &after.to_string()];
        let page = world.json(&args).remove(0);
        let listed = page["objects"].as_array().unwrap();
        assert_eq!(listed.len(), 1);
        paged.push(listed[0]["identifier"].as_str().unwrap().to_string());
        after = page["next"].clone();
    }
    assert_eq!(paged, all);
    let page = world.run(&["objects", "list", "--limit", "2"]);
    assert!(page.stderr.contains("2 shown; for more add --after 2"), "{}", page.stderr);
}

#[test]
fn a_collection_that_is_not_there_is_not_an_empty_one() {
    let world = World::local(1);
    world.done(&["collection", "create", "maps"]);
    let empty = world.run(&["objects", "list", "--collection", "maps"]);
    assert!(empty.status.success() && empty.stderr.contains("no object fits"), "{}", empty.stderr);
    let missing = world.run(&["objects", "list", "--collection", "mpas"]);
    assert_eq!(missing.status.code(), Some(2), "{}", missing.stderr);
    assert!(missing.stderr.contains("no collection `mpas`"), "{}", missing.stderr);
    assert!(missing.stderr.contains("[unknown_collection]"), "{}", missing.stderr);
}

#[test]
fn roots_and_objects_of_ocfl_commands_go_by_their_names() {
    World::both(|world| {
        let all = fill(world);
        let url = world.stores[0].1.clone();
        for names in [
            ["--store", "s1", "box-17"].as_slice(),
            &["s1", "box-17"],
            &[&url, "box-17"],
            &[&url, &all[0]],
            &["s1", &all[0]],
        ] {
            let shown = world.done(&[&["ocfl", "show"], names].concat());
            assert!(shown.contains(&all[0]), "{names:?}: {shown}");
        }
        let content = world.done(&["ocfl", "cat", "--store", "s1", "shelf/3", "data/a.txt"]);
        assert_eq!(content, "atlas");
        let out = world.path("out");
        world.done(&["ocfl", "export", "--store", "s1", "box-17", out.to_str().unwrap()]);
        assert_eq!(std::fs::read(out.join("data/a.txt")).unwrap(), b"box-17");
        assert!(world.done(&["ocfl", "log", "s1", "box-17"]).contains("v1"));
        world.done(&["ocfl", "diff", "s1", "box-17"]);
        assert!(world.done(&["ocfl", "ls", "--store", "s1"]).contains(&all[2]));
        assert!(world.done(&["ocfl", "validate", "--store", "s1"]).contains("3 objects"));
        assert!(world.done(&["ocfl", "validate", "s1", "box-17"]).contains("1 object"));
        assert!(world.done(&["store", "check", "s1"]).contains("writable  yes"));

        let unknown = world.run(&["ocfl", "show", "--store", "s9", "box-17"]);
        assert_eq!(unknown.status.code(), Some(2), "{}", unknown.stderr);
        assert!(unknown.stderr.contains("there are: s1"), "{}", unknown.stderr);
        let missing = world.run(&["ocfl", "show", "s1", "box-99"]);
        assert_eq!(missing.status.code(), Some(1), "{}", missing.stderr);
        let few = world.run(&["ocfl", "show", "s1"]);
        assert_eq!(few.status.code(), Some(2), "{}", few.stderr);
        assert!(few.stderr.contains("--store NAME OBJECT"), "{}", few.stderr);
    });
}

/// Looking at a root by its path makes neither a database nor a data directory.
#[test]
fn a_root_by_its_path_needs_no_archive() {
    let world = World::local(1);
    fill(&world);
    let root = world.stores[0].1.clone();
    let elsewhere = world.path("elsewhere");
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_accession"));
    command.args(["ocfl", "show", &root, "box-17"]).env_clear().env("ACCESSION_DATA", &elsewhere);
    let answer = command.output().unwrap();
    assert_eq!(answer.status.code(), Some(1), "the registry that knows the name is not at hand");
    assert!(!elsewhere.exists(), "looking made a data directory");
}
