//! An archive of one test's own: a data directory, a database, stores, and the binary to use it
//! with. Every child has limits on time and memory, so that no test ever hangs.

use super::{answers, invariants, s3};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// No child may take longer: a test that hangs tells nothing.
const PATIENCE: Duration = Duration::from_secs(120);
/// What a child may address.
const MEMORY_KIB: u64 = 6 * 1024 * 1024;

pub struct World {
    pub dir: TempDir,
    pub database: String,
    /// Names and addresses.
    pub stores: Vec<(String, String)>,
    pub env: Vec<(String, String)>,
    pub s3: Option<s3::Server>,
}

pub struct Ended {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
    /// The most memory that was resident.
    pub peak_kib: u64,
}

impl World {
    /// SQLite, and so many local stores.
    pub fn local(stores: usize) -> World {
        let dir = tempfile::tempdir().unwrap();
        let place = |n: usize| dir.path().join(format!("data/stores/s{n}")).display().to_string();
        let stores = (1..=stores).map(|n| (format!("s{n}"), place(n))).collect();
        let database = format!("sqlite://{}", dir.path().join("data/accession.db").display());
        World::new(dir, database, stores)
    }

    /// A database of the PostgreSQL that is named, and S3; `None` where none is.
    pub fn remote() -> Option<World> {
        Some(World::with_s3(database_of_its_own()?, s3::Server::start()))
    }

    /// SQLite and S3.
    pub fn half_remote() -> World {
        let dir = tempfile::tempdir().unwrap();
        let database = format!("sqlite://{}", dir.path().join("data/accession.db").display());
        World::in_with_s3(dir, database, s3::Server::start())
    }

    pub fn with_s3(database: String, s3: s3::Server) -> World {
        World::in_with_s3(tempfile::tempdir().unwrap(), database, s3)
    }

    fn in_with_s3(dir: TempDir, database: String, s3: s3::Server) -> World {
        let stores = vec![("s1".to_string(), s3.store("bucket/root"))];
        let world = World::new(dir, database, stores);
        World { env: s3::keys(), s3: Some(s3), ..world }
    }

    pub fn new(dir: TempDir, database: String, stores: Vec<(String, String)>) -> World {
        std::fs::create_dir_all(dir.path().join("data")).unwrap();
        let world = World { dir, database, stores, env: Vec::new(), s3: None };
        world.configure("");
        world
    }

    /// Both set-ups, or one and a word about the other.
    pub fn both(test: impl Fn(&World)) {
        test(&World::local(1));
        match World::remote() {
            Some(world) => test(&world),
            None => testing::skip("on PostgreSQL and S3: ACCESSION_TEST_POSTGRES is not set"),
        }
    }

    /// Writes the configuration: the stores, and more.
    pub fn configure(&self, more: &str) {
        self.configure_in(&self.path("data"), more);
    }

    pub fn configure_in(&self, data: &Path, more: &str) {
        let mut text = String::from("[fetch]\nallow_private = true\ntries = 2\n");
        for (name, url) in &self.stores {
            text.push_str(&format!("[stores.{name}]\nurl = \"{url}\"\n"));
        }
        std::fs::write(data.join("accession.toml"), format!("{text}{more}")).unwrap();
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// The binary with these arguments, its memory bounded.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new("sh");
        command
            .args(["-c", &format!("ulimit -v {MEMORY_KIB}; exec \"$@\""), "sh"])
            .arg(env!("CARGO_BIN_EXE_accession"))
            .args(args)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("ACCESSION_DATA", self.path("data"))
            .env("ACCESSION_DATABASE", &self.database)
            // How full the machine's disk is otherwise is not what is tested.
            .env("ACCESSION_WORK_SPACE_ADMIT_PERCENT", "95")
            .env("ACCESSION_WORK_SPACE_STOP_PERCENT", "99")
            .envs(self.env.iter().cloned())
            .stdin(Stdio::null());
        command
    }

    pub fn run(&self, args: &[&str]) -> Ended {
        let ended = finish(self.command(args), &format!("{args:?}"));
        answers::hold(args, &ended.stdout);
        ended
    }

    /// Runs a command that must succeed.
    pub fn done(&self, args: &[&str]) -> String {
        let ended = self.run(args);
        assert!(ended.status.success(), "{args:?}: {}{}", ended.stdout, ended.stderr);
        ended.stdout
    }

    /// Every line of JSON that a command prints.
    pub fn json(&self, args: &[&str]) -> Vec<Value> {
        let ended = self.run(&[args, &["--json", "-q"]].concat());
        let parsed: Vec<Value> =
            ended.stdout.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
        assert!(!parsed.is_empty(), "{args:?}: {}", ended.stderr);
        parsed
    }

    /// Ingests, and gives the report of the batch.
    pub fn ingest(&self, what: &(impl AsRef<Path> + ?Sized), options: &[&str]) -> Value {
        let what = what.as_ref().to_str().unwrap();
        self.json(&[&["ingest", what], options].concat()).remove(0)
    }

    /// Deposits a path or URL; the batch's number.
    pub fn deposit(&self, what: &(impl AsRef<Path> + ?Sized), options: &[&str]) -> i64 {
        let what = what.as_ref().to_str().unwrap();
        self.json(&[&["deposit", what], options].concat())[0]["deposits"][0]["id"].as_i64().unwrap()
    }

    /// Works until nothing is left that can be done.
    pub fn work(&self) {
        let ended = self.work_with(&[]);
        // 1 says that jobs failed, which the tests look at themselves.
        let code = ended.status.code();
        assert!(matches!(code, Some(0 | 1)), "work: {}{}", ended.stdout, ended.stderr);
    }

    /// Works with a failpoint; true if it was met, and the process aborted there.
    pub fn work_until(&self, failpoint: &str) -> bool {
        use std::os::unix::process::ExitStatusExt;
        let ended = self.work_with(&[("ACCESSION_FAILPOINT", failpoint)]);
        match ended.status.signal() {
            Some(6) => true,
            None if matches!(ended.status.code(), Some(0 | 1)) => false,
            _ => panic!("{failpoint}: {} {}{}", ended.status, ended.stdout, ended.stderr),
        }
    }

    /// A machine that stands still for longer than the short lease costs a worker its lease; then
    /// another goes on, as it would anywhere.
    fn work_with(&self, env: &[(&str, &str)]) -> Ended {
        loop {
            let mut command = self.command(&["work", "--until-empty", "--lease", "1", "-q"]);
            command.envs(env.iter().copied());
            let ended = finish(command, "work");
            if !ended.stderr.contains("[lease_lost]") {
                return ended;
            }
        }
    }

    /// A worker that goes on until it is killed.
    pub fn worker(&self) -> Worker {
        let mut command = self.command(&["work", "--lease", "1"]);
        let log = self.path("worker.log");
        let log = std::fs::OpenOptions::new().append(true).create(true).open(log).unwrap();
        command.stdout(log.try_clone().unwrap()).stderr(log);
        Worker(command.spawn().unwrap())
    }

    pub fn batch(&self, id: i64) -> Value {
        self.json(&["batches", "show", &id.to_string()]).remove(0)
    }

    /// Jobs of the ingest pipeline, newest first.
    pub fn jobs(&self) -> Vec<Value> {
        let answer = self.json(&["jobs", "list", "ingest", "--limit", "500"]);
        answer[0]["jobs"].as_array().unwrap().clone()
    }

    /// The paths of a version.
    pub fn files(&self, object: &str, version: Option<i64>) -> Vec<String> {
        let version = version.map(|v| v.to_string());
        let mut args = vec!["objects", "files", object];
        if let Some(version) = &version {
            args.extend(["--version", version]);
        }
        let files = self.json(&args).remove(0);
        let files = files["files"].as_array().unwrap();
        files.iter().map(|f| f["path"].as_str().unwrap().to_string()).collect()
    }

    pub fn versions(&self, object: &str) -> usize {
        self.json(&["objects", "versions", object])[0]["versions"].as_array().unwrap().len()
    }

    /// Looks at the jobs until something is true; panics when it never is.
    pub fn until(&self, what: &str, mut holds: impl FnMut(&[Value]) -> bool) {
        self.until_some(what, || holds(&self.jobs()).then_some(()));
    }

    /// Looks until there is something; panics when there never is.
    pub fn until_some<T>(&self, what: &str, mut look: impl FnMut() -> Option<T>) -> T {
        let began = Instant::now();
        loop {
            if let Some(found) = look() {
                return found;
            }
            if began.elapsed() > PATIENCE {
                let log = std::fs::read_to_string(self.path("worker.log")).unwrap_or_default();
                panic!("never: {what}\n{:#?}\n{log}", self.jobs());
            }
            std::thread::sleep(Duration::from_millis(30));
        }
    }

    /// What must be true whatever happened, if everything ended well.
    pub fn check(&self) {
        invariants::check(self, invariants::Failed::None);
        // boto3 judges what is stored on a real server.
        if let Some(real) = self.s3.as_ref().and_then(|s3| s3.real.as_ref()) {
            real.judge_root("bucket/root", &[]);
        }
    }
}

/// A new database on the server that the tests are given.
pub fn database_of_its_own() -> Option<String> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let server = std::env::var("ACCESSION_TEST_POSTGRES").ok()?;
    let name = format!("ingest_{}_{}", std::process::id(), COUNT.fetch_add(1, Ordering::SeqCst));
    let mut client = postgres::Client::connect(&server, postgres::NoTls).unwrap();
    client.batch_execute(&format!("create database {name}")).unwrap();
    let (base, _) = server.rsplit_once('/').unwrap();
    Some(format!("{base}/{name}"))
}

/// Where restores are in the sources.
const RESTORES: &str = "pipeline/restore";

/// Every failpoint of an ingest in the sources, so that a new one cannot be forgotten.
pub fn failpoints() -> Vec<String> {
    let stages = archive::pipeline::ingest::PIPELINE.stage_names();
    let names = failpoints_of(stages, "", &|path| !path.ends_with(RESTORES));
    assert!(names.len() > 20, "{names:?}");
    names
}

/// Every failpoint of a restore.
pub fn failpoints_of_restores() -> Vec<String> {
    failpoints_of(archive::pipeline::restore::OBJECT.stage_names(), RESTORES, &|_| true)
}

fn failpoints_of(stages: Vec<&str>, below: &str, is_wanted: &dyn Fn(&Path) -> bool) -> Vec<String> {
    fn collect(directory: &Path, is_wanted: &dyn Fn(&Path) -> bool, names: &mut Vec<String>) {
        for entry in std::fs::read_dir(directory).unwrap().flatten() {
            if entry.path().is_dir() {
                if is_wanted(&entry.path()) {
                    collect(&entry.path(), is_wanted, names);
                }
                continue;
            }
            let text = std::fs::read_to_string(entry.path()).unwrap_or_default();
            for after in text.split("failpoint(\"").skip(1) {
                names.push(after.split('"').next().unwrap().to_string());
            }
        }
    }
    let mut names: Vec<String> = stages.into_iter().map(str::to_string).collect();
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../archive/src").join(below);
    collect(&sources, is_wanted, &mut names);
    names.sort();
    names.dedup();
    names
}

/// A process that is killed when it is dropped.
pub struct Worker(pub Child);

impl Worker {
    pub fn kill(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The most memory that a process has had resident so far, in KiB; `None` when it has ended.
fn resident_kib_max(process: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Runs a command to its end, or kills it and panics when it takes too long.
pub fn finish(command: Command, name: &str) -> Ended {
    finish_within(PATIENCE, command, name)
}

pub fn finish_within(timeout: Duration, mut command: Command, name: &str) -> Ended {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    command.stdout(std::fs::File::create(path("out")).unwrap());
    command.stderr(std::fs::File::create(path("err")).unwrap());
    let mut child = Worker(command.spawn().unwrap());
    let began = Instant::now();
    let mut peak_kib = 0;
    let status = loop {
        peak_kib = resident_kib_max(child.0.id()).unwrap_or(peak_kib);
        if let Some(status) = child.0.try_wait().unwrap() {
            break Some(status);
        }
        if began.elapsed() > timeout {
            child.kill();
            break None;
        }
        std::thread::sleep(Duration::from_millis(4));
    };
    let read = |name: &str| {
        String::from_utf8_lossy(&std::fs::read(path(name)).unwrap_or_default()).into_owned()
    };
    let (stdout, stderr) = (read("out"), read("err"));
    match status {
        Some(status) => Ended { status, stdout, stderr, peak_kib },
        None => panic!("{name} did not end: {stdout}{stderr}"),
    }
}
