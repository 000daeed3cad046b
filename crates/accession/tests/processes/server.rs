//! A PostgreSQL of a test's own, that may be crashed.

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use tempfile::TempDir;

pub struct Server {
    bin: PathBuf,
    dir: TempDir,
    port: u16,
}

impl Server {
    pub fn start() -> Option<Server> {
        let bin = binaries()?;
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let dir = tempfile::tempdir().unwrap();
        std::fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o777)).unwrap();
        let server = Server { bin, dir, port };
        server.run("initdb", &["-A", "trust", "-U", "postgres", "--no-sync", "-D", &server.data()]);
        server.restart();
        Some(server)
    }

    fn data(&self) -> String {
        self.dir.path().join("data").display().to_string()
    }

    pub fn url(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/postgres", self.port)
    }

    pub fn crash(&mut self) {
        self.run("pg_ctl", &["-D", &self.data(), "-m", "immediate", "stop"]);
    }

    pub fn restart(&self) {
        let options = format!(
            "-p {} -c listen_addresses=127.0.0.1 -c unix_socket_directories={}",
            self.port,
            self.dir.path().display()
        );
        let log = self.dir.path().join("data/log").display().to_string();
        self.run("pg_ctl", &["-D", &self.data(), "-w", "-l", &log, "-o", &options, "start"]);
    }

    /// As the user postgres where we are root, which the server refuses to run as.
    fn run(&self, program: &str, args: &[&str]) {
        let path = self.bin.join(program);
        let root = std::fs::metadata("/proc/self")
            .map(|m| std::os::unix::fs::MetadataExt::uid(&m) == 0)
            .unwrap();
        let mut command = match root {
            true => {
                let mut command = Command::new("setpriv");
                command
                    .args(["--reuid=postgres", "--regid=postgres", "--clear-groups", "--"])
                    .arg(path);
                command
            }
            false => Command::new(path),
        };
        let status = command
            .args(args)
            .current_dir(self.dir.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .status()
            .unwrap();
        assert!(status.success(), "{program} {args:?}: {status}");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.crash();
    }
}

fn binaries() -> Option<PathBuf> {
    if let Ok(named) = std::env::var("ACCESSION_TEST_POSTGRES_BIN") {
        return Some(PathBuf::from(named));
    }
    let mut versions: Vec<PathBuf> = std::fs::read_dir("/usr/lib/postgresql")
        .ok()?
        .flatten()
        .map(|e| e.path().join("bin"))
        .collect();
    versions.retain(|bin| bin.join("initdb").exists());
    versions.sort();
    versions.pop()
}
