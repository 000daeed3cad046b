//! `accession bench`: measurements with the machine's own floor beside them.

mod identify;

use crate::cli::Global;
use crate::exit::{Exit, Failure};

#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Identification of formats: many small files, and whole large ones, beside siegfried
    Identify(identify::Args),
}

pub fn run(args: Args, global: &Global) -> Result<Exit, Failure> {
    match args.command {
        Command::Identify(args) => identify::run(args, global),
    }
}
