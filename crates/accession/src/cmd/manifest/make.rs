//! `accession manifest make`

use super::{Format, Output, parse_profile, refuse_mixed_output};
use crate::cli::Global;
use crate::error_code::ErrorCode;
use crate::exit::{Exit, Failure};
use crate::output;
use checkm::{Header, Profile, Scan, ScanError, Scanned, WriteError, Writer};
use indicatif::ProgressBar;
use std::path::PathBuf;

#[derive(Clone, Copy, clap::ValueEnum)]
enum Algorithm {
    Md5,
    Sha1,
    Sha256,
    Sha384,
    Sha512,
}

#[derive(clap::Args)]
#[command(after_help = "Examples:
  accession manifest make photos > photos.checkm
  accession manifest make photos --profile object --base-url https://example.org/photos \\
      --output photos.checkm
  accession manifest make box-17 --profile container --algorithm sha512 --output box-17/mrt-manifest.checkm
  accession manifest make bags --profile container-batch --base-url https://example.org/bags \\
      --output batch.json

The same files give the same manifest.
Exit status: 0 made; 1 something in the directory cannot be listed; 2 the request is wrong; 3 a
file could not be read or written.")]
pub struct Args {
    /// The directory
    dir: PathBuf,
    /// The kind of manifest
    #[arg(long, default_value = "general", value_parser = parse_profile)]
    profile: Profile,
    /// Where the directory can be fetched from; all profiles but general and container need it
    #[arg(long, value_name = "URL")]
    base_url: Option<String>,
    /// The digest algorithm
    #[arg(long, value_enum, default_value_t = Algorithm::Sha256)]
    algorithm: Algorithm,
    /// Leave out when files were modified
    #[arg(long)]
    no_times: bool,
    /// Leave out links, devices, empty directories and names that are not UTF-8, and say so,
    /// instead of failing
    #[arg(long)]
    skip: bool,
    /// What to write (default: what the output's name says, else Checkm)
    #[arg(long, value_enum)]
    to: Option<Format>,
    /// The file to write (default: standard output)
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

enum Stop {
    Scan(ScanError),
    Write(WriteError),
}

impl From<ScanError> for Stop {
    fn from(error: ScanError) -> Stop {
        Stop::Scan(error)
    }
}

#[derive(Default)]
struct Made {
    rows: u64,
    bytes: u64,
    skipped: u64,
}

pub fn run(args: Args, global: &Global) -> Result<Exit, Failure> {
    refuse_mixed_output(global, args.output.as_deref())?;
    if !args.dir.is_dir() {
        let message = format!("{} is not a directory; name one", args.dir.display());
        return Err(Failure::refused(ErrorCode::NotADirectory, message));
    }
    let settings = scan(&args);
    settings.check().map_err(|error| stopped(&args, Stop::Scan(error)))?;
    let format = Format::choose(args.to, args.output.as_deref()).unwrap_or(Format::Checkm);
    let destination = Output::new(args.output.clone())?;
    let mut writer = Writer::new(destination.writer()?, format.into(), Header::new(args.profile))
        .map_err(|error| stopped(&args, Stop::Write(error)))?;
    let bar = if global.quiet { ProgressBar::hidden() } else { output::count_bar(None, "files") };
    let mut made = Made::default();
    let settings = except(settings, &args, &destination);
    let result = settings.run::<Stop>(&args.dir, |scanned| match scanned {
        Scanned::Row(row) => {
            writer.write(&row).map_err(Stop::Write)?;
            made.rows += 1;
            made.bytes += row.size.unwrap_or(0);
            bar.inc(1);
            Ok(())
        }
        Scanned::Skipped(error) if args.skip => {
            made.skipped += 1;
            if !global.quiet {
                bar.suspend(|| {
                    anstream::eprintln!("skipped: {}", output::printable(&error.to_string()))
                });
            }
            Ok(())
        }
        Scanned::Skipped(error) => Err(Stop::Scan(error)),
    });
    bar.finish_and_clear();
    result.map_err(|stop| stopped(&args, stop))?;
    writer.finish().map_err(|error| stopped(&args, Stop::Write(error)))?;
    destination.keep()?;
    report(&args, global, &made)?;
    Ok(Exit::Yes)
}

/// The manifest does not list itself, nor the passing name under which it is being written.
fn except(mut settings: Scan, args: &Args, destination: &Output) -> Scan {
    settings.except.extend(args.output.clone());
    settings.except.extend(destination.temporary.as_ref().map(|file| file.path().to_path_buf()));
    settings
}

fn scan(args: &Args) -> Scan {
    Scan {
        profile: args.profile,
        algorithm: match args.algorithm {
            Algorithm::Md5 => checkm::Algorithm::Md5,
            Algorithm::Sha1 => checkm::Algorithm::Sha1,
            Algorithm::Sha256 => checkm::Algorithm::Sha256,
            Algorithm::Sha384 => checkm::Algorithm::Sha384,
            Algorithm::Sha512 => checkm::Algorithm::Sha512,
        },
        base_url: args.base_url.clone(),
        has_times: !args.no_times,
        except: Vec::new(),
        threads: std::thread::available_parallelism().map_or(1, usize::from),
    }
}

fn stopped(args: &Args, stop: Stop) -> Failure {
    match stop {
        Stop::Scan(error @ ScanError::NoBaseUrl(_)) => {
            Failure::refused(ErrorCode::BaseUrl, format!("{error}, with --base-url"))
        }
        Stop::Scan(error @ ScanError::BadBaseUrl { .. }) => {
            Failure::refused(ErrorCode::BaseUrl, error.to_string())
        }
        Stop::Scan(error @ (ScanError::NotUtf8(_) | ScanError::NotFile { .. })) => Failure {
            status: 1,
            code: ErrorCode::NotListable.into(),
            message: format!("{error}, with --skip"),
        },
        Stop::Scan(error) => Failure::unable(ErrorCode::Read, error.to_string()),
        Stop::Write(error @ WriteError::Write(_)) => {
            Failure::unable(ErrorCode::Write, error.to_string())
        }
        Stop::Write(error) => Failure {
            status: 1,
            code: ErrorCode::NotListable.into(),
            message: format!("{}: {error}", args.dir.display()),
        },
    }
}

fn report(args: &Args, global: &Global, made: &Made) -> Result<(), Failure> {
    if global.json {
        output::json(&serde_json::json!({
            "output": args.output, "rows": made.rows, "bytes": made.bytes, "skipped": made.skipped,
        }))?;
    } else if let Some(path) = &args.output {
        let (rows, size) = (output::count(made.rows, "row"), output::size(made.bytes));
        let text = format!("{}: {rows}, {size}, {} skipped", path.display(), made.skipped);
        output::line(&output::printable(&text))?;
    }
    Ok(())
}
