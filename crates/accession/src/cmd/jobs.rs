//! `accession jobs …`: looking at jobs and acting on them. `accession queue …` has the same commands.

use super::queue::{act, look};
use crate::cli::Global;
use crate::exit::{Exit, Failure};
use clap::Subcommand;

#[derive(clap::Args)]
#[command(after_help = "Examples:
  accession jobs failed
  accession jobs why 17
  accession jobs requeue 17 --reason 'the disk was replaced'
  accession jobs requeue 17 --to validating
  accession jobs cancel 17 --reason 'deposited by mistake'")]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    #[command(flatten)]
    Job(JobCommand),
    /// Discard what failed jobs have fetched and unpacked, to make room in the work space
    #[command(after_help = "Examples:
  accession jobs discard 17 18 --reason 'the disk is full'

A job that is requeued afterwards starts from its first stage. What was deposited stays where it is.")]
    Discard(act::Discard),
}

/// What people do with the jobs of any queue or pipeline.
#[derive(Subcommand)]
pub enum JobCommand {
    /// List jobs, newest first
    #[command(after_help = "Examples:
  accession jobs list --status failed
  accession jobs list ingest --batch 3 --limit 100")]
    List(look::List),
    /// Show a job with its whole history
    #[command(after_help = "Example:
  accession jobs show 17")]
    Show(look::Show),
    /// Say in one sentence why a job is not running now
    #[command(after_help = "Example:
  accession jobs why 17")]
    Why(look::Why),
    /// What has not moved for long, and why
    #[command(after_help = "Examples:
  accession jobs stuck
  accession jobs stuck ingest --over 10m")]
    Stuck(look::Stuck),
    /// List failed jobs
    #[command(after_help = "Examples:
  accession jobs failed
  accession jobs failed ingest --limit 10")]
    Failed(look::Failed),
    /// List failed jobs that need a review, or mark them as seen
    #[command(after_help = "Examples:
  accession jobs review
  accession jobs review --seen 17 --reason 'the depositor was told'")]
    Review(look::Review),
    /// Requeue all failed jobs that fit a filter
    #[command(after_help = "Examples:
  accession jobs retry ingest --dry-run
  accession jobs retry --batch 3 --reason 'the disk was replaced'
  accession jobs retry --all")]
    Retry(act::Retry),
    /// Send a job again, to the stage it failed in or an earlier one
    #[command(after_help = "Examples:
  accession jobs requeue 17 --reason 'the disk was replaced'
  accession jobs requeue 17 --to validating")]
    Requeue(act::Requeue),
    /// Hold jobs, a batch or a collection: running ones finish their stage
    #[command(after_help = "Examples:
  accession jobs hold 17 --reason 'ask the depositor'
  accession jobs hold --collection maps")]
    Hold(act::Hold),
    /// Release what was held
    #[command(after_help = "Examples:
  accession jobs release 17
  accession jobs release --collection maps")]
    Release(act::Release),
    /// Cancel jobs or a batch; running ones are asked to stop
    #[command(after_help = "Examples:
  accession jobs cancel 17 18 --reason 'deposited by mistake'
  accession jobs cancel --batch 3")]
    Cancel(act::Cancel),
    /// Stop handing out jobs of a stage, a pipeline or everything
    #[command(after_help = "Examples:
  accession jobs pause ingest --reason 'new disks'
  accession jobs pause ingest --stage storing
  accession jobs pause --all")]
    Pause(act::Pause),
    /// Go on handing out jobs
    #[command(after_help = "Examples:
  accession jobs unpause ingest
  accession jobs unpause --all")]
    Unpause(act::Unpause),
}

pub fn run(args: Args, global: &Global) -> Result<Exit, Failure> {
    super::app::prepare(global)?;
    match args.command {
        Command::Job(command) => command.run(global),
        Command::Discard(args) => act::discard(args, global),
    }
}

impl JobCommand {
    pub fn run(self, global: &Global) -> Result<Exit, Failure> {
        match self {
            JobCommand::List(args) => look::list(args, global),
            JobCommand::Show(args) => look::show(args, global),
            JobCommand::Why(args) => look::why(args, global),
            JobCommand::Stuck(args) => look::stuck(args, global),
            JobCommand::Failed(args) => look::failed(args, global),
            JobCommand::Review(args) => look::review(args, global),
            JobCommand::Retry(args) => act::retry(args, global),
            JobCommand::Requeue(args) => act::requeue(args, global),
            JobCommand::Hold(args) => act::hold(args, global),
            JobCommand::Release(args) => act::release(args, global),
            JobCommand::Cancel(args) => act::cancel(args, global),
            JobCommand::Pause(args) => act::pause(args, global),
            JobCommand::Unpause(args) => act::unpause(args, global),
        }
    }
}
