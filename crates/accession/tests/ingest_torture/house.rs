//! An archive of a test's own: a data directory, a database, stores, and the binary to use it with.
//! Every child has limits on time and memory, so that no test ever hangs.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How long any child may take.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// What a child may address.
const MEMORY_KIB: u64 = 6 * 1024 * 1024;

pub struct House {
    pub directory: TempDir,
    pub database: String,
    pub stores: Vec<(String, String)>,
    pub environment: Vec<(String, String)>,
}

pub struct Ended {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
}

impl House {
    /// SQLite and so many local stores.
    pub fn local(stores: usize) -> House {
        let directory = tempfile::tempdir().unwrap();
        let database = format!("sqlite://{}", directory.path().join("accession.db").display());
        let place = |n: usize| directory.path().join(format!("store-{n}")).display().to_string();
        let stores = (0..stores).map(|n| (format!("s{n}"), place(n))).collect();
        House::new(directory, database, stores)
    }

    pub fn new(directory: TempDir, database: String, stores: Vec<(String, String)>) -> House {
        let house = House { directory, database, stores, environment: Vec::new() };
        house.configure(&house.path(""), &house.stores);
        house
    }

    /// Writes a configuration into a data directory.
    pub fn configure(&self, data: &Path, stores: &[(String, String)]) {
        let mut text = String::from("[fetch]\nallow_private = true\ntries = 2\n");
        for (name, url) in stores {
            text.push_str(&format!("[stores.{name}]\nurl = \"{url}\"\n"));
        }
        std::fs::write(data.join("accession.toml"), text).unwrap();
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The binary with these arguments, its memory bounded.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new("sh");
        command
            .args(["-c", &format!("ulimit -v {MEMORY_KIB}; exec \"$@\""), "sh"])
            .arg(env!("CARGO_BIN_EXE_accession"))
            .args(args)
            .env("ACCESSION_DATA", self.directory.path())
            .env("ACCESSION_DATABASE", &self.database)
            .env_remove("ACCESSION_FAILPOINT")
            .envs(self.environment.iter().cloned())
            .stdin(Stdio::null());
        command
    }

    pub fn run(&self, args: &[&str]) -> Ended {
        finish(self.command(args), &format!("{args:?}"))
    }

    /// Runs a command that must succeed.
    pub fn done(&self, args: &[&str]) -> String {
        let ended = self.run(args);
        assert!(ended.status.success(), "{args:?}: {}{}", ended.stdout, ended.stderr);
        ended.stdout
    }

    /// The lines of JSON that a command prints.
    pub fn json(&self, args: &[&str]) -> Vec<Value> {
        let text = self.done(&[args, &["--json"]].concat());
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Deposits something; the batch's number.
    pub fn deposit(&self, what: &str, more: &[&str]) -> i64 {
        self.json(&[&["deposit", what], more].concat())[0]["batch"].as_i64().unwrap()
    }

    /// Works until nothing is left.
    pub fn work(&self) -> Ended {
        let ended = self.run(&["work", "--until-empty", "--lease", "1"]);
        assert!(ended.status.success(), "work: {}{}", ended.stdout, ended.stderr);
        ended
    }

    /// Works with a failpoint; true if it was met, and the process aborted there.
    pub fn work_until(&self, failpoint: &str) -> bool {
        use std::os::unix::process::ExitStatusExt;
        let mut command = self.command(&["work", "--until-empty", "--lease", "1"]);
        command.env("ACCESSION_FAILPOINT", failpoint);
        let ended = finish(command, failpoint);
        match ended.status.signal() {
            Some(6) => true,
            None if ended.status.success() => false,
            _ => panic!("{failpoint}: {} {}{}", ended.status, ended.stdout, ended.stderr),
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

    /// Jobs of the ingest pipeline, newest first.
    pub fn jobs(&self) -> Vec<Value> {
        let answer = self.json(&["jobs", "list", "ingest", "--limit", "500"]);
        answer[0].as_array().unwrap().clone()
    }

    /// Looks until something is true; panics when it never is.
    pub fn until(&self, what: &str, mut holds: impl FnMut(&[Value]) -> bool) {
        let began = Instant::now();
        loop {
            let jobs = self.jobs();
            if holds(&jobs) {
                return;
            }
            let log = std::fs::read_to_string(self.path("worker.log")).unwrap_or_default();
            assert!(began.elapsed() < PATIENCE * 2, "never: {what}\n{jobs:#?}\n{log}");
            std::thread::sleep(Duration::from_millis(30));
        }
    }
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

/// Runs a command to its end, or kills it and panics when it takes too long.
pub fn finish(mut command: Command, name: &str) -> Ended {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    command.stdout(std::fs::File::create(path("out")).unwrap());
    command.stderr(std::fs::File::create(path("err")).unwrap());
    let mut child = Worker(command.spawn().unwrap());
    let began = Instant::now();
    let status = loop {
        if let Some(status) = child.0.try_wait().unwrap() {
            break Some(status);
        }
        if began.elapsed() > PATIENCE {
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
        Some(status) => Ended { status, stdout, stderr },
        None => panic!("{name} did not end: {stdout}{stderr}"),
    }
}
