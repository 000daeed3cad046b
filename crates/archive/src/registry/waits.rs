//! Why a whole batch does not go on: somebody stopped it, and can let it go on.

use crate::model::error::Result;
use crate::model::pipelines::{BATCH, INGEST};
use db::Tx;
use queue::rules::batch::Batch;
use queue::rules::operator::hold::{self, Group};
use queue::rules::operator::pause::{self, Scope};
use queue::view::{ListFilter, list, show_time, why};
use queue::{BatchState, Catalog, StageId, Status};

/// Whether anybody stopped anything: quickly answered, for those who ask often.
pub fn anything_stopped(tx: &mut Tx<'_>) -> Result<bool> {
    Ok(!pause::all(tx)?.is_empty() || !hold::held_names(tx)?.is_empty())
}

/// Why a batch does not go on although it was not stopped: stages that it still needs have no live
/// worker. `None` if all have one, or the batch is over.
pub fn without_workers(tx: &mut Tx<'_>, batch: &Batch) -> Result<Option<String>> {
    let mut needed: Vec<String> = Vec::new();
    let catalog = Catalog::load(tx)?;
    let own = catalog.pipeline(batch.pipeline)?.name.clone();
    let pipelines: Vec<&str> = match batch.state {
        // Only deposits have to be expanded first.
        BatchState::Pending if own == INGEST => vec![BATCH, INGEST],
        BatchState::Processing => vec![&own],
        _ => return Ok(None),
    };
    for pipeline in pipelines {
        let stages = &catalog.named(pipeline)?.stages;
        needed.extend(stages.iter().map(|stage| format!("{pipeline}/{}", stage.name)));
    }
    let now = tx.now();
    let served = queue::view::served(tx, now)?;
    if served.is_empty() {
        return Ok(Some("no worker is running; start one with `accession work`".to_string()));
    }
    needed.retain(|stage| !served.contains(stage));
    Ok((!needed.is_empty()).then(|| {
        let stages = needed.join(", ");
        format!("no running worker works on {stages}; start one with `accession work`")
    }))
}

/// Why nothing of a batch runs although some of it is left to do: the sentence about its newest waiting
/// job. `None` if something runs.
pub fn idle(tx: &mut Tx<'_>, catalog: &Catalog, batch: &Batch) -> Result<Option<String>> {
    if batch.state != BatchState::Processing || batch.open == 0 {
        return Ok(None);
    }
    let mut first = |status| {
        let filter = ListFilter {
            status: Some(status),
            batch: Some(batch.id),
            limit: 1,
            ..ListFilter::default()
        };
        Ok::<_, crate::Error>(list(tx, catalog, &filter)?.pop())
    };
    if first(Status::Running)?.is_some() {
        return Ok(None);
    }
    let Some(job) = first(Status::Queued)? else { return Ok(None) };
    let now = tx.now();
    Ok(Some(why(tx, now, catalog, job.id)?))
}

/// Who stopped it, why, and what lets it go on; `None` if it is not stopped.
pub fn stopped(tx: &mut Tx<'_>, catalog: &Catalog, batch: &Batch) -> Result<Option<String>> {
    if !matches!(batch.state, BatchState::Pending | BatchState::Processing) {
        return Ok(None);
    }
    if let Some((who, at, reason)) = hold::find_group(tx, Group::Batch(batch.id))? {
        let go_on = format!("accession batches release {}", batch.id);
        return Ok(Some(sentence("the batch is held", &who, at, &reason, &go_on)));
    }
    if let Some(name) = &batch.collection
        && let Some((who, at, reason)) = hold::find_group(tx, Group::Collection(name))?
    {
        let (what, go_on) = (
            format!("collection `{name}` is held"),
            format!("accession collection release {name}"),
        );
        return Ok(Some(sentence(&what, &who, at, &reason, &go_on)));
    }
    paused(tx, catalog, batch)
}

fn paused(tx: &mut Tx<'_>, catalog: &Catalog, batch: &Batch) -> Result<Option<String>> {
    for found in pause::all(tx)? {
        let (what, which) = match found.scope {
            Scope::Everything => ("everything".to_string(), "--all".to_string()),
            Scope::Pipeline(id) => {
                let Ok(pipeline) = catalog.pipeline(id) else { continue };
                let name = &pipeline.name;
                let concerns = match batch.state {
                    BatchState::Pending => name == BATCH,
                    _ => id == batch.pipeline,
                };
                if !concerns {
                    continue;
                }
                (format!("`{name}`"), name.clone())
            }
            Scope::Stage(id) => {
                let Ok((pipeline, stage)) = catalog.stage(id) else { continue };
                if !waits_in(tx, catalog, batch, id)? {
                    continue;
                }
                (
                    format!("stage `{}`", stage.name),
                    format!("{} --stage {}", pipeline.name, stage.name),
                )
            }
        };
        let go_on = format!("accession jobs unpause {which}");
        let what = format!("{what} is paused");
        return Ok(Some(sentence(&what, &found.who, found.at, &found.reason, &go_on)));
    }
    Ok(None)
}

/// Whether the newest job of the batch that waits, waits in this stage.
fn waits_in(tx: &mut Tx<'_>, catalog: &Catalog, batch: &Batch, stage: StageId) -> Result<bool> {
    let filter = ListFilter {
        status: Some(Status::Queued),
        batch: Some(batch.id),
        limit: 1,
        ..ListFilter::default()
    };
    Ok(list(tx, catalog, &filter)?.first().is_some_and(|job| job.stage_id == stage))
}

fn sentence(what: &str, who: &str, at: db::Micros, reason: &str, go_on: &str) -> String {
    format!("{what} by {who} since {}: {reason}; `{go_on}` lets it go on", show_time(at))
}
