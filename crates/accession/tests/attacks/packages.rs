//! Packages that expand without end, lead elsewhere, or change after their receipt.

use crate::support::packages::{archive, bag, directory, noise};
use crate::support::world::{Worker, World};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::{FileExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

fn python(directory: &Path, script: &str) {
    let done = Command::new("python3").current_dir(directory).args(["-c", script]).status();
    assert!(done.unwrap().success(), "{script}");
}

/// The code of a batch's only failure.
fn failure(world: &World, batch: i64) -> String {
    let report = world.batch(batch);
    assert_eq!(report["state"], "failed", "{report:#}");
    report["failures"][0]["code"].as_str().unwrap_or_default().to_string()
}

/// Whether any file below a directory has these bytes in it.
fn holds(directory: &Path, bytes: &[u8]) -> bool {
    fs::read_dir(directory).into_iter().flatten().flatten().any(|entry| {
        let path = entry.path();
        match entry.file_type().unwrap().is_dir() {
            true => holds(&path, bytes),
            false => fs::read(path).unwrap().windows(bytes.len()).any(|part| part == bytes),
        }
    })
}

/// What `deposit --check` and an ingest say of the same package: the codes of its errors.
fn refused_by_both(world: &World, path: &Path) -> [Vec<String>; 2] {
    let checked = world.json(&["deposit", path.to_str().unwrap(), "--check"]).remove(0);
    let listed = checked["problems"]["listed"].as_array().unwrap().iter();
    let codes = listed
        .filter(|problem| problem["is_error"] == true)
        .map(|problem| problem["code"].as_str().unwrap().to_string());
    let batch = world.deposit(path, &[]);
    world.work();
    [codes.collect(), vec![failure(world, batch)]]
}

const SECRET: &str = "what the depositor may not read";

/// A directory `secret` whose files have the names of the depositor's.
fn secret(world: &World) -> PathBuf {
    directory(&world.path("secret"), &[("p.txt", SECRET), ("sub/p.txt", SECRET)])
}

#[test]
fn a_link_in_the_place_of_a_package_is_not_followed() {
    let world = World::local(1);
    let secret = secret(&world);
    let inbox = directory(&world.path("inbox"), &[("a/p.txt", "mine"), ("b/p.txt", "mine")]);
    let one = world.deposit(&inbox.join("a/p.txt"), &[]);
    let two = world.deposit(&inbox.join("b/p.txt"), &[]);
    // The package itself, and the directory that it is in.
    fs::remove_file(inbox.join("a/p.txt")).unwrap();
    symlink(secret.join("p.txt"), inbox.join("a/p.txt")).unwrap();
    fs::remove_dir_all(inbox.join("b")).unwrap();
    symlink(&secret, inbox.join("b")).unwrap();
    world.work();
    for batch in [one, two] {
        let report = world.batch(batch);
        assert_eq!(report["state"], "failed", "{report:#}");
        assert!(report.to_string().contains("symbolic link"), "{report:#}");
    }
    assert!(!holds(&world.path("data/stores"), SECRET.as_bytes()));
}

#[test]
fn a_link_in_the_place_of_a_directory_in_a_package_is_not_followed() {
    let world = World::local(1);
    let secret = secret(&world);
    let package = directory(&world.path("package"), &[("sub/p.txt", "mine"), ("q.txt", "mine")]);
    let batch = world.deposit(&package, &[]);
    assert!(world.work_until("resolving.classified"));
    fs::remove_dir_all(package.join("sub")).unwrap();
    symlink(&secret, package.join("sub")).unwrap();
    world.work();
    assert_eq!(failure(&world, batch), "package_link");
    assert!(!holds(&world.path("data/stores"), SECRET.as_bytes()));
}

#[test]
fn a_package_that_is_named_by_a_link_is_taken_under_its_name() {
    let world = World::local(1);
    let kept = directory(&world.path("kept"), &[("2026.txt", "this year")]);
    symlink(&kept, world.path("inbox")).unwrap();
    symlink("2026.txt", kept.join("latest.txt")).unwrap();
    let report = world.ingest(&world.path("inbox/latest.txt"), &[]);
    assert_eq!(report["state"], "completed", "{report:#}");
    assert!(report.to_string().contains("latest"), "{report:#}");
    assert!(holds(&world.path("data/stores"), b"this year"));
}

#[test]
fn a_package_is_not_removed_through_a_link() {
    let world = World::local(1);
    world.done(&["collection", "create", "maps", "remove_packages=true"]);
    let inbox = directory(&world.path("inbox"), &[("a/p.txt", "mine")]);
    let batch = world.deposit(&inbox.join("a/p.txt"), &["--collection", "maps"]);
    assert!(world.work_until("cleaning"));
    // The very same file, by another way.
    fs::rename(inbox.join("a"), world.path("elsewhere")).unwrap();
    symlink(world.path("elsewhere"), inbox.join("a")).unwrap();
    world.work();
    assert_eq!(world.batch(batch)["state"], "completed");
    assert_eq!(fs::read_to_string(world.path("elsewhere/p.txt")).unwrap(), "mine");
}

#[test]
fn archives_that_expand_without_end_are_refused_before_they_are_unpacked() {
    let world = World::local(1);
    let dir = world.dir.path();
    // A hundred kilobytes that are a hundred megabytes.
    python(
        dir,
        "import zipfile\nwith zipfile.ZipFile('bomb.zip', 'w', zipfile.ZIP_DEFLATED) as z:\n  with z.open('zeros', 'w') as f:\n    for _ in range(100): f.write(bytes(1 << 20))",
    );
    assert!(fs::metadata(dir.join("bomb.zip")).unwrap().len() < 200_000);
    // A few kilobytes that declare a terabyte.
    fs::create_dir(dir.join("holes")).unwrap();
    fs::File::create(dir.join("holes/one")).unwrap().set_len(1 << 40).unwrap();
    for (name, options) in [("gnu.tar", "--format=gnu"), ("pax.tar", "--format=posix")] {
        let tar = Command::new("tar")
            .current_dir(dir)
            .args(["--create", "--sparse", options, "--file", name, "holes"])
            .status();
        assert!(tar.unwrap().success());
        assert!(fs::metadata(dir.join(name)).unwrap().len() < 20_000);
    }
    python(dir, "import gzip; gzip.open('gnu.tar.gz', 'w').write(open('gnu.tar', 'rb').read())");
    for name in ["bomb.zip", "gnu.tar", "pax.tar", "gnu.tar.gz"] {
        let codes = refused_by_both(&world, &dir.join(name));
        assert_eq!(codes, [["decompression_bomb"], ["decompression_bomb"]], "{name}");
    }
    assert!(!holds(&world.path("data/stores"), &[0; 4096]));
    assert!(!holds(&world.path("data/work"), &[0; 65536]), "nothing was unpacked");
}

#[test]
fn sparse_members_are_kept_with_their_holes() {
    let world = World::local(1);
    let dir = world.dir.path();
    let mut content = noise(400 * 1024, 1);
    content.resize(2 << 20, 0);
    content.extend(noise(300 * 1024, 2));
    for (name, options) in
        [("gnu", &["--format=gnu"][..]), ("pax", &["--format=posix", "--sparse-version=1.0"])]
    {
        fs::create_dir(dir.join(name)).unwrap();
        // GNU tar looks for zeros only in files that have holes on disk.
        let file = fs::File::create(dir.join(name).join("large.bin")).unwrap();
        file.write_all_at(&content[..400 * 1024], 0).unwrap();
        file.write_all_at(&content[2 << 20..], 2 << 20).unwrap();
        let tar = format!("{name}.tar");
        let made = Command::new("tar")
            .current_dir(dir)
            .args(["--create", "--sparse", "--hole-detection=raw", "--file", &tar])
            .args(options)
            .arg(name)
            .status();
        assert!(made.unwrap().success());
        let packed = fs::metadata(dir.join(&tar)).unwrap().len();
        assert!(packed < content.len() as u64 / 2, "{tar} is not sparse: {packed} bytes");
        let report = world.ingest(&dir.join(&tar), &[]);
        assert_eq!(report["state"], "completed", "{tar}: {report:#}");
    }
    assert!(holds(&world.path("data/stores"), &content));
    world.check();
}

fn mkfifo(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

#[test]
fn a_pipe_in_the_place_of_a_package_is_refused_and_not_waited_for() {
    let world = World::local(1);
    let inbox = directory(&world.path("inbox"), &[("a.txt", "mine"), ("b.tar.gz", "mine")]);
    let package = directory(&world.path("package"), &[("sub/p.txt", "mine")]);
    let paths = [inbox.join("a.txt"), inbox.join("b.tar.gz"), package.join("sub/p.txt")];
    let one = world.deposit(&paths[0], &[]);
    let two = world.deposit(&paths[1], &["--kind", "container"]);
    for path in &paths[..2] {
        fs::remove_file(path).unwrap();
        mkfifo(path);
    }
    world.work();
    assert!(world.batch(one).to_string().contains("pipe"), "{:#}", world.batch(one));
    assert_eq!(failure(&world, two), "not_a_file");
    // In the midst of an ingest.
    let three = world.deposit(&package, &[]);
    assert!(world.work_until("resolving.classified"));
    fs::remove_file(&paths[2]).unwrap();
    mkfifo(&paths[2]);
    world.work();
    assert_eq!(failure(&world, three), "not_a_file");
    // And when it is deposited.
    let ended = world.run(&["deposit", paths[0].to_str().unwrap()]);
    assert!(ended.stderr.contains("[not_a_file]"), "{}", ended.stderr);
}

/// Someone holds the database, so that nothing the worker wants to say at its end comes through.
#[test]
fn nothing_survives_the_grace_period() {
    let world = World::local(1);
    world.done(&["status"]);
    let mut command = world.command(&["work", "--grace", "1"]);
    let log = fs::File::create(world.path("worker.log")).unwrap();
    command.stdout(log.try_clone().unwrap()).stderr(log);
    let mut worker = Worker(command.spawn().unwrap());
    let ready =
        || (!world.json(&["queue", "workers"])[0]["workers"].as_array()?.is_empty()).then_some(());
    world.until_some("a worker", ready);
    let holder = "import sqlite3, sys, time\nc = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=60)\nc.execute('begin immediate')\nprint('held', flush=True)\ntime.sleep(100)";
    let mut holder = Command::new("python3")
        .args(["-c", holder])
        .arg(world.path("data/accession.db"))
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = [0; 5];
    std::io::Read::read_exact(holder.stdout.as_mut().unwrap(), &mut line).unwrap();
    let _holder = Worker(holder);
    let pid = nix::unistd::Pid::from_raw(worker.0.id().cast_signed());
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).unwrap();
    let began = Instant::now();
    while worker.0.try_wait().unwrap().is_none() {
        assert!(began.elapsed() < Duration::from_secs(15), "it outlived its grace period");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn an_archive_without_its_end_or_with_more_after_it_is_told_in_the_report() {
    let world = World::local(1);
    let tar_of = |path: &Path| fs::read(archive(path, "tar")).unwrap();
    let plain = tar_of(&directory(&world.path("one"), &[("a.txt", "a")]));
    let other = tar_of(&directory(&world.path("two"), &[("b.txt", "b")]));
    let zip =
        fs::read(archive(&directory(&world.path("three"), &[("d.txt", "d")]), "zip")).unwrap();
    let in_bag = tar_of(&bag(&world.path("bagged"), &[("c.txt", "c")]));
    let cut = |tar: &[u8]| {
        let end = tar.iter().rposition(|byte| *byte != 0).unwrap() + 1;
        tar[..end.next_multiple_of(512)].to_vec()
    };
    let cases = [
        ("cut", cut(&plain), "[archive_unmarked]"),
        ("joined", [plain.clone(), other.clone()].concat(), "[archive_data_after_end]"),
        ("cut-bag", cut(&in_bag), "[bag_archive_unmarked]"),
        ("joined-bag", [in_bag.clone(), other].concat(), "[bag_archive_data_after_end]"),
        ("joined-zip", [zip, b"more".to_vec()].concat(), "[archive_data_after_end]"),
    ];
    let written = |name: &str, archive: &[u8]| {
        let path = world.path(name);
        fs::write(&path, archive).unwrap();
        path
    };
    for (name, tar, warning) in cases {
        let report = world.ingest(&written(name, &tar), &[]);
        assert_eq!(report["state"], "completed", "{name}: {report:#}");
        let batch = report["batch"].as_i64().or(report["id"].as_i64()).unwrap().to_string();
        let told = world.done(&["batches", "report", &batch]);
        assert!(told.contains(warning), "{name}: {told}");
    }
    let good = world.ingest(&written("whole", &plain), &[]);
    assert!(!good.to_string().contains("archive_"), "{good:#}");
}

/// Bytes that are in no file of the object would be lost with the package.
#[test]
fn a_package_with_data_after_its_end_is_not_removed() {
    let world = World::local(1);
    world.done(&["collection", "create", "papers", "remove_packages=true"]);
    let read = |name: &str, extension: &str| {
        let package = directory(&world.path(name), &[(format!("{name}.txt"), name)]);
        fs::read(archive(&package, extension)).unwrap()
    };
    let (one, two) = (read("one", "tar"), read("two", "tar"));
    let joined = world.path("joined.tar");
    fs::write(&joined, [one, two].concat()).unwrap();
    assert!(Command::new("gzip").arg("--keep").arg(&joined).status().unwrap().success());
    let zip = world.path("joined.zip");
    fs::write(&zip, [read("three", "zip"), b"more".to_vec()].concat()).unwrap();
    let whole = world.path("four.tar");
    read("four", "tar");
    for (path, stays) in
        [(joined.clone(), true), (world.path("joined.tar.gz"), true), (zip, true), (whole, false)]
    {
        let id = path.file_name().unwrap().to_str().unwrap();
        let report = world.ingest(&path, &["--collection", "papers", "--local-id", id]);
        assert_eq!(report["state"], "completed", "{id}: {report:#}");
        assert_eq!(path.exists(), stays, "{id}");
    }
}

/// The bytes of a zip whose members begin `by` bytes later than they did.
fn moved(zip: &[u8], by: usize) -> Vec<u8> {
    let mut zip = zip.to_vec();
    for (record, offset) in [(b"PK\x01\x02", 42), (b"PK\x05\x06", 16)] {
        for at in 0..zip.len() - 4 {
            if zip[at..].starts_with(record) {
                let field = &mut zip[at + offset..at + offset + 4];
                let moved = u32::from_le_bytes(field.try_into().unwrap()) + by as u32;
                field.copy_from_slice(&moved.to_le_bytes());
            }
        }
    }
    zip
}

/// The end of joined zips leads to one directory, and the members of the other are in no file.
#[test]
fn joined_zips_are_told_and_not_removed() {
    let world = World::local(1);
    world.done(&["collection", "create", "papers", "remove_packages=true"]);
    let zip = |name: &str| {
        let package = directory(&world.path(name), &[("same.txt", name)]);
        fs::read(archive(&package, "zip")).unwrap()
    };
    let (one, two) = (zip("one"), zip("two"));
    let cases = [
        // Of one length: the end of the second leads to the directory of the first.
        ("end.zip", [one.clone(), two.clone()].concat(), "[archive_data_after_end]"),
        (
            "start.zip",
            [one.clone(), moved(&two, one.len())].concat(),
            "[archive_data_before_start]",
        ),
    ];
    for (name, content, warning) in cases {
        let path = world.path(name);
        fs::write(&path, content).unwrap();
        let report = world.ingest(&path, &["--collection", "papers"]);
        assert_eq!(report["state"], "completed", "{name}: {report:#}");
        assert!(path.exists(), "{name} has a file that is in no object");
        let told = world.done(&["batches", "report", &report["batch"].to_string()]);
        assert!(told.contains(warning), "{name}: {told}");
    }
}

/// Files that only systems leave outside of a bag are a warning, and are in no object; what is only
/// called a manifest is a file like others.
#[test]
fn a_bag_with_files_that_the_object_does_not_have_is_not_removed() {
    let world = World::local(1);
    world.done(&["collection", "create", "papers", "remove_packages=true"]);
    let made = bag(&world.path("bag"), &[("a.txt", "a")]);
    fs::write(made.join("manifest-of-letters.txt"), "what the letters are about").unwrap();
    let whole = archive(&made, "tar");
    let report = world.ingest(&whole, &["--collection", "papers"]);
    assert_eq!(report["state"], "completed", "{report:#}");
    assert!(!whole.exists());
    assert!(holds(&world.path("data/stores"), b"what the letters are about"));

    let outside = directory(&world.path("__MACOSX"), &[("._a.txt", "in no file")]);
    let with = world.path("with.tar");
    let mut tar = Command::new("tar");
    tar.arg("-C").arg(world.dir.path()).arg("-cf").arg(&with).arg("bag");
    assert!(tar.arg(outside.file_name().unwrap()).status().unwrap().success());
    let report = world.ingest(&with, &["--collection", "papers", "--local-id", "with"]);
    assert_eq!(report["state"], "completed", "{report:#}");
    assert!(with.exists(), "a file of it is in no object");
}

/// What a program has looked at is what was read, or its verdict does not count.
#[test]
fn a_file_that_is_exchanged_while_a_program_looks_at_it_is_refused() {
    let world = World::local(1);
    let check = |per: &str| {
        format!(
            "[[collections.{per}.checks]]\nname = 'scan'\nper = '{per}'\n\
             program = ['sh', '-c', 'cp \"$1\" \"$1.new\" && mv \"$1.new\" \"$1\"', 'scan']\n"
        )
    };
    world.configure(&(check("file") + &check("package")));
    let path = directory(&world.path("inbox"), &[("one/p.txt", "mine"), ("two.txt", "mine")]);
    for (per, name) in [("file", "one"), ("package", "two.txt")] {
        let batch = world.deposit(&path.join(name), &["--collection", per]);
        world.work();
        assert_eq!(failure(&world, batch), "package_changed", "{per}");
    }
}

#[test]
fn a_check_refuses_what_an_ingest_refuses() {
    let world = World::local(1);
    let dir = world.dir.path();
    python(
        dir,
        "import tarfile, io\nwith tarfile.open('tree.tar', 'w') as t:\n  for name in ['x/a', 'x/a/b', 'x/c']:\n    i = tarfile.TarInfo(name); i.size = 1; t.addfile(i, io.BytesIO(b'1'))",
    );
    assert_eq!(refused_by_both(&world, &dir.join("tree.tar")), [["path_conflict"]; 2]);
    let made = bag(&world.path("bag"), &[("a.txt", "a")]);
    let info = made.join("bag-info.txt");
    let said = fs::read_to_string(&info).unwrap();
    fs::write(&info, format!("{said}External-Identifier: ark:/1/bad\n")).unwrap();
    for entry in fs::read_dir(&made).unwrap().flatten() {
        if entry.file_name().to_string_lossy().starts_with("tagmanifest-") {
            fs::remove_file(entry.path()).unwrap();
        }
    }
    assert_eq!(refused_by_both(&world, &made), [["identifier.ark"]; 2]);
    world.done(&["collection", "create", "files", "payload_kinds=[\"file\"]"]);
    let options = ["--check", "--collection", "files"];
    let path = made.to_str().unwrap();
    let checked: Value = world.json(&[&["deposit", path][..], &options].concat()).remove(0);
    assert_eq!(checked["problems"]["listed"][0]["code"], "payload_kind", "{checked:#}");
}
