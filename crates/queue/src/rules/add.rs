//! Adding: an acknowledged add is never lost (I1), and with coalescing a subject that waits
//! already is one job, not two.

use crate::catalog::Pipeline;
use crate::codes::{State, Status};
use crate::error::{Error, Result};
use crate::job::{Added, JobError, NewJob, PRIORITY_DEFAULT};
use crate::rules::counts::Counts;
use crate::rules::history::{Event, Journal, Weight};
use crate::rules::line::{self, Ahead};
use crate::rules::people::hold;
use db::{Engine, Micros, Statement, Tx, Value, statement};
use std::collections::{HashMap, HashSet};

/// A lock or a coalescing key is at most this long.
const LOCK_BYTES_MAX: usize = 16 * 1024;
const TARGETS_MAX: usize = 32;

const ENTER: Statement = statement!("sql/enter_pipeline", per engine);

/// A new job with everything worked out that needs no database.
struct Draft<'a> {
    job: &'a NewJob,
    /// 0 until it is given one.
    id: i64,
    lock: String,
    key: Option<String>,
    priority: i64,
    due: Micros,
    targets: Option<String>,
    needs: Option<String>,
    payload: Option<&'a [u8]>,
    state: State,
    held_by: Option<String>,
}

impl Draft<'_> {
    /// The lock it would take now.
    fn lock_wanted(&self) -> Option<&str> {
        (self.state == State::Ready).then_some(self.lock.as_str())
    }
}

/// Which draft a job of the call became, and whether an earlier one had become it already.
struct Place {
    draft: usize,
    coalesced: bool,
}

/// What whoever adds jobs is given.
struct Entered {
    /// The jobs' ids, ascending.
    ids: Vec<i64>,
    /// Whether anything is held at all.
    holds: bool,
    /// Who stands before them in the lines for their locks.
    ahead: HashMap<String, Ahead>,
}

/// Adds jobs to the first stage of a pipeline, all or none of them.
pub fn add(
    tx: &mut Tx<'_>,
    now: Micros,
    pipeline: &Pipeline,
    who: &str,
    jobs: &[NewJob],
) -> Result<Vec<Added>> {
    Counts::lock(tx, jobs.iter().filter_map(|job| job.batch))?;
    let (added, counts) = insert(tx, now, pipeline, who, jobs)?;
    counts.write(tx, now)?;
    Ok(added)
}

/// As [`add`], for jobs that their batch has counted already.
pub(crate) fn add_counted(
    tx: &mut Tx<'_>,
    now: Micros,
    pipeline: &Pipeline,
    who: &str,
    jobs: &[NewJob],
) -> Result<Vec<Added>> {
    Ok(insert(tx, now, pipeline, who, jobs)?.0)
}

fn insert(
    tx: &mut Tx<'_>,
    now: Micros,
    pipeline: &Pipeline,
    who: &str,
    jobs: &[NewJob],
) -> Result<(Vec<Added>, Counts)> {
    for job in jobs {
        check(pipeline, job)?;
    }
    let (mut drafts, places) = draft_all(now, pipeline, jobs);
    let at_once = add_at_once(tx, now, pipeline, who, &mut drafts)?;
    let recorded = at_once.is_some();
    let merged = match at_once {
        Some(merged) => merged,
        None => line_up(tx, now, pipeline, &mut drafts)?,
    };
    let answers = places
        .into_iter()
        .map(|Place { draft, coalesced }| match merged.get(&drafts[draft].id) {
            Some(existing) => Added { job: *existing, coalesced: true },
            None => Added { job: drafts[draft].id, coalesced },
        })
        .collect();
    let new: Vec<&Draft<'_>> = drafts.iter().filter(|d| !merged.contains_key(&d.id)).collect();
    if !recorded {
        insert_jobs(tx, now, pipeline, who, &new)?;
    }
    renew_payloads(tx, &drafts, &merged)?;

    let (mut journal, mut counts) = (Journal::default(), Counts::default());
    for draft in new {
        let status = if draft.state == State::Held { Status::Held } else { Status::Queued };
        let event = Event::new(draft.id, now, who, "added").to(pipeline.first().id, status);
        journal.note(pipeline, Weight::Step, event);
        counts.moved(draft.job.batch, None, status);
    }
    for draft in drafts.iter().filter(|d| merged.contains_key(&d.id)) {
        let event = Event::new(merged[&draft.id], now, who, "added again")
            .why("the payload is now the newer one");
        journal.note(pipeline, Weight::Step, event);
    }
    journal.write(tx)?;
    tx.wake(pipeline.first().id);
    Ok((answers, counts))
}

/// Adds a job that is known to be bad: recorded and reported, and never requeued.
pub fn add_failed(
    tx: &mut Tx<'_>,
    now: Micros,
    pipeline: &Pipeline,
    who: &str,
    job: &NewJob,
    error: &JobError,
) -> Result<i64> {
    check(pipeline, job)?;
    Counts::lock(tx, job.batch.into_iter())?;
    let ids = tx.next_ids("job_ids", 1)?;
    let draft = Draft { id: ids[0], ..draft(now, pipeline, job) };
    insert_jobs(tx, now, pipeline, who, &[&draft])?;
    let place = crate::rules::ending::Ending {
        job: ids[0],
        stage: pipeline.first().id,
        from: Status::Queued,
        batch: None,
        subject: &job.subject,
        lock: &draft.lock,
    };
    let (mut journal, mut counts) = (Journal::default(), Counts::default());
    counts.moved(job.batch, None, Status::Failed);
    let verdict = crate::rules::ending::Verdict {
        error,
        note: "refused when it was added",
        recoverable: false,
    };
    crate::rules::ending::fail(
        tx,
        now,
        pipeline,
        who,
        &place,
        &verdict,
        &mut journal,
        &mut Counts::default(),
    )?;
    journal.write(tx)?;
    counts.write(tx, now)?;
    Ok(ids[0])
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
fn draft_all<'a>(
    now: Micros,
    pipeline: &Pipeline,
    jobs: &'a [NewJob],
) -> (Vec<Draft<'a>>, Vec<Place>) {
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
            places.push(Place { draft: *index, coalesced: true });
            continue;
        }
        if let Some(same) = same {
            seen.insert(same, drafts.len());
        }
        places.push(Place { draft: drafts.len(), coalesced: false });
        drafts.push(draft);
    }
    (drafts, places)
}

fn draft<'a>(now: Micros, pipeline: &Pipeline, job: &'a NewJob) -> Draft<'a> {
    let lock = job.lock.clone().unwrap_or_else(|| default_lock(pipeline, &job.subject));
    let due = job.due.unwrap_or(now);
    Draft {
        job,
        id: 0,
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
    batch: Option<i64>,
) -> Option<String> {
    if !pipeline.coalesces {
        return None;
    }
    let batch = batch.unwrap_or(0);
    Some(match lock == default_lock(pipeline, subject) {
        true => batch.to_string(),
        false => format!("{batch}/{}/{subject}", pipeline.name),
    })
}

pub(crate) fn lines(names: &[String]) -> Option<String> {
    (!names.is_empty()).then(|| names.join("\n"))
}

/// Adding to a held batch or collection is accepted, as held.
fn hold_back(tx: &mut Tx<'_>, drafts: &mut [Draft<'_>]) -> Result<()> {
    let held = hold::held_names_locked(tx)?;
    for draft in drafts {
        if let Some(by) = held.of(draft.job.batch, draft.job.collection.as_deref()) {
            draft.state = State::Held;
            draft.held_by = Some(by.to_string());
        }
    }
    Ok(())
}

/// Gives the jobs their ids and their places in the lines for their locks; those that met a waiting
/// job of their key are returned with its id.
fn line_up(
    tx: &mut Tx<'_>,
    now: Micros,
    pipeline: &Pipeline,
    drafts: &mut [Draft<'_>],
) -> Result<HashMap<i64, i64>> {
    let Entered { ids, holds, ahead } = enter(tx, pipeline, drafts)?;
    drafts.iter_mut().zip(ids).for_each(|(draft, id)| draft.id = id);
    if holds {
        hold_back(tx, drafts)?;
    }
    park(pipeline, drafts, &ahead);
    insert_waiting(tx, now, pipeline, drafts)
}

/// Adds one job in one round trip; those that met a waiting job of their key are returned with its id,
/// as by [`line_up`]. None, and nothing is done, if that takes a closer look: there are holds, or the
/// queue is gone.
fn add_at_once(
    tx: &mut Tx<'_>,
    now: Micros,
    pipeline: &Pipeline,
    who: &str,
    drafts: &mut [Draft<'_>],
) -> Result<Option<HashMap<i64, i64>>> {
    const AT_ONCE: Statement = statement!("sql/add_at_once", per engine);
    let [draft] = drafts else { return Ok(None) };
    if !pipeline.coalesces || tx.engine() == Engine::Sqlite {
        return Ok(None);
    }
    tx.send(&ENTER, &db::params![pipeline.id])?;
    let params = db::params![
        now,
        pipeline.first().id,
        pipeline.id,
        draft.state,
        draft.priority,
        draft.due,
        &draft.lock,
        &draft.key,
        draft.job.batch,
        &draft.job.collection,
        &draft.targets,
        &draft.job.workspace,
        &draft.needs,
        &draft.job.subject,
        draft.payload,
        who
    ];
    let Some((id, fresh)) = tx.first::<(i64, i64)>(&AT_ONCE, &params)? else { return Ok(None) };
    draft.id = fresh;
    Ok(Some(HashMap::from_iter((id != fresh).then_some((fresh, id)))))
}

/// Makes sure that jobs are not added to a queue that is gone, or is about to be: whoever deletes
/// it waits for those who add, and those who come later see that it is deleted. Coalescing
/// pipelines look at owners of locks only: their waiting jobs merge instead of lining up.
fn enter(tx: &mut Tx<'_>, pipeline: &Pipeline, drafts: &[Draft<'_>]) -> Result<Entered> {
    const ADDS: Statement = statement!("sql/enter_adds", per engine);
    let gone = || Error::unknown("queue", &pipeline.name, "it was deleted; create it again");
    let waiting_too = !pipeline.coalesces;
    if tx.engine() == Engine::Sqlite {
        let holds = tx.first::<(bool,)>(&ADDS, &db::params![pipeline.id])?.ok_or_else(gone)?.0;
        let locks = drafts.iter().filter_map(Draft::lock_wanted).collect();
        let ahead = line::ahead(tx, &locks, waiting_too)?;
        return Ok(Entered { ids: tx.next_ids("job_ids", drafts.len())?, holds, ahead });
    }
    tx.send(&ENTER, &db::params![pipeline.id])?;
    let rows: Vec<[Value<'_>; 1]> = drafts.iter().map(|d| [Value::from(d.lock_wanted())]).collect();
    let common = db::params![pipeline.id, waiting_too];
    let (mut ids, mut line, mut holds) = (Vec::with_capacity(drafts.len()), Vec::new(), false);
    for (id, held, lock, owns) in
        tx.each::<(i64, bool, Option<String>, bool), 1>(&ADDS, &common, &rows)?
    {
        match lock {
            Some(lock) => line.push((lock, id, owns)),
            None => ids.push(id),
        }
        holds |= held;
    }
    if ids.len() < drafts.len() {
        return Err(gone());
    }
    ids.sort_unstable();
    Ok(Entered { ids, holds, ahead: line::in_line(line) })
}

/// Parks jobs that must wait for their lock.
fn park(pipeline: &Pipeline, drafts: &mut [Draft<'_>], ahead: &HashMap<String, Ahead>) {
    let mut in_line: HashSet<String> = HashSet::new();
    for draft in drafts.iter_mut().filter(|d| d.state == State::Ready) {
        let busy = ahead.get(&draft.lock).is_some_and(|a| a.blocks(draft.id));
        let behind_earlier = !pipeline.coalesces && !in_line.insert(draft.lock.clone());
        if busy || behind_earlier {
            draft.state = State::Parked;
        }
    }
}

/// Inserts the waiting rows; those that met a waiting job of their key are returned with its id.
fn insert_waiting(
    tx: &mut Tx<'_>,
    now: Micros,
    pipeline: &Pipeline,
    drafts: &[Draft<'_>],
) -> Result<HashMap<i64, i64>> {
    const INSERT: Statement = statement!("sql/insert_waiting", per engine);
    let mut order: Vec<&Draft<'_>> = drafts.iter().collect();
    if tx.engine() == Engine::Postgres {
        // One order for everyone, so that two bulk adds of the same subjects cannot deadlock. On
        // SQLite, where there is one writer, the order of their ids fills pages from the end.
        order.sort_by(|a, b| (&a.lock, &a.key, a.id).cmp(&(&b.lock, &b.key, b.id)));
    }
    let rows: Vec<[Value<'_>; 12]> = order
        .iter()
        .map(|d| {
            db::params![
                d.id,
                d.state,
                d.priority,
                d.due,
                &d.lock,
                &d.key,
                d.job.batch,
                &d.job.collection,
                &d.targets,
                &d.job.workspace,
                &d.needs,
                &d.held_by
            ]
        })
        .collect();
    let common = db::params![now, pipeline.first().id];
    if tx.engine() == Engine::Sqlite {
        let new = tx.each_hit(&INSERT, &common, &rows, 0)?;
        let met = order.iter().zip(new).filter(|(_, new)| !new);
        return met.map(|(draft, _)| Ok((draft.id, merge(tx, draft)?))).collect();
    }
    let ids: Vec<(i64, String, Option<String>)> = tx.each(&INSERT, &common, &rows)?;
    let kept: HashMap<(String, Option<String>), i64> = ids
        .iter()
        .filter(|r| r.2.is_some())
        .map(|(id, lock, key)| ((lock.clone(), key.clone()), *id))
        .collect();
    Ok(drafts
        .iter()
        .filter(|d| d.key.is_some())
        .filter_map(|d| {
            let id = kept.get(&(d.lock.clone(), d.key.clone()))?;
            (*id != d.id).then_some((d.id, *id))
        })
        .collect())
}

/// Merges a job into the waiting one of its key: the more urgent priority, the earlier due time.
fn merge(tx: &mut Tx<'_>, draft: &Draft<'_>) -> Result<i64> {
    const MERGE: Statement = statement!("sql/merge_waiting");
    let params = db::params![&draft.lock, &draft.key, draft.priority, draft.due];
    Ok(tx.one::<(i64,)>(&MERGE, &params)?.0)
}

fn insert_jobs(
    tx: &mut Tx<'_>,
    now: Micros,
    pipeline: &Pipeline,
    who: &str,
    drafts: &[&Draft<'_>],
) -> Result<()> {
    const INSERT: Statement = statement!("sql/insert_jobs", per engine);
    let rows: Vec<[Value<'_>; 10]> = drafts
        .iter()
        .map(|d| {
            db::params![
                d.id,
                &d.job.subject,
                &d.lock,
                d.job.batch,
                &d.job.collection,
                d.priority,
                d.payload,
                &d.targets,
                &d.job.workspace,
                &d.needs
            ]
        })
        .collect();
    let common = db::params![now, pipeline.id, who];
    tx.send_each(&INSERT, &common, &rows)?;
    Ok(())
}

/// A job that was added again has the newer payload and the more urgent priority.
fn renew_payloads(tx: &mut Tx<'_>, drafts: &[Draft<'_>], merged: &HashMap<i64, i64>) -> Result<()> {
    const RENEW: Statement = statement!("sql/renew_payload");
    for draft in drafts {
        if let Some(existing) = merged.get(&draft.id) {
            tx.send(&RENEW, &db::params![*existing, draft.payload, draft.priority])?;
        }
    }
    Ok(())
}
