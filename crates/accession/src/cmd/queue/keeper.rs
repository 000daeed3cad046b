//! The keeper: starts the program for a guard, and ends the program's process group when the guard
//! dies. A guard that was killed cannot do that itself.
//!
//! The kernel sends the keeper [`GUARD_DIED`] when its parent, the guard, dies. The keeper leads the
//! process group of the program, so one signal to the group ends all that the program started, except
//! what has moved to a session or a group of its own.

use super::guard;
use crate::exit::{Exit, Failure};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{SigSet, Signal, killpg};
use nix::unistd::{Pid, getpgrp, getppid};
use std::process::{Command, Stdio};

/// What the kernel sends when the guard dies.
const GUARD_DIED: Signal = Signal::SIGUSR1;

#[derive(clap::Args)]
pub struct Keeper {
    /// The process id of the guard, which started this process
    #[arg(long)]
    guard: i32,
    /// What the shell runs
    command: std::ffi::OsString,
}

pub fn run(args: Keeper) -> Result<Exit, Failure> {
    let mut expected = SigSet::empty();
    // The guard asks the whole group to stop with SIGTERM: the program decides when it ends. The
    // standard library gives the program an empty signal mask.
    [GUARD_DIED, Signal::SIGTERM, Signal::SIGCHLD].into_iter().for_each(|s| expected.add(s));
    expected.thread_block().map_err(std::io::Error::from)?;
    set_pdeathsig(GUARD_DIED).map_err(std::io::Error::from)?;
    if getppid() != Pid::from_raw(args.guard) {
        // The guard died before the kernel was asked to tell of it.
        end_group();
    }
    let mut program =
        Command::new("sh").arg("-c").arg(&args.command).stdin(Stdio::inherit()).spawn()?;
    loop {
        if let Some(status) = program.try_wait()? {
            guard::end_like(status);
        }
        if expected.wait().map_err(std::io::Error::from)? == GUARD_DIED {
            end_group();
        }
    }
}

/// Ends this process too: it belongs to the group.
fn end_group() -> ! {
    let _ = killpg(getpgrp(), Signal::SIGKILL);
    std::process::exit(255)
}
