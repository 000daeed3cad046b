use super::*;
use crate::app::WorkSpace;
use db::{Address, Clock, Db, Options};
use queue::BatchId;
use std::path::Path;

struct Case {
    dir: tempfile::TempDir,
    db: Db,
    clock: Clock,
    watch: WatchSection,
}

impl Case {
    fn new() -> Case {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("in")).unwrap();
        let clock = Clock::manual(1_000_000_000);
        let options = Options { clock: clock.clone(), ..Options::default() };
        let address = Address::sqlite(dir.path().join("a.db"));
        let db = Db::open(&address, crate::MIGRATIONS, &options).unwrap();
        let watch =
            format!("path = '{}/in'\ncollection = 'c'\nstill_seconds = 60", dir.path().display());
        let watch = toml::from_str(&watch).unwrap();
        Case { dir, db, clock, watch }
    }

    fn put(&self, name: &str, content: &str) {
        std::fs::write(Path::new(&self.watch.path).join(name), content).unwrap();
    }

    /// Looks after some seconds.
    async fn look(&self, seconds: i64) -> Vec<Ready> {
        self.clock.advance(seconds * 1_000_000);
        let (listing, watch) = (look(&self.watch).await.unwrap(), self.watch.clone());
        self.db.write(move |tx| step(tx, &watch, &listing)).await.unwrap()
    }

    async fn take(&self, ready: &Ready, batch: BatchId) -> bool {
        let (watch, ready) = (self.watch.clone(), ready.clone());
        self.db.write(move |tx| take(tx, &watch, &ready, batch)).await.unwrap()
    }
}

#[tokio::test]
async fn a_package_is_ready_until_one_process_takes_it() {
    let case = Case::new();
    case.put("a.zip", "one");
    assert_eq!(case.look(0).await, []);
    assert_eq!(case.look(59).await, []);
    let ready = case.look(1).await;
    assert_eq!(ready.len(), 1);
    assert_eq!((ready[0].name.as_str(), ready[0].previous_batch), ("a.zip", None));
    assert_eq!(case.look(1).await, ready, "a process that died before it took it loses nothing");
    assert!(case.take(&ready[0], BatchId::new(7)).await);
    assert!(!case.take(&ready[0], BatchId::new(8)).await, "the second comes too late");
    assert_eq!(case.look(1000).await, []);
}

#[tokio::test]
async fn a_changed_package_is_a_new_version_and_a_deleted_one_is_forgotten() {
    let case = Case::new();
    case.put("a.zip", "one");
    case.look(0).await;
    let ready = case.look(60).await;
    case.take(&ready[0], BatchId::new(7)).await;
    case.put("a.zip", "more");
    assert_eq!(case.look(1).await, []);
    let ready = case.look(60).await;
    assert_eq!(ready[0].previous_batch, Some(BatchId::new(7)));
    case.put("a.zip", "and more");
    case.look(1).await;
    assert!(!case.take(&ready[0], BatchId::new(8)).await, "it is not what was ready any more");
    let ready = case.look(60).await;
    assert!(case.take(&ready[0], BatchId::new(9)).await);
    std::fs::remove_file(case.dir.path().join("in/a.zip")).unwrap();
    case.look(1).await;
    case.put("a.zip", "and more");
    assert_eq!(case.look(1).await, []);
    assert_eq!(case.look(60).await[0].previous_batch, None, "it is a new ingest");
}

#[tokio::test]
async fn what_left_before_its_depositor_was_told_is_remembered_until_then() {
    let case = Case::new();
    case.put("a.zip", "one");
    case.look(0).await;
    let ready = case.look(60).await;
    case.take(&ready[0], BatchId::new(7)).await;
    std::fs::remove_file(case.dir.path().join("in/a.zip")).unwrap();
    case.look(1).await;
    case.look(1).await;
    let (path, known) = (case.watch.path.clone(), "a.zip");
    let states = case.db.read(move |tx| super::known(tx, &path)).await.unwrap();
    assert_eq!((states[known].state, states[known].batch), (State::Left, Some(BatchId::new(7))));
    // Should it come back meanwhile, it is new all the same.
    case.put("a.zip", "one");
    assert_eq!(case.look(1).await, []);
    assert_eq!(case.look(60).await[0].previous_batch, None);
}

#[tokio::test]
async fn receipts_and_results_are_written_beside_and_are_no_packages() {
    let case = Case::new();
    case.put("a.zip", "one");
    beside::write(&case.watch, "a.zip", names::RECEIPT_SUFFIX, b"{}".to_vec()).await.unwrap();
    beside::write(&case.watch, "a.zip", names::RESULT_SUFFIX, b"{}".to_vec()).await.unwrap();
    let written = case.dir.path().join("in/a.zip.receipt.json");
    assert_eq!(std::fs::read(written).unwrap(), b"{}");
    assert_eq!(look(&case.watch).await.unwrap().packages.len(), 1);
    let outside = beside::write(&case.watch, "../a", names::RESULT_SUFFIX, Vec::new()).await;
    assert_eq!(outside.unwrap_err().code(), "watch_name");
}

/// A poller over a prepared database, with the batches it made.
fn poller(case: &Case) -> Poller {
    let config = crate::config::Config::default();
    let prepared = case.db.write_blocking(move |tx| crate::setup::prepare(tx, &config).map(drop));
    prepared.unwrap();
    let (payloads, received) = (case.dir.path().join("payloads"), case.dir.path().join("received"));
    let work_space = WorkSpace {
        name: "default".to_string(),
        path: received.clone(),
        admit_percent: 100,
        stop_percent: 100,
    };
    Poller { db: case.db.clone(), payloads, received, work_space, failed_retention_micros: 0 }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_ready_is_deposited_once_with_a_receipt() {
    let mut case = Case::new();
    case.watch.collection = Some("default".into());
    case.watch.results = true;
    let poller = tokio::task::block_in_place(|| poller(&case));
    case.put("letter.txt", "Dear Ann");
    assert_eq!(poller.poll(&case.watch).await.unwrap(), []);
    case.clock.advance(60_000_000);
    let (one, two) = tokio::join!(poller.poll(&case.watch), poller.poll(&case.watch));
    let receipts = [one.unwrap(), two.unwrap()].concat();
    assert_eq!(receipts.len(), 1, "two processes, one deposit");
    assert_eq!(
        (receipts[0].name.as_str(), receipts[0].collection.as_str()),
        ("letter.txt", "default")
    );
    let written = std::fs::read(case.dir.path().join("in/letter.txt.receipt.json")).unwrap();
    let written: serde_json::Value = serde_json::from_slice(&written).unwrap();
    assert_eq!(written["batch"], receipts[0].batch.number());
    // Its next version waits until this one has ended.
    case.put("letter.txt", "Dear Ann, again");
    poller.poll(&case.watch).await.unwrap();
    case.clock.advance(60_000_000);
    assert_eq!(poller.poll(&case.watch).await.unwrap(), []);
    assert!(!case.dir.path().join("in/letter.txt.result.json").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_collection_keeps_nothing_else_waiting() {
    let mut case = Case::new();
    case.watch.prefix_is_collection = true;
    let poller = tokio::task::block_in_place(|| poller(&case));
    for name in ["default", "nobody"] {
        std::fs::create_dir(case.dir.path().join("in").join(name)).unwrap();
        case.put(&format!("{name}/a.txt"), "x");
    }
    poller.poll(&case.watch).await.unwrap();
    case.clock.advance(60_000_000);
    let receipts = poller.poll(&case.watch).await.unwrap();
    assert_eq!(receipts.iter().map(|r| r.collection.as_str()).collect::<Vec<_>>(), ["default"]);
}

/// What is said of each package of a place, by name: its state, and why.
async fn said(case: &Case) -> BTreeMap<String, (&'static str, String)> {
    let status = status::of_place(&case.db, &case.watch, 50).await.unwrap();
    let packages = status.packages.into_iter();
    packages.map(|package| (package.name, (package.state.name(), package.why))).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_status_says_what_each_package_waits_for_and_changes_nothing() {
    let mut case = Case::new();
    case.watch.collection = Some("default".into());
    let poller = tokio::task::block_in_place(|| poller(&case));
    case.put("a.txt", "one");
    case.put("late.zip.part", "x");
    std::fs::create_dir_all(case.dir.path().join("in/empty")).unwrap();
    std::fs::create_dir_all(case.dir.path().join("in/half")).unwrap();
    case.put("half/scan.tif.part", "x");
    for _ in 0..2 {
        let said = said(&case).await;
        assert_eq!(said["a.txt"].0, "waiting");
        assert!(said["a.txt"].1.starts_with("no worker has seen it yet"), "{said:?}");
        assert_eq!(said["empty"].0, "unfinished");
        assert!(said["half"].1.starts_with("`scan.tif.part` in it"), "{said:?}");
    }
    let status = status::of_place(&case.db, &case.watch, 50).await.unwrap();
    assert_eq!(status.skipped[0].name, "late.zip.part");
    assert_eq!((status.states["unfinished"], status.states["waiting"]), (2, 1));

    poller.poll(&case.watch).await.unwrap();
    assert!(said(&case).await["a.txt"].1.starts_with("it is taken at "));
    case.clock.advance(60_000_000);
    assert_eq!(said(&case).await["a.txt"].0, "ready");
    let receipt = poller.poll(&case.watch).await.unwrap().remove(0);
    let status = status::of_place(&case.db, &case.watch, 1).await.unwrap();
    assert_eq!((status.packages.len(), status.deposits[0].batch), (1, receipt.batch));
    assert_eq!(said(&case).await["a.txt"].0, "deposited");
    case.put("a.txt", "one more");
    assert_eq!(said(&case).await["a.txt"].0, "changing");

    case.watch.collection = Some("nobody".into());
    assert!(said(&case).await["a.txt"].1.contains("accession collection create nobody"));
    std::fs::remove_dir_all(case.dir.path().join("in")).unwrap();
    let status = status::of_place(&case.db, &case.watch, 50).await.unwrap();
    assert_eq!(status.error.unwrap().code, "watch_unreadable");
}

/// Files of names that are not UTF-8 are ingested with their package, and count as any others; only the
/// name of a package must be UTF-8.
#[cfg(unix)]
#[tokio::test]
async fn names_that_are_not_utf8_count_in_a_package_and_are_shown_encoded() {
    use std::os::unix::ffi::OsStrExt;
    let name = |bytes: &[u8]| std::ffi::OsStr::from_bytes(bytes).to_owned();
    let case = Case::new();
    let at = |below: &Path| Path::new(&case.watch.path).join(below);
    std::fs::create_dir_all(at(Path::new("box")).join(name(b"sub\xfe"))).unwrap();
    if std::fs::write(at(Path::new("box")).join(name(b"a\xff")), "one").is_err() {
        println!("this file system takes UTF-8 only");
        return;
    }
    std::fs::write(at(Path::new("box")).join(name(b"sub\xfe")).join("b"), "two").unwrap();
    std::fs::write(at(Path::new("")).join(name(b"top\xff.zip")), "no package").unwrap();
    let first = look(&case.watch).await.unwrap();
    let found = &first.packages["box"];
    assert_eq!((found.bytes, &found.unfinished_why), (6, &None));
    let strays: Vec<&str> = first.strays.iter().map(|stray| stray.name.as_str()).collect();
    assert_eq!(strays, ["top%FF.zip"]);
    std::fs::write(at(Path::new("box")).join(name(b"a\xff")), "other").unwrap();
    let second = look(&case.watch).await.unwrap();
    assert_ne!(second.packages["box"].present, found.present, "a change is a change");
}
