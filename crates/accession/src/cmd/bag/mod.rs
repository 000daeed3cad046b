//! `accession bag`: bags as depositors send them, by themselves, without an archive behind.

mod create;
mod fetch;
mod info;
mod manifest;
mod progress;
mod validate;

use crate::cli::Global;
use crate::error_code::ErrorCode;
use crate::exit::{Code, Exit, Failure};
use bagit::{Bag, Error};
use std::path::Path;

#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Check that bags are complete and that every checksum is right
    Validate(validate::Args),
    /// Make a bag of a directory: in place, as a new directory, or as a tar file
    Create(create::Args),
    /// Show what a bag says about itself
    Info(info::Args),
    /// Write the manifests of a bag anew, after its files have changed
    Manifest(manifest::Args),
    /// List or fetch the files that a bag leaves to be fetched
    Fetch(fetch::Args),
}

pub fn run(args: Args, global: &Global) -> Result<Exit, Failure> {
    match args.command {
        Command::Validate(args) => validate::run(args, global),
        Command::Create(args) => create::run(args, global),
        Command::Info(args) => info::run(args, global),
        Command::Manifest(args) => manifest::run(args, global),
        Command::Fetch(args) => fetch::run(args, global),
    }
}

/// Opens what a person names; `-` is standard input.
fn open(path: &Path) -> Result<Bag, Error> {
    if path == Path::new("-") {
        return Bag::from_reader(std::io::stdin(), "standard input");
    }
    Bag::open(path)
}

/// The stable code and the message of an error.
fn failure_text(error: &Error) -> (Code, String) {
    let code = match error {
        Error::Refused(_) => queue::ErrorCode::Refused.into(),
        Error::Profile { .. } => ErrorCode::Profile.into(),
        Error::UnknownContainer(_) => ErrorCode::NotABag.into(),
        Error::StreamSpent(_) => ErrorCode::Stream.into(),
        Error::Limit { .. } => ErrorCode::Limit.into(),
        Error::Archive { .. } => ErrorCode::ArchiveDamaged.into(),
        Error::Fetch { .. } => ErrorCode::Fetch.into(),
        _ => archive::ErrorCode::Io.into(),
    };
    (code, error.to_string())
}

fn failure(error: Error) -> Failure {
    let (code, message) = failure_text(&error);
    match error {
        Error::Fetch { .. } | Error::Io { .. } | Error::Stopped => Failure::unable(code, message),
        _ => Failure::refused(code, message),
    }
}

/// Reads `Label: value` or `Label=value`.
fn parse_tag(text: &str) -> Result<(String, String), String> {
    let at = text.find([':', '=']).ok_or("write it as LABEL=VALUE")?;
    let (label, value) = (text[..at].trim(), text[at + 1..].trim());
    if label.is_empty() {
        return Err("the label before the '=' is empty".into());
    }
    Ok((label.to_owned(), value.to_owned()))
}
