//! `accession bench`: measurements with the machine's own floor beside them.

mod bag;

use crate::cli::Global;
use crate::exit::{Exit, Failure};

#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Validation of bags: many small files, few large ones, as directory and as tar
    Bag(bag::Args),
}

pub fn run(args: Args, global: &Global) -> Result<Exit, Failure> {
    match args.command {
        Command::Bag(args) => bag::run(args, global),
    }
}
