//! `accession completions SHELL`

use crate::cli::Cli;
use crate::exit::{Exit, Failure};
use clap::CommandFactory;
use std::io::Write;

#[derive(clap::Args)]
#[command(
    after_help = "Example:\n  accession completions bash > ~/.local/share/bash-completion/completions/accession"
)]
pub struct Args {
    /// Which shell
    shell: clap_complete::Shell,
}

pub fn run(args: Args) -> Result<Exit, Failure> {
    // The generator panics where its output cannot be written; memory takes everything.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "accession", &mut script);
    let mut out = std::io::stdout().lock();
    out.write_all(&script)?;
    out.flush()?;
    Ok(Exit::Yes)
}
