//! Settings of pipelines and stages: their limits, and changing them by name.

use super::{PipelineSpec, TOPIC};
use crate::catalog::{Catalog, Pipeline, PipelineSettings, Stage, StageSettings};
use crate::error::{Entity, Error, Result};
use crate::id::{PipelineId, StageId};
use crate::rules::budget;
use db::{Statement, Tx, statement};

/// A state is one variable of a program's environment, which Linux limits to 128 KiB.
const STATE_BYTES_MOST: i64 = 96 * 1024;

/// The spec with settings changed by name; those of a stage apply to all its stages.
pub fn with_settings(spec: &PipelineSpec, changes: &[(String, String)]) -> Result<PipelineSpec> {
    let mut spec = spec.clone();
    let stages = spec.stages.iter().map(|(name, settings)| Stage {
        id: StageId::default(),
        pipeline: PipelineId::default(),
        position: 0,
        name: name.clone(),
        settings: settings.clone(),
    });
    let mut draft = Pipeline {
        id: PipelineId::default(),
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

pub(super) fn check(spec: &PipelineSpec) -> Result<()> {
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
                return Err(Error::unknown(Entity::Setting, name, format!("there are: {all}")));
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
