//! A new job as it is checked and completed before the database is asked anything.

use crate::catalog::Pipeline;
use crate::codes::State;
use crate::error::{Error, Result};
use crate::id::{BatchId, JobId};
use crate::job::{NewJob, PRIORITY_DEFAULT};
use db::Micros;
use std::collections::HashMap;

/// The longest lock and the longest coalescing key.
const LOCK_BYTES_MAX: usize = 16 * 1024;
const TARGETS_MAX: usize = 32;

/// A new job with everything worked out that needs no database.
pub(crate) struct Draft<'a> {
    /// The id of the job.
    pub job: &'a NewJob,
    /// 0 until it is given one.
    pub id: JobId,
    /// What no two jobs may own at the same time.
    pub lock: String,
    pub key: Option<String>,
    /// From 0 (first) to 99 (last).
    pub priority: i64,
    /// When it may be claimed.
    pub due: Micros,
    /// Outside things that it is known to need.
    pub targets: Option<String>,
    /// Resources that it needs beyond those of its stage.
    pub needs: Option<String>,
    /// What the job carries, at most `payload_bytes_max` bytes.
    pub payload: Option<&'a [u8]>,
    /// Its state.
    pub state: State,
    pub held_by: Option<String>,
}

impl Draft<'_> {
    /// The lock it would take now.
    pub fn lock_wanted(&self) -> Option<&str> {
        (self.state == State::Ready).then_some(self.lock.as_str())
    }
}

/// Which draft a job of the call became, and whether an earlier one had become it already.
pub(crate) struct DraftIndex {
    pub draft: usize,
    pub coalesced: bool,
}

/// What can be said about a job without a database.
pub(crate) fn check(pipeline: &Pipeline, job: &NewJob) -> Result<()> {
    let bad = |why: String| Err(Error::BadInput(format!("job `{}`: {why}", job.subject)));
    if job.subject.is_empty() {
        return Err(Error::BadInput(
            "a subject is empty; give each job something to be about".to_string(),
        ));
    }
    let longest = crate::subject::SUBJECT_BYTES_MAX * 3;
    if job.subject.len() > longest {
        return Err(Error::BadInput(format!(
            "a subject of {} bytes is too long",
            job.subject.len()
        )));
    }
    if job.lock.as_ref().is_some_and(|lock| lock.is_empty() || lock.len() > LOCK_BYTES_MAX) {
        return bad(format!("its lock must have 1 to {LOCK_BYTES_MAX} bytes"));
    }
    let (bytes, most) =
        (job.payload.as_ref().map_or(0, Vec::len), pipeline.settings.payload_bytes_max);
    if i64::try_from(bytes).is_ok_and(|bytes| bytes > most) {
        return bad(format!(
            "its payload has {bytes} bytes, and {} takes at most {most} (payload_bytes_max)",
            pipeline.name
        ));
    }
    if job.priority.is_some_and(|p| !(0..=99).contains(&p)) {
        return bad("its priority must be from 0 (first) to 99 (last)".to_string());
    }
    if job.targets.len() > TARGETS_MAX || job.targets.iter().any(|t| !is_target(t)) {
        return bad(format!(
            "it may name at most {TARGETS_MAX} targets of 1 to 200 characters without line breaks"
        ));
    }
    Ok(())
}

pub(crate) fn is_target(name: &str) -> bool {
    (1..=200).contains(&name.len()) && !name.contains(char::is_control)
}

/// Works out each job's row. With coalescing, a subject given twice in one call is one job: the
/// last payload, the most urgent priority, the earliest due time.
pub(crate) fn draft_all<'a>(
    now: Micros,
    pipeline: &Pipeline,
    jobs: &'a [NewJob],
) -> (Vec<Draft<'a>>, Vec<DraftIndex>) {
    let mut drafts: Vec<Draft<'a>> = Vec::with_capacity(jobs.len());
    let mut places = Vec::with_capacity(jobs.len());
    let mut seen: HashMap<(String, String), usize> = HashMap::new();
    for job in jobs {
        let draft = draft(now, pipeline, job);
        let same = draft.key.clone().map(|key| (draft.lock.clone(), key));
        if let Some(index) = same.as_ref().and_then(|same| seen.get(same)) {
            let first = &mut drafts[*index];
            first.payload = draft.payload;
            first.priority = first.priority.min(draft.priority);
            first.due = first.due.min(draft.due);
            if first.due <= now && first.state == State::Delayed {
                first.state = State::Ready;
            }
            places.push(DraftIndex { draft: *index, coalesced: true });
            continue;
        }
        if let Some(same) = same {
            seen.insert(same, drafts.len());
        }
        places.push(DraftIndex { draft: drafts.len(), coalesced: false });
        drafts.push(draft);
    }
    (drafts, places)
}

pub(crate) fn draft<'a>(now: Micros, pipeline: &Pipeline, job: &'a NewJob) -> Draft<'a> {
    let lock = job.lock.clone().unwrap_or_else(|| default_lock(pipeline, &job.subject));
    let due = job.due.unwrap_or(now);
    Draft {
        job,
        id: JobId::default(),
        key: coalesce_key(pipeline, &job.subject, &lock, job.batch),
        lock,
        priority: job.priority.unwrap_or(PRIORITY_DEFAULT),
        due,
        targets: lines(&job.targets),
        needs: (!job.needs.is_empty()).then(|| serde_json::json!(job.needs).to_string()),
        payload: job.payload.as_deref(),
        state: if due > now { State::Delayed } else { State::Ready },
        held_by: None,
    }
}

pub(crate) fn default_lock(pipeline: &Pipeline, subject: &str) -> String {
    format!("queue/{}/{subject}", pipeline.name)
}

/// Jobs of one lock with the same key are one job while they wait. Batches never share a key. The
/// lock is part of the index, so the subject is repeated only where the lock does not imply it.
pub(crate) fn coalesce_key(
    pipeline: &Pipeline,
    subject: &str,
    lock: &str,
    batch: Option<BatchId>,
) -> Option<String> {
    if !pipeline.coalesces {
        return None;
    }
    let batch = batch.unwrap_or_default();
    Some(match lock == default_lock(pipeline, subject) {
        true => batch.to_string(),
        false => format!("{batch}/{}/{subject}", pipeline.name),
    })
}

pub(crate) fn lines(names: &[String]) -> Option<String> {
    (!names.is_empty()).then(|| names.join("\n"))
}
