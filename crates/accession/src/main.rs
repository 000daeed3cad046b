//! The binary `accession`: command line, configuration, start and stop.

mod cli;
mod cmd;
mod exit;
mod logs;
mod output;
mod session;

use clap::Parser;
use std::process::ExitCode;

/// Jobs are made on one thread and dropped on another, which the C library's allocator is slow at.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let cli = match cli::Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return exit::usage(&error),
    };
    logs::start(&cli.global, matches!(cli.command, cli::Command::Demo(_)));
    match cli.command.run(&cli.global) {
        Ok(exit) => exit.into(),
        Err(failure) => failure.report(&cli.global),
    }
}
