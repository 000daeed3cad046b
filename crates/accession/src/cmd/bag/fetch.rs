//! `accession bag fetch DIR`

use super::progress::Progress;
use crate::cli::Global;
use crate::error_code::ErrorCode;
use crate::exit::{Exit, Failure};
use crate::output;
use bagit::{FetchOptions, HttpFetcher};
use std::path::PathBuf;

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  accession bag fetch --list bag.tar     # what is to be fetched; works on any bag
  accession bag fetch deposit/           # fetch what is missing, checked by the manifests

The maker of the bag chose the URLs, so addresses that are not public are refused.")]
pub struct Args {
    /// The bag; a directory, if files are to be fetched into it
    bag: PathBuf,
    /// Only list the lines of fetch.txt
    #[arg(long)]
    list: bool,
    /// Fetch from private, loopback and link-local addresses too
    #[arg(long)]
    allow_private: bool,
    /// Refuse files larger than this
    #[arg(long, value_name = "BYTES")]
    max_bytes: Option<u64>,
    /// Files fetched at the same time
    #[arg(short = 'j', long, value_name = "N", default_value_t = 4)]
    jobs: usize,
}

pub fn run(args: Args, global: &Global) -> Result<Exit, Failure> {
    if args.list {
        return list(&args, global);
    }
    if !args.bag.is_dir() {
        let message = format!(
            "{}: only a bag that is a directory can be completed; unpack it first",
            args.bag.display()
        );
        return Err(Failure::refused(ErrorCode::NotADirectory, message));
    }
    let options = FetchOptions {
        file_bytes_max: args.max_bytes,
        workers: args.jobs.max(1),
        ..FetchOptions::default()
    };
    let fetcher = HttpFetcher::new(args.allow_private);
    let bag = super::open(&args.bag).map_err(super::failure)?;
    let mut lines = 0;
    bag.fetch_list(&mut |_| {
        lines += 1;
        Ok(())
    })
    .map_err(super::failure)?;
    let progress = Progress::of_files(Some(lines), &args.bag.display().to_string(), global);
    let report = bagit::fetch(&args.bag, &fetcher, &options, &progress);
    progress.finish();
    let report = report.map_err(super::failure)?;
    if global.json {
        output::json(&report)?;
    } else {
        for problem in &report.problems {
            anstream::eprintln!("error: {}", output::printable(&problem.to_string()));
        }
        output::line(&format!(
            "{} fetched ({}), {} there already, {} failed",
            report.fetched,
            output::size(report.bytes),
            report.present,
            report.failed
        ))?;
    }
    Ok(if report.failed == 0 { Exit::Yes } else { Exit::No })
}

fn list(args: &Args, global: &Global) -> Result<Exit, Failure> {
    let bag = super::open(&args.bag).map_err(super::failure)?;
    let mut lines = Vec::new();
    let mut wrong = None;
    let mut list = if global.json { Some(output::JsonList::begin("files")?) } else { None };
    bag.fetch_list(&mut |line| {
        if let Some(list) = &mut list {
            let json = serde_json::json!({
                "path": line.path, "bytes": line.length, "url": line.url, "line": line.line,
            });
            // A reader that went away ends the list.
            if let Err(error) = list.push(&json) {
                wrong.get_or_insert(error);
            }
        } else {
            let length = line.length.map_or("-".to_owned(), output::size);
            lines.push(vec![line.path, length, line.url]);
        }
        Ok(())
    })
    .map_err(super::failure)?;
    if let Some(error) = wrong {
        return Err(error.into());
    }
    if let Some(list) = list {
        list.end()?;
    } else {
        output::table(&["path", "size", "url"], lines)?;
    }
    Ok(Exit::Yes)
}
