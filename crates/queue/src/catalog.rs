//! Pipelines and their stages, as the rules see them: what never changes, and settings that may.

use crate::error::{Entity, Error, Result};
use crate::id::{PipelineId, StageId};
use crate::job::Amounts;
use db::{FromRow, Row, Statement, Tx, statement};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::sync::Arc;

/// Settings of a stage; all can be changed while it runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StageSettings {
    /// Jobs worked on at once in each process.
    pub workers: i64,
    /// Jobs claimed ahead in each process.
    pub buffer: i64,
    /// Runs that may end in a transient error since the last requeue.
    pub max_attempts: i64,
    /// LostWorker leases and shutdowns since the last requeue before a person must look.
    pub max_interruptions: i64,
    /// The wait after the first error; it doubles with every further one.
    pub backoff_seconds: i64,
    /// The longest wait after an error.
    pub backoff_seconds_max: i64,
    /// How long one run may take; 0 for as long as it needs.
    pub timeout_seconds: i64,
    /// What each run needs while it runs.
    pub needs: Amounts,
}

impl Default for StageSettings {
    fn default() -> StageSettings {
        StageSettings {
            workers: 2,
            buffer: 4,
            max_attempts: 3,
            max_interruptions: 5,
            backoff_seconds: 15,
            backoff_seconds_max: 3600,
            timeout_seconds: 0,
            needs: Amounts::new(),
        }
    }
}

/// Settings of a pipeline.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PipelineSettings {
    /// The longest payload of a job.
    pub payload_bytes_max: i64,
    /// What stages may leave of a job for those that follow; see [`crate::JobState`].
    pub state_bytes_max: i64,
    /// Ended jobs and their history are kept this long; 0 for ever.
    pub retention_seconds: i64,
    /// From this stage on a job only goes forward: it cannot be cancelled.
    pub forward_from: Option<String>,
}

impl Default for PipelineSettings {
    fn default() -> PipelineSettings {
        PipelineSettings {
            payload_bytes_max: 64 * 1024,
            state_bytes_max: 64 * 1024,
            retention_seconds: 90 * 24 * 3600,
            forward_from: None,
        }
    }
}

/// A stage of a pipeline.
#[derive(Debug, Clone, PartialEq)]
pub struct Stage {
    /// Its id.
    pub id: StageId,
    /// The id of its pipeline.
    pub pipeline: PipelineId,
    /// Its place among the stages, from 0.
    pub position: i64,
    /// Its name.
    pub name: String,
    /// Its settings.
    pub settings: StageSettings,
}

/// A pipeline; a plain queue is a pipeline of one stage.
#[derive(Debug, Clone, PartialEq)]
pub struct Pipeline {
    /// Its id.
    pub id: PipelineId,
    /// Its name.
    pub name: String,
    /// A queue that people made, of one stage.
    pub plain: bool,
    /// Whether adding a subject that already waits merges with the waiting job.
    pub coalesces: bool,
    /// Whether every step is kept in history, and not only ends, errors and actions.
    pub full_history: bool,
    /// The position of the stage at which a requeued job resumes if its object has changed since.
    pub restart_position: i64,
    /// Whether it was deleted. Its jobs' history still names it.
    pub deleted: bool,
    /// Its settings.
    pub settings: PipelineSettings,
    /// Its stages, in their order.
    pub stages: Vec<Stage>,
}

impl Pipeline {
    /// Returns the first stage.
    pub fn first(&self) -> &Stage {
        // A pipeline is made with at least one stage, and stages are never removed.
        &self.stages[0]
    }

    /// Returns the stage that follows another; None at the end.
    pub fn after(&self, stage: &Stage) -> Option<&Stage> {
        self.stages.iter().find(|s| s.position == stage.position + 1)
    }

    /// The stage a run that succeeded moves on to: the next one, or the later one that it names.
    /// None at the end. No run moves past the stage from which jobs only go forward: what is
    /// checked there is checked of every job.
    pub fn onward(&self, stage: &Stage, named: Option<&str>) -> Result<Option<&Stage>> {
        let Some(name) = named else { return Ok(self.after(stage)) };
        let next = self.stage_named(name)?;
        let refused = |why: String| Err(Error::Refused(why));
        if next.position <= stage.position {
            return refused(format!("{name} does not come after {}", stage.name));
        }
        let barrier = self.settings.forward_from.as_deref();
        let barrier = barrier.map(|from| self.stage_named(from)).transpose()?;
        match barrier.filter(|b| stage.position < b.position && b.position < next.position) {
            Some(barrier) => refused(format!("no job may skip {}", barrier.name)),
            None => Ok(Some(next)),
        }
    }

    /// The names of the stages between two.
    pub fn between(&self, stage: &Stage, next: &Stage) -> Vec<&str> {
        let skipped = |s: &&Stage| stage.position < s.position && s.position < next.position;
        self.stages.iter().filter(skipped).map(|s| s.name.as_str()).collect()
    }

    /// Whether a job that has begun can only go forward from this stage on.
    pub fn is_forward_only(&self, stage: &Stage) -> bool {
        let from = self.settings.forward_from.as_deref();
        let from = from.and_then(|name| self.stages.iter().find(|s| s.name == name));
        from.is_some_and(|from| stage.position >= from.position)
    }

    /// Returns the stage of a name, also as it is shown: `ingest/validating`.
    pub fn stage_named(&self, name: &str) -> Result<&Stage> {
        // As it is shown, too: `ingest/validating`.
        let name = match name.split_once('/') {
            Some((pipeline, stage)) if pipeline == self.name => stage,
            _ => name,
        };
        let names: Vec<&str> = self.stages.iter().map(|s| s.name.as_str()).collect();
        let hint = || format!("{} has {}", self.name, names.join(", "));
        self.stages
            .iter()
            .find(|s| s.name == name)
            .ok_or_else(|| Error::unknown(Entity::Stage, name, hint()))
    }
}

/// All pipelines at one moment. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Catalog {
    pipelines: Arc<HashMap<PipelineId, Pipeline>>,
    stages: Arc<HashMap<StageId, (PipelineId, usize)>>,
}

struct PipelineRow(Pipeline, String);
struct StageRow(Stage, String);

impl FromRow for PipelineRow {
    fn from_row(row: &Row<'_>) -> db::Result<Self> {
        let pipeline = Pipeline {
            id: row.get(0)?,
            name: row.get(1)?,
            plain: row.get(2)?,
            coalesces: row.get(3)?,
            full_history: row.get(4)?,
            restart_position: row.get(5)?,
            deleted: row.get(7)?,
            settings: PipelineSettings::default(),
            stages: Vec::new(),
        };
        Ok(PipelineRow(pipeline, row.get(6)?))
    }
}

impl FromRow for StageRow {
    fn from_row(row: &Row<'_>) -> db::Result<Self> {
        let stage = Stage {
            id: row.get(0)?,
            pipeline: row.get(1)?,
            position: row.get(2)?,
            name: row.get(3)?,
            settings: StageSettings::default(),
        };
        Ok(StageRow(stage, row.get(4)?))
    }
}

impl Catalog {
    /// Reads everything, deleted pipelines too: their jobs' history still names them.
    pub fn load(tx: &mut Tx<'_>) -> Result<Catalog> {
        const PIPELINES: Statement = statement!(catalog::all_pipelines);
        const STAGES: Statement = statement!(catalog::all_stages);
        let mut pipelines = HashMap::new();
        for PipelineRow(mut pipeline, settings) in tx.query(&PIPELINES, &[])? {
            pipeline.settings = parse(&settings, &pipeline.name)?;
            pipelines.insert(pipeline.id, pipeline);
        }
        let mut stages = HashMap::new();
        for StageRow(mut stage, settings) in tx.query(&STAGES, &[])? {
            stage.settings = parse(&settings, &stage.name)?;
            let Some(pipeline) = pipelines.get_mut(&stage.pipeline) else { continue };
            stages.insert(stage.id, (stage.pipeline, pipeline.stages.len()));
            pipeline.stages.push(stage);
        }
        Ok(Catalog { pipelines: Arc::new(pipelines), stages: Arc::new(stages) })
    }

    /// Returns the pipeline of an id.
    pub fn pipeline(&self, id: PipelineId) -> Result<&Pipeline> {
        self.pipelines.get(&id).ok_or_else(|| {
            Error::unknown(Entity::Pipeline, id, "it was made after this was read; try again")
        })
    }

    /// Returns the stage of an id, with its pipeline.
    pub fn stage(&self, id: StageId) -> Result<(&Pipeline, &Stage)> {
        let missing =
            || Error::unknown(Entity::Stage, id, "it was made after this was read; try again");
        let (pipeline, index) = self.stages.get(&id).ok_or_else(missing)?;
        let pipeline = self.pipeline(*pipeline)?;
        pipeline.stages.get(*index).map(|stage| (pipeline, stage)).ok_or_else(missing)
    }

    /// The pipeline of a name; a hint lists those there are.
    pub fn named(&self, name: &str) -> Result<&Pipeline> {
        let found = self.pipelines.values().find(|p| p.name == name && !p.deleted);
        found.ok_or_else(|| {
            let mut names: Vec<&str> = self.pipelines().map(|p| p.name.as_str()).collect();
            names.sort_unstable();
            let hint = match names.len() {
                0 => format!("make it with `accession queue create {name}`"),
                1..=8 => format!("there are: {}", names.join(", ")),
                _ => "`accession queue stats` lists them".to_string(),
            };
            Error::unknown(Entity::Queue, name, hint)
        })
    }

    /// A pipeline, or a stage as it is shown: `ingest` or `ingest/validating`.
    pub fn place(&self, name: &str) -> Result<(&Pipeline, Option<&Stage>)> {
        match name.split_once('/') {
            Some((pipeline, stage)) => {
                let pipeline = self.named(pipeline)?;
                Ok((pipeline, Some(pipeline.stage_named(stage)?)))
            }
            None => Ok((self.named(name)?, None)),
        }
    }

    /// Returns the name of a stage, or its number if it is not known.
    pub fn stage_name(&self, id: StageId) -> String {
        self.stage(id).map_or_else(|_| format!("stage {id}"), |(_, s)| s.name.clone())
    }

    /// Iterates over the pipelines that are not deleted.
    pub fn pipelines(&self) -> impl Iterator<Item = &Pipeline> {
        self.pipelines.values().filter(|p| !p.deleted)
    }
}

fn parse<T: for<'a> Deserialize<'a>>(settings: &str, name: &str) -> Result<T> {
    serde_json::from_str(settings).map_err(|e| {
        Error::BadInput(format!(
            "the settings of {name} cannot be read: {e}; a newer program may have written them"
        ))
    })
}
