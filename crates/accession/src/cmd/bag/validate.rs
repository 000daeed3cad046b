//! `accession bag validate BAG…`

use super::progress::{Progress, announced_bytes};
use crate::cli::Global;
use crate::error_code::ErrorCode;
use crate::exit::{Exit, Failure};
use crate::output;
use bagit::{Bag, Catalog, Error, Limits, Mode, Options, Problem, Profile, Report, Severity};
use std::path::{Path, PathBuf};

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  accession bag validate deposit/             # a directory
  accession bag validate *.tar *.zip          # many archives, without unpacking them
  accession bag validate --fast deposit/      # only the number of files and bytes
  ssh host cat bag.tar.gz | accession bag validate -
  accession bag validate --profile btr.json bag.tar

Exit status: 0 all are valid, 1 some are not, 2 wrong request, 3 some could not be read.")]
pub struct Args {
    /// Directories, tar (also .gz, .bz2, .zst) or zip files; `-` is standard input
    #[arg(required = true, value_name = "BAG")]
    bags: Vec<PathBuf>,
    /// Only compare Payload-Oxum with the sizes of the files
    #[arg(long, conflicts_with = "complete")]
    fast: bool,
    /// Only check that all files are there and none is extra; compute no checksums
    #[arg(long)]
    complete: bool,
    /// A BagIt profile that the bags must fit: a file, or the URL of a copy in --profiles
    #[arg(long, value_name = "FILE|URL")]
    profile: Option<String>,
    /// A directory of profiles; each bag is checked with the one it names
    #[arg(long, value_name = "DIR")]
    profiles: Option<PathBuf>,
    /// Threads that compute checksums (default: one for each processor)
    #[arg(short = 'j', long, value_name = "N")]
    jobs: Option<usize>,
    /// List at most so many errors and so many warnings for each bag
    #[arg(long, value_name = "N", default_value_t = 100)]
    max_problems: usize,
    /// Refuse bags with more bytes than this
    #[arg(long, value_name = "BYTES")]
    max_bytes: Option<u64>,
    /// Refuse archives that expand more than this many times; 0 for no limit
    #[arg(long, value_name = "TIMES", default_value_t = 1000)]
    max_ratio: u64,
}

enum Outcome {
    Valid,
    Invalid,
    Unread,
}

pub fn run(args: Args, global: &Global) -> Result<Exit, Failure> {
    let catalog = match &args.profiles {
        Some(directory) => Catalog::open(directory).map_err(super::failure)?,
        None => Catalog::default(),
    };
    let options = options(&args, &catalog)?;
    let mut outcomes = Vec::new();
    let mut rows = Vec::new();
    for path in &args.bags {
        let result = one(path, &options, &catalog, args.profile.is_none(), global);
        outcomes.push(tell(path, &result, global)?);
        rows.push(row(path, &result));
    }
    if !global.json {
        output::table(&["bag", "result", "files", "size", "errors", "warnings"], rows)?;
    }
    let unread = outcomes.iter().filter(|o| matches!(o, Outcome::Unread)).count();
    if unread > 0 {
        let message = format!("{unread} of {} bags could not be read; see above", args.bags.len());
        return Err(Failure::unable(ErrorCode::Unread, message));
    }
    let all_valid = outcomes.iter().all(|o| matches!(o, Outcome::Valid));
    Ok(if all_valid { Exit::Yes } else { Exit::No })
}

fn options(args: &Args, catalog: &Catalog) -> Result<Options, Failure> {
    let mode = match (args.fast, args.complete) {
        (true, _) => Mode::Fast,
        (_, true) => Mode::Completeness,
        _ => Mode::Full,
    };
    let profile = match &args.profile {
        None => None,
        Some(name) if Path::new(name).exists() => {
            Some(Profile::open(name).map_err(super::failure)?)
        }
        Some(name) => Some(catalog.get(name).cloned().ok_or_else(|| {
            let message =
                format!("profile {name}: neither a file nor in the directory of --profiles");
            Failure::refused(ErrorCode::Profile, message)
        })?),
    };
    let ratio_max = Some(args.max_ratio).filter(|ratio| *ratio > 0);
    let limits = Limits { bytes_max: args.max_bytes, ratio_max, ..Limits::default() };
    let mut options = Options { mode, profile, limits, ..Options::default() };
    options.problems_max = args.max_problems;
    options.workers = args.jobs.unwrap_or(options.workers).max(1);
    Ok(options)
}

fn one(
    path: &Path,
    options: &Options,
    catalog: &Catalog,
    by_its_own_profile: bool,
    global: &Global,
) -> Result<Report, Error> {
    let bag = super::open(path)?;
    let mut options = options.clone();
    if by_its_own_profile && catalog.identifiers().next().is_some() && bag.can_reread() {
        options.profile = named_profile(&bag, catalog)?;
    }
    let progress = Progress::new(announced_bytes(path), &path.display().to_string(), global);
    let report = bag.validate_observed(&options, &progress);
    progress.finish();
    report
}

/// The known copy of the profile that the bag names.
fn named_profile(bag: &Bag, catalog: &Catalog) -> Result<Option<Profile>, Error> {
    let tags = bag.summary()?.tags;
    let found = tags.values("BagIt-Profile-Identifier").find_map(|url| catalog.get(url));
    Ok(found.cloned())
}

/// Prints what was found: JSON for programs, lines on standard error for people.
fn tell(path: &Path, result: &Result<Report, Error>, global: &Global) -> Result<Outcome, Failure> {
    let outcome = match result {
        Ok(report) if report.valid => Outcome::Valid,
        Ok(_) | Err(Error::Archive { .. } | Error::UnknownContainer(_) | Error::Limit { .. }) => {
            Outcome::Invalid
        }
        Err(_) => Outcome::Unread,
    };
    match result {
        Ok(report) if global.json => output::json(report)?,
        Ok(report) => {
            for problem in &report.problems {
                if !(global.quiet && problem.severity == Severity::Warning) {
                    tell_problem(path, problem);
                }
            }
            if report.truncated {
                anstream::eprintln!(
                    "{}: more problems than are listed: {} errors and {} warnings in all",
                    output::printable(&path.display().to_string()),
                    report.errors,
                    report.warnings
                );
            }
        }
        Err(error) => {
            let failure = super::failure_text(error);
            if global.json {
                let value = serde_json::json!({
                    "bag": path.display().to_string(),
                    "valid": matches!(outcome, Outcome::Invalid).then_some(false),
                    "error": {"code": failure.0.as_str(), "message": failure.1},
                });
                output::json(&value)?;
            }
            let red = anstyle::AnsiColor::Red.on_default().bold();
            anstream::eprintln!(
                "{red}error{red:#}: {} [{}]",
                output::printable(&failure.1),
                failure.0
            );
        }
    }
    Ok(outcome)
}

fn tell_problem(path: &Path, problem: &Problem) {
    let (word, colour) = match problem.severity {
        Severity::Error => ("error", anstyle::AnsiColor::Red),
        Severity::Warning => ("warning", anstyle::AnsiColor::Yellow),
    };
    let style = colour.on_default().bold();
    let text = format!("{}: {problem}", path.display());
    anstream::eprintln!("{style}{word}{style:#}: {}", output::printable(&text));
}

fn row(path: &Path, result: &Result<Report, Error>) -> Vec<String> {
    let name = path.display().to_string();
    match result {
        Ok(report) => vec![
            name,
            if report.valid { "valid" } else { "invalid" }.into(),
            report.payload.files.to_string(),
            output::size(report.payload.octets),
            report.errors.to_string(),
            report.warnings.to_string(),
        ],
        Err(error) => {
            let dash = || "-".to_owned();
            let word = match error {
                Error::Limit { .. } => "refused",
                _ => "unreadable",
            };
            vec![name, word.into(), dash(), dash(), dash(), dash()]
        }
    }
}
