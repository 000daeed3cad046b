//! `accession bag create DIR`

use super::progress::Progress;
use crate::cli::Global;
use crate::exit::{Exit, Failure};
use crate::output;
use bagit::{Algorithm, Error, Observer, WriteOptions, Written};
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  accession bag create letters/                             # the directory becomes a bag
  accession bag create letters/ --output bags/letters       # a new bag; letters/ stays
  accession bag create letters/ --output letters.tar        # a tar file, written in one pass
  accession bag create letters/ -a sha256 -a sha512 --tag 'Source-Organization=University Library'

The same files and options give the same bag, byte for byte; give --date to fix the day.")]
pub struct Args {
    /// The directory with the files
    directory: PathBuf,
    /// Where the bag goes: a new directory, or a file that ends in .tar (default: in place)
    #[arg(short, long, value_name = "PATH")]
    output: Option<PathBuf>,
    /// An algorithm of the manifests: md5, sha1, sha224, sha256, sha384, sha512, sha512256, blake2b512
    #[arg(short, long = "algorithm", value_name = "NAME", default_value = "sha512")]
    algorithms: Vec<Algorithm>,
    /// A tag of bag-info.txt; may be given many times
    #[arg(short, long = "tag", value_name = "LABEL=VALUE", value_parser = super::parse_tag)]
    tags: Vec<(String, String)>,
    /// The Bagging-Date (default: today, in UTC)
    #[arg(long, value_name = "YYYY-MM-DD", value_parser = parse_date)]
    date: Option<String>,
    /// Threads that compute checksums (default: one for each processor)
    #[arg(short = 'j', long, value_name = "N")]
    jobs: Option<usize>,
}

pub fn run(args: Args, global: &Global) -> Result<Exit, Failure> {
    let mut options = WriteOptions {
        algorithms: args.algorithms.iter().copied().collect(),
        date: Some(args.date.clone().unwrap_or_else(today)),
        agent: Some(concat!("accession ", env!("CARGO_PKG_VERSION")).to_owned()),
        ..WriteOptions::default()
    };
    options.workers = args.jobs.unwrap_or(options.workers).max(1);
    for (label, value) in &args.tags {
        options.tags.push(label, value);
    }
    let name = args.directory.display().to_string();
    let progress = Progress::new(None, &name, global);
    let (place, written) = match &args.output {
        None => (&args.directory, bagit::create_in_place(&args.directory, &options, &progress)),
        Some(output) if output.extension().is_some_and(|e| e == "tar") => {
            (output, create_tar(&args.directory, output, options, &progress))
        }
        Some(output) => (output, bagit::create(&args.directory, output, &options, &progress)),
    };
    progress.finish();
    tell(place, &written.map_err(super::failure)?, global)?;
    Ok(Exit::Yes)
}

pub(super) fn tell(place: &Path, written: &Written, global: &Global) -> Result<(), Failure> {
    if global.json {
        return Ok(output::json(&serde_json::json!({"bag": place, "written": written}))?);
    }
    let algorithms: Vec<_> = written.algorithms.iter().map(|a| a.name()).collect();
    let (files, size) =
        (output::count(written.payload.files, "file"), output::size(written.payload.octets));
    let text = format!("{}: {files}, {size}, {}", place.display(), algorithms.join(" "));
    Ok(output::line(&output::printable(&text))?)
}

/// Writes the bag under a temporary name, so that a half-written one is never taken for whole.
fn create_tar(
    directory: &Path,
    target: &Path,
    options: WriteOptions,
    progress: &dyn Observer,
) -> Result<Written, Error> {
    let about = |e| Error::io(target.display().to_string(), e);
    let base = target.file_stem().map(|s| s.to_string_lossy().into_owned()).unwrap_or_default();
    let partial = target.with_extension("tar.part");
    let result = File::create(&partial).map_err(about).and_then(|file| {
        let writer = BufWriter::with_capacity(1 << 20, file);
        let (writer, written) = bagit::create_tar(directory, writer, &base, options, progress)?;
        let file = writer.into_inner().map_err(|e| about(e.into_error()))?;
        file.sync_all().map_err(about)?;
        std::fs::rename(&partial, target).map_err(about)?;
        Ok(written)
    });
    if result.is_err() {
        // What was written is of no use; that it could not be removed would hide the reason.
        let _ = std::fs::remove_file(&partial);
    }
    result
}

fn parse_date(text: &str) -> Result<String, String> {
    let digits = |range: std::ops::Range<usize>| {
        text.get(range).is_some_and(|part| part.bytes().all(|b| b.is_ascii_digit()))
    };
    let dashes = text.len() == 10 && &text[4..5] == "-" && &text[7..8] == "-";
    if text.is_ascii() && dashes && digits(0..4) && digits(5..7) && digits(8..10) {
        Ok(text.to_owned())
    } else {
        Err("write it as 2026-01-31".into())
    }
}

/// The day by the civil calendar, in UTC.
fn today() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%d").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_have_one_form() {
        assert!(parse_date("2026-01-31").is_ok());
        for bad in ["2026-1-31", "31.01.2026", "2026-01-3é", ""] {
            assert!(parse_date(bad).is_err(), "{bad}");
        }
    }
}
