//! Drop folders and receiving buckets, from what people put there to what they find beside it.

use crate::support::packages::bag;
use crate::support::s3::{self, Depositor};
use crate::support::world::{Worker, World};
use serde_json::Value;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// A folder and a bucket that are watched alike; in the bucket the prefix says the collection.
struct Places<'a> {
    world: &'a World,
    folder: PathBuf,
    bucket: Depositor<'a>,
}

impl Places<'_> {
    fn put(&self, name: &str, content: &str) {
        let path = self.folder.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
        self.bucket.put(&format!("maps/{name}"), content);
    }

    fn delete(&self, name: &str) {
        std::fs::remove_file(self.folder.join(name)).unwrap();
        self.bucket.delete(&format!("maps/{name}"));
    }

    fn beside(&self, name: &str, suffix: &str) -> [Option<Value>; 2] {
        let file = std::fs::read(self.folder.join(format!("{name}{suffix}"))).ok();
        let object = self.bucket.get(&format!("maps/{name}{suffix}"));
        [file, object].map(|text| text.map(|text| serde_json::from_slice(&text).unwrap()))
    }

    /// Waits for results of deposits after these; what they say of their one object.
    fn results(&self, name: &str, after: [i64; 2]) -> [Value; 2] {
        self.world.until_some(&format!("results of {name}"), || {
            let [Some(one), Some(two)] = self.beside(name, ".result.json") else { return None };
            let newer = |result: &Value, after: i64| result["batch"].as_i64().unwrap() > after;
            (newer(&one, after[0]) && newer(&two, after[1])).then_some([one, two])
        })
    }
}

fn batches(results: &[Value; 2]) -> [i64; 2] {
    [&results[0], &results[1]].map(|result| result["batch"].as_i64().unwrap())
}

/// What both results say of their one object.
fn both_say(results: &[Value; 2], version: i64, unchanged: bool) {
    for result in results {
        assert_eq!(result["state"], "completed", "{result:#}");
        let expected = serde_json::json!([version, unchanged]);
        let object = &result["objects"][0];
        assert_eq!(serde_json::json!([object["version"], object["unchanged"]]), expected);
    }
}

fn watched(world: &World) {
    let own = world.s3.is_none().then(s3::Server::start);
    let server = own.as_ref().or(world.s3.as_ref()).unwrap();
    let folder = world.path("in");
    std::fs::create_dir(&folder).unwrap();
    world.configure(&format!(
        "[collections.papers]\n[collections.maps]\n\
         [[watch]]\npath = \"{}\"\ncollection = \"papers\"\nstill_seconds = 2\npoll_seconds = 1\nresults = true\n\
         [[watch]]\npath = \"{}\"\nprefix_is_collection = true\nstill_seconds = 2\npoll_seconds = 1\nresults = true\n",
        folder.display(),
        server.store("incoming")
    ));
    let places = Places { world, folder, bucket: server.depositor("incoming") };
    let workers = workers(world);

    // What is still being written is left alone, however long it takes.
    places.put("letter.txt", "Dear Ann");
    places.put("half.tif.part", "II*");
    let (began, mut last, mut still) = (Instant::now(), Instant::now(), Duration::ZERO);
    let mut text = String::new();
    for n in 0.. {
        text.push_str(&format!("line {n}\n"));
        places.put("slow.txt", &text);
        places.put(&format!("album/{n}.txt"), &text);
        still = still.max(last.elapsed());
        last = Instant::now();
        if began.elapsed() > Duration::from_secs(4) {
            break;
        }
        std::thread::sleep(Duration::from_millis(200));
    }
    let lines = text.lines().count();
    let first = places.results("letter.txt", [0, 0]);
    both_say(&first, 1, false);
    let [Some(one), Some(two)] = places.beside("letter.txt", ".receipt.json") else { panic!() };
    assert_eq!([one["batch"].as_i64(), two["batch"].as_i64()], batches(&first).map(Some));
    assert_eq!((&one["collection"], &two["collection"]), (&"papers".into(), &"maps".into()));
    // Where the machine stood still for longer, so did what was written, and half of it may be a version.
    if still <= Duration::from_secs(1) {
        for result in places.results("slow.txt", [0, 0]) {
            let object = result["objects"][0]["identifier"].as_str().unwrap();
            let files =
                world.json(&["objects", "files", object])[0]["files"].as_array().unwrap().clone();
            assert_eq!(files[0]["bytes"].as_u64(), Some(text.len() as u64), "half of it was taken");
            assert_eq!(world.versions(object), 1);
        }
        for result in places.results("album", [0, 0]) {
            let object = result["objects"][0]["identifier"].as_str().unwrap();
            assert_eq!(world.files(object, None).len(), lines, "half of it was taken");
            assert_eq!(world.versions(object), 1);
        }
    }

    // The same content again is no version; another content is.
    places.put("letter.txt", "Dear Ann");
    let second = places.results("letter.txt", batches(&first));
    both_say(&second, 1, true);
    places.put("letter.txt", "Dear Ann, again");
    let third = places.results("letter.txt", batches(&second));
    both_say(&third, 2, false);

    // What comes back after it was deleted is a new ingest, though the content is the same.
    places.delete("letter.txt");
    places.put("marker.txt", "seen after the letter was gone");
    places.results("marker.txt", [0, 0]);
    places.put("letter.txt", "Dear Ann, again");
    let fourth = places.results("letter.txt", batches(&third));
    both_say(&fourth, 2, true);
    assert_eq!(places.beside("half.tif.part", ".receipt.json"), [None, None]);

    over(world, workers);
}

#[test]
fn packages_are_taken_whole_and_once_from_folders_and_buckets() {
    World::both(watched);
}

/// A package that its collection removes when it is ingested has a result all the same.
#[test]
fn removed_packages_have_results() {
    let world = World::local(1);
    let folder = world.path("in");
    std::fs::create_dir(&folder).unwrap();
    world.configure(&format!(
        "[collections.papers]\nremove_packages = true\n[[watch]]\npath = \"{}\"\n\
         collection = \"papers\"\nstill_seconds = 1\npoll_seconds = 1\nresults = true\n",
        folder.display()
    ));
    std::fs::write(folder.join("letter.txt"), "Dear Ann").unwrap();
    let mut worker = world.worker();
    world.until_some("a result", || std::fs::read(folder.join("letter.txt.result.json")).ok());
    assert!(!folder.join("letter.txt").exists(), "it was to be removed");
    worker.kill();
    world.check();
}

/// A depositor who has a drop folder and nothing else learns from the result what was wrong.
#[test]
fn results_have_the_reasons() {
    let world = World::local(1);
    let folder = world.path("in");
    std::fs::create_dir(&folder).unwrap();
    bag(&folder.join("torn"), &[("page.txt", "whole")]);
    std::fs::write(folder.join("torn/data/page.txt"), "whxle").unwrap();
    let profile = "http://uc3.cdlib.org/registry/ingest/manifest/mrt-single-file-batch-manifest";
    let manifest = format!("#%checkm_0.7\n#%profile | {profile}\nnonsense\n#%eof\n");
    std::fs::write(folder.join("broken.checkm"), manifest).unwrap();
    world.configure(&format!(
        "[collections.papers]\n[[watch]]\npath = \"{}\"\n\
         collection = \"papers\"\nstill_seconds = 1\npoll_seconds = 1\nresults = true\n",
        folder.display()
    ));
    let mut worker = world.worker();
    let result = |name: &str| -> Value {
        let path = folder.join(format!("{name}.result.json"));
        let text = world.until_some("a result", || std::fs::read(&path).ok());
        serde_json::from_slice(&text).unwrap()
    };
    let (torn, broken) = (result("torn"), result("broken.checkm"));
    worker.kill();
    assert_eq!(torn["failures"][0]["code"], "bag_digest_mismatch", "{torn:#}");
    assert_eq!(torn["failures"][0]["file"], "data/page.txt", "{torn:#}");
    let message = torn["failures"][0]["message"].as_str().unwrap();
    assert!(message.contains("data/page.txt"), "{torn:#}");
    assert!(torn["summary"].as_str().unwrap().contains("0 of 1 object preserved"), "{torn:#}");
    assert!(broken["error"].as_str().unwrap().contains("broken.checkm"), "{broken:#}");
    assert!(!torn.to_string().contains("accession "), "a depositor has no commands: {torn:#}");
}

/// Two workers that watch the same places.
fn workers(world: &World) -> [Worker; 2] {
    [(); 2].map(|()| {
        let mut command = world.command(&["work", "--lease", "20"]);
        let log = std::fs::File::options().append(true).create(true).open(world.path("worker.log"));
        command.envs(s3::keys()).stdout(Stdio::null()).stderr(log.unwrap());
        Worker(command.spawn().unwrap())
    })
}

/// What was fetched from a bucket goes with its deposit, and all else is as it should be.
fn over(world: &World, workers: [Worker; 2]) {
    world.until_some("nothing fetched is left", || {
        let left = std::fs::read_dir(world.path("data/work").join("received")).unwrap();
        (left.count() == 0).then_some(())
    });
    drop(workers);
    world.work();
    world.check();
}

/// A package that is replaced while it is fetched is never taken half old and half new; and two
/// that look the same but for their names are not taken for one another.
fn replaced_while_it_is_fetched(world: &World) {
    let own = world.s3.is_none().then(s3::Server::start);
    let server = own.as_ref().or(world.s3.as_ref()).unwrap();
    world.configure(&format!(
        "[collections.papers]\n[collections.maps]\n[[watch]]\npath = \"{}\"\n\
         prefix_is_collection = true\nstill_seconds = 1\npoll_seconds = 1\nresults = true\n",
        server.store("incoming")
    ));
    let bucket = server.depositor("incoming");
    let noon = std::time::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
    // Past the server, which would remember digests of what is replaced behind its back.
    let write = |key: &str, content: &str| {
        let path = server.file("incoming", key);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        std::fs::File::options().write(true).open(path).unwrap().set_modified(noon).unwrap();
    };
    for collection in ["maps", "papers"] {
        write(&format!("{collection}/same.txt"), &format!("{collection:>6}"));
    }
    for name in ["1.txt", "2.txt"] {
        write(&format!("maps/box/{name}"), "old");
    }
    let replaced: Vec<PathBuf> =
        ["1.txt", "2.txt"].map(|n| server.file("incoming", &format!("maps/box/{n}"))).to_vec();
    let mut done = false;
    *server.control.hook.lock().unwrap() = Some(Box::new(move |method, path| {
        if !done && method == "GET" && path.contains("/maps/box/2.txt") && !path.ends_with(".json")
        {
            done = true;
            replaced.iter().for_each(|file| std::fs::write(file, "fresh").unwrap());
        }
    }));
    let workers = workers(world);
    let result = |key: &str| -> Value {
        let text = world.until_some(key, || bucket.get(&format!("{key}.result.json")));
        serde_json::from_slice(&text).unwrap()
    };
    let object = |key: &str| result(key)["objects"][0]["identifier"].as_str().unwrap().to_string();
    let contents = |object: &str| -> Vec<u64> {
        let files =
            world.json(&["objects", "files", object])[0]["files"].as_array().unwrap().clone();
        files.iter().map(|file| file["bytes"].as_u64().unwrap()).collect()
    };
    let boxed = object("maps/box");
    assert_eq!((contents(&boxed), world.versions(&boxed)), (vec![5, 5], 1));
    let digest = |key: &str| {
        world.json(&["objects", "files", &object(key)])[0]["files"][0]["sha512"].clone()
    };
    assert_ne!(digest("maps/same.txt"), digest("papers/same.txt"));
    over(world, workers);
}

#[test]
fn what_is_replaced_while_it_is_fetched_is_fetched_again() {
    World::both(replaced_while_it_is_fetched);
}

/// Packages that still look as they did when the stores took them are not read again by a database
/// that was made from the stores; what looks different ends as unchanged if it is not.
#[test]
fn a_new_database_beside_an_old_folder_knows_what_the_stores_hold() {
    let world = World::local(1);
    let folder = world.path("in");
    std::fs::create_dir_all(folder.join("box")).unwrap();
    std::fs::create_dir_all(folder.join("empty")).unwrap();
    world.configure(&format!(
        "[[watch]]\npath = \"{}\"\ncollection = \"default\"\nstill_seconds = 1\npoll_seconds = 1\n",
        folder.display()
    ));
    std::fs::write(folder.join("letter.txt"), "Dear Ann").unwrap();
    std::fs::write(folder.join("box/1.tif"), "scanned").unwrap();
    let status = || world.json(&["watch", "status"])[0]["places"][0].clone();
    let work_until_done = |count: u64| {
        let mut worker = world.worker();
        world.until_some("all is done", || (status()["states"]["done"] == count).then_some(()));
        worker.kill();
    };
    work_until_done(2);
    assert_eq!(status()["deposits"].as_array().unwrap().len(), 2);
    crate::recovery::remove_database(&world);
    world.done(&["registry", "rebuild", "--from", "s1"]);

    let touched = std::fs::File::options().write(true).open(folder.join("box/1.tif")).unwrap();
    touched.set_modified(std::time::UNIX_EPOCH + Duration::from_secs(1_700_000_000)).unwrap();
    std::fs::write(folder.join("new.txt"), "something new").unwrap();
    work_until_done(3);
    let after = status();
    let mut taken: Vec<&str> =
        after["deposits"].as_array().unwrap().iter().map(|d| d["name"].as_str().unwrap()).collect();
    taken.sort_unstable();
    assert_eq!(taken, ["box", "new.txt"], "the letter was not read again: {after:#}");
    assert_eq!((world.versions("box"), world.versions("letter.txt")), (1, 1));
    let said = world.done(&["watch", "status"]);
    assert!(said.contains("the stores had it"), "{said}");
    assert!(said.contains("there is no file in it"), "{said}");

    // What is deleted and comes back is a new ingest, in the new database too.
    let content = std::fs::read(folder.join("letter.txt")).unwrap();
    std::fs::remove_file(folder.join("letter.txt")).unwrap();
    work_until_done(2);
    std::fs::write(folder.join("letter.txt"), content).unwrap();
    work_until_done(3);
    assert_eq!(status()["deposits"].as_array().unwrap().len(), 3);
    // Jobs of a new database have numbers that versions of the old one have too.
    world.done(&["check", "--content"]);
}

/// A worker with a new database takes nothing from its folder while the stores hold what it does not know:
/// the identifiers that it would give are taken there.
#[test]
fn a_new_database_beside_old_stores_takes_nothing_until_it_knows_them() {
    let world = World::local(1);
    let folder = world.path("in");
    std::fs::create_dir(&folder).unwrap();
    world.configure(&format!(
        "[[watch]]\npath = \"{}\"\ncollection = \"default\"\nstill_seconds = 1\npoll_seconds = 1\n",
        folder.display()
    ));
    std::fs::write(folder.join("letter.txt"), "Dear Ann").unwrap();
    let states = || world.json(&["watch", "status"])[0]["places"][0]["states"].clone();
    let work_until_done = || {
        let mut worker = world.worker();
        world.until_some("it is done", || (states()["done"] == 1).then_some(()));
        worker.kill();
    };
    work_until_done();
    let doctor = || world.json(&["doctor"])[0].to_string();
    assert!(!doctor().contains("registry rebuild"), "{}", doctor());
    crate::recovery::remove_database(&world);
    std::fs::remove_file(world.path("worker.log")).unwrap();

    let advice = "run `accession registry rebuild --from s1`";
    let mut worker = world.worker();
    world.until_some("the worker says what to do", || {
        std::fs::read_to_string(world.path("worker.log")).ok().filter(|log| log.contains(advice))
    });
    worker.kill();
    assert!(world.jobs().is_empty(), "nothing was taken");
    let ended = world.run(&["watch", "status"]);
    assert_eq!(ended.status.code(), Some(1), "{}", ended.stdout);
    assert!(
        ended.stdout.contains(&format!(
            "nothing is taken: store s1 has objects and the registry has none; {advice}"
        )),
        "{}",
        ended.stdout
    );
    assert!(doctor().contains(advice), "{}", doctor());
    world.done(&["registry", "rebuild", "--from", "s1"]);
    work_until_done();
    assert!(world.jobs().is_empty(), "it was known");
    assert!(!doctor().contains("registry rebuild"), "{}", doctor());
}
