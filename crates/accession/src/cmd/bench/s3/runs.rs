//! One ingest, and one copy by rclone, to a prefix of its own.

use crate::cmd::app;
use crate::error_code::ErrorCode;
use crate::exit::Failure;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use store::{S3Config, S3Store, Store};

/// Where the figures are taken.
pub struct Bucket {
    config: S3Config,
    /// The parameters of the URL that say nothing of the endpoint.
    parameters: Vec<String>,
}

/// One repetition.
pub struct Run<'b> {
    bucket: &'b Bucket,
    endpoint: Option<String>,
    prefix: String,
}

impl Bucket {
    pub fn of(url: &str) -> Result<Bucket, Failure> {
        let config = S3Config::from_url(url)
            .map_err(|e| Failure::refused(ErrorCode::StoreUrl, e.to_string()))?;
        let parameters = url.split_once('?').map_or("", |(_, parameters)| parameters);
        let parameters = parameters.split('&').filter(|one| !one.is_empty());
        let parameters = parameters.filter(|one| !one.starts_with("endpoint="));
        Ok(Bucket { config, parameters: parameters.map(str::to_owned).collect() })
    }

    /// The host and port of the server, where a proxy can be put before it.
    pub fn target(&self) -> Option<&str> {
        let endpoint = self.config.endpoint.as_deref()?;
        let host = endpoint.strip_prefix("http://")?.trim_end_matches('/');
        (!host.contains('/') && host.contains(':')).then_some(host)
    }

    /// The next repetition, by this endpoint instead of the server's own.
    pub fn run(&self, endpoint: Option<&str>) -> Run<'_> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("accession-bench-{}-{number}", std::process::id());
        let prefix = store::join(&self.config.prefix, &name);
        let endpoint = endpoint.map(str::to_owned).or_else(|| self.config.endpoint.clone());
        Run { bucket: self, endpoint, prefix }
    }
}

impl Run<'_> {
    /// The time of an ingest by a process of its own, and the most memory that it had. The archive is
    /// there before, with an object in it, as it is where people work.
    pub fn ingest(&self, place: &Path, from: &Path) -> Result<(f64, u64), Failure> {
        let data = tempfile::tempdir_in(place)?;
        let mut parameters = self.bucket.parameters.clone();
        parameters.extend(self.endpoint.as_ref().map(|endpoint| format!("endpoint={endpoint}")));
        let url = format!(
            "s3://{}/{}?{}",
            self.bucket.config.bucket,
            store::join(&self.prefix, "ours"),
            parameters.join("&")
        );
        let settings = format!("[stores.bench]\nurl = {}\n", serde_json::json!(url));
        std::fs::write(data.path().join("accession.toml"), settings)?;
        let first = data.path().join("first");
        std::fs::create_dir(&first)?;
        std::fs::write(first.join("letter.txt"), "the first object of the archive\n")?;
        let ingest = |what: &Path| {
            let mut command = Command::new(std::env::current_exe()?);
            command
                .args(["ingest", "-q", "--json"])
                .arg(what)
                .env("ACCESSION_DATA", data.path())
                .env_remove("ACCESSION_DATABASE")
                .env_remove("ACCESSION_CONFIG");
            timed(command, data.path())
        };
        ingest(&first)?;
        ingest(from)
    }

    /// The times of `rclone copy`, and of `rclone check --download` afterwards.
    pub fn rclone(&self, program: &Path, from: &Path) -> Result<(f64, f64), Failure> {
        let logs = tempfile::tempdir()?;
        let config = &self.bucket.config;
        let to = format!(":s3:{}/{}", config.bucket, store::join(&self.prefix, "rclone"));
        let run = |arguments: &[&str]| {
            let mut command = Command::new(program);
            command
                .args(arguments)
                .arg(from)
                .arg(&to)
                .env("RCLONE_CONFIG", logs.path().join("none"))
                .env("RCLONE_S3_ENV_AUTH", "true")
                .env("RCLONE_S3_REGION", &config.region)
                .env("RCLONE_S3_FORCE_PATH_STYLE", config.path_style.to_string())
                .env("RCLONE_S3_NO_CHECK_BUCKET", "true");
            match &self.endpoint {
                Some(endpoint) => {
                    command.env("RCLONE_S3_PROVIDER", "Other").env("RCLONE_S3_ENDPOINT", endpoint)
                }
                None => command.env("RCLONE_S3_PROVIDER", "AWS"),
            };
            timed(command, logs.path()).map(|(seconds, _)| seconds)
        };
        Ok((run(&["copy"])?, run(&["check", "--download"])?))
    }

    /// Removes what both have put, without the delay.
    pub fn remove(&self) -> Result<(), Failure> {
        let config = S3Config { prefix: String::new(), probe: false, ..self.bucket.config.clone() };
        let removed = app::block_on(async {
            let store = S3Store::open(config).await?;
            store.delete_all(&self.prefix).await
        })?;
        removed.map(drop).map_err(|error| Failure::unable(ErrorCode::Bench, error.to_string()))
    }
}

/// Runs a program to its end: how long that took, and the most memory that was resident.
fn timed(mut command: Command, logs: &Path) -> Result<(f64, u64), Failure> {
    let name = command.get_program().to_string_lossy().into_owned();
    let log = logs.join("output");
    let output = std::fs::File::create(&log)?;
    command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
    let began = Instant::now();
    let mut child = command.spawn().map_err(|error| {
        Failure::unable(ErrorCode::Bench, format!("`{name}` cannot be run: {error}"))
    })?;
    let mut peak = 0;
    let status = loop {
        peak = memory_peak(child.id()).unwrap_or(0).max(peak);
        if let Some(status) = child.try_wait()? {
            break status;
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    let seconds = began.elapsed().as_secs_f64();
    if status.success() {
        return Ok((seconds, peak));
    }
    let said = std::fs::read_to_string(&log).unwrap_or_default();
    let lines: Vec<&str> = said.lines().collect();
    let end = lines[lines.len().saturating_sub(5)..].join("\n");
    Err(Failure::unable(ErrorCode::Bench, format!("`{name}` ended with {status}: {end}")))
}

/// The most memory that a process has had resident so far; only Linux tells it in a file.
fn memory_peak(process: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib * 1024)
}

/// What rclone calls itself; `None` where it cannot be run.
pub fn version_of(program: &Path) -> Option<String> {
    let output = Command::new(program).arg("version").output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    output.status.success().then(|| text.lines().next().unwrap_or_default().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_keeps_the_parameters_and_has_its_own_prefix() {
        let url = "s3://b/p?endpoint=http://127.0.0.1:9000&concurrency=4&path_style=true";
        let bucket = Bucket::of(url).unwrap();
        assert_eq!(bucket.target(), Some("127.0.0.1:9000"));
        assert_eq!(bucket.parameters, ["concurrency=4", "path_style=true"]);
        let (one, other) = (bucket.run(None), bucket.run(Some("http://127.0.0.1:1")));
        assert!(one.prefix.starts_with("p/accession-bench-") && one.prefix != other.prefix);
        assert_eq!(other.endpoint.as_deref(), Some("http://127.0.0.1:1"));
        assert_eq!(Bucket::of("s3://b?endpoint=https://s3.example.org").unwrap().target(), None);
    }
}
