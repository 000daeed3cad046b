//! A PostgreSQL server of a test's own, where PostgreSQL's programs are installed.

use db::Address;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;

pub struct PrivateServer {
    directory: tempfile::TempDir,
    programs: PathBuf,
    pub port: u16,
}

impl PrivateServer {
    /// None, and a line that says so, where the programs are not installed.
    pub fn start() -> Option<PrivateServer> {
        PrivateServer::start_with("", &|_| {})
    }

    /// With more lines of `postgresql.conf`, and files put beside it.
    pub fn start_with(settings: &str, prepare: &dyn Fn(&Path)) -> Option<PrivateServer> {
        let Some(programs) = programs() else {
            testing::skip("PostgreSQL's programs were not found");
            return None;
        };
        let server = PrivateServer::place(programs);
        let data = server.data();
        let initdb =
            ["-A", "trust", "-U", "postgres", "-E", "UTF8", "--no-locale", "--no-sync", "-D"];
        run(server
            .as_postgres("initdb")
            .args(initdb)
            .arg(&data)
            .stdout(std::process::Stdio::null()));
        server.configure(settings);
        prepare(&data);
        server.begin();
        Some(server)
    }

    /// A server that follows this one, with more lines of `postgresql.conf`.
    pub fn standby(&self, settings: &str) -> PrivateServer {
        let server = PrivateServer::place(self.programs.clone());
        let port = self.port.to_string();
        let copy = ["-R", "-X", "stream", "-c", "fast", "-N", "-U", "postgres", "-h", "127.0.0.1"];
        run(server
            .as_postgres("pg_basebackup")
            .args(copy)
            .args(["-p", &port, "-D"])
            .arg(server.data()));
        server.configure(settings);
        server.begin();
        server
    }

    /// A directory of its own, and a free port.
    fn place(programs: PathBuf) -> PrivateServer {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let server = PrivateServer { directory: tempfile::tempdir().unwrap(), programs, port };
        if is_root() {
            run(Command::new("chown").arg("postgres").arg(server.directory.path()));
        }
        server
    }

    /// Of a setting that is there twice, the last counts.
    fn configure(&self, settings: &str) {
        let configuration = format!(
            "port = {}\nlisten_addresses = '127.0.0.1'\nunix_socket_directories = '{}'\n\
             max_connections = 60\nshared_buffers = 16MB\n{settings}\n",
            self.port,
            self.directory.path().display()
        );
        let file = self.data().join("postgresql.conf");
        let old = std::fs::read_to_string(&file).unwrap();
        std::fs::write(&file, old + &configuration).unwrap();
    }

    fn data(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    pub fn program(&self, name: &str) -> PathBuf {
        self.programs.join(name)
    }

    /// PostgreSQL refuses to run as root.
    fn as_postgres(&self, program: &str) -> Command {
        let program = self.program(program);
        if !is_root() {
            return Command::new(program);
        }
        let mut command = Command::new("setpriv");
        command.args(["--reuid=postgres", "--regid=postgres", "--clear-groups"]).arg(program);
        command.current_dir(self.directory.path());
        command
    }

    pub fn begin(&self) {
        let log = self.directory.path().join("log");
        let mut command = self.as_postgres("pg_ctl");
        command.arg("-D").arg(self.data()).arg("-l").arg(log).args(["-w", "-s", "start"]);
        run(command.stdout(std::process::Stdio::null()));
    }

    pub fn stop(&self, mode: &str) {
        run(self
            .as_postgres("pg_ctl")
            .arg("-D")
            .arg(self.data())
            .args(["-w", "-s", "-m", mode, "stop"]));
    }

    /// Makes a standby the one that is written to.
    pub fn promote(&self) {
        run(self.as_postgres("pg_ctl").arg("-D").arg(self.data()).args(["-w", "-s", "promote"]));
    }

    /// Where its sockets are.
    pub fn sockets(&self) -> &Path {
        self.directory.path()
    }

    pub fn url(&self, query: &str) -> String {
        self.url_of("postgres", query)
    }

    pub fn url_of(&self, database: &str, query: &str) -> String {
        format!("postgres://postgres@127.0.0.1:{}/{database}{query}", self.port)
    }

    pub fn address(&self, query: &str) -> Address {
        Address::parse(&self.url(query)).unwrap()
    }
}

impl Drop for PrivateServer {
    fn drop(&mut self) {
        let mut command = self.as_postgres("pg_ctl");
        command.arg("-D").arg(self.data()).args(["-w", "-s", "-m", "immediate", "stop"]);
        // It may be stopped already.
        let _ = command.output();
    }
}

fn programs() -> Option<PathBuf> {
    let debian = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let path = std::env::var_os("PATH").unwrap_or_default();
    debian
        .map(|version| version.path().join("bin"))
        .chain(std::env::split_paths(&path))
        .find(|directory| directory.join("initdb").exists() && directory.join("pg_ctl").exists())
}

pub fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output();
    id.is_ok_and(|o| o.stdout.trim_ascii() == b"0")
}

pub fn run(command: &mut Command) {
    let status = command.status().unwrap();
    assert!(status.success(), "{command:?} failed");
}
