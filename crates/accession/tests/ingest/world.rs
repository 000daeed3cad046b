//! An archive of one test's own, its binary, and what must be true of it in the end.

use crate::s3;
use serde_json::Value;
use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// No child may take longer: a test that hangs tells nothing.
const PATIENCE: Duration = Duration::from_secs(120);

pub struct World {
    pub dir: TempDir,
    database: Option<String>,
    env: Vec<(String, String)>,
    local: bool,
    _server: Option<(tokio::runtime::Runtime, s3::Server)>,
}

impl World {
    /// SQLite, and `stores` local directories.
    pub fn local(stores: usize) -> World {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("data")).unwrap();
        let names: String =
            (1..=stores).map(|n| format!("[stores.s{n}]\nurl = \"stores/s{n}\"\n")).collect();
        let config = format!("{names}[fetch]\nallow_private = true\n");
        std::fs::write(dir.path().join("data/accession.toml"), config).unwrap();
        World { dir, database: None, env: Vec::new(), local: true, _server: None }
    }

    /// PostgreSQL and S3; `None` where no PostgreSQL is named.
    pub fn remote() -> Option<World> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let server = std::env::var("ACCESSION_TEST_POSTGRES").ok()?;
        let name =
            format!("ingest_{}_{}", std::process::id(), COUNT.fetch_add(1, Ordering::SeqCst));
        let mut client = postgres::Client::connect(&server, postgres::NoTls).unwrap();
        client.batch_execute(&format!("create database {name}")).unwrap();
        let (base, _) = server.rsplit_once('/').unwrap();
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("buckets/bucket")).unwrap();
        std::fs::create_dir_all(dir.path().join("data")).unwrap();
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let s3 = runtime.block_on(s3::Server::start(&dir.path().join("buckets")));
        let url = format!("s3://bucket/root?endpoint={}", s3.endpoint);
        let config = format!("[stores.s1]\nurl = \"{url}\"\n[fetch]\nallow_private = true\n");
        std::fs::write(dir.path().join("data/accession.toml"), config).unwrap();
        let env = [
            ("AWS_ACCESS_KEY_ID", "key"),
            ("AWS_SECRET_ACCESS_KEY", "secret"),
            ("AWS_EC2_METADATA_DISABLED", "true"),
        ];
        Some(World {
            dir,
            database: Some(format!("{base}/{name}")),
            env: env.map(|(k, v)| (k.to_string(), v.to_string())).to_vec(),
            local: false,
            _server: Some((runtime, s3)),
        })
    }

    /// Both set-ups, or one and a word about the other.
    pub fn both(test: impl Fn(&World)) {
        test(&World::local(1));
        match World::remote() {
            Some(world) => test(&world),
            None => println!("skipped on PostgreSQL and S3: ACCESSION_TEST_POSTGRES is not set"),
        }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_accession"));
        command.args(args).env_clear().env("ACCESSION_DATA", self.path("data"));
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        if let Some(database) = &self.database {
            command.env("ACCESSION_DATABASE", database);
        }
        command.envs(self.env.iter().cloned());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub fn run_with(&self, args: &[&str], env: &[(&str, &str)]) -> Output {
        let mut command = self.command(args);
        command.envs(env.iter().copied());
        let mut child = command.spawn().unwrap();
        // Pipes are read while it runs, or a talkative child would wait for us.
        let (mut out, mut err) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
        let read = |from: &mut dyn std::io::Read| {
            let mut bytes = Vec::new();
            from.read_to_end(&mut bytes).map(|_| bytes).unwrap_or_default()
        };
        std::thread::scope(|scope| {
            let (out, err) =
                (scope.spawn(move || read(&mut out)), scope.spawn(move || read(&mut err)));
            let began = Instant::now();
            let status = loop {
                if let Some(status) = child.try_wait().unwrap() {
                    break status;
                }
                if began.elapsed() > PATIENCE {
                    child.kill().unwrap();
                    let (out, err) = (out.join().unwrap(), err.join().unwrap());
                    panic!("{args:?} hangs\n{}\n{}", text(&out), text(&err));
                }
                std::thread::sleep(Duration::from_millis(5));
            };
            Output { status, stdout: out.join().unwrap(), stderr: err.join().unwrap() }
        })
    }

    /// A child that the test itself ends.
    pub fn spawn(&self, args: &[&str]) -> std::process::Child {
        self.command(args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    }

    pub fn run(&self, args: &[&str]) -> Output {
        self.run_with(args, &[])
    }

    /// Every line of JSON that a command prints.
    pub fn json(&self, args: &[&str]) -> Vec<Value> {
        let all: Vec<&str> = args.iter().copied().chain(["--json", "-q"]).collect();
        let output = self.run(&all);
        let lines = text(&output.stdout);
        let parsed: Vec<Value> = lines.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
        assert!(!parsed.is_empty(), "{args:?}: {}", text(&output.stderr));
        parsed
    }

    /// Ingests, and gives the report of the batch.
    pub fn ingest(&self, path: &Path, options: &[&str]) -> Value {
        let mut args = vec!["ingest", path.to_str().unwrap()];
        args.extend(options);
        self.json(&args).remove(0)
    }

    pub fn deposit(&self, path: &Path, options: &[&str]) -> i64 {
        let mut args = vec!["deposit", path.to_str().unwrap()];
        args.extend(options);
        self.json(&args)[0]["batch"].as_i64().unwrap()
    }

    /// Works until nothing is left that can be done.
    pub fn finish(&self) {
        let output = self.run(&["work", "--until-empty", "--lease", "2", "-q"]);
        assert!(output.status.success(), "{}", text(&output.stderr));
    }

    pub fn batch(&self, id: i64) -> Value {
        self.json(&["batches", "show", &id.to_string()]).remove(0)
    }

    /// The paths of a version.
    pub fn files(&self, object: &str, version: Option<i64>) -> Vec<String> {
        let version = version.map(|v| v.to_string());
        let mut args = vec!["objects", "files", object];
        if let Some(version) = &version {
            args.extend(["--version", version]);
        }
        let files = self.json(&args);
        files.iter().map(|f| f["path"].as_str().unwrap().to_string()).collect()
    }

    /// What must be true whatever happened: registry and stores agree to the byte, every version
    /// and event is there once, nothing is left over, and the store alone gives the registry back.
    pub fn check(&self) {
        let checked = self.run(&["check", "--content"]);
        assert!(checked.status.success(), "{}", text(&checked.stdout));
        let listed = self.json(&["objects", "list", "--limit", "1000"]).remove(0);
        let mut events: HashSet<String> = HashSet::new();
        for object in listed["objects"].as_array().unwrap() {
            let name = object["identifier"].as_str().unwrap();
            let mut kinds: BTreeMap<(i64, String, String), u32> = BTreeMap::new();
            for event in self.json(&["objects", "events", name]) {
                let text = |key: &str| event[key].as_str().unwrap_or_default().to_string();
                assert!(events.insert(text("id")), "{event} is there twice");
                let key = (event["version"].as_i64().unwrap(), text("kind"), text("note"));
                *kinds.entry(key).or_default() += 1;
            }
            let ingestions = kinds.keys().filter(|k| k.1 == "ingestion").count() as i64;
            assert_eq!(ingestions, object["version"].as_i64().unwrap(), "{name}: {kinds:?}");
        }
        if self.local {
            self.nothing_is_left();
            self.store_gives_the_registry_back();
        }
    }

    fn nothing_is_left(&self) {
        let work = self.path("data/work");
        let left: Vec<_> =
            std::fs::read_dir(&work).map(|d| d.flatten().collect()).unwrap_or_default();
        assert!(left.is_empty(), "left in the work space: {left:?}");
        // A seal that was cut short may leave traces; sweep knows them all, and nothing else.
        for store in names_in(&self.path("data/stores")) {
            let root = self.path("data/stores").join(&store);
            let path = root.to_str().unwrap();
            let swept = self.run(&["ocfl", "sweep", path, "--older-than", "0"]);
            assert!(swept.status.success(), "{}", text(&swept.stderr));
            let validated = self.run(&["ocfl", "validate", path]);
            assert!(validated.status.success(), "{}", text(&validated.stdout));
            let mut left = names_in(&root.join("extensions/unsealed-versions"));
            left.retain(|name| name != "temporaries");
            assert!(left.is_empty(), "left in {store}: {left:?}");
        }
    }

    fn store_gives_the_registry_back(&self) {
        let mine = text(&self.run(&["registry", "dump"]).stdout);
        let other = World::local(1);
        let copied = Command::new("cp")
            .arg("-r")
            .arg(self.path("data/stores"))
            .arg(other.path("data/stores"))
            .status();
        assert!(copied.unwrap().success());
        let rebuilt = other.run(&["registry", "rebuild", "--from", "s1"]);
        assert!(rebuilt.status.success(), "{}", text(&rebuilt.stderr));
        let theirs = text(&other.run(&["registry", "dump"]).stdout);
        // Copies in other stores are not something a store can know.
        let known = |dump: &str| -> Vec<String> {
            let other_copy = |l: &&str| l.starts_with("copy ") && !l.contains(" s1 ");
            dump.lines().filter(|l| !other_copy(l)).map(str::to_string).collect()
        };
        assert_eq!(known(&mine), known(&theirs));
    }
}

fn names_in(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
