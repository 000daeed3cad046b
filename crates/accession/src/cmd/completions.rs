//! `accession completions SHELL`

use crate::cli;
use crate::exit::{Exit, Failure};

#[derive(clap::Args)]
#[command(
    after_help = "Example:\n  accession completions bash > ~/.local/share/bash-completion/completions/accession"
)]
pub struct Args {
    /// Which shell
    shell: clap_complete::Shell,
}

pub fn run(args: Args) -> Result<Exit, Failure> {
    clap_complete::generate(args.shell, &mut cli::command(), "accession", &mut std::io::stdout());
    Ok(Exit::Yes)
}
