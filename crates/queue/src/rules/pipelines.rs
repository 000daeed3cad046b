//! Making, changing and deleting pipelines. A plain queue is a pipeline with one stage.

use crate::catalog::{Catalog, Pipeline, PipelineSettings, Stage, StageSettings};
use crate::engine;
use crate::error::{Error, Result};
use crate::rules::budget;
use crate::rules::people::retry::Filter;
use crate::rules::people::{Actor, cancel};
use db::{Micros, Statement, Tx, statement};

/// A state is one variable of a program's environment, which Linux limits to 128 KiB.
const STATE_BYTES_MOST: i64 = 96 * 1024;

/// What the catalog's readers listen to for changed settings.
pub const TOPIC: i64 = i64::MAX;

/// A pipeline to be made.
#[derive(Debug, Clone)]
pub struct PipelineSpec {
    pub name: String,
    pub plain: bool,
    pub coalesces: bool,
    pub full_history: bool,
    /// The stage a requeued job resumes at if its object changed meanwhile; the first unless said.
    pub restart: Option<String>,
    pub settings: PipelineSettings,
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

/// The spec with settings changed by name; those of a stage apply to all its stages.
pub fn with_settings(spec: &PipelineSpec, changes: &[(String, String)]) -> Result<PipelineSpec> {
    let mut spec = spec.clone();
    let stages = spec.stages.iter().map(|(name, settings)| Stage {
        id: 0,
        pipeline: 0,
        position: 0,
        name: name.clone(),
        settings: settings.clone(),
    });
    let mut draft = Pipeline {
        id: 0,
        name: spec.name.clone(),
        plain: spec.plain,
        coalesces: spec.coalesces,
        full_history: spec.full_history,
        restart_position: 0,
        deleted: false,
        settings: spec.settings.clone(),
        stages: stages.collect(),
    };
    for (name, value) in changes {
        (0..draft.stages.len())
            .try_for_each(|index| change(&mut draft, Some(index), name, value))?;
    }
    (spec.full_history, spec.settings) = (draft.full_history, draft.settings);
    spec.stages = draft.stages.into_iter().map(|s| (s.name, s.settings)).collect();
    Ok(spec)
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
        let id = tx.next_ids("stage_ids", 1)?[0];
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
    let id = tx.next_ids("pipeline_ids", 1)?[0];
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
        let stage = tx.next_ids("stage_ids", 1)?[0];
        let settings = serde_json::json!(settings).to_string();
        tx.send(
            &STAGE,
            &db::params![stage, id, i64::try_from(position).unwrap_or(0), name, &settings],
        )?;
    }
    Ok(())
}

fn check(spec: &PipelineSpec) -> Result<()> {
    for name in std::iter::once(&spec.name).chain(spec.stages.iter().map(|(n, _)| n)) {
        let good = (1..=64).contains(&name.len())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'));
        if !good {
            let why = "a name has 1 to 64 letters, digits, `-`, `_` or `.`";
            return Err(Error::BadInput(format!(
                "`{}` cannot be a name: {why}",
                name.escape_debug()
            )));
        }
    }
    if spec.stages.is_empty() {
        return Err(Error::BadInput(format!("`{}` needs at least one stage", spec.name)));
    }
    if let Some(restart) = spec
        .restart
        .iter()
        .chain(&spec.settings.forward_from)
        .find(|r| !spec.stages.iter().any(|(n, _)| n == *r))
    {
        return Err(Error::BadInput(format!("`{}` has no stage `{restart}`", spec.name)));
    }
    spec.stages
        .iter()
        .try_for_each(|(_, s)| check_stage(s))
        .and_then(|()| check_pipeline(&spec.settings))
}

fn check_stage(s: &StageSettings) -> Result<()> {
    let range =
        |name: &str, value: i64, least: i64, most: i64| match (least..=most).contains(&value) {
            true => Ok(()),
            false => Err(Error::BadInput(format!(
                "{name} is {value}; it must be from {least} to {most}"
            ))),
        };
    range("workers", s.workers, 0, 1000)?;
    range("buffer", s.buffer, 0, 10_000)?;
    range("max_attempts", s.max_attempts, 1, 1000)?;
    range("max_interruptions", s.max_interruptions, 0, 1000)?;
    range("backoff_seconds", s.backoff_seconds, 0, 7 * 86_400)?;
    range("backoff_seconds_max", s.backoff_seconds_max, 0, 30 * 86_400)?;
    range("timeout_seconds", s.timeout_seconds, 0, 365 * 86_400)?;
    s.needs.iter().try_for_each(|(name, amount)| range(name, *amount, 0, i64::MAX))
}

fn check_pipeline(s: &PipelineSettings) -> Result<()> {
    if !(0..=STATE_BYTES_MOST).contains(&s.state_bytes_max) {
        return Err(Error::BadInput(format!(
            "state_bytes_max must be from 0 to {STATE_BYTES_MOST}, which a program's environment takes"
        )));
    }
    match (0..=16 * 1024 * 1024).contains(&s.payload_bytes_max) && s.retention_seconds >= 0 {
        true => Ok(()),
        false => Err(Error::BadInput(
            "payload_bytes_max must be from 0 to 16777216, and retention_seconds 0 (for ever) or more".to_string(),
        )),
    }
}

/// Changes settings by name: `workers=4`, `history=full`, `needs.memory_bytes=1000`.
pub fn set(
    tx: &mut Tx<'_>,
    catalog: &Catalog,
    pipeline: &str,
    stage: Option<&str>,
    changes: &[(String, String)],
) -> Result<Pipeline> {
    const PIPELINE: Statement = statement!(pipelines::update_pipeline);
    const STAGE: Statement = statement!(pipelines::update_stage);
    let mut pipeline = catalog.named(pipeline)?.clone();
    let index = match stage {
        Some(name) => {
            let found = pipeline.stage_named(name)?.id;
            Some(pipeline.stages.iter().position(|s| s.id == found).unwrap_or(0))
        }
        None => (pipeline.stages.len() == 1).then_some(0),
    };
    for (name, value) in changes {
        change(&mut pipeline, index, name, value)?;
    }
    check_pipeline(&pipeline.settings)?;
    let settings = serde_json::json!(pipeline.settings).to_string();
    tx.send(
        &PIPELINE,
        &db::params![pipeline.id, pipeline.coalesces, pipeline.full_history, &settings],
    )?;
    for stage in &pipeline.stages {
        check_stage(&stage.settings)?;
        tx.send(&STAGE, &db::params![stage.id, &serde_json::json!(stage.settings).to_string()])?;
        tx.wake(stage.id);
    }
    let now = tx.now();
    for resource in changes.iter().filter_map(|(name, _)| name.strip_prefix("needs.")) {
        // Jobs that starved for it may need less of it now.
        budget::feed(tx, now, resource)?;
    }
    tx.wake(TOPIC);
    Ok(pipeline)
}

const STAGE_SETTINGS: &[&str] = &[
    "workers",
    "buffer",
    "max_attempts",
    "max_interruptions",
    "backoff_seconds",
    "backoff_seconds_max",
    "timeout_seconds",
];

fn change(pipeline: &mut Pipeline, stage: Option<usize>, name: &str, value: &str) -> Result<()> {
    let bad = |what: &str| Error::BadInput(format!("{name}={value}: {what}"));
    let number = || value.parse::<i64>().map_err(|_| bad("it must be a whole number"));
    match name {
        "payload_bytes_max" => pipeline.settings.payload_bytes_max = number()?,
        "state_bytes_max" => pipeline.settings.state_bytes_max = number()?,
        "retention_seconds" => pipeline.settings.retention_seconds = number()?,
        "history" => {
            pipeline.full_history = match value {
                "full" => true,
                "outcomes" => false,
                _ => return Err(bad("history is `full` or `outcomes`")),
            };
        }
        _ => {
            let known = STAGE_SETTINGS.contains(&name) || name.starts_with("needs.");
            if !known {
                let all = format!(
                    "history, payload_bytes_max, state_bytes_max, retention_seconds, {}, needs.RESOURCE",
                    STAGE_SETTINGS.join(", ")
                );
                return Err(Error::unknown("setting", name, format!("there are: {all}")));
            }
            let index = stage.ok_or_else(|| bad("say which stage, with --stage"))?;
            let Some(stage) = pipeline.stages.get_mut(index) else {
                return Err(bad("there is no such stage"));
            };
            let number = number()?;
            let settings = &mut stage.settings;
            match name {
                "workers" => settings.workers = number,
                "buffer" => settings.buffer = number,
                "max_attempts" => settings.max_attempts = number,
                "max_interruptions" => settings.max_interruptions = number,
                "backoff_seconds" => settings.backoff_seconds = number,
                "backoff_seconds_max" => settings.backoff_seconds_max = number,
                "timeout_seconds" => settings.timeout_seconds = number,
                resource => {
                    let resource = resource.trim_start_matches("needs.").to_string();
                    match number {
                        0 => settings.needs.remove(&resource),
                        amount => settings.needs.insert(resource, amount),
                    };
                }
            }
        }
    }
    Ok(())
}

/// How much there is in a pipeline: waiting, running, failed.
pub fn depth(tx: &mut Tx<'_>, pipeline: &Pipeline) -> Result<(i64, i64, i64)> {
    const DEPTH: Statement = statement!(pipelines::pipeline_depth);
    Ok(tx.one(&DEPTH, &db::params![pipeline.id])?)
}

/// How many jobs wait in a stage.
pub fn waiting(tx: &mut Tx<'_>, stage: i64) -> Result<i64> {
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
    if let Some((batch,)) = tx.first::<(i64,)>(&TAKEN_IN, &db::params![pipeline.id])? {
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
        let none = (None::<i64>, None::<&str>, None::<&str>, None::<i64>);
        let rows: Vec<(i64, i64, bool)> = tx.query(
            &FAILED,
            &db::params![filter.pipeline, none.0, none.1, none.2, none.3, 0, limit],
        )?;
        for (job, ..) in rows {
            let found = crate::rules::people::find(tx, job)?;
            cancel::cancel_found(tx, now, catalog, actor, &found)?;
        }
        return Ok(false);
    }
    tx.send(&DELETE, &db::params![pipeline.id, now])?;
    tx.wake(TOPIC);
    Ok(true)
}
