//! Telling depositors, beside their packages, what became of them.

use super::beside;
use super::decide::State;
use super::names::RESULT_SUFFIX;
use crate::Result;
use crate::config::WatchSection;
use crate::registry::collection;
use crate::registry::reports;
use crate::report::{self, Format, without_commands};
use db::{Db, Statement, Tx, statement};
use queue::rules::batch;
use queue::{BatchId, BatchState, Catalog};
use serde_json::{Value, json};

/// Lines of each list of a result; its counts say how many there are.
const LINES_MAX: i64 = 1000;

/// A package whose deposit has ended since its depositor was last told.
struct News {
    name: String,
    batch: BatchId,
    was: State,
    is: State,
    text: Option<Value>,
}

/// Writes the results that are new.
pub(super) async fn tell(db: &Db, watch: &WatchSection) -> Result<()> {
    let it = watch.clone();
    let news: Vec<News> = db.read(move |tx| news(tx, &it)).await?;
    for one in news {
        if let Some(text) = &one.text {
            let text = format!("{text:#}\n").into_bytes();
            if let Err(error) = beside::write(watch, &one.name, RESULT_SUFFIX, text).await {
                // It is tried again at the next round.
                tracing::warn!(batch = one.batch.number(), "{error}");
                continue;
            }
        }
        let path = watch.path.clone();
        db.write(move |tx| told(tx, &path, &one)).await?;
    }
    Ok(())
}

fn news(tx: &mut Tx<'_>, watch: &WatchSection) -> Result<Vec<News>> {
    let mut news = Vec::new();
    for (name, sighting) in super::known(tx, &watch.path)? {
        let (Some(id), State::Taken | State::ToldFailed | State::Left) =
            (sighting.batch, sighting.state)
        else {
            continue;
        };
        let batch = batch::load(tx, id)?;
        let is = match batch.state {
            BatchState::Completed | BatchState::Deleted => State::Told,
            // What is not there any more can be told of only once.
            BatchState::Failed if sighting.state == State::Left => State::Told,
            BatchState::Failed => State::ToldFailed,
            _ => continue,
        };
        if is == sighting.state {
            continue;
        }
        let collection = batch.collection.clone().unwrap_or_default();
        let profile = collection::find(tx, &collection)?;
        let wanted = watch.results || profile.is_some_and(|profile| profile.results_beside);
        let text = if wanted { Some(result(tx, &batch)?) } else { None };
        news.push(News { name, batch: id, was: sighting.state, is, text });
    }
    Ok(news)
}

/// What became of a package, with the reasons: a depositor may have nothing but this file.
fn result(tx: &mut Tx<'_>, batch: &batch::Batch) -> Result<Value> {
    let catalog = Catalog::load(tx)?;
    let report = reports::short(tx, &catalog, batch.id, LINES_MAX)?;
    let head = &report.head;
    let objects = report.objects.iter().map(|object| {
        json!({
            "name": object.subject,
            "identifier": object.identifier,
            "local_ids": object.local_ids,
            "version": object.version,
            "unchanged": object.state == "unchanged",
            "warnings": object.warnings,
            "notes": object.notes,
        })
    });
    let failures = report.failures.iter().map(|failure| {
        json!({
            "name": failure.subject,
            "stage": failure.stage,
            "code": failure.code,
            "file": failure.file,
            "message": without_commands(&failure.message),
        })
    });
    let cancellations = report.cancellations.iter().map(|cancel| {
        json!({
            "name": cancel.subject,
            "state": cancel.state,
            "by": cancel.by,
            "reason": cancel.reason,
        })
    });
    let problems = head.problems.iter().map(
        |problem| json!({"code": problem.code, "message": without_commands(&problem.message)}),
    );
    let error = head.error.as_deref().and_then(|error| error.lines().next());
    Ok(json!({
        "batch": head.batch,
        "label": head.label,
        "collection": head.collection,
        "state": head.state,
        "summary": report::verdict(head),
        "report_version": head.version,
        "submitted": head.submitted,
        "succeeded": head.succeeded,
        "unchanged": head.unchanged,
        "failed": head.failed,
        "cancelled": head.cancelled,
        "error": error.map(without_commands),
        "problems": problems.collect::<Vec<_>>(),
        "failures": failures.collect::<Vec<_>>(),
        "cancellations": cancellations.collect::<Vec<_>>(),
        "objects": objects.collect::<Vec<_>>(),
        "is_whole": report.is_whole(Format::Json),
    }))
}

fn told(tx: &mut Tx<'_>, watch: &str, news: &News) -> Result<()> {
    const TOLD: Statement = statement!(watch::tell_sighting);
    const DONE: Statement = statement!(watch::forget_told_sighting);
    let (was, is) = (news.was.as_str(), news.is.as_str());
    match news.was {
        State::Left => tx.execute(&DONE, &db::params![watch, &news.name, news.batch, was])?,
        _ => tx.execute(&TOLD, &db::params![watch, &news.name, news.batch, was, is])?,
    };
    Ok(())
}
