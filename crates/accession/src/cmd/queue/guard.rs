//! The guard: stands between a worker and the program it runs, and ends the program when the
//! worker's lease ends. A worker that was killed or stopped cannot do that itself, and its job may
//! be given to another; two programs must never work on one subject.
//!
//! The guard starts the program through a keeper (see [`super::keeper`]), which ends the program if the
//! guard is killed, and under a lock that tells a later worker that the program still runs (see
//! [`super::program_lock`]).
//!
//! The worker writes to the guard's standard input: `payload N\n` and N bytes, then `lease MS\n`
//! whenever its lease is renewed, and `stop\n` when the program should end. The end of the input
//! means that the worker is gone. The ends of leases are times of [`clock`], which is one for all
//! processes of a machine: however late they are read, they mean the same.

use super::program_lock::ProgramLock;
use crate::exit::{Exit, Failure};
use nix::sys::signal::{Signal, killpg, raise};
use nix::time::{ClockId, clock_gettime};
use nix::unistd::Pid;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

#[derive(clap::Args)]
pub struct Guard {
    /// How long the program has between SIGTERM and SIGKILL
    #[arg(long)]
    grace_ms: u64,
    /// Until when the lease is good at the start, in milliseconds of the machine's monotonic clock
    #[arg(long)]
    lease_until: u64,
    /// The file and the byte in it that the program keeps locked while any of it lives
    #[arg(long, requires = "lock_byte")]
    lock_file: Option<std::path::PathBuf>,
    #[arg(long)]
    lock_byte: Option<i64>,
    /// What the shell runs
    command: std::ffi::OsString,
}

/// The machine's monotonic clock, which its processes can compare.
pub fn clock() -> Duration {
    // Without one the time counts as over, and nothing is begun.
    clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(Duration::MAX, Duration::from)
}

/// The moment of this process that a time of [`clock`] is.
fn moment(time: Duration) -> Instant {
    // Read first, so that time lost between the two clocks makes the lease shorter and not longer.
    let now = Instant::now();
    now.checked_add(time.saturating_sub(clock())).unwrap_or(now)
}

enum GuardMessage {
    Lease(Instant),
    Stop,
    WorkerGone,
    Ended(std::io::Result<ExitStatus>),
}

pub fn run(args: Guard) -> Result<Exit, Failure> {
    let mut lease_ends = moment(Duration::from_millis(args.lease_until));
    let mut input = BufReader::new(std::io::stdin());
    let payload = read_payload(&mut input)?;
    if Instant::now() >= lease_ends {
        // The worker was stopped while it said what to run: the job may be someone else's by now.
        end_by(Signal::SIGKILL);
    }
    let lock = take_lock(&args)?;
    // A process group of its own, so that what the program started ends with it. Started by the main
    // thread, which lives as long as this process: the kernel tells the keeper when that thread ends.
    let mut child = Command::new(std::env::current_exe()?)
        .args(["queue", "keeper", "--guard", &std::process::id().to_string(), "--"])
        .arg(&args.command)
        .stdin(Stdio::piped())
        .process_group(0)
        .spawn()?;
    let group = Pid::from_raw(i32::try_from(child.id()).unwrap_or(i32::MAX));
    if let Some(mut stdin) = child.stdin.take() {
        // A program that does not read its input is within its rights.
        std::thread::spawn(move || drop(stdin.write_all(&payload)));
    }
    let (news, inbox) = channel();
    let sender = news.clone();
    std::thread::spawn(move || listen(input, &sender));
    std::thread::spawn(move || drop(news.send(GuardMessage::Ended(child.wait()))));
    let mut kill_at: Option<Instant> = None;
    let mut stopped = false;
    loop {
        let wake = kill_at.map_or(lease_ends, |at| at.min(lease_ends));
        match inbox.recv_timeout(wake.saturating_duration_since(Instant::now())) {
            Ok(GuardMessage::Lease(until)) => lease_ends = until,
            Ok(GuardMessage::Stop | GuardMessage::WorkerGone) if kill_at.is_none() => {
                stopped = true;
                signal(group, Signal::SIGTERM);
                kill_at = Some(Instant::now() + Duration::from_millis(args.grace_ms));
            }
            Ok(GuardMessage::Stop | GuardMessage::WorkerGone) => {}
            Ok(GuardMessage::Ended(status)) => {
                // Whatever it left behind in its group goes too.
                signal(group, Signal::SIGKILL);
                let status = status?;
                if status.code().is_some() && !stopped {
                    // It ended by itself: what it left running elsewhere, it meant to leave.
                    lock.iter().for_each(ProgramLock::release);
                }
                end_like(status)
            }
            Err(RecvTimeoutError::Timeout) => {
                stopped = true;
                signal(group, Signal::SIGKILL);
                kill_at = None;
                lease_ends = Instant::now() + Duration::from_secs(1);
            }
            Err(RecvTimeoutError::Disconnected) => return Ok(Exit::No),
        }
    }
}

/// Locks what tells others that the program runs. The worker saw that the lock was free: one that
/// is held now is held by another run of the job, whose lease is newer.
fn take_lock(args: &Guard) -> std::io::Result<Option<ProgramLock>> {
    let (Some(path), Some(byte)) = (&args.lock_file, args.lock_byte) else { return Ok(None) };
    let lock = ProgramLock::open(path, byte)?;
    if !lock.take()? {
        end_by(Signal::SIGKILL);
    }
    Ok(Some(lock))
}

fn read_payload(input: &mut impl BufRead) -> std::io::Result<Vec<u8>> {
    let mut line = String::new();
    input.read_line(&mut line)?;
    let length = line.trim().strip_prefix("payload ").and_then(|n| n.parse().ok());
    let mut payload =
        vec![0; length.ok_or_else(|| std::io::Error::other("the guard was not told the payload"))?];
    input.read_exact(&mut payload)?;
    Ok(payload)
}

fn listen(mut input: impl BufRead, news: &Sender<GuardMessage>) {
    let mut line = String::new();
    loop {
        line.clear();
        let heard = match input.read_line(&mut line) {
            Ok(0) | Err(_) => GuardMessage::WorkerGone,
            Ok(_) => match line.trim().strip_prefix("lease ").and_then(|ms| ms.parse().ok()) {
                Some(ms) => GuardMessage::Lease(moment(Duration::from_millis(ms))),
                None => GuardMessage::Stop,
            },
        };
        let last = matches!(heard, GuardMessage::WorkerGone);
        if news.send(heard).is_err() || last {
            return;
        }
    }
}

fn signal(group: Pid, signal: Signal) {
    // Fails if the group is gone, which is what is wanted.
    let _ = killpg(group, signal);
}

/// Ends as the program did: with its exit status, or by the signal that ended it.
pub fn end_like(status: ExitStatus) -> ! {
    match status.signal().and_then(|s| Signal::try_from(s).ok()) {
        Some(signal) => end_by(signal),
        None => std::process::exit(status.code().unwrap_or(255)),
    }
}

fn end_by(signal: Signal) -> ! {
    let _ = raise(signal);
    // Only if the signal does not end a process.
    std::process::exit(255)
}
