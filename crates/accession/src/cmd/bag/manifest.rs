//! `accession bag manifest DIR…`

use super::progress::{Progress, announced_bytes};
use crate::cli::Global;
use crate::exit::{Exit, Failure};
use bagit::{Algorithm, UpdateOptions};
use std::path::PathBuf;

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  accession bag manifest deposit/                 # after files were changed on purpose
  accession bag manifest --tags-only deposit/     # after bag-info.txt was edited
  accession bag manifest -a sha512 deposit/       # replace the manifests by those of sha512

Whatever the files are now becomes what the manifests say. Validate first if in doubt.")]
pub struct Args {
    /// Bags that are directories
    #[arg(required = true, value_name = "DIR")]
    bags: Vec<PathBuf>,
    /// The algorithms afterwards (default: those that the bag has)
    #[arg(short, long = "algorithm", value_name = "NAME")]
    algorithms: Vec<Algorithm>,
    /// Leave the payload manifests as they are
    #[arg(long, conflicts_with = "algorithms")]
    tags_only: bool,
    /// Threads that compute checksums (default: one for each processor)
    #[arg(short = 'j', long, value_name = "N")]
    jobs: Option<usize>,
}

pub fn run(args: Args, global: &Global) -> Result<Exit, Failure> {
    let mut options = UpdateOptions { tags_only: args.tags_only, ..UpdateOptions::default() };
    options.workers = args.jobs.unwrap_or(options.workers).max(1);
    if !args.algorithms.is_empty() {
        options.algorithms = Some(args.algorithms.iter().copied().collect());
    }
    for path in &args.bags {
        let progress = Progress::new(announced_bytes(path), &path.display().to_string(), global);
        let written = bagit::update(path, &options, &progress);
        progress.finish();
        super::create::tell(path, &written.map_err(super::failure)?, global)?;
    }
    Ok(Exit::Yes)
}
