//! `accession manifest convert`

use super::{Format, Output, check, open, parse_profile, reading_failed, refuse_mixed_output};
use crate::cli::Global;
use crate::error_code::ErrorCode;
use crate::exit::{Exit, Failure};
use crate::output;
use checkm::{Header, Options, Profile, Reader, WriteError, Writer};
use std::io::Write;
use std::path::PathBuf;

#[derive(clap::Args)]
#[command(after_help = "Examples:
  accession manifest convert batch.checkm --output batch.json
  accession manifest convert batch.json --to checkm > batch.checkm
  accession manifest convert list.checkm --profile object --drop --output object.checkm

Nothing is written under the name of the output unless the whole manifest is valid.
Exit status: 0 converted; 1 the manifest is invalid or cannot be said in the other form; 2 the
request is wrong; 3 a file could not be read or written.")]
pub struct Args {
    /// The manifest, Checkm or JSON; - is standard input
    manifest: PathBuf,
    /// What to write (default: what the output's name says, else the other one)
    #[arg(long, value_enum)]
    to: Option<Format>,
    /// The profile to write (default: the same)
    #[arg(long, value_parser = parse_profile)]
    profile: Option<Profile>,
    /// Leave out values that the profile has no column for
    #[arg(long)]
    drop: bool,
    /// The file to write (default: standard output)
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

type AnyWriter = Writer<Box<dyn Write>>;

pub fn run(args: Args, global: &Global) -> Result<Exit, Failure> {
    refuse_mixed_output(global, args.output.as_deref())?;
    let source = open(&args.manifest, global)?;
    let reader = Reader::new(source, &Options::default())
        .map_err(|error| reading_failed(&args.manifest, &error))?;
    let format = Format::choose(args.to, args.output.as_deref()).map_or_else(
        || match reader.format() {
            checkm::Format::Checkm => checkm::Format::Json,
            checkm::Format::Json => checkm::Format::Checkm,
        },
        checkm::Format::from,
    );
    let destination = Output::new(args.output.clone())?;
    let mut writer: Option<AnyWriter> = None;
    let mut source_profile = None;
    let result = reader.for_each::<WriteError>(|row, header| {
        source_profile = Some(header.profile);
        if writer.is_none() {
            writer = Some(begin(&destination, format, header, &args)?);
        }
        writer.as_mut().map_or(Ok(()), |writer| writer.write(row))
    });
    let report = match result {
        Ok(report) => report,
        Err(error) => return refused(&args, &error),
    };
    if !report.is_valid() {
        return print_invalid(&args, global, &report, source_profile);
    }
    // A manifest that is meant to be empty stays one.
    let writer = match writer {
        Some(writer) => Ok(writer),
        None => {
            let profile = args.profile.unwrap_or(Profile::General);
            destination.writer().and_then(|out| {
                Writer::new(out, format, Header::new(profile)).map_err(|e| write_failed(&e))
            })
        }
    }?;
    let rows = writer.rows();
    writer.finish().map_err(|error| write_failed(&error))?;
    destination.keep()?;
    if global.json {
        output::json(&serde_json::json!({"output": args.output, "rows": rows}))?;
    } else if let Some(path) = &args.output {
        output::line(&output::printable(&format!("{}: {rows} rows", path.display())))?;
    }
    Ok(Exit::Yes)
}

fn begin(
    destination: &Output,
    format: checkm::Format,
    header: &Header,
    args: &Args,
) -> Result<AnyWriter, WriteError> {
    let header = match args.profile {
        Some(profile) if profile != header.profile => Header::new(profile),
        _ => header.clone(),
    };
    let out = destination.writer().map_err(|e| std::io::Error::other(e.message))?;
    let writer = Writer::new(out, format, header)?;
    Ok(if args.drop { writer.dropping() } else { writer })
}

fn refused(args: &Args, error: &WriteError) -> Result<Exit, Failure> {
    match error {
        WriteError::Read(error) => Err(reading_failed(&args.manifest, error)),
        WriteError::Write(_) => Err(write_failed(error)),
        // It was tried, and the answer is no.
        other => Err(Failure {
            status: 1,
            code: ErrorCode::NotConvertible.into(),
            message: format!("{}: {other}", args.manifest.display()),
        }),
    }
}

fn write_failed(error: &WriteError) -> Failure {
    Failure::unable(ErrorCode::Write, error.to_string())
}

fn print_invalid(
    args: &Args,
    global: &Global,
    report: &checkm::Report,
    profile: Option<Profile>,
) -> Result<Exit, Failure> {
    if args.output.is_none() {
        // Rows have already gone to standard output, so its reader must get an error.
        return Err(Failure {
            status: 1,
            code: archive::ErrorCode::Invalid.into(),
            message: format!(
                "{}: {} errors, so what was printed is not to be used; see accession manifest check",
                args.manifest.display(),
                report.errors()
            ),
        });
    }
    if global.json {
        output::json(&check::as_json(&args.manifest, report, profile, false))?;
    } else {
        check::print_report(&args.manifest, report, profile, false)?;
    }
    Ok(Exit::No)
}
