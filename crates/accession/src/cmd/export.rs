//! `accession export premis OBJECT`: what is known of an object, for others.

use super::app;
use crate::cli::Global;
use crate::exit::{Exit, Failure};
use archive::premis::Format;
use archive::registry::premis::{export, locate};
use clap::Subcommand;
use std::io::{BufWriter, Write};
use std::path::PathBuf;

#[derive(clap::Args)]
#[command(after_help = "Examples:
  accession export premis ark:/99999/fk4c9k31
  accession export premis box-17 --format json-ld --output box-17.jsonld")]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// PREMIS 3.0: the object, its versions, files, events and agents
    #[command(after_help = "Examples:
  accession export premis ark:/99999/fk4c9k31
  accession export premis box-17 --format json-ld --output box-17.jsonld")]
    Premis(Premis),
}

#[derive(clap::Args)]
struct Premis {
    /// The object's identifier or local identifier
    object: String,
    /// xml or json-ld
    #[arg(long, default_value = "xml", value_parser = parse_format)]
    format: Format,
    /// Where to write it (default: standard output)
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

fn parse_format(text: &str) -> Result<Format, String> {
    match text {
        "xml" => Ok(Format::Xml),
        "json-ld" => Ok(Format::JsonLd),
        _ => Err("it is xml or json-ld".to_string()),
    }
}

pub fn run(args: Args, global: &Global) -> Result<Exit, Failure> {
    let Command::Premis(args) = args.command;
    let (app, _) = app::open_small(global)?;
    let format = if global.json { Format::JsonLd } else { args.format };
    // A request that cannot be leaves what has the output's name alone.
    super::objects::find(&app, &args.object)?;
    let out: Box<dyn Write> = match &args.output {
        Some(path) => Box::new(std::fs::File::create(path).map_err(|e| {
            Failure::unable(
                archive::ErrorCode::Io,
                format!("{} cannot be written: {e}", path.display()),
            )
        })?),
        None => Box::new(std::io::stdout().lock()),
    };
    let stored = app::block_on(locate(&app, &args.object))??;
    export(&app.db, &args.object, format, &stored, BufWriter::new(out))?.flush()?;
    Ok(Exit::Yes)
}
