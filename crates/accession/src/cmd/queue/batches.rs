//! `accession queue batches`: what was submitted together, and what became of it.

use super::confirm;
use super::define::told;
use super::look::{next_page, tell_next};
use crate::cli::{Global, number};
use crate::exit::{Exit, Failure};
use crate::output;
use crate::session::{Act, Session};
use archive::intake::cancelling;
use queue::rules::operator::Actor;
use queue::rules::replacing::{self, Replacement};
use queue::rules::{batch, report};
use queue::{BatchId, BatchState, JobId};

/// Rows of each list that are shown; `--json` has the whole report.
const LISTED_MAX: i64 = 100;

#[derive(clap::Args)]
#[command(after_help = "Examples:
  accession queue batches
  accession queue batches 3
  accession queue batches 3 --report-again
  accession queue batches 3 --delete --reason 'sent twice'")]
pub struct Batches {
    /// Show this batch and its newest report
    #[arg(value_parser = number::<BatchId>)]
    batch: Option<BatchId>,
    /// Write its report again
    #[arg(long, requires = "batch", conflicts_with = "delete")]
    report_again: bool,
    /// Delete a held or failed batch: its jobs are cancelled, its reports kept
    #[arg(long, requires = "batch")]
    delete: bool,
    /// Do not ask
    #[arg(long)]
    yes: bool,
    /// Only batches with smaller numbers
    #[arg(long, value_name = "BATCH")]
    before: Option<BatchId>,
    #[arg(long, default_value_t = 50)]
    limit: i64,
    #[command(flatten)]
    act: Act,
}

pub fn batches(args: Batches, global: &Global) -> Result<Exit, Failure> {
    let session = Session::open(global)?;
    let Some(id) = args.batch else { return list_batches(&session, None, args.before, args.limit) };
    if args.report_again {
        return report_again(&session, id);
    }
    if args.delete {
        return delete_batch(&session, id, args.yes, &args.act);
    }
    let (found, newest, replaced, replaces) = session.read(move |tx, _, _| {
        let replaced = replacing::replaced_in(tx, id, JobId::default(), LISTED_MAX)?;
        let replaces =
            replacing::replaced_by(tx, id, JobId::default()..=JobId::new(i64::MAX), LISTED_MAX)?;
        Ok((batch::load(tx, id)?, report::newest(tx, id)?, replaced, replaces))
    })?;
    let report: Option<serde_json::Value> =
        newest.and_then(|text| serde_json::from_str(&text).ok());
    if session.json {
        output::json(&serde_json::json!({"batch": batch_json(&found), "report": report}))?;
        return Ok(Exit::Yes);
    }
    output::list(BATCH_HEADERS, [batch_row(&found)], &["submitter", "label"])?;
    let Some(report) = report else { return Ok(Exit::Yes) };
    output::line(&format!("\nreport version {}", report["version"]))?;
    for key in ["failures", "cancellations", "changed"] {
        items(key, &report[key])?;
    }
    replacements("superseded", &replaced, Replacement::replaced_sentence)?;
    replacements("replaces", &replaces, Replacement::replaces_sentence)?;
    Ok(Exit::Yes)
}

/// Rows of a list of the report, if it has any.
fn items(name: &str, list: &serde_json::Value) -> Result<(), Failure> {
    let items = list.as_array().map(Vec::as_slice).unwrap_or_default();
    if items.is_empty() {
        return Ok(());
    }
    output::line(&format!("\n{name}:"))?;
    let text = |v: &serde_json::Value| v.as_str().map_or_else(|| v.to_string(), str::to_string);
    let rows = items.iter().map(|i| {
        vec![
            text(&i["job"]),
            text(&i["subject"]),
            text(&i["status"]),
            text(&i["stage"]),
            i["by"].as_str().filter(|_| name == "cancellations").unwrap_or_default().to_string(),
            output::in_one_line(i["why"].as_str().unwrap_or_default()),
        ]
    });
    Ok(output::list(
        &["job", "subject", "status", "stage", "by", "why"],
        rows,
        &["subject", "why"],
    )?)
}

/// What rows of the batch were superseded by, or what they replace.
fn replacements(
    name: &str,
    list: &[Replacement],
    sentence: impl Fn(&Replacement) -> String,
) -> Result<(), Failure> {
    if list.is_empty() {
        return Ok(());
    }
    output::line(&format!("\n{name}:"))?;
    let of_batch = |one: &Replacement| if name == "replaces" { one.by } else { one.job };
    let rows =
        list.iter().map(|one| vec![of_batch(one).to_string(), one.subject.clone(), sentence(one)]);
    Ok(output::list(&["job", "subject", "what"], rows, &["subject", "what"])?)
}

const BATCH_HEADERS: &[&str] =
    &["batch", "state", "jobs", "open", "done", "failed", "cancelled", "by", "label"];

fn batch_row(b: &batch::Batch) -> Vec<String> {
    let state = if b.is_held() { format!("held ({})", b.state) } else { b.state.to_string() };
    vec![
        b.id.to_string(),
        state,
        b.total.to_string(),
        b.open.to_string(),
        b.succeeded.to_string(),
        b.failed.to_string(),
        b.cancelled.to_string(),
        b.submitter.clone(),
        b.label.clone(),
    ]
}

fn batch_json(b: &batch::Batch) -> serde_json::Value {
    serde_json::json!({
        "id": b.id, "label": b.label, "state": b.state, "held": b.is_held(), "collection": b.collection, "submitter": b.submitter,
        "total": b.total, "unfinished": b.open, "succeeded": b.succeeded, "failed": b.failed, "cancelled": b.cancelled,
        "created_at": b.created_at, "updated_at": b.updated_at, "error": b.error,
    })
}

pub fn list_batches(
    session: &Session,
    state: Option<BatchState>,
    before: Option<BatchId>,
    limit: i64,
) -> Result<Exit, Failure> {
    let found = session.read(move |tx, _, _| batch::list(tx, state, before, limit))?;
    let next = next_page(&found, limit, |batch| batch.id);
    match session.json {
        true => {
            output::json_list("batches", &found.iter().map(batch_json).collect::<Vec<_>>(), next)?;
        }
        false => {
            let flexible = ["by", "label"];
            output::list(BATCH_HEADERS, found.iter().map(batch_row), &flexible)?;
            tell_next(next.as_ref());
        }
    }
    Ok(Exit::Yes)
}

pub fn report_again(session: &Session, id: BatchId) -> Result<Exit, Failure> {
    session.write(move |tx, now, _| batch::report_again(tx, now, id))?;
    let written = session.write(report::write_next)?;
    let version = written.map_or(0, |r| r.version);
    told(
        session,
        &serde_json::json!({"id": id, "version": version}),
        &format!("batch {id} reported again"),
    )
}

pub fn delete_batch(session: &Session, id: BatchId, yes: bool, act: &Act) -> Result<Exit, Failure> {
    let found = session.read(move |tx, _, _| batch::load(tx, id))?;
    batch::refuse_delete(&found)?;
    confirm(
        yes,
        &format!(
            "batch {id} would be deleted, and its unfinished ({}) and failed ({}) jobs cancelled.",
            found.open, found.failed
        ),
    )?;
    let mut after = Some(JobId::default());
    while let Some(from) = after {
        let act = act.clone();
        after = session.write(move |tx, now, catalog| {
            cancelling::cancel_some(
                tx,
                now,
                catalog,
                Actor { who: &act.who(), reason: &act.reason },
                id,
                from,
                500,
            )
        })?;
    }
    session.write(move |tx, now, _| batch::delete(tx, now, id))?;
    told(
        session,
        &serde_json::json!({"deleted": id}),
        &format!("batch {id} deleted; its reports are kept"),
    )
}
