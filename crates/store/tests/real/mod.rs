//! A real S3 server that `scripts/torture s3` has started and names in the environment, and boto3
//! as its judge. Tests that have an S3 server of their own use this one instead where it is named.

// Each test program uses its part.
#![allow(dead_code)]

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// The server, and a bucket on it that all tests share: each has a place of its own below a prefix.
#[derive(Clone, Debug)]
pub struct RealServer {
    pub endpoint: String,
    pub bucket: String,
    /// Everything of this value lies below it.
    pub prefix: String,
    python: String,
}

impl RealServer {
    /// The server that `$ACCESSION_TEST_S3` names, if it does.
    pub fn named() -> Option<RealServer> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let endpoint = std::env::var("ACCESSION_TEST_S3").ok()?;
        let variable = |name: &str| std::env::var(name).unwrap_or_else(|_| panic!("{name}"));
        let started = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default().as_millis();
        let number = COUNT.fetch_add(1, Ordering::SeqCst);
        Some(RealServer {
            endpoint,
            bucket: variable("ACCESSION_TEST_S3_BUCKET"),
            prefix: format!("{started}-{}-{number}", std::process::id()),
            python: variable("ACCESSION_TEST_S3_PYTHON"),
        })
    }

    /// The same, for tests that make no sense without one.
    pub fn required() -> RealServer {
        RealServer::named().unwrap_or_else(|| panic!("run this by `scripts/torture s3`"))
    }

    /// Whether this server is known to fail a trial of `accession store check`.
    pub fn fails(&self, trial: &str) -> bool {
        std::env::var("ACCESSION_TEST_S3_FAILS").is_ok_and(|failing| failing == trial)
    }

    /// The same server through another address.
    pub fn through(&self, endpoint: String) -> RealServer {
        RealServer { endpoint, ..self.clone() }
    }

    /// The key of something of this value.
    pub fn key(&self, name: &str) -> String {
        format!("{}/{name}", self.prefix)
    }

    /// The URL of a store that is this value's own.
    pub fn url(&self, name: &str) -> String {
        format!("s3://{}/{}?endpoint={}", self.bucket, self.key(name), self.endpoint)
    }

    pub fn access_key(&self) -> String {
        std::env::var("AWS_ACCESS_KEY_ID").unwrap_or_default()
    }

    pub fn secret_key(&self) -> String {
        std::env::var("AWS_SECRET_ACCESS_KEY").unwrap_or_default()
    }

    /// What a program needs to be let in.
    pub fn environment(&self) -> Vec<(String, String)> {
        let region = std::env::var("AWS_REGION").unwrap_or_else(|_| "us-east-1".into());
        [
            ("AWS_ACCESS_KEY_ID", self.access_key()),
            ("AWS_SECRET_ACCESS_KEY", self.secret_key()),
            ("AWS_REGION", region),
            ("AWS_EC2_METADATA_DISABLED", "true".into()),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .to_vec()
    }

    /// What the judge says when it is content; the error is what it objects to.
    pub fn asked(&self, arguments: &[&str], input: &[u8]) -> Result<String, String> {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/s3-judge");
        let endpoint = std::env::var("ACCESSION_TEST_S3").unwrap_or_default();
        let mut judge = Command::new(&self.python)
            .arg(script)
            .args(arguments)
            .env("S3_ENDPOINT", endpoint)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| error.to_string())?;
        let written = judge.stdin.take().map(|mut stdin| stdin.write_all(input));
        let output = judge.wait_with_output().map_err(|error| error.to_string())?;
        match (output.status.success(), written) {
            (true, Some(Ok(()))) => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
            _ => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        }
    }

    /// Asks the judge about this bucket; panics when it objects.
    pub fn judge(&self, command: &str, arguments: &[&str]) -> String {
        let arguments = [&[command, &self.bucket], arguments].concat();
        self.asked(&arguments, b"").unwrap_or_else(|why| panic!("{arguments:?}: {why}"))
    }

    /// The judge agrees with every byte of a storage root.
    pub fn judge_root(&self, name: &str, compared: &[(&str, &Path)]) {
        let prefix = self.key(name);
        let mut arguments = vec![prefix.as_str()];
        for (identifier, directory) in compared {
            arguments.push(identifier);
            arguments.push(directory.to_str().unwrap_or_default());
        }
        println!("boto3: {}", self.judge("root", &arguments).trim());
    }
}
