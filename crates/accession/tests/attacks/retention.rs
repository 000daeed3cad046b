//! Jobs that are requeued after what they had read was discarded, and stale work data.

use crate::support::world::World;
use crate::support::{invariants, packages, web};
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

const NO_RETENTION: &str = "[limits]\ninvalid_package_retention_days = 0\n";

fn only_job(world: &World) -> Value {
    let mut jobs = world.jobs();
    assert_eq!(jobs.len(), 1, "{jobs:#?}");
    jobs.remove(0)
}

/// Has a job fail in a stage by a store that cannot be written, and fixes the store.
fn fail_in_storing(world: &World) -> String {
    let stores = world.path("data/stores");
    world.done(&["queue", "set", "ingest", "--stage", "storing", "max_attempts=1"]);
    assert!(world.work_until("storing"));
    let hidden = world.path("data/hidden");
    std::fs::rename(&stores, &hidden).unwrap();
    // A file in its place: not even a directory can be made.
    std::fs::write(&stores, "").unwrap();
    world.work();
    let job = only_job(world);
    assert_eq!((&job["status"], &job["stage"]), (&"failed".into(), &"storing".into()), "{job:#}");
    std::fs::remove_file(&stores).unwrap();
    std::fs::rename(&hidden, &stores).unwrap();
    job["id"].to_string()
}

fn is_discarded(world: &World, job: &str) -> bool {
    let shown = world.json(&["jobs", "show", job]).remove(0);
    shown["history"].as_array().unwrap().iter().any(|event| event["event"] == "discarded")
}

/// The janitor comes by when a worker starts.
fn let_the_janitor_discard(world: &World, job: &str) {
    let mut worker = world.worker();
    world.until_some("the janitor", || is_discarded(world, job).then_some(()));
    worker.kill();
}

/// What the janitor forgot is read again: the version has every file, and only then is the package
/// removed. By number, and by `retry --all`.
#[test]
fn a_job_requeued_after_its_retention_reads_its_package_again() {
    for (extension, all) in [("tar.gz", false), ("tar", true), ("zip", false)] {
        let world = World::local(1);
        world.configure(NO_RETENTION);
        world.done(&["collection", "create", "papers", "remove_packages=true"]);
        let files = packages::small(20, "kept");
        let directory = packages::directory(&world.path("letters"), &files);
        let package = packages::archive(&directory, extension);
        let batch = world.deposit(&package, &["--collection", "papers"]);
        let job = fail_in_storing(&world);
        let_the_janitor_discard(&world, &job);
        assert!(package.exists(), "nothing of it is preserved");
        let refused = world.run(&["jobs", "requeue", &job, "--to", "storing"]);
        assert!(
            !refused.status.success() && refused.stderr.contains("discarded"),
            "{}",
            refused.stderr
        );
        match all {
            true => world.done(&["jobs", "retry", "--all"]),
            false => world.done(&["jobs", "requeue", &job]),
        };
        assert_eq!(only_job(&world)["stage"], "estimating");
        world.work();
        let report = world.batch(batch);
        assert_eq!(report["state"], "completed", "{report:#}");
        let object = world.json(&["objects", "list"])[0]["objects"][0]["identifier"].clone();
        assert_eq!(world.files(object.as_str().unwrap(), None).len(), files.len());
        assert!(!package.exists(), "everything of it is preserved");
        world.check();
    }
}

/// With the package gone, the requeued job fails; no version is made of nothing.
#[test]
fn a_job_requeued_after_its_retention_without_its_package_fails() {
    let world = World::local(1);
    world.configure(NO_RETENTION);
    let package = packages::archive(
        &packages::directory(&world.path("letters"), &packages::small(3, "gone")),
        "tar.gz",
    );
    world.deposit(&package, &[]);
    let job = fail_in_storing(&world);
    let_the_janitor_discard(&world, &job);
    std::fs::remove_file(&package).unwrap();
    world.done(&["jobs", "requeue", &job]);
    world.work();
    let shown = world.json(&["jobs", "show", &job]).remove(0);
    assert_eq!(shown["job"]["error_code"], "package_missing", "{shown:#}");
    assert_eq!(world.json(&["objects", "list"])[0]["objects"].as_array().unwrap().len(), 0);
}

/// The rows of a job disappear in a way that no rule knows of: nothing is sealed.
#[test]
fn a_version_is_never_sealed_with_other_files_than_were_validated() {
    for (stage, statement) in [
        ("resolving", "delete from ingest_files"),
        ("verifying.verified", "delete from ingest_files where number = 2"),
        ("recording", "update ingest_files set size = size - 1 where number = 1"),
        ("resolving", "update ingest_files set path = 'data/d0/f0.txt'"),
    ] {
        let world = World::local(1);
        let package = packages::directory(&world.path("box"), &packages::small(4, "x"));
        world.deposit(&package, &[]);
        assert!(world.work_until(stage), "{stage}");
        assert!(invariants::execute(&world, statement) > 0);
        world.work();
        let shown = world.json(&["jobs", "show", &only_job(&world)["id"].to_string()]).remove(0);
        assert_eq!(shown["job"]["error_code"], "incomplete", "{stage}: {shown:#}");
        assert_eq!(world.json(&["objects", "list"])[0]["objects"].as_array().unwrap().len(), 0);
    }
}

fn bag_of(world: &World, text: &str) -> std::path::PathBuf {
    let directory = world.path("letters");
    let _ = std::fs::remove_dir_all(&directory);
    let bag = packages::bag(&directory, &[("a.txt", text), ("b.txt", "the same")]);
    packages::archive(&bag, "tar.gz")
}

/// A bag that was damaged and is corrected in its place is read as it is now.
#[test]
fn a_corrected_package_is_unpacked_again() {
    let world = World::local(1);
    world.done(&["collection", "create", "papers", "remove_packages=true"]);
    let directory =
        packages::bag(&world.path("letters"), &[("a.txt", "good"), ("b.txt", "the same")]);
    std::fs::write(directory.join("data/a.txt"), "evil").unwrap();
    let package = packages::archive(&directory, "tar.gz");
    let batch = world.deposit(&package, &["--collection", "papers"]);
    world.work();
    let job = only_job(&world);
    assert_eq!(
        (&job["status"], &job["stage"]),
        (&"failed".into(), &"validating".into()),
        "{job:#}"
    );
    std::fs::remove_file(&package).unwrap();
    assert_eq!(bag_of(&world, "good"), package);
    world.done(&["jobs", "requeue", &job["id"].to_string()]);
    world.work();
    assert_eq!(world.batch(batch)["state"], "completed");
    assert!(!package.exists());
    world.check();
}

/// A directory that was damaged and is corrected likewise: what was read of it before is not used.
#[test]
fn a_corrected_directory_is_read_again() {
    let world = World::local(1);
    let directory =
        packages::bag(&world.path("letters"), &[("a.txt", "good"), ("b.txt", "the same")]);
    std::fs::write(directory.join("data/a.txt"), "evil").unwrap();
    let batch = world.deposit(&directory, &[]);
    world.work();
    std::fs::write(directory.join("data/a.txt"), "good").unwrap();
    world.done(&["jobs", "requeue", &only_job(&world)["id"].to_string()]);
    world.work();
    assert_eq!(world.batch(batch)["state"], "completed");
    world.check();
}

/// Files come into a directory, and leave it, while it is read and its worker is killed. The version
/// has every file that is there when the directory is read to its end, and each once.
#[test]
fn a_directory_that_changes_between_two_runs_is_read_again() {
    let world = World::local(1);
    let directory = world.path("letters");
    packages::directory(&directory, &packages::small(1200, "first"));
    let batch = world.deposit(&directory, &[]);
    assert!(world.work_until("validating.portion"));
    let more: Vec<_> = (0..40).map(|n| (format!("d{}/more{n}", n % 7), vec![n; 9])).collect();
    packages::directory(&directory, &more);
    for number in (0..1200).step_by(40) {
        std::fs::remove_file(directory.join(format!("d{}/f{number}.txt", number % 7))).unwrap();
    }
    std::fs::write(directory.join("d1/f1.txt"), "changed").unwrap();
    world.work();
    assert_eq!(world.batch(batch)["state"], "completed", "{:#}", world.batch(batch));
    let object = world.json(&["objects", "list"])[0]["objects"][0]["identifier"].clone();
    let stored = world.files(object.as_str().unwrap(), None);
    assert_eq!(stored.len(), 1200 + 40 - 30);
    for (name, _) in &more {
        assert!(stored.contains(&format!("data/{name}")), "{name} is lost");
    }
    assert_eq!(stored_content(&world, "f1.txt"), "changed");
    world.check();
}

/// Rows of a manifest disappear before validating counts them: nothing is sealed.
#[test]
fn a_version_is_never_sealed_without_rows_of_its_manifest() {
    let world = World::local(1);
    let files = packages::small(4, "row");
    let base = web::serve(&packages::directory(&world.path("web"), &files));
    world.deposit(&packages::manifest(&world.path("list.checkm"), &base, &files), &[]);
    assert!(world.work_until("validating"));
    assert!(invariants::execute(&world, "delete from ingest_files where number = 2") > 0);
    world.work();
    let shown = world.json(&["jobs", "show", &only_job(&world)["id"].to_string()]).remove(0);
    assert_eq!(shown["job"]["error_code"], "incomplete", "{shown:#}");
    assert_eq!(world.json(&["objects", "list"])[0]["objects"].as_array().unwrap().len(), 0);
}

/// What is stored, and removed, is the file that is there now, not one that was unpacked before.
#[test]
fn a_replaced_package_is_never_removed_for_the_one_before() {
    let world = World::local(1);
    world.done(&["collection", "create", "papers", "remove_packages=true"]);
    let package = bag_of(&world, "old");
    world.deposit(&package, &["--collection", "papers"]);
    let job = fail_in_storing(&world);
    std::fs::remove_file(&package).unwrap();
    bag_of(&world, "new");
    // From where it stopped: the unpacked content is the old one, and the new file stays.
    world.done(&["jobs", "requeue", &job, "--to", "validating"]);
    world.work();
    assert_eq!(only_job(&world)["status"], "succeeded");
    assert!(!package.exists(), "what was there is what was preserved");
    assert!(stored_content(&world, "a.txt").contains("new"));
    world.check();
}

/// A job that goes on has something to clean up again.
#[test]
fn what_a_job_gathers_after_its_data_was_discarded_is_discarded_too() {
    let world = World::local(1);
    world.configure(NO_RETENTION);
    let directory = packages::directory(&world.path("letters"), &packages::small(3, "again"));
    world.deposit(&packages::archive(&directory, "tar.gz"), &[]);
    let mut jobs = Vec::new();
    for round in ["", ".1"] {
        let job = fail_in_storing(&world);
        let gathered = world.path(&format!("data/work/job-{job}{round}"));
        assert!(gathered.exists(), "{round}");
        let mut worker = world.worker();
        world
            .until_some("the janitor removes the directory", || (!gathered.exists()).then_some(()));
        worker.kill();
        for left in ["delete from ingest_files", "delete from space_reservations"] {
            assert_eq!(invariants::execute(&world, left), 0, "{left}");
        }
        world.done(&["jobs", "requeue", &job]);
        jobs.push(job);
    }
    assert_eq!(jobs[0], jobs[1]);
    world.work();
    assert_eq!(only_job(&world)["status"], "succeeded");
    world.check();
}

/// The content of the only file of this name in the store.
fn stored_content(world: &World, name: &str) -> String {
    fn find(under: &Path, name: &str) -> Option<std::path::PathBuf> {
        std::fs::read_dir(under).unwrap().flatten().find_map(|entry| match entry.path() {
            path if path.is_dir() => find(&path, name),
            path => path.ends_with(name).then_some(path),
        })
    }
    std::fs::read_to_string(find(&world.path("data/stores"), name).unwrap()).unwrap()
}

/// One directory that cannot be removed is named; those of other jobs go.
#[test]
fn the_janitor_goes_on_after_a_directory_that_it_cannot_remove() {
    let world = World::local(1);
    let work = world.path("data/work");
    let packages: Vec<_> = (0..2)
        .map(|n| {
            let directory =
                packages::directory(&world.path(&format!("p{n}")), &packages::small(3, "j"));
            packages::archive(&directory, "tar.gz")
        })
        .collect();
    for package in &packages {
        world.deposit(package, &[]);
    }
    world.done(&["queue", "pause", "ingest", "--stage", "storing"]);
    let mut worker = world.worker();
    let in_storing =
        |jobs: &[Value]| jobs.len() == 2 && jobs.iter().all(|j| j["stage"] == "storing");
    world.until("both jobs wait to be stored", in_storing);
    worker.kill();
    let jobs: Vec<String> = world.jobs().iter().map(|job| job["id"].to_string()).collect();
    // A mount point, or one of another user: a directory that this user cannot empty.
    let stuck = work.join(format!("job-{}", jobs[1]));
    let inside = stuck.join("locked");
    std::fs::create_dir_all(inside.join("more")).unwrap();
    let _lock = Undeletable::new(&inside);
    world.done(&["jobs", "cancel", &jobs[0], &jobs[1]]);
    let mut worker = world.worker();
    let other = work.join(format!("job-{}", jobs[0]));
    world.until_some("the other directory is removed", || (!other.exists()).then_some(()));
    let log = || std::fs::read_to_string(world.path("worker.log")).unwrap_or_default();
    world.until_some("a word about the one that stays", || log().contains("stays").then_some(()));
    worker.kill();
    assert!(stuck.exists());
}

/// A directory whose content cannot be removed, by root neither, until this is dropped.
struct Undeletable(std::path::PathBuf);

impl Undeletable {
    fn new(path: &Path) -> Undeletable {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o500)).unwrap();
        let _ = std::process::Command::new("chattr").arg("+i").arg(path).status();
        Undeletable(path.to_path_buf())
    }
}

impl Drop for Undeletable {
    fn drop(&mut self) {
        let _ = std::process::Command::new("chattr").arg("-i").arg(&self.0).status();
        let _ = std::fs::set_permissions(&self.0, std::fs::Permissions::from_mode(0o700));
    }
}

/// A person makes room: the data of a failed job goes, with its reservation; its package stays.
#[test]
fn a_person_discards_what_a_failed_job_has_unpacked() {
    let world = World::local(1);
    let package = packages::archive(
        &packages::directory(&world.path("letters"), &packages::small(3, "room")),
        "tar.gz",
    );
    let batch = world.deposit(&package, &[]);
    let job = fail_in_storing(&world);
    let directory = world.path(&format!("data/work/job-{job}"));
    assert!(directory.exists());
    world.done(&["jobs", "discard", &job, "--reason", "the disk is full"]);
    let mut worker = world.worker();
    world.until_some("the directory is removed", || (!directory.exists()).then_some(()));
    worker.kill();
    assert!(package.exists());
    world.done(&["jobs", "requeue", &job]);
    world.work();
    assert_eq!(world.batch(batch)["state"], "completed");
    let left: Vec<_> = std::fs::read_dir(world.path("data/work")).unwrap().flatten().collect();
    assert!(left.is_empty(), "{left:?}");
    let refused = world.run(&["jobs", "discard", &job]);
    assert!(refused.stderr.contains("only a failed job"), "{}", refused.stderr);
    world.check();
}
