//! `accession completions SHELL`

use crate::cli::Cli;
use crate::exit::{Exit, Failure};
use clap::CommandFactory;

#[derive(clap::Args)]
#[command(
    after_help = "Example:\n  accession completions bash > ~/.local/share/bash-completion/completions/accession"
)]
pub struct Args {
    /// Which shell
    shell: clap_complete::Shell,
}

pub fn run(args: Args) -> Result<Exit, Failure> {
    clap_complete::generate(args.shell, &mut Cli::command(), "accession", &mut std::io::stdout());
    Ok(Exit::Yes)
}
