//! Which object a deposit becomes a version of: what was said of it decides, in the documented
//! order, and a name alone takes nothing from an object that came from elsewhere.

use crate::support::packages::{archive, bag, directory};
use crate::support::world::{World, finish};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Stdio;

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// A bag that says in `bag-info.txt` which object it is.
fn bag_called(path: &Path, content: &str, identifier: &str) -> PathBuf {
    std::fs::create_dir_all(path).unwrap();
    std::fs::write(path.join("a.txt"), content).unwrap();
    let mut tags = bagit::info::Tags::default();
    tags.push("External-Identifier", identifier);
    let options = bagit::WriteOptions { tags, ..bagit::WriteOptions::default() };
    bagit::create_in_place(path, &options, &()).unwrap();
    path.to_path_buf()
}

fn only<'v>(report: &'v Value, list: &str) -> &'v Value {
    assert_eq!(report[list].as_array().map(Vec::len), Some(1), "{report:#}");
    &report[list][0]
}

#[test]
fn a_local_id_decides_over_the_identifier_in_the_bag() {
    World::both(|world| {
        let make = |name: &str| bag_called(&world.path(name), name, "series 7");
        let one = world.ingest(&make("one"), &["--local-id", "A"]);
        let first = only(&one, "objects")["identifier"].clone();
        assert_eq!(only(&one, "objects")["local_ids"], serde_json::json!(["A", "series 7"]));

        let two = make("two");
        let checked = world.run(&["deposit", text(&two), "--local-id", "B", "--check"]);
        assert!(checked.status.success(), "{}{}", checked.stdout, checked.stderr);
        assert!(checked.stdout.contains("warning [local_id_taken]"), "{}", checked.stdout);
        let second = world.ingest(&two, &["--local-id", "B"]);
        let line = only(&second, "objects");
        assert_eq!((&line["version"], line["identifier"] == first), (&1.into(), false), "{line:#}");
        assert_eq!(line["local_ids"], serde_json::json!(["B"]));
        let warning = line["warnings"][0].as_str().unwrap();
        assert!(warning.contains("series 7") && warning.contains(first.as_str().unwrap()));

        // Without a local id the bag's own identifier decides.
        let third = world.ingest(&make("three"), &[]);
        let line = only(&third, "objects");
        assert_eq!((&line["version"], &line["identifier"]), (&2.into(), &first));
        world.check();
    });
}

#[test]
fn an_identifier_in_the_bag_that_contradicts_the_local_id_is_refused() {
    let world = World::local(1);
    let plain = directory(&world.path("plain"), &[("a.txt", "a")]);
    let report = world.ingest(&plain, &["--local-id", "A"]);
    let ark = only(&report, "objects")["identifier"].as_str().unwrap().to_string();
    let said = bag_called(&world.path("said"), "b", &ark);
    let other = bag_called(&world.path("other"), "c", "ark:/99999/other");
    for (path, local) in [(&said, "B"), (&other, "A")] {
        let report = world.ingest(path, &["--local-id", local]);
        let failure = only(&report, "failures");
        assert_eq!(failure["code"], "contradictory_identifiers", "{failure:#}");
        let checked = world.run(&["deposit", text(path), "--local-id", local, "--check"]);
        assert!(checked.stdout.contains("[contradictory_identifiers]"), "{}", checked.stdout);
    }
    assert_eq!(world.versions("A"), 1);
    // A new object gets the identifier that its bag says.
    let report = world.ingest(&other, &["--local-id", "C"]);
    assert_eq!(only(&report, "objects")["identifier"], "ark:/99999/other");
}

#[test]
fn a_folder_of_the_same_name_elsewhere_replaces_nothing() {
    World::both(|world| {
        let web = crate::support::web::serve(world.dir.path());
        let one = directory(&world.path("a/scans"), &[("1.tif", "one"), ("2.tif", "two")]);
        let report = world.ingest(&one, &[]);
        let identifier = only(&report, "objects")["identifier"].as_str().unwrap().to_string();

        let other = directory(&world.path("b/scans"), &[("1.tif", "another"), ("9.tif", "nine")]);
        for command in ["ingest", "deposit"] {
            let refused = world.run(&[command, text(&other)]);
            assert_eq!(refused.status.code(), Some(2), "{}", refused.stderr);
            let said = refused.stderr;
            for part in [
                "[derived_identity]",
                &identifier,
                &format!("from {}", one.display()),
                &format!("accession {command} {}", other.display()),
                "--mode update --local-id scans",
                "--local-id OTHER",
            ] {
                assert!(said.contains(part), "{part}: {said}");
            }
        }
        let checked = world.run(&["deposit", text(&other), "--check"]);
        assert!(checked.stdout.contains("[derived_identity]"), "{}", checked.stdout);
        assert_eq!(checked.status.code(), Some(1));
        assert_eq!(world.versions("scans"), 1);

        // Same names and sizes: what is small is read at once.
        let alike = directory(&world.path("c/scans"), &[("1.tif", "eno"), ("2.tif", "two")]);
        let checked = world.run(&["deposit", text(&alike), "--check"]);
        assert!(checked.stdout.contains("[derived_identity]"), "{}", checked.stdout);
        let refused = world.run(&["deposit", text(&alike)]);
        assert!(
            refused.stderr.contains("would change or remove 1 file of it"),
            "{}",
            refused.stderr
        );
        // What has to be unpacked, and what is fetched, is read by a worker.
        let packed = archive(&alike, "tar.gz");
        std::fs::create_dir_all(world.path("d")).unwrap();
        let elsewhere = world.path("d/scans.tar.gz");
        std::fs::rename(&packed, &elsewhere).unwrap();
        let url = PathBuf::from(format!("{web}/d/scans.tar.gz"));
        for path in [&elsewhere, &url] {
            let batch = world.deposit(path, &[]);
            world.work();
            let report = world.batch(batch);
            assert_eq!(only(&report, "failures")["code"], "derived_identity", "{report:#}");
        }
        assert_eq!(world.versions("scans"), 1);

        // A copy with all of it is the same object; so is what comes from the same place.
        let copy = directory(
            &world.path("e/scans"),
            &[("1.tif", "one"), ("2.tif", "two"), ("3.tif", "three")],
        );
        assert_eq!(only(&world.ingest(&copy, &[]), "objects")["version"], 2);
        std::fs::remove_file(copy.join("1.tif")).unwrap();
        assert_eq!(only(&world.ingest(&copy, &[]), "objects")["version"], 3);
        std::fs::remove_file(copy.join("2.tif")).unwrap();
        let beside = archive(&copy, "zip");
        let report = world.ingest(&beside, &["--mode", "either"]);
        assert_eq!(only(&report, "objects")["version"], 4, "an archive beside its folder");

        // Both commands that the refusal advises do what they say.
        let report = world.ingest(&other, &["--local-id", "scans of b"]);
        assert_eq!(only(&report, "objects")["version"], 1);
        let report = world.ingest(&other, &["--mode", "update", "--local-id", "scans"]);
        let line = only(&report, "objects");
        assert_eq!((&line["version"], &line["identifier"]), (&5.into(), &identifier.into()));
    });
}

#[test]
fn the_first_ingest_says_how_the_object_is_updated() {
    let world = World::local(1);
    let path = directory(&world.path("my scans"), &[("1.tif", "one")]);
    let told = world.done(&["ingest", text(&path)]);
    assert!(told.contains("--mode update --local-id 'my scans'"), "{told}");
    let again = world.done(&["ingest", text(&path)]);
    assert!(!again.contains("--mode update"), "{again}");
    let said = directory(&world.path("said"), &[("1.tif", "one")]);
    let told = world.done(&["ingest", text(&said), "--local-id", "S"]);
    assert!(!told.contains("--mode update"), "{told}");
}

/// A registry that was rebuilt knows the place as well.
#[test]
fn the_place_of_an_object_is_in_its_store() {
    let world = World::local(1);
    let path = directory(&world.path("a/scans"), &[("1.tif", "one")]);
    world.ingest(&path, &[]);
    crate::recovery::remove_database(&world);
    world.done(&["registry", "rebuild", "--from", "s1"]);
    let other = directory(&world.path("b/scans"), &[("1.tif", "another")]);
    assert_eq!(world.run(&["ingest", text(&other)]).status.code(), Some(2));
    std::fs::write(path.join("1.tif"), "changed").unwrap();
    assert_eq!(only(&world.ingest(&path, &[]), "objects")["version"], 2);
}

#[test]
fn a_row_without_an_identifier_replaces_nothing_from_another_address() {
    let world = World::local(1);
    for name in ["a", "b"] {
        directory(&world.path(name), &[("scan.tif", name)]);
    }
    let web = crate::support::web::serve(world.dir.path());
    let manifest = |rows: &[&str]| {
        let path = world.path("list.checkm");
        let rows: String = rows.iter().map(|row| format!("{web}/{row}\n")).collect();
        let head = "#%checkm_0.7\n#%profile | http://uc3.cdlib.org/registry/ingest/manifest/mrt-single-file-batch-manifest\n";
        std::fs::write(&path, format!("{head}{rows}#%eof\n")).unwrap();
        path
    };
    let row = |place: &str| format!("{place}/scan.tif | | | | | scan.tif");
    assert_eq!(world.ingest(&manifest(&[&row("a")]), &[])["state"], "completed");
    let other = manifest(&[&row("b")]);
    let checked = world.run(&["deposit", text(&other), "--check"]);
    assert!(
        checked.stdout.contains("warning [derived_identity] list.checkm line 3"),
        "{}",
        checked.stdout
    );
    let checked = world.run(&["deposit", text(&other), "--check", "--mode", "new"]);
    assert!(
        checked.stdout.contains("error [object_exists] list.checkm line 3"),
        "{}",
        checked.stdout
    );
    let report = world.ingest(&other, &[]);
    let failure = only(&report, "failures");
    assert_eq!(failure["code"], "derived_identity");
    assert!(failure["message"].as_str().unwrap().contains("as local identifier"), "{failure:#}");
    std::fs::write(world.path("a/scan.tif"), "scanned again").unwrap();
    let report = world.ingest(&manifest(&[&row("a")]), &[]);
    assert_eq!(only(&report, "objects")["version"], 2);
}

/// What was handed over is not what its depositor said: only another deposit can help.
#[test]
fn a_deposit_whose_digest_is_wrong_cannot_be_requeued() {
    World::both(|world| {
        std::fs::write(world.path("a.txt"), "hello").unwrap();
        let wrong = "md5:d41d8cd98f00b204e9800998ecf8427e";
        let report = world.ingest(&world.path("a.txt"), &["--digest", wrong]);
        let failure = only(&report, "failures");
        assert_eq!(
            (&failure["code"], &failure["class"]),
            (&"digest_mismatch".into(), &"deposit again".into())
        );
        let job = failure["job"].to_string();
        let refused = world.run(&["jobs", "requeue", &job]);
        assert_eq!(refused.status.code(), Some(2), "{}", refused.stderr);
        assert!(refused.stderr.contains("submit a corrected one"), "{}", refused.stderr);
        let why = world.done(&["jobs", "why", &job]);
        assert!(why.contains("it cannot be recovered"), "{why}");
    });
    // A damaged bag can be corrected where it is.
    let world = World::local(1);
    let torn = bag(&world.path("torn"), &[("a.txt", "whole")]);
    std::fs::write(torn.join("data/a.txt"), "whxle").unwrap();
    let job = only(&world.ingest(&torn, &[]), "failures")["job"].to_string();
    std::fs::write(torn.join("data/a.txt"), "whole").unwrap();
    world.done(&["jobs", "requeue", &job]);
}

#[test]
fn completions_end_quietly_when_their_reader_goes_away() {
    let world = World::local(1);
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = world.command(&["completions", "bash"]);
    let child = command.stdout(writer).stderr(Stdio::piped()).spawn().unwrap();
    let ended = child.wait_with_output().unwrap();
    assert_eq!((ended.status.code(), ended.stderr.as_slice()), (Some(141), &b""[..]));
    let whole = finish(world.command(&["completions", "bash"]), "completions");
    assert!(whole.status.success() && whole.stdout.contains("_accession"), "{}", whole.stderr);
}
