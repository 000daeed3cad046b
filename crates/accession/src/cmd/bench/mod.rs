//! `accession bench`: measurements with the machine's own floor beside them.

mod ocfl;

use crate::cli::Global;
use crate::exit::{Exit, Failure};

#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Reading and writing of large OCFL inventories, and the memory they take
    Ocfl(ocfl::Args),
}

pub fn run(args: Args, global: &Global) -> Result<Exit, Failure> {
    match args.command {
        Command::Ocfl(args) => ocfl::run(args, global),
    }
}
