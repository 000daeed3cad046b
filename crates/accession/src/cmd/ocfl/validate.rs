//! `accession ocfl validate`.

use super::named::{Naming, address, store_address};
use super::{failure, open_store, until_interrupted};
use crate::cli::Global;
use crate::error_code::ErrorCode;
use crate::exit::{Exit, Failure};
use crate::output;
use ocfl::{Findings, StorageRoot, Validation};
use serde_json::json;
use std::sync::Arc;
use store::{ListOptions, Store};

#[derive(clap::Args)]
#[command(after_help = "Examples:
  accession ocfl validate /srv/archive                     # all of a root
  accession ocfl validate /srv/archive ark:/12345/bcd987   # one object
  accession ocfl validate --store main box-17              # one object of a store
  accession ocfl validate /srv/archive --no-fixity         # without reading content
  accession ocfl validate /srv/archive/3c0/ff4/240/3c0ff42  # an object by itself
  accession ocfl validate --object /srv/found/box-17       # also without its declaration

Findings have the codes of https://ocfl.io/1.1/spec/validation-codes.html. The exit status is 0
if everything is valid (there may be warnings), 1 if something is not, and 3 if something could not
be checked and nothing is known to be wrong.")]
pub struct Args {
    /// A storage root or an object by itself (a directory, s3://bucket/prefix or a store's name);
    /// then, to validate only some objects of the root, their identifiers or local identifiers
    #[arg(required_unless_present = "store", value_name = "PLACE [OBJECT]")]
    names: Vec<String>,
    #[command(flatten)]
    naming: Naming,
    /// The place is an object, whatever is in it
    #[arg(long, conflicts_with_all = ["store", "path"])]
    object: bool,
    /// Do not read content to compare its digests
    #[arg(long)]
    no_fixity: bool,
    /// Read so many files at once
    #[arg(long, default_value_t = 8, value_name = "COUNT")]
    parallel: usize,
}

/// What was validated, and what was found.
#[derive(Default)]
struct Outcome {
    findings: Findings,
    objects: u64,
    invalid: u64,
    unchecked: u64,
    /// What ended the validation before all of it was done.
    ended: Option<Failure>,
}

impl Outcome {
    /// Counts an object, by what was found in it.
    fn count(&mut self, findings: &Findings) {
        self.objects += 1;
        self.invalid += u64::from(findings.has_errors());
        self.unchecked += u64::from(!findings.has_errors() && !findings.is_valid());
    }
}

pub async fn run(args: Args, global: &Global) -> Result<Exit, Failure> {
    let (place, ids) = match (&args.naming.store, args.names.as_slice()) {
        (Some(store), ids) => (store_address(store, global)?, ids),
        (None, [place, ids @ ..]) => (address(place, global), ids),
        (None, []) => {
            return Err(Failure::refused(ErrorCode::Usage, "name a storage root or an object"));
        }
    };
    if args.object && !ids.is_empty() {
        return Err(Failure::refused(
            ErrorCode::Usage,
            "--object takes one place and no identifiers",
        ));
    }
    let store = open_store(&place, false).await?;
    let bar = match global.quiet {
        true => indicatif::ProgressBar::hidden(),
        false => output::bytes_bar(None, "validating"),
    };
    let ticking = bar.clone();
    let validation = Validation {
        fixity: !args.no_fixity,
        parallel: args.parallel.clamp(1, 256),
        progress: Some(Arc::new(move |_, bytes| ticking.inc(bytes))),
        ..Validation::default()
    };
    let outcome = until_interrupted(validate(store, ids, &args, &validation, global)).await?;
    bar.finish_and_clear();
    report(&outcome, global)?;
    let unchecked = outcome.findings.unchecked_count();
    match outcome.ended {
        Some(failure) => Err(failure),
        None if outcome.findings.has_errors() => Ok(Exit::No),
        None if unchecked > 0 => {
            let places = output::count(unchecked, "place");
            let message = format!(
                "{places} could not be checked; see above what prevents it, then validate again"
            );
            Err(Failure::unable(ErrorCode::Unchecked, message))
        }
        None => Ok(Exit::Yes),
    }
}

async fn validate(
    store: Arc<dyn Store>,
    ids: &[String],
    args: &Args,
    validation: &Validation,
    global: &Global,
) -> Result<Outcome, Failure> {
    let mut outcome = Outcome::default();
    if args.object || is_object(&store).await? {
        let findings = ocfl::validate_object(store, "", validation).await.map_err(failure)?;
        outcome.count(&findings);
        outcome.findings = findings;
        return Ok(outcome);
    }
    if ids.is_empty() {
        let report = ocfl::validate_root(store, validation).await.map_err(failure)?;
        return Ok(Outcome {
            findings: report.findings,
            objects: report.objects,
            invalid: report.objects_invalid,
            unchecked: report.objects_unchecked,
            ended: report.ended.map(failure),
        });
    }
    let root = StorageRoot::open(store.clone()).await.map_err(failure)?;
    for id in ids {
        let path = match args.naming.path {
            true => id.trim_matches('/').to_owned(),
            false => args.naming.place_of(&root, id, global).await?,
        };
        match ocfl::validate_object(store.clone(), &path, validation).await {
            Ok(findings) => {
                outcome.count(&findings);
                outcome.findings.merge(findings, &path);
            }
            Err(error) => {
                outcome.ended = Some(failure(error));
                break;
            }
        }
    }
    Ok(outcome)
}

/// Whether the place is an object by itself, and no storage root.
async fn is_object(store: &Arc<dyn Store>) -> Result<bool, Failure> {
    let options = ListOptions { recursive: false, ..ListOptions::default() };
    let page = store.list("", &options).await.map_err(|error| failure(error.into()))?;
    let has = |start: &str| page.entries.iter().any(|entry| entry.key.starts_with(start));
    Ok(has("0=ocfl_object_"))
}

fn report(outcome: &Outcome, global: &Global) -> Result<(), Failure> {
    let findings = &outcome.findings;
    if global.json {
        for finding in findings.iter() {
            output::json(&json!({
                "code": finding.code.as_str(),
                "level": if finding.code.is_error() { "error" } else { "warning" },
                "place": finding.place,
                "message": finding.message,
            }))?;
        }
        for unchecked in findings.unchecked() {
            output::json(&json!({
                "code": "unchecked",
                "level": "unchecked",
                "place": unchecked.place,
                "message": unchecked.why,
            }))?;
        }
        let counts = findings.counts().iter().map(|(code, count)| (code.as_str(), *count));
        let counts: std::collections::BTreeMap<&str, u64> = counts.collect();
        output::json(&json!({
            "valid": findings.is_valid() && outcome.ended.is_none(),
            "objects": outcome.objects,
            "invalid": outcome.invalid,
            "unchecked": outcome.unchecked,
            "places_unchecked": findings.unchecked_count(),
            "counts": counts,
        }))?;
        return Ok(());
    }
    if !findings.is_empty() {
        let rows = findings.iter().map(|finding| {
            vec![finding.code.to_string(), finding.place.clone(), finding.message.clone()]
        });
        let unchecked = findings.unchecked().map(|unchecked| {
            let why = format!("it could not be checked: {}", unchecked.why);
            vec!["?".to_owned(), unchecked.place.clone(), why]
        });
        let rows = rows.chain(unchecked);
        output::table(&["code", "place", "finding"], rows)?;
        for (code, count) in findings.counts() {
            if *count > Findings::KEPT_PER_CODE {
                let more = count - Findings::KEPT_PER_CODE;
                output::line(&format!("{code}: {more} more of these"))?;
            }
        }
    }
    let kept = findings.unchecked().count() as u64;
    if findings.unchecked_count() > kept {
        let more = findings.unchecked_count() - kept;
        output::line(&format!("{more} more could not be checked"))?;
    }
    let verdict = match (findings.has_errors(), findings.is_valid() && outcome.ended.is_none()) {
        (true, _) => "not valid",
        (false, true) => "valid",
        (false, false) => "not checked in full",
    };
    let mut line = format!(
        "{verdict}: {}, {} with errors",
        output::count(outcome.objects, "object"),
        outcome.invalid
    );
    if outcome.unchecked > 0 {
        line.push_str(&format!(", {} not checked in full", outcome.unchecked));
    }
    output::line(&line)?;
    Ok(())
}
