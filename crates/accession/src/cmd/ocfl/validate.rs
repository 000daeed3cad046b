//! `accession ocfl validate`.

use super::named::{Naming, address, store_address};
use super::{failure, open_store, until_interrupted};
use crate::cli::Global;
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

Findings have the codes of https://ocfl.io/1.1/spec/validation-codes.html. The exit status is 0
if everything is valid (there may be warnings), 1 if not.")]
pub struct Args {
    /// A storage root or an object by itself (a directory, s3://bucket/prefix or a store's name);
    /// then, to validate only some objects of the root, their identifiers or local identifiers
    #[arg(required_unless_present = "store", value_name = "PLACE [OBJECT]")]
    names: Vec<String>,
    #[command(flatten)]
    naming: Naming,
    /// Do not read content to compare its digests
    #[arg(long)]
    no_fixity: bool,
    /// Read so many files at once
    #[arg(long, default_value_t = 8, value_name = "COUNT")]
    parallel: usize,
}

/// What was validated, and what was found.
struct Outcome {
    findings: Findings,
    objects: u64,
    invalid: u64,
}

pub async fn run(args: Args, global: &Global) -> Result<Exit, Failure> {
    let (place, ids) = match (&args.naming.store, args.names.as_slice()) {
        (Some(store), ids) => (store_address(store, global)?, ids),
        (None, [place, ids @ ..]) => (address(place, global), ids),
        (None, []) => return Err(Failure::refused("usage", "name a storage root or an object")),
    };
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
    let outcome =
        until_interrupted(validate(store, ids, &args.naming, &validation, global)).await?;
    bar.finish_and_clear();
    report(&outcome, global)?;
    Ok(if outcome.findings.is_valid() { Exit::Yes } else { Exit::No })
}

async fn validate(
    store: Arc<dyn Store>,
    ids: &[String],
    naming: &Naming,
    validation: &Validation,
    global: &Global,
) -> Result<Outcome, Failure> {
    if is_object(&store).await? {
        let findings = ocfl::validate_object(store, "", validation).await.map_err(failure)?;
        let invalid = u64::from(!findings.is_valid());
        return Ok(Outcome { findings, objects: 1, invalid });
    }
    if ids.is_empty() {
        let report = ocfl::validate_root(store, validation).await.map_err(failure)?;
        let (objects, invalid) = (report.objects, report.objects_invalid);
        return Ok(Outcome { findings: report.findings, objects, invalid });
    }
    let root = StorageRoot::open(store.clone()).await.map_err(failure)?;
    let mut outcome = Outcome { findings: Findings::default(), objects: 0, invalid: 0 };
    for id in ids {
        let path = match naming.path {
            true => id.trim_matches('/').to_owned(),
            false => naming.place_of(&root, id, global).await?,
        };
        let findings = ocfl::validate_object(store.clone(), &path, validation).await;
        let findings = findings.map_err(failure)?;
        outcome.objects += 1;
        outcome.invalid += u64::from(!findings.is_valid());
        outcome.findings.merge(findings, &path);
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
        let counts = findings.counts().iter().map(|(code, count)| (code.as_str(), *count));
        let counts: std::collections::BTreeMap<&str, u64> = counts.collect();
        output::json(&json!({
            "valid": findings.is_valid(),
            "objects": outcome.objects,
            "invalid": outcome.invalid,
            "counts": counts,
        }))?;
        return Ok(());
    }
    if !findings.is_empty() {
        let rows = findings.iter().map(|finding| {
            vec![finding.code.to_string(), finding.place.clone(), finding.message.clone()]
        });
        output::table(&["code", "place", "finding"], rows)?;
        for (code, count) in findings.counts() {
            if *count > Findings::KEPT_PER_CODE {
                let more = count - Findings::KEPT_PER_CODE;
                output::line(&format!("{code}: {more} more of these"))?;
            }
        }
    }
    let verdict = if findings.is_valid() { "valid" } else { "not valid" };
    let (objects, invalid) = (outcome.objects, outcome.invalid);
    let plural = if objects == 1 { "object" } else { "objects" };
    output::line(&format!("{verdict}: {objects} {plural}, {invalid} with errors"))?;
    Ok(())
}
