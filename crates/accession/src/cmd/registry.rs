//! `accession registry rebuild --from STORE`: the registry, restored from a store alone.

use super::app;
use crate::cli::Global;
use crate::exit::{Exit, Failure};
use crate::output;
use archive::registry::rebuild;
use clap::Subcommand;

#[derive(clap::Args)]
#[command(after_help = "Examples:
  accession registry rebuild --from main
  accession registry dump")]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Take in what a store has and the registry does not know
    #[command(after_help = "Examples:
  accession registry rebuild --from main
  accession registry rebuild --from mirror

An object that cannot be read, that is older than the registry knows it, or that is not in its place
is named and left out; all others are taken in. Ends with 1 if anything was left out.")]
    Rebuild(Rebuild),
    /// Print all of the registry that a store can know, for comparing two of them
    #[command(after_help = "Example:
  accession registry dump > before.txt")]
    Dump,
}

#[derive(clap::Args)]
struct Rebuild {
    /// The store's name in the configuration
    #[arg(long, value_name = "STORE")]
    from: String,
}

pub fn run(args: Args, global: &Global) -> Result<Exit, Failure> {
    let (app, _) = app::open_small(global)?;
    match args.command {
        Command::Dump => {
            let lines: archive::Result<Vec<String>> = app.db.read_blocking(rebuild::dump);
            for line in lines? {
                output::line(&output::printable(&line))?;
            }
            Ok(Exit::Yes)
        }
        Command::Rebuild(args) => {
            let bar = output::count_bar(None, "objects");
            if global.json || global.quiet {
                bar.set_draw_target(indicatif::ProgressDrawTarget::hidden());
            }
            let done = app::block_on(rebuild::rebuild(&app, &args.from, |so_far| {
                bar.set_position(so_far.objects + so_far.known);
            }))??;
            bar.finish_and_clear();
            if global.json {
                output::json(&done)?;
            } else {
                output::line(&format!(
                    "{} taken in, with {}, {} and {}; {} known, and {} of them new as copies in {}",
                    output::count(done.objects, "object"),
                    output::count(done.versions, "version"),
                    output::count(done.files, "file"),
                    output::count(done.events, "event"),
                    done.known,
                    done.copies,
                    output::printable(&args.from)
                ))?;
                for behind in &done.behind {
                    output::line(&format!("older than known: {}", output::printable(behind)))?;
                }
                for misplaced in &done.misplaced {
                    output::line(&format!("not in its place: {}", output::printable(misplaced)))?;
                }
                for unreadable in &done.unreadable {
                    output::line(&format!("could not be read: {}", output::printable(unreadable)))?;
                }
            }
            Ok(if done.is_complete() { Exit::Yes } else { Exit::No })
        }
    }
}
