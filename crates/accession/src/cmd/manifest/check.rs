//! `accession manifest check`

use super::{open, parse_profile, reading_failed};
use crate::cli::Global;
use crate::error_code::ErrorCode;
use crate::exit::{Exit, Failure};
use crate::output;
use checkm::{Code, Options, Profile, Reader, Report, Severity};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

#[derive(clap::Args)]
#[command(after_help = "Examples:
  accession manifest check batch.checkm
  accession manifest check --profile object *.checkm
  accession manifest check --json deposit.json | jq '.problems[] | select(.severity == \"error\")'
  accession manifest check --follow collection.checkm
  accession manifest check --schema > checkm-json.schema.json
  accession manifest check --codes

Exit status: 0 all are valid; 1 one is not; 2 the request is wrong; 3 a file could not be read.")]
pub struct Args {
    /// The manifests, Checkm or JSON; - is standard input
    #[arg(required_unless_present_any = ["schema", "codes"])]
    manifests: Vec<PathBuf>,
    /// The profile that the manifests must have, or have when they do not say
    #[arg(long, value_parser = parse_profile)]
    profile: Option<Profile>,
    /// How many problems of each kind to show; all are counted
    #[arg(long, default_value_t = 100, value_name = "N")]
    limit: usize,
    /// Read the manifests that `@` rows include too, if they are files beside the manifest or below
    #[arg(long)]
    follow: bool,
    /// Warnings make a manifest invalid too
    #[arg(long)]
    strict: bool,
    /// Print the JSON Schema of JSON manifests
    #[arg(long, conflicts_with_all = ["manifests", "codes"])]
    schema: bool,
    /// Print every code with its meaning
    #[arg(long, conflicts_with = "manifests")]
    codes: bool,
}

pub fn run(args: Args, global: &Global) -> Result<Exit, Failure> {
    if args.schema {
        output::line(checkm::SCHEMA.trim_end())?;
        return Ok(Exit::Yes);
    }
    if args.codes {
        print_codes(global)?;
        return Ok(Exit::Yes);
    }
    let mut exit = Exit::Yes;
    let mut worst = None;
    for path in &args.manifests {
        // One file that cannot be read does not keep the others from being checked.
        match check(path, &args, global) {
            Ok(Exit::Yes) => {}
            Ok(Exit::No) => exit = Exit::No,
            Err(error) if args.manifests.len() == 1 => return Err(error),
            Err(error) => {
                error.report(global);
                worst = worst.max(Some(error.status));
            }
        }
    }
    match worst {
        Some(status) => Err(Failure {
            status,
            code: ErrorCode::SomeUnread.into(),
            message: "some manifests could not be read; see above".to_string(),
        }),
        None => Ok(exit),
    }
}

fn check(path: &Path, args: &Args, global: &Global) -> Result<Exit, Failure> {
    let options = Options { profile: args.profile, problems_max: args.limit, ..Options::default() };
    let failed = |error| reading_failed(path, &error);
    if args.follow {
        return follow(path, &options, args, global);
    }
    let source = open(path, global)?;
    let reader = Reader::new(source, &options).map_err(failed)?;
    let (report, header) = reader.finish_with_header().map_err(failed)?;
    tell(path, &report, header, args, global)
}

/// A report is given for the manifest and for each that it includes.
fn follow(path: &Path, options: &Options, args: &Args, global: &Global) -> Result<Exit, Failure> {
    if path == Path::new("-") {
        let message = "--follow needs a file: what standard input includes is beside no file";
        return Err(Failure::refused(ErrorCode::Follow, message));
    }
    let mut exit = Exit::Yes;
    checkm::follow(path, options, |followed| {
        if tell(&followed.path, &followed.report, followed.header, args, global)? == Exit::No {
            exit = Exit::No;
        }
        Ok(())
    })
    .map_err(|stop| match stop {
        Stop::Read(error) => reading_failed(path, &error),
        Stop::Tell(failure) => failure,
    })?;
    Ok(exit)
}

/// Why following ended early.
enum Stop {
    Read(checkm::Error),
    Tell(Failure),
}

impl From<checkm::Error> for Stop {
    fn from(error: checkm::Error) -> Stop {
        Stop::Read(error)
    }
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Stop {
        Stop::Tell(failure)
    }
}

fn tell(
    path: &Path,
    report: &Report,
    header: Option<checkm::Header>,
    args: &Args,
    global: &Global,
) -> Result<Exit, Failure> {
    let profile = header.map(|header| header.profile);
    let is_valid = report.is_valid() && !(args.strict && report.warnings() > 0);
    if global.json {
        output::json(&as_json(path, report, profile, is_valid))?;
    } else {
        print_report(path, report, profile, is_valid)?;
    }
    Ok(if is_valid { Exit::Yes } else { Exit::No })
}

/// The report for programs, one line for each manifest.
pub fn as_json(path: &Path, report: &Report, profile: Option<Profile>, is_valid: bool) -> Value {
    json!({
        "manifest": path.to_string_lossy(),
        "valid": is_valid,
        "profile": profile.map(Profile::as_str),
        "rows": report.rows(),
        "content_bytes": report.content_bytes(),
        "rows_without_size": report.content_unknown(),
        "errors": report.errors(),
        "warnings": report.warnings(),
        "not_shown": report.not_shown(),
        "counts": report.counts(),
        "problems": report.problems(),
    })
}

/// The report for people: problems by line, then what there is more of, then the answer.
pub fn print_report(
    path: &Path,
    report: &Report,
    profile: Option<Profile>,
    is_valid: bool,
) -> Result<(), Failure> {
    let problems = report.problems();
    if !problems.is_empty() {
        let rows = problems.iter().map(|p| {
            let number = |n: u64| if n == 0 { "-".to_string() } else { n.to_string() };
            vec![
                number(p.line),
                p.severity.to_string(),
                p.code.to_string(),
                p.column.clone().unwrap_or_default(),
                p.message.clone(),
            ]
        });
        output::table(&["line", "severity", "code", "column", "problem"], rows)?;
    }
    for count in report.counts().iter().filter(|count| count.shown < count.count) {
        output::line(&format!(
            "{} more {} of code {} are not shown; --limit shows more",
            count.count - count.shown,
            plural(count.count - count.shown, noun(count.severity)),
            count.code
        ))?;
    }
    let (errors, warnings) = (report.errors(), report.warnings());
    output::line(&output::printable(&format!(
        "{}: {}: {}, {} {}, {}, {errors} {}, {warnings} {}",
        path.display(),
        if is_valid { "valid" } else { "invalid" },
        profile.map_or("not read".to_string(), |p| format!("profile {p}")),
        report.rows(),
        plural(report.rows(), "row"),
        content(report),
        plural(errors, "error"),
        plural(warnings, "warning"),
    )))?;
    Ok(())
}

fn content(report: &Report) -> String {
    let size = output::size(report.content_bytes());
    match report.content_unknown() {
        0 => size,
        n => format!("{size} and {n} {} of unknown size", plural(n, "file")),
    }
}

fn noun(severity: Severity) -> &'static str {
    if severity == Severity::Error { "error" } else { "warning" }
}

fn plural(count: u64, noun: &str) -> String {
    if count == 1 { noun.to_string() } else { format!("{noun}s") }
}

fn print_codes(global: &Global) -> Result<(), Failure> {
    if global.json {
        let codes: Vec<_> = Code::ALL
            .iter()
            .map(|c| json!({"code": c, "severity": c.severity(), "meaning": c.meaning(), "advice": c.advice()}))
            .collect();
        output::json_list("codes", &codes, None)?;
    } else {
        let rows = Code::ALL.iter().map(|c| {
            vec![c.to_string(), c.severity().to_string(), c.meaning().into(), c.advice().into()]
        });
        output::table(&["code", "severity", "meaning", "what to do"], rows)?;
    }
    Ok(())
}
