//! Running a program for a job, and what its end means:
//!
//! | end | outcome |
//! |---|---|
//! | exit 0 | success; what it wrote to `$ACCESSION_STATE_OUT` is the job's state from here on |
//! | exit 75, or over its time | transient error |
//! | exit 69 | transient error at a target: the last line of its standard output |
//! | a signal | interruption |
//! | exit 126 or 127 | no such program: the worker stops, and no job fails |
//! | anything else | permanent error |

use crate::cmd::queue::guard;
use crate::cmd::queue::handed::Handed;
use crate::cmd::queue::program_lock::{ProgramLock, byte_of};
use crate::cmd::queue::template;
use crate::error_code::ErrorCode;
use queue::runtime::{Context, Handler, Stop};
use queue::{Claimed, JobError, Outcome, subject};
use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::watch;

/// The last lines of output that are kept, and how many bytes of each.
const LINES_KEPT: usize = 10;
const LINE_BYTES_KEPT: usize = 500;

/// How often a worker looks whether an earlier run's program is gone before it puts the job back,
/// and when it looks again.
const LOOKS: u32 = 20;
const AGAIN_MICROS: i64 = 5_000_000;

pub struct Exec {
    pub queue: String,
    pub stage: String,
    /// The pipeline has several stages, so a job has a state.
    pub has_state: bool,
    pub command: OsString,
    pub timeout: Option<Duration>,
    pub grace: Duration,
    /// Where programs keep their locks, and the database that the locks are of.
    pub locks: PathBuf,
    pub database: String,
    /// Told when the program does not exist.
    pub stop: watch::Sender<Stop>,
    pub missing: Arc<Mutex<Option<String>>>,
    /// The program's standard output goes on to ours.
    pub pass_output: bool,
}

impl Handler for Exec {
    async fn run(&self, job: &Claimed, context: &Context) -> Outcome {
        match self.run_program(job, context).await {
            Ok(outcome) => outcome,
            Err(error) => Outcome::Transient(JobError::new(
                ErrorCode::Exec,
                format!("the program could not be run: {error}"),
            )),
        }
    }
}

/// How a program ended, and its last words.
struct Ended {
    status: ExitStatus,
    timed_out: bool,
    last_out: Option<String>,
    errors: String,
}

impl Exec {
    async fn run_program(&self, job: &Claimed, context: &Context) -> std::io::Result<Outcome> {
        let raw = subject::decode(&job.subject);
        if raw.contains(&0) {
            return Ok(Outcome::Permanent(JobError::new(
                ErrorCode::NulInSubject,
                "the subject has a NUL byte, which no program can be given; rename it",
            )));
        }
        if self.still_runs(&job.lease.lock).await? {
            // The run that started it was cut short, and what is left of it cannot be ended.
            let now = context.db().read(|tx| Ok::<_, db::Error>(tx.now())).await;
            return Ok(Outcome::Wait {
                due: now.unwrap_or_else(|_| db::system_now()) + AGAIN_MICROS,
                why: format!(
                    "the program of an earlier run still works on it on this machine; `fuser {}` lists such programs",
                    self.locks.display()
                ),
            });
        }
        let command = template::fill_in(&self.command, &raw);
        let handed = match self.has_state {
            true => match context.state().await {
                Ok(state) => Some(Handed::new(state)?),
                Err(error) => return Ok(Outcome::Interrupted(error.to_string())),
            },
            false => None,
        };
        let mut child = self.spawn(job, &raw, &command, context, handed.as_ref())?;
        let mut guard =
            child.stdin.take().ok_or_else(|| std::io::Error::other("no pipe to the guard"))?;
        let payload = job.payload.clone().unwrap_or_default();
        guard.write_all(format!("payload {}\n", payload.len()).as_bytes()).await?;
        guard.write_all(&payload).await?;
        let out = tokio::spawn(tail(child.stdout.take(), self.pass_output));
        let err = tokio::spawn(tail(child.stderr.take(), false));
        let (status, timed_out) = self.attend(&mut child, &mut guard, context).await?;
        drop(guard);
        let (out, err) = (out.await.unwrap_or_default(), err.await.unwrap_or_default());
        let ended = Ended {
            status,
            timed_out,
            last_out: out.into_iter().rfind(|l| !l.trim().is_empty()),
            errors: Vec::from(err).join("\n"),
        };
        let outcome = self.judge(&ended, context.stop());
        Ok(match handed {
            Some(handed) if outcome == Outcome::success() => handed.outcome(),
            _ => outcome,
        })
    }

    /// Whether what an earlier run started is alive. What was just ended has a moment to be gone.
    async fn still_runs(&self, lock: &str) -> std::io::Result<bool> {
        let lock = ProgramLock::open(&self.locks, byte_of(&self.database, lock))?;
        for _ in 0..LOOKS {
            if !lock.is_held()? {
                return Ok(false);
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Ok(true)
    }

    fn spawn(
        &self,
        job: &Claimed,
        raw: &[u8],
        command: &OsStr,
        context: &Context,
        handed: Option<&Handed>,
    ) -> std::io::Result<Child> {
        let mut guard = Command::new(std::env::current_exe()?);
        if let Some(handed) = handed {
            guard.env("ACCESSION_STATE", &handed.state).env("ACCESSION_STATE_OUT", handed.out());
        }
        guard
            .args([
                "queue",
                "guard",
                "--grace-ms",
                &self.grace.as_millis().to_string(),
                "--lease-until",
                &lease_until(context).as_millis().to_string(),
                "--lock-byte",
                &byte_of(&self.database, &job.lease.lock).to_string(),
                "--lock-file",
            ])
            .arg(&self.locks)
            .arg("--")
            .arg(command)
            .env("ACCESSION_SUBJECT", OsStr::from_bytes(raw))
            .env("ACCESSION_JOB", job.lease.job.to_string())
            .env("ACCESSION_QUEUE", &self.queue)
            .env("ACCESSION_STAGE", &self.stage)
            .env("ACCESSION_ATTEMPT", job.attempt.to_string())
            .env("ACCESSION_TOKEN", job.lease.token.to_string())
            .env("ACCESSION_BATCH", job.lease.batch.map(|b| b.to_string()).unwrap_or_default())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // Ctrl-C on a terminal is for the worker, which passes it on in its own time.
            .process_group(0)
            .spawn()
    }

    /// Waits for the program, tells its guard of each renewal, and asks it to stop when it must.
    async fn attend(
        &self,
        child: &mut Child,
        guard: &mut ChildStdin,
        context: &Context,
    ) -> std::io::Result<(ExitStatus, bool)> {
        let began = Instant::now();
        let (mut told, mut stopping, mut timed_out) = (context.lease_until(), false, false);
        loop {
            let limit = self.timeout.map(|t| began + t);
            let look = Instant::now() + Duration::from_millis(200);
            tokio::select! {
                status = child.wait() => return Ok((status?, timed_out)),
                _ = context.stopped(), if !stopping => {
                    stopping = true;
                    say(guard, "stop\n").await;
                }
                _ = tokio::time::sleep_until(limit.unwrap_or(look).into()), if limit.is_some() && !timed_out && !stopping => {
                    (timed_out, stopping) = (true, true);
                    say(guard, "stop\n").await;
                }
                _ = tokio::time::sleep_until(look.into()) => {
                    let until = context.lease_until();
                    if until != told {
                        told = until;
                        say(guard, &format!("lease {}\n", lease_until(context).as_millis())).await;
                    }
                }
            }
        }
    }

    fn judge(&self, ended: &Ended, stop: Stop) -> Outcome {
        let said = |fallback: String| {
            if ended.errors.is_empty() { fallback } else { ended.errors.clone() }
        };
        if ended.timed_out {
            let limit = self.timeout.map_or(0, |t| t.as_secs());
            return Outcome::Transient(JobError::new(
                queue::ErrorCode::Timeout,
                said(format!("it took longer than {limit} s (--timeout) and was stopped")),
            ));
        }
        let code = match (ended.status.code(), stop) {
            (Some(0), _) => return Outcome::success(),
            (_, Stop::Cancelled) => return Outcome::Cancelled,
            (_, Stop::Shutdown | Stop::LeaseLost) => {
                return Outcome::Interrupted("its worker stopped".to_string());
            }
            (Some(code), Stop::No) => code,
            (None, Stop::No) => {
                let signal = ended.status.signal().unwrap_or(0);
                return Outcome::Interrupted(format!("the program was ended by signal {signal}"));
            }
        };
        match code {
            75 => Outcome::Transient(JobError::new(
                ErrorCode::Exit75,
                said("the program asks to be run again later (exit 75)".to_string()),
            )),
            69 => {
                let target = ended.last_out.clone().unwrap_or_default();
                let error = JobError::new(
                    ErrorCode::Exit69,
                    said(format!("something it needs is unavailable (exit 69): {target}")),
                );
                Outcome::Transient(if target.trim().is_empty() {
                    error
                } else {
                    error.at(target.trim())
                })
            }
            126 | 127 => {
                let why = said(format!("exit {code}"));
                *self.missing.lock().unwrap_or_else(PoisonError::into_inner) = Some(why);
                self.stop.send_replace(Stop::Shutdown);
                Outcome::GivenBack
            }
            code => Outcome::Permanent(JobError::new(
                format!("exit_{code}"),
                said(format!(
                    "the program ended with exit {code} and said nothing on standard error"
                )),
            )),
        }
    }
}

/// When the lease ends on the clock that the guard reads too, less a margin: the program must be
/// gone before anyone else can have the job. A time and not a length of time, since this process may
/// be stopped between saying it and being heard.
fn lease_until(context: &Context) -> Duration {
    // Read first, so that time lost between the two clocks makes the lease shorter and not longer.
    let now = guard::clock();
    let left = context.lease_until().saturating_duration_since(Instant::now());
    let margin = (context.lease_length() / 10).min(Duration::from_secs(2));
    (now + left).saturating_sub(margin)
}

async fn say(guard: &mut ChildStdin, word: &str) {
    // A guard that is gone has ended, which the wait for it will tell.
    let _ = guard.write_all(word.as_bytes()).await;
}

/// The last lines of a stream, cut to size; the stream is read to its end whatever its length.
async fn tail(stream: Option<impl AsyncRead + Unpin>, pass: bool) -> VecDeque<String> {
    let mut kept = VecDeque::with_capacity(LINES_KEPT);
    let Some(stream) = stream else { return kept };
    let mut reader = BufReader::new(stream);
    let mut line: Vec<u8> = Vec::new();
    loop {
        let (used, ends) = match reader.fill_buf().await {
            Ok([]) | Err(_) => break,
            Ok(available) => {
                if pass {
                    use std::io::Write;
                    // A reader of ours that went away is no reason to stop the work.
                    let _ = std::io::stdout().write_all(available);
                }
                let end = available.iter().position(|b| *b == b'\n');
                let part = &available[..end.unwrap_or(available.len())];
                let room = LINE_BYTES_KEPT.saturating_sub(line.len());
                line.extend(&part[..part.len().min(room)]);
                (end.map_or(available.len(), |e| e + 1), end.is_some())
            }
        };
        reader.consume(used);
        if ends {
            keep(&mut kept, &mut line);
        }
    }
    if !line.is_empty() {
        keep(&mut kept, &mut line);
    }
    kept
}

fn keep(kept: &mut VecDeque<String>, line: &mut Vec<u8>) {
    if kept.len() == LINES_KEPT {
        kept.pop_front();
    }
    // NUL cannot be stored as text, and control characters have no place in an error.
    let text: String =
        String::from_utf8_lossy(line).chars().filter(|c| !c.is_control() || *c == '\t').collect();
    kept.push_back(text);
    line.clear();
}
