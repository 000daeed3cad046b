//! `accession jobs …`: every person's action on jobs, by names one need not look up. The same
//! as `accession queue …`, which has more.

use super::queue::{act, look};
use crate::cli::Global;
use crate::exit::{Exit, Failure};
use clap::Subcommand;

#[derive(clap::Args)]
#[command(after_help = "Examples:
  accession jobs failed
  accession jobs why 17
  accession jobs requeue 17 --reason 'the disk was mended'
  accession jobs requeue 17 --to validating
  accession jobs cancel 17 --reason 'deposited by mistake'")]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// List jobs, newest first
    List(look::List),
    /// Show a job with its whole history
    Show(look::Show),
    /// Say in one sentence why a job is not running now
    Why(look::Why),
    /// What has not moved for long, and why
    Stuck(look::Stuck),
    /// List failed jobs
    Failed(look::Failed),
    /// List failed jobs nobody has looked at, or mark them as seen
    Review(look::Review),
    /// Requeue all failed jobs that fit a filter
    Retry(act::Retry),
    /// Send a job again, to the stage it failed in or an earlier one
    Requeue(act::Requeue),
    /// Hold jobs, a batch or a collection
    Hold(act::Hold),
    /// Release what was held
    Release(act::Release),
    /// Cancel jobs or a batch; running ones are asked to stop
    Cancel(act::Cancel),
    /// Stop handing out jobs of a stage, a pipeline or everything
    Pause(act::Pause),
    /// Go on handing out jobs
    Unpause(act::Unpause),
}

pub fn run(args: Args, global: &Global) -> Result<Exit, Failure> {
    super::site::prepare(global)?;
    match args.command {
        Command::List(args) => look::list(args, global),
        Command::Show(args) => look::show(args, global),
        Command::Why(args) => look::why(args, global),
        Command::Stuck(args) => look::stuck(args, global),
        Command::Failed(args) => look::failed(args, global),
        Command::Review(args) => look::review(args, global),
        Command::Retry(args) => act::retry(args, global),
        Command::Requeue(args) => act::requeue(args, global),
        Command::Hold(args) => act::hold(args, global),
        Command::Release(args) => act::release(args, global),
        Command::Cancel(args) => act::cancel(args, global),
        Command::Pause(args) => act::pause(args, global),
        Command::Unpause(args) => act::unpause(args, global),
    }
}
