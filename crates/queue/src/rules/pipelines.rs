//! Making, changing and deleting pipelines. A plain queue is a pipeline with one stage.

mod settings;

pub use settings::{set, with_settings};

use crate::catalog::{Catalog, Pipeline, PipelineSettings, StageSettings};
use crate::engine;
use crate::error::{Error, Result};
use crate::id::{BatchId, JobId, PipelineId, StageId};
use crate::rules::operator::retry::Filter;
use crate::rules::operator::{Actor, cancel};
use db::{Micros, Statement, Tx, statement};
use settings::check;

/// The wake-up topic for changed settings.
pub const TOPIC: i64 = i64::MAX;

/// A pipeline to be made.
#[derive(Debug, Clone)]
pub struct PipelineSpec {
    /// Its name.
    pub name: String,
    /// A queue that people made, of one stage.
    pub plain: bool,
    /// Whether adding a subject that already waits merges with the waiting job.
    pub coalesces: bool,
    /// Whether every step is kept in history, and not only ends, errors and actions.
    pub full_history: bool,
    /// The stage a requeued job resumes at if its object has changed since; by default the first.
    pub restart: Option<String>,
    /// Its settings.
    pub settings: PipelineSettings,
    /// The names of its stages with their settings.
    pub stages: Vec<(String, StageSettings)>,
}

impl PipelineSpec {
    /// A queue for one kind of work: coalesces, and keeps how each job ended.
    pub fn queue(name: &str) -> PipelineSpec {
        PipelineSpec {
            name: name.to_string(),
            plain: true,
            coalesces: true,
            full_history: false,
            restart: None,
            settings: PipelineSettings::default(),
            stages: vec![(name.to_string(), StageSettings::default())],
        }
    }

    /// Stages one after the other: every add is a job of its own, and all history is kept.
    pub fn staged(name: &str, stages: &[&str]) -> PipelineSpec {
        let stages = stages.iter().map(|s| ((*s).to_string(), StageSettings::default())).collect();
        PipelineSpec {
            plain: false,
            coalesces: false,
            full_history: true,
            stages,
            ..PipelineSpec::queue(name)
        }
    }
}

/// Makes a pipeline, or finds that it is there already just as specified.
pub fn create(tx: &mut Tx<'_>, now: Micros, who: &str, spec: &PipelineSpec) -> Result<Pipeline> {
    check(spec)?;
    let catalog = Catalog::load(tx)?;
    if let Ok(existing) = catalog.named(&spec.name) {
        let same = existing.coalesces == spec.coalesces
            && existing.full_history == spec.full_history
            && existing.settings == spec.settings
            && existing
                .stages
                .iter()
                .map(|s| (&s.name, &s.settings))
                .eq(spec.stages.iter().map(|(n, s)| (n, s)));
        return match same {
            true => Ok(existing.clone()),
            false => Err(Error::Refused(format!(
                "`{0}` exists with other settings; change them with `accession queue set {0} …`",
                spec.name
            ))),
        };
    }
    insert(tx, now, who, spec)?;
    tx.wake(TOPIC);
    Ok(Catalog::load(tx)?.named(&spec.name)?.clone())
}

/// Adds the stages of `spec` that a pipeline lacks, each after the stage that it follows there.
/// Jobs stay where they are; those in an earlier stage pass through the new ones.
pub fn extend(tx: &mut Tx<'_>, catalog: &Catalog, spec: &PipelineSpec) -> Result<()> {
    const MOVE: Statement = statement!(pipelines::move_stage);
    const RESTART: Statement = statement!(pipelines::set_restart);
    const STAGE: Statement = statement!(pipelines::insert_stage);
    check(spec)?;
    let there = catalog.named(&spec.name)?;
    let names = || spec.stages.iter().map(|(name, _)| name);
    let known = |name: &&String| there.stages.iter().any(|s| s.name == **name);
    if !names().filter(known).eq(there.stages.iter().map(|s| &s.name)) {
        return Err(Error::Refused(format!(
            "`{}` has other stages than this program knows; a newer program may have made them",
            spec.name
        )));
    }
    if there.stages.len() == spec.stages.len() {
        return Ok(());
    }
    let place = |name: &str| -> i64 {
        names().position(|n| n == name).and_then(|at| i64::try_from(at).ok()).unwrap_or(0)
    };
    // From the last one, so that no two have the same position in between.
    for stage in there.stages.iter().rev() {
        tx.send(&MOVE, &db::params![stage.id, place(&stage.name)])?;
    }
    let restart = there.stages.iter().find(|s| s.position == there.restart_position);
    let restart = restart.map_or(0, |stage| place(&stage.name));
    tx.send(&RESTART, &db::params![there.id, restart])?;
    for (name, settings) in spec.stages.iter().filter(|(name, _)| !known(&name)) {
        let id: StageId = tx.next_ids("stage_ids", 1)?[0];
        let settings = serde_json::json!(settings).to_string();
        tx.send(&STAGE, &db::params![id, there.id, place(name), name, &settings])?;
    }
    tx.wake(TOPIC);
    Ok(())
}

fn insert(tx: &mut Tx<'_>, now: Micros, who: &str, spec: &PipelineSpec) -> Result<()> {
    const PIPELINE: Statement = statement!(pipelines::insert_pipeline);
    const STAGE: Statement = statement!(pipelines::insert_stage);
    let restart = spec
        .restart
        .as_ref()
        .and_then(|r| spec.stages.iter().position(|(n, _)| n == r))
        .unwrap_or(0);
    let id: PipelineId = tx.next_ids("pipeline_ids", 1)?[0];
    let settings = serde_json::json!(spec.settings).to_string();
    let restart = i64::try_from(restart).unwrap_or(0);
    tx.send(
        &PIPELINE,
        &db::params![
            id,
            &spec.name,
            spec.plain,
            spec.coalesces,
            spec.full_history,
            restart,
            &settings,
            now,
            who
        ],
    )?;
    for (position, (name, settings)) in spec.stages.iter().enumerate() {
        let stage: StageId = tx.next_ids("stage_ids", 1)?[0];
        let settings = serde_json::json!(settings).to_string();
        tx.send(
            &STAGE,
            &db::params![stage, id, i64::try_from(position).unwrap_or(0), name, &settings],
        )?;
    }
    Ok(())
}

/// How much there is in a pipeline: waiting, running, failed.
pub fn depth(tx: &mut Tx<'_>, pipeline: &Pipeline) -> Result<(i64, i64, i64)> {
    const DEPTH: Statement = statement!(pipelines::pipeline_depth);
    Ok(tx.one(&DEPTH, &db::params![pipeline.id])?)
}

/// How many jobs wait in a stage.
pub fn waiting(tx: &mut Tx<'_>, stage: StageId) -> Result<i64> {
    const DEPTH: Statement = statement!(pipelines::stage_depth);
    Ok(tx.one::<(i64,)>(&DEPTH, &db::params![stage])?.0)
}

/// Deletes a plain queue step by step: true when it is gone. What ended stays in history until it
/// is pruned.
pub fn delete(
    tx: &mut Tx<'_>,
    now: Micros,
    catalog: &Catalog,
    actor: Actor<'_>,
    name: &str,
    limit: i64,
) -> Result<bool> {
    const TAKEN_IN: Statement = statement!(pipelines::batch_being_taken_in);
    const DELETE: Statement = statement!(pipelines::delete_pipeline);
    const FAILED: Statement = statement!(operator::failed_jobs);
    let pipeline = catalog.named(name)?;
    if !pipeline.plain {
        return Err(Error::Refused(format!("`{name}` is built in and cannot be deleted")));
    }
    engine::of(tx).close_pipeline(tx, pipeline.id)?;
    let (waiting, running, failed) = depth(tx, pipeline)?;
    if running > 0 {
        return Err(Error::Refused(format!(
            "{running} jobs of `{name}` are running; pause it and let them finish, or cancel them"
        )));
    }
    if let Some((batch,)) = tx.first::<(BatchId,)>(&TAKEN_IN, &db::params![pipeline.id])? {
        return Err(Error::Refused(format!(
            "batch {batch} of `{name}` is still being taken in; wait for it, or delete it"
        )));
    }
    for stage in pipeline.stages.iter().filter(|_| waiting > 0) {
        if cancel::empty(tx, now, catalog, actor, stage.id, limit)? > 0 {
            return Ok(false);
        }
    }
    if failed > 0 {
        let filter = Filter { pipeline: Some(pipeline.id), ..Filter::default() };
        let none = (None::<StageId>, None::<&str>, None::<&str>, None::<BatchId>);
        let rows: Vec<(JobId, JobId, bool)> = tx.query(
            &FAILED,
            &db::params![filter.pipeline, none.0, none.1, none.2, none.3, 0, limit],
        )?;
        for (job, ..) in rows {
            let found = crate::rules::operator::find(tx, job)?;
            cancel::cancel_found(tx, now, catalog, actor, &found)?;
        }
        return Ok(false);
    }
    tx.send(&DELETE, &db::params![pipeline.id, now])?;
    tx.wake(TOPIC);
    Ok(true)
}
