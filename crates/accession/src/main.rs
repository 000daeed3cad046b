//! The binary `accession`: command line, configuration, start and stop.

mod cli;
mod cmd;
mod error_code;
mod exit;
mod logs;
mod output;
mod session;

use std::io::IsTerminal;
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = match cli::Cli::read() {
        Ok(cli) => cli,
        Err(error) => return exit::usage(&error),
    };
    logs::start(&cli.global, told(&cli));
    match cli.command.run(&cli.global) {
        Ok(exit) => exit.into(),
        Err(failure) => failure.report(&cli.global),
    }
}

/// What the command says itself: on a terminal, `ingest` reports how objects failed, and `work`
/// says what became of each.
fn told(cli: &cli::Cli) -> logs::Told {
    let on_terminal = std::io::stderr().is_terminal() && !cli.global.json;
    match &cli.command {
        cli::Command::Demo(_) => logs::Told::Everything,
        cli::Command::Ingest(_) if on_terminal && std::io::stdout().is_terminal() => {
            logs::Told::Errors
        }
        cli::Command::Work(_) if on_terminal && !cli.global.quiet => logs::Told::Errors,
        _ => logs::Told::Nothing,
    }
}
