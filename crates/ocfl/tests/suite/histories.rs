//! Random histories of objects: what a reader sees is what was written, this crate's validator
//! has nothing to say, and neither has that of `ocfl-py`, which others wrote.
//!
//! `ACCESSION_TORTURE_HISTORIES` sets how many, `ACCESSION_TORTURE_SEED` where they start.

use crate::support;
use crate::support::{Files, Random, about, findings, seen};
use ocfl::{Algorithm, DraftOptions, FlatOmitPrefix, Layout, Spec, Start, StorageRoot};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use store::{Body, FaultStore, MemoryStore, Store};

/// Paths that collide, nest, need escapes in JSON, or cannot be names of files everywhere.
const PATHS: [&str; 14] = [
    "a.txt",
    "b.txt",
    "dir/a.txt",
    "dir/b.txt",
    "dir/sub/c",
    "ü/名.txt",
    "with space",
    "\"quoted\\\"",
    "tab\tand\nnewline",
    "~tilde",
    "inventory.json",
    "v1/content/a.txt",
    "%2e%2e/x",
    ".hidden",
];

fn from_environment(name: &str, default: u64) -> u64 {
    let given = std::env::var(name).ok();
    given.map_or(default, |value| value.parse().expect("a number in the environment"))
}

fn options(random: &mut Random) -> DraftOptions {
    DraftOptions {
        start: *random.pick(&[Start::Head, Start::Head, Start::Empty]),
        algorithm: *random.pick(&[Algorithm::Sha512, Algorithm::Sha512, Algorithm::Sha256]),
        ..DraftOptions::default()
    }
}

fn path(random: &mut Random) -> String {
    match random.below(12) {
        0 => format!("long/{}", "x".repeat(300 + random.below(300))),
        1 => format!("deep/{}f", "d/".repeat(random.below(40))),
        _ => (*random.pick(&PATHS)).to_owned(),
    }
}

/// Few different contents, so that many are the same.
fn content(random: &mut Random) -> Vec<u8> {
    match random.below(10) {
        0 => Vec::new(),
        1 => vec![b'x'; random.below(300_000)],
        n => format!("content {}", random.below(n * 3)).into_bytes(),
    }
}

/// One new version; returns what it should consist of.
async fn write_version(
    root: &StorageRoot,
    id: &str,
    before: &Files,
    random: &mut Random,
) -> Option<Files> {
    let options = options(random);
    let mut files = if options.start == Start::Head { before.clone() } else { Files::new() };
    let draft = root.begin(id, about("a change"), &options).await.expect("a draft");
    for _ in 0..random.below(8) {
        let path = path(random);
        match random.below(8) {
            0 => assert_eq!(draft.remove(&path), files.remove(&path).is_some()),
            1 => {
                let to = self::path(random);
                let moved = draft.rename(&path, &to).expect("a rename");
                assert_eq!(moved, files.contains_key(&path));
                if let Some(content) = files.remove(&path) {
                    files.insert(to, content);
                }
            }
            2 => {
                let batch: Vec<_> =
                    (0..random.below(4)).map(|_| (self::path(random), content(random))).collect();
                files.extend(batch.iter().cloned());
                let batch =
                    batch.into_iter().map(|(path, content)| (path, content.into())).collect();
                draft.put_batch(batch).await.expect("a batch");
            }
            _ => {
                let content = content(random);
                let put = draft.put(&path, content.clone().into()).await.expect("a put");
                assert_eq!(put.size, content.len() as u64);
                if random.below(3) == 0 {
                    let md5 = Algorithm::Md5.hex(&content);
                    draft.fixity(&path, Algorithm::Md5, &md5).expect("fixity");
                }
                files.insert(path, content);
            }
        }
    }
    if is_impossible(&files) {
        draft.write().await.expect_err("a file cannot be a directory");
        root.discard(id).await.expect("it is discarded");
        return None;
    }
    let unsealed = draft.write().await.expect("an inventory");
    root.seal(&unsealed).await.expect("a seal");
    root.seal(&unsealed).await.expect("sealing twice is no error");
    Some(files)
}

fn is_impossible(files: &Files) -> bool {
    files.keys().any(|a| files.keys().any(|b| b.starts_with(&format!("{a}/"))))
}

async fn history(root: &StorageRoot, seed: u64) {
    let mut random = Random::new(seed);
    let id = format!("urn:example:history:{seed}");
    let mut expected: Vec<Files> = Vec::new();
    for _ in 0..1 + random.below(6) {
        let before = expected.last().cloned().unwrap_or_default();
        expected.extend(write_version(root, &id, &before, &mut random).await);
    }
    let expected = (!expected.is_empty()).then_some(expected);
    assert!(seen(root, &id).await == expected, "seed {seed}: something else was read than written");
    if expected.is_some() {
        let found = findings(root, &id).await;
        let errors: Vec<String> = found.errors().map(|finding| finding.to_string()).collect();
        assert!(errors.is_empty(), "seed {seed}: {errors:?}");
    }
}

fn layouts() -> Vec<Layout> {
    let named = |name: &str| Layout::named(name).expect("a layout");
    let omit = Layout::FlatOmitPrefix(FlatOmitPrefix { delimiter: ":".to_owned() });
    vec![Layout::default(), named("0002"), named("0003"), omit, named("0007")]
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_read_is_what_was_written_and_valid_to_others() {
    let count = from_environment("ACCESSION_TORTURE_HISTORIES", 250);
    let first = from_environment("ACCESSION_TORTURE_SEED", 1);
    let directory = support::scratch();
    let mut roots = tokio::task::JoinSet::new();
    for (at, layout) in layouts().into_iter().enumerate() {
        let path = directory.path().join(at.to_string());
        roots.spawn(async move {
            let store = support::local(&path);
            let root = StorageRoot::init(store, Spec::ALL[at % 2], layout).await.expect("a root");
            let mut objects = Vec::new();
            for seed in (first..first + count).filter(|seed| seed % 5 == at as u64) {
                history(&root, seed).await;
                let id = format!("urn:example:history:{seed}");
                let object = path.join(root.object_path(&id).expect("a path"));
                objects.extend(object.is_dir().then_some(object));
            }
            objects
        });
    }
    let objects = roots.join_all().await.concat();
    assert!(objects.len() as u64 > count / 2);
    judge(&objects);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_on_stores_that_cannot_rename() {
    let count = from_environment("ACCESSION_TORTURE_HISTORIES", 100);
    let first = from_environment("ACCESSION_TORTURE_SEED", 1);
    let store: Arc<dyn Store> = Arc::new(MemoryStore::like_s3());
    let root = StorageRoot::init(store, Spec::V1_1, Layout::default()).await.expect("a root");
    for seed in first..first + count {
        history(&root, seed).await;
    }
    let report = ocfl::validate_root(root.store().clone(), &ocfl::Validation::default()).await;
    assert!(report.expect("a validation").findings.is_valid());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_on_s3() {
    let count = from_environment("ACCESSION_TORTURE_HISTORIES", 10);
    let first = from_environment("ACCESSION_TORTURE_SEED", 1);
    let directory = support::scratch();
    let bucket = directory.path().join("bucket");
    std::fs::create_dir(&bucket).expect("a bucket");
    let server = support::s3::Server::start(directory.path()).await;
    let store = server.store("bucket", "root").await;
    // This server names files by whole keys, so long keys are beyond it: a layout of short ones.
    let layout = Layout::FlatOmitPrefix(FlatOmitPrefix { delimiter: ":".to_owned() });
    let root = StorageRoot::init(store, Spec::V1_1, layout).await.expect("a root");
    let mut objects = Vec::new();
    for seed in first..first + count {
        history(&root, seed).await;
        let id = format!("urn:example:history:{seed}");
        // The server keeps objects as files, so that others can look at them too.
        let object = bucket.join("root").join(root.object_path(&id).expect("a path"));
        objects.extend(object.is_dir().then_some(object));
    }
    let report = ocfl::validate_root(root.store().clone(), &ocfl::Validation::default()).await;
    assert!(report.expect("a validation").findings.is_valid());
    if let Some(real) = &server.real {
        real.judge_root("bucket/root", &[]);
        return;
    }
    // A delete leaves directories behind in this server's files, which S3 does not have.
    prune(&bucket);
    judge(&objects);
}

/// A second version, killed after every operation of its writing and sealing: others find the
/// object valid each time, before as after.
#[tokio::test(flavor = "multi_thread")]
async fn valid_to_others_at_every_moment_of_a_write() {
    let directory = support::scratch();
    let id = "urn:example:moments";
    let mut objects = Vec::new();
    for n in 0.. {
        let path = directory.path().join(n.to_string());
        let store = support::local(&path);
        let root = StorageRoot::init(store.clone(), Spec::V1_1, Layout::default());
        let root = root.await.expect("a root");
        two_versions(&root, id, 1).await.expect("a first version");
        root.add_log(id, "first.log", "a log".into()).await.expect("a log");
        let dying = Arc::new(FaultStore::stopping_after(store, n));
        let through = StorageRoot::open(dying).await.expect("a root");
        let ended = two_versions(&through, id, 2).await;
        objects.push(path.join(root.object_path(id).expect("a path")));
        if ended.is_ok() {
            break;
        }
    }
    assert!(objects.len() > 10);
    judge(&objects);
}

async fn two_versions(root: &StorageRoot, id: &str, number: u64) -> ocfl::Result<()> {
    let draft = root.begin(id, about("a version"), &DraftOptions::default()).await?;
    draft.put("same", "same".into()).await?;
    draft.put("dir/other", Body::from_bytes(format!("version {number}"))).await?;
    root.seal(&draft.write().await?).await
}

/// Removes empty directories, the innermost first.
fn prune(directory: &Path) {
    for entry in std::fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            prune(&path);
            // One that is not empty stays.
            std::fs::remove_dir(path).ok();
        }
    }
}

/// The validator of `ocfl-py`, in a virtual environment below `target/` that is made once.
fn ocfl_py() -> Option<PathBuf> {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent()?;
    let environment = target.join("ocfl-py");
    let validator = environment.join("bin/ocfl-validate.py");
    let run = |program: &Path, arguments: &[&str]| {
        let output = Command::new(program).args(arguments).output().ok()?;
        output.status.success().then_some(())
    };
    if !validator.is_file() {
        run(Path::new("python3"), &["-m", "venv", environment.to_str()?])?;
        run(&environment.join("bin/pip"), &["install", "--quiet", "ocfl-py"])?;
    }
    validator.is_file().then_some(validator)
}

fn judge(objects: &[PathBuf]) {
    let Some(validator) = ocfl_py() else {
        testing::skip("ocfl-py is not there and cannot be installed");
        return;
    };
    for batch in objects.chunks(200) {
        let output = Command::new(&validator).arg("--quiet").args(batch).output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "ocfl-py: {said}");
        let valid = said.matches("is VALID").count();
        assert_eq!(valid, batch.len(), "ocfl-py: {said}");
    }
    println!("ocfl-py has validated {} objects", objects.len());
}
