//! `accession queue …`: a queue that never loses, never doubles, and explains itself.

pub mod act;
mod add;
pub mod batches;
mod define;
mod exec;
mod guard;
mod handed;
mod keeper;
pub mod look;
mod program_lock;
mod template;
mod watch;
mod work;

use crate::error_code::ErrorCode;
pub use look::print_stats;
pub use work::stop_on_signals;

use super::jobs::JobCommand;
use crate::cli::Global;
use crate::exit::{Exit, Failure};
use clap::Subcommand;

#[derive(clap::Args)]
#[command(after_help = "Examples:
  accession queue create files
  accession queue add files a.fits b.fits
  accession queue work files --exec 'gzip -k -- \"$ACCESSION_SUBJECT\"' --until-empty
  accession queue stats
  accession queue why 2")]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Make a queue, or a pipeline of several stages
    Create(define::Create),
    /// Delete a queue; its waiting and failed jobs are cancelled
    #[command(after_help = "Example:
  accession queue delete files --reason 'not needed any more'")]
    Delete(define::Delete),
    /// Add subjects to a queue
    Add(add::Add),
    #[command(flatten)]
    Job(JobCommand),
    /// Depths, oldest age, rates, failures by error
    #[command(after_help = "Examples:
  accession queue stats
  accession queue stats files --json")]
    Stats(look::Stats),
    /// Cancel all waiting jobs of a queue
    #[command(after_help = "Example:
  accession queue empty files --reason 'the wrong list'")]
    Empty(define::Empty),
    /// Change settings while workers run
    Set(define::Set),
    /// Say how much of a resource the whole deployment has
    Budget(define::Budget),
    /// List workers and what each is doing
    #[command(after_help = "Example:
  accession queue workers")]
    Workers(look::Workers),
    /// List batches, or show, report or delete one
    Batches(batches::Batches),
    /// Remove ended jobs and their history now
    Prune(act::Prune),
    /// A live view of all queues
    #[command(after_help = "Examples:
  accession queue watch
  accession queue watch --every 5")]
    Watch(watch::Watch),
    /// Work a queue with any program
    Work(work::WorkArgs),
    /// Runs one program for a worker, and ends it when the worker's lease does
    #[command(hide = true)]
    Guard(guard::Guard),
    /// Starts the program for a guard, and ends it when the guard dies
    #[command(hide = true)]
    Keeper(keeper::Keeper),
}

pub fn run(args: Args, global: &Global) -> Result<Exit, Failure> {
    match args.command {
        Command::Job(command) => command.run(global),
        Command::Create(args) => define::create(args, global),
        Command::Delete(args) => define::delete(args, global),
        Command::Add(args) => add::run(args, global),
        Command::Stats(args) => look::stats(args, global),
        Command::Empty(args) => define::empty(args, global),
        Command::Set(args) => define::set(args, global),
        Command::Budget(args) => define::budget(args, global),
        Command::Workers(args) => look::workers(args, global),
        Command::Batches(args) => batches::batches(args, global),
        Command::Prune(args) => act::prune(args, global),
        Command::Watch(args) => watch::run(args, global),
        Command::Work(args) => work::run(args, global),
        Command::Guard(args) => guard::run(args),
        Command::Keeper(args) => keeper::run(args),
    }
}

/// Asks before something is lost: `--yes`, or an answer on a terminal.
fn confirm(yes: bool, question: &str) -> Result<(), Failure> {
    use std::io::{BufRead, IsTerminal};
    if yes {
        return Ok(());
    }
    if !std::io::stdin().is_terminal() {
        return Err(Failure::refused(
            ErrorCode::NotConfirmed,
            format!("{question} Say --yes if you mean it; nothing was changed"),
        ));
    }
    anstream::eprint!("{question} [y/N] ");
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    match answer.trim() {
        "y" | "Y" | "yes" => Ok(()),
        _ => Err(Failure::refused(ErrorCode::NotConfirmed, "nothing was changed")),
    }
}
