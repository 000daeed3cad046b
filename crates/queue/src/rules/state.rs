//! A job's state: what a stage leaves for the stages that follow it, as a JSON object.
//!
//! It is written in the transaction that settles the run, so it is there exactly if the run succeeded.
//! Each stage's is kept by itself: a stage gets what the nearest stage before it left, and a job that
//! goes back to an earlier stage gets there what that stage got before.

use crate::catalog::{Pipeline, Stage};
use crate::error::{Error, Result};
use crate::error_code::ErrorCode;
use crate::id::{JobId, StageId};
use crate::job::{JobError, JobState, Outcome};
use db::{Micros, Statement, Tx, statement};

/// Keeps what a stage leaves.
pub(crate) fn keep(
    tx: &mut Tx<'_>,
    now: Micros,
    job: JobId,
    stage: &Stage,
    state: &JobState,
) -> Result<()> {
    const KEEP: Statement = statement!(state::keep_state);
    tx.send(&KEEP, &db::params![job, stage.id, &text(state)?, now])?;
    Ok(())
}

/// What a run of a stage gets; empty if no stage before it left anything.
pub fn before(tx: &mut Tx<'_>, job: JobId, stage: StageId) -> Result<JobState> {
    const BEFORE: Statement = statement!(state::state_before);
    match tx.first::<(String,)>(&BEFORE, &db::params![job, stage])? {
        Some((text,)) => parse(job, &text),
        None => Ok(JobState::new()),
    }
}

/// The states that stages left, with when, in the order of the stages.
pub fn all(tx: &mut Tx<'_>, job: JobId) -> Result<Vec<(StageId, Micros, JobState)>> {
    const ALL: Statement = statement!(state::job_states);
    let rows: Vec<(StageId, Micros, String)> = tx.query(&ALL, &db::params![job])?;
    rows.into_iter().map(|(stage, at, text)| Ok((stage, at, parse(job, &text)?))).collect()
}

/// A stage that runs again leaves its state anew.
pub(crate) fn forget(tx: &mut Tx<'_>, job: JobId, stage: &Stage) -> Result<()> {
    const FORGET: Statement = statement!(state::forget_state);
    tx.send(&FORGET, &db::params![job, stage.id])?;
    Ok(())
}

/// A state over the limit is an error of the run: nothing of it is cut off.
pub(crate) fn refuse_large(
    pipeline: &Pipeline,
    stage: &Stage,
    state: &JobState,
) -> Option<Outcome> {
    let most = pipeline.settings.state_bytes_max;
    let bytes = text(state).map_or(0, |text| text.len());
    i64::try_from(bytes).is_ok_and(|bytes| bytes > most).then(|| {
        Outcome::Permanent(JobError::new(
            ErrorCode::StateTooLarge,
            format!(
                "{} leaves a state of {bytes} bytes, and {} keeps at most {most} (state_bytes_max); keep large data in a file and name it in the state",
                stage.name, pipeline.name
            ),
        ))
    })
}

fn text(state: &JobState) -> Result<String> {
    serde_json::to_string(state).map_err(|e| Error::BadInput(format!("a job's state: {e}")))
}

fn parse(job: JobId, text: &str) -> Result<JobState> {
    serde_json::from_str(text)
        .map_err(|e| Error::BadInput(format!("the state of job {job} cannot be read: {e}")))
}
