//! Siegfried in a process of its own, through the Python package `pygfried`.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// Answers each line of paths with the time it took; times do not include starting.
const SCRIPT: &str = r#"
import json, resource, sys, time
import pygfried
print(json.dumps({"version": pygfried.version()}), flush=True)
for line in sys.stdin:
    job = json.loads(line)
    start = time.perf_counter()
    pygfried.identify_many(job["paths"], workers=job["jobs"])
    seconds = time.perf_counter() - start
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps({"seconds": seconds, "memory_kib": memory}), flush=True)
"#;

/// A running siegfried.
pub struct Peer {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    pub version: String,
    pub memory_mib: f64,
}

impl Peer {
    /// Starts it, or says nothing if it is not there.
    pub fn start(python: &Path) -> Option<Peer> {
        let mut child = Command::new(python)
            .args(["-c", SCRIPT])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take()?);
        let mut peer = Peer { child, input, output, version: String::new(), memory_mib: 0.0 };
        peer.version = peer.answer()?["version"].as_str()?.to_owned();
        Some(peer)
    }

    /// How many seconds it takes to identify these files.
    pub fn identify(&mut self, paths: &[PathBuf], jobs: usize) -> Option<f64> {
        let job = json!({"paths": paths, "jobs": jobs});
        writeln!(self.input.as_mut()?, "{job}").ok()?;
        let answer = self.answer()?;
        self.memory_mib = answer["memory_kib"].as_f64().unwrap_or(0.0) / 1024.0;
        answer["seconds"].as_f64()
    }

    fn answer(&mut self) -> Option<Value> {
        let mut line = String::new();
        self.output.read_line(&mut line).ok()?;
        serde_json::from_str(&line).ok()
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // Without input it ends by itself; waiting leaves no process behind.
        drop(self.input.take());
        let _ = self.child.wait();
    }
}
