//! Workers that are killed, stopped and started again while they work.

use crate::cli::Accession;
use crate::log;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::Value;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const WORKERS: usize = 3;
const SUBJECTS: usize = 40;
const LEASE_SECONDS: u64 = 2;

pub struct Chaos {
    accession: Accession,
    log: PathBuf,
    random: StdRng,
    workers: Vec<Child>,
    /// Stopped workers, and when they go on.
    asleep: Vec<(usize, Instant)>,
    kills: u32,
    stops: u32,
}

impl Chaos {
    pub fn new(accession: Accession, dir: &Path) -> Chaos {
        let seed = std::env::var("ACCESSION_TORTURE_SEED")
            .ok()
            .and_then(|s| s.parse().ok())
            .unwrap_or_else(rand::random);
        println!("ACCESSION_TORTURE_SEED={seed}");
        let random = StdRng::seed_from_u64(seed);
        Chaos {
            accession,
            log: dir.join("log"),
            random,
            workers: Vec::new(),
            asleep: Vec::new(),
            kills: 0,
            stops: 0,
        }
    }

    /// Works for a while under fire, then in peace to the end, and checks what happened.
    /// `meanwhile` is told how far it is, from 0 to 1.
    pub fn run(mut self, time: Duration, meanwhile: &mut dyn FnMut(f64)) {
        self.accession.json(&[
            "queue",
            "create",
            "files",
            "workers=2",
            "buffer=3",
            "history=full",
            "max_interruptions=1000",
            "max_attempts=1000",
            "backoff_seconds=0",
        ]);
        let subjects: Vec<String> = (0..SUBJECTS).map(|n| format!("s{n}")).collect();
        let mut acknowledged: HashSet<i64> = self.add(&subjects);
        for _ in 0..WORKERS {
            let worker = self.worker(&[]);
            self.workers.push(worker);
        }
        let began = Instant::now();
        while began.elapsed() < time {
            std::thread::sleep(Duration::from_millis(self.random.random_range(50..250)));
            self.strike();
            meanwhile(began.elapsed().as_secs_f64() / time.as_secs_f64());
            // Re-adds while their subjects wait, run, or have ended.
            let again: Vec<String> =
                (0..4).map(|_| subjects[self.random.random_range(0..SUBJECTS)].clone()).collect();
            acknowledged.extend(self.add(&again));
        }
        // An add may have waited for a stopped worker's transaction past the end of the time.
        meanwhile(1.0);
        self.end_workers();
        let status = self.worker(&["--until-empty"]).wait().unwrap();
        assert!(status.success(), "the last worker ended with {status}");
        println!("{} kills, {} stops, {} jobs", self.kills, self.stops, acknowledged.len());
        self.check(&acknowledged);
    }

    /// The program logs that it began, lives and ended; sometimes it asks to be run again.
    fn program(&self) -> String {
        let log = self.log.display();
        let say = |what: &str| format!("echo {what} $ACCESSION_SUBJECT $ACCESSION_TOKEN >> {log}");
        format!(
            "{}; for i in 1 2 3 4 5; do sleep 0.02; {}; done; test $((ACCESSION_TOKEN % 9)) != 0 || exit 75; {}",
            say("start"),
            say("beat"),
            say("end")
        )
    }

    fn worker(&self, more: &[&str]) -> Child {
        let (program, lease) = (self.program(), LEASE_SECONDS.to_string());
        let args = [
            "queue",
            "work",
            "files",
            "--exec",
            &program,
            "--lease",
            &lease,
            "--grace",
            "1",
            "--no-output",
            "-q",
        ];
        let mut command: Command = self.accession.command(&[&args[..], more].concat());
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    }

    fn add(&self, subjects: &[String]) -> HashSet<i64> {
        let mut args = vec!["queue", "add", "files"];
        args.extend(subjects.iter().map(String::as_str));
        let output = self.accession.output(&[&args[..], &["--json"]].concat());
        // An add that was not acknowledged may or may not be there; only acknowledged ones count.
        if !output.status.success() {
            return HashSet::new();
        }
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
        answer["jobs"].as_array().unwrap().iter().map(|j| j["id"].as_i64().unwrap()).collect()
    }

    fn strike(&mut self) {
        let now = Instant::now();
        for (index, _) in self.asleep.extract_if(.., |(_, until)| *until <= now).collect::<Vec<_>>()
        {
            signal(&self.workers[index], "CONT");
        }
        let index = self.random.random_range(0..WORKERS);
        if self.asleep.iter().any(|(asleep, _)| *asleep == index) {
            return;
        }
        match self.random.random_range(0..8) {
            0 | 1 => {
                self.kills += 1;
                self.workers[index].kill().unwrap();
                self.workers[index].wait().unwrap();
                self.workers[index] = self.worker(&[]);
            }
            2 => {
                self.stops += 1;
                signal(&self.workers[index], "STOP");
                self.asleep.push((index, now + Duration::from_millis(LEASE_SECONDS * 1000 + 1200)));
            }
            _ => {}
        }
    }

    fn end_workers(&mut self) {
        for worker in &mut self.workers {
            signal(worker, "CONT");
            signal(worker, "TERM");
        }
        for mut worker in self.workers.drain(..) {
            worker.wait().unwrap();
        }
    }

    fn check(&self, acknowledged: &HashSet<i64>) {
        let ended = log::check(&self.log);
        let jobs = self.accession.json(&["queue", "list", "--limit", "10000"])["jobs"].clone();
        let known: HashSet<i64> =
            jobs.as_array().unwrap().iter().map(|j| j["id"].as_i64().unwrap()).collect();
        assert!(acknowledged.is_subset(&known), "an acknowledged job is gone");
        for job in jobs.as_array().unwrap() {
            let (id, subject) = (job["id"].as_i64().unwrap(), job["subject"].as_str().unwrap());
            let status = job["status"].as_str().unwrap();
            assert!(matches!(status, "succeeded" | "cancelled"), "job {id} is {status}: {job}");
            if status == "cancelled" {
                let why = job["ended_why"].as_str().unwrap_or_default();
                assert!(why.contains("superseded"), "job {id} was cancelled: {why}");
                continue;
            }
            let history = self.accession.json(&["queue", "show", &id.to_string()]);
            let events = history["history"].as_array().unwrap();
            let token = |event: &str| {
                events.iter().rfind(|e| e["event"] == event).and_then(|e| e["token"].as_u64())
            };
            let accepted = token("succeeded")
                .unwrap_or_else(|| panic!("job {id} succeeded without a row of history"));
            assert_eq!(token("claimed"), Some(accepted), "job {id}: a stale finish was accepted");
            let finished = ended.get(subject).is_some_and(|tokens| tokens.contains(&accepted));
            assert!(
                finished,
                "job {id} of {subject} succeeded by token {accepted}, whose program never ended"
            );
        }
        for n in 0..SUBJECTS {
            assert!(ended.contains_key(&format!("s{n}")), "s{n} was never worked to its end");
        }
    }
}

fn signal(child: &Child, name: &str) {
    let status = Command::new("kill")
        .args([&format!("-{name}"), &child.id().to_string()])
        .stderr(Stdio::null())
        .status()
        .unwrap();
    // One that ended by itself meanwhile cannot be signalled, which the checks afterwards notice.
    let _ = status;
}
