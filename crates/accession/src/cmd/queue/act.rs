//! What people do with jobs: each action takes a reason and is kept with who did it.

use super::define::told;
use crate::cli::{Global, number};
use crate::error_code::ErrorCode;
use crate::exit::{Exit, Failure};
use crate::output;
use crate::session::{Act, Session, parse_duration};
use archive::intake::cancelling;
use queue::rules::batch;
use queue::rules::operator::hold::{self, Group, JobHold};
use queue::rules::operator::pause::{self as pause_rule, Scope};
use queue::rules::operator::{
    Actor, cancel as cancel_rule, requeue as requeue_rule, retry as retry_rule,
};
use queue::rules::prune as prune_rule;
use queue::{BatchId, Catalog, JobId, Result as QueueResult};
use serde_json::json;
use std::time::Duration;

const STEP: i64 = 500;

/// Does one thing for each job; all of them or none.
fn for_jobs<T: Send + 'static>(
    session: &Session,
    jobs: &[JobId],
    act: &Act,
    each: impl Fn(&mut db::Tx<'_>, db::Micros, &Catalog, Actor<'_>, JobId) -> QueueResult<T>
    + Send
    + 'static,
) -> Result<Vec<T>, Failure> {
    let (jobs, who, reason) = (jobs.to_vec(), act.who(), act.reason.clone());
    session.write(move |tx, now, catalog| {
        let actor = Actor { who: &who, reason: &reason };
        jobs.iter().map(|job| each(tx, now, catalog, actor, *job)).collect()
    })
}

#[derive(clap::Args)]
#[command(after_help = "Examples:
  accession queue retry files --dry-run
  accession queue retry files --code timeout --reason 'network is back'
  accession jobs retry --batch 3 --reason 'the disk was replaced'
  accession jobs retry --all --dry-run")]
pub struct Retry {
    /// Only this queue, or one stage of it: ingest/validating
    name: Option<String>,
    /// Only failures in this stage (needs a queue)
    #[arg(long, requires = "name")]
    stage: Option<String>,
    /// Only failures with this error code
    #[arg(long)]
    code: Option<String>,
    /// Only failures that name this target
    #[arg(long)]
    target: Option<String>,
    /// Only failures of this batch
    #[arg(value_parser = number::<BatchId>, long)]
    batch: Option<BatchId>,
    /// Every failed job of every queue
    #[arg(long, conflicts_with_all = ["name", "code", "target", "batch"])]
    all: bool,
    /// Say how many, and change nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    act: Act,
}

pub fn retry(args: Retry, global: &Global) -> Result<Exit, Failure> {
    let filtered =
        args.name.is_some() || args.code.is_some() || args.target.is_some() || args.batch.is_some();
    if !(filtered || args.all || args.dry_run) {
        return Err(Failure::refused(
            ErrorCode::NoFilter,
            "this would requeue every failed job of every queue; name a queue, --code, --target or --batch, or say --all",
        ));
    }
    let session = Session::open(global)?;
    let (name, stage) = (args.name.clone(), args.stage.clone());
    let (pipeline, stage) = session.read(move |_, _, catalog| {
        let Some(name) = &name else { return Ok((None, None)) };
        let (pipeline, named) = catalog.place(name)?;
        let stage = stage.as_deref().map(|s| pipeline.stage_named(s)).transpose()?.or(named);
        Ok((Some(pipeline.id), stage.map(|s| s.id)))
    })?;
    let filter = retry_rule::Filter {
        pipeline,
        stage,
        code: args.code.clone(),
        target: args.target.clone(),
        batch: args.batch,
    };
    let (mut total, mut after) = (retry_rule::Retried::default(), Some(JobId::default()));
    while let Some(from) = after {
        let (act, filter, dry) = (args.act.clone(), filter.clone(), args.dry_run);
        let step = session.write(move |tx, now, catalog| {
            retry_rule::retry(
                tx,
                now,
                catalog,
                Actor { who: &act.who(), reason: &act.reason },
                &filter,
                dry,
                from,
                STEP,
            )
        })?;
        total.requeued += step.requeued;
        total.superseded += step.superseded;
        total.refused += step.refused;
        after = step.next;
    }
    let json = json!({"dry_run": args.dry_run, "requeued": total.requeued, "superseded": total.superseded, "refused": total.refused});
    let would = if args.dry_run { "would be " } else { "" };
    let sentence = format!(
        "{} {would}requeued, {} {would}superseded by newer ones of other batches, {} cannot be",
        output::count(total.requeued, "failed job"),
        total.superseded,
        total.refused
    );
    told(&session, &json, &sentence)
}

#[derive(clap::Args)]
pub struct Requeue {
    /// The jobs' numbers
    #[arg(value_parser = number::<JobId>, required = true)]
    jobs: Vec<JobId>,
    /// The stage to go back to (default: the one it failed in)
    #[arg(long, value_name = "STAGE")]
    to: Option<String>,
    #[command(flatten)]
    act: Act,
}

pub fn requeue(args: Requeue, global: &Global) -> Result<Exit, Failure> {
    let session = Session::open(global)?;
    let to = args.to.clone();
    let done = for_jobs(&session, &args.jobs, &args.act, move |tx, now, catalog, actor, job| {
        let done = requeue_rule::requeue(tx, now, catalog, actor, job, to.as_deref())?;
        Ok((done.job, catalog.stage_name(done.stage), done.status))
    })?;
    let json: Vec<_> = done
        .iter()
        .map(|(job, stage, status)| json!({"id": job, "stage": stage, "status": status}))
        .collect();
    let lines: Vec<String> = done
        .iter()
        .map(|(job, stage, status)| format!("job {job} is {status} in {stage}"))
        .collect();
    told(&session, &json!({"jobs": json}), &lines.join("\n"))
}

#[derive(clap::Args)]
pub struct Discard {
    /// The jobs' numbers
    #[arg(value_parser = number::<JobId>, required = true)]
    jobs: Vec<JobId>,
    #[command(flatten)]
    act: Act,
}

pub fn discard(args: Discard, global: &Global) -> Result<Exit, Failure> {
    let session = Session::open(global)?;
    for_jobs(&session, &args.jobs, &args.act, |tx, _, catalog, actor, job| {
        archive::scheduler::janitor::release_failed(tx, catalog, actor, job)
    })?;
    told(
        &session,
        &json!({"discarded": args.jobs}),
        &format!(
            "the data of {} is discarded; workers remove it from their work space within a minute, and a requeue starts again from the first stage",
            output::count(args.jobs.len(), "job")
        ),
    )
}

/// Jobs by number, or a batch, or a collection.
#[derive(clap::Args)]
#[group(required = true, multiple = false)]
struct Which {
    /// The jobs' numbers
    #[arg(value_parser = number::<JobId>)]
    jobs: Vec<JobId>,
    /// This batch
    #[arg(value_parser = number::<BatchId>, long)]
    batch: Option<BatchId>,
    /// This collection
    #[arg(long)]
    collection: Option<String>,
}

#[derive(clap::Args)]
pub struct Hold {
    #[command(flatten)]
    which: Which,
    #[command(flatten)]
    act: Act,
}

/// Repeats a chunked step until it has been through all members of a group.
fn through(mut step: impl FnMut(JobId) -> Result<Option<JobId>, Failure>) -> Result<(), Failure> {
    let mut after = Some(JobId::default());
    while let Some(from) = after {
        after = step(from)?;
    }
    Ok(())
}

fn group_of(which: &Which) -> Option<(Option<BatchId>, Option<String>)> {
    (which.batch.is_some() || which.collection.is_some())
        .then(|| (which.batch, which.collection.clone()))
}

fn as_group(group: &(Option<BatchId>, Option<String>)) -> Group<'_> {
    match group {
        (Some(batch), _) => Group::Batch(*batch),
        (None, name) => Group::Collection(name.as_deref().unwrap_or_default()),
    }
}

/// Holds a collection and all its jobs.
pub fn hold_collection(session: &Session, name: &str, act: &Act) -> Result<(), Failure> {
    hold_members(session, &(None, Some(name.to_string())), act)
}

/// Lifts the hold of a collection; its jobs go on, or stay held for release one by one.
pub fn release_collection(
    session: &Session,
    name: &str,
    act: &Act,
    leave_jobs_held: bool,
) -> Result<(), Failure> {
    release_members(session, &(None, Some(name.to_string())), act, leave_jobs_held)
}

type Named = (Option<BatchId>, Option<String>);

fn hold_members(session: &Session, group: &Named, act: &Act) -> Result<(), Failure> {
    let (doing, it) = (act.clone(), group.clone());
    session.write(move |tx, now, _| {
        let actor = Actor { who: &doing.who(), reason: &doing.reason };
        match as_group(&it) {
            Group::Batch(batch) => batch::hold(tx, now, actor, batch),
            group => hold::hold_group(tx, now, actor, group),
        }
    })?;
    through(|after| {
        let (act, it) = (act.clone(), group.clone());
        session.write(move |tx, now, catalog| {
            hold::flip_held(
                tx,
                now,
                catalog,
                Actor { who: &act.who(), reason: &act.reason },
                as_group(&it),
                after,
                STEP,
            )
        })
    })
}

fn release_members(
    session: &Session,
    group: &Named,
    act: &Act,
    leave_jobs_held: bool,
) -> Result<(), Failure> {
    let it = group.clone();
    session.write(move |tx, now, _| match as_group(&it) {
        Group::Batch(batch) => batch::release(tx, now, batch),
        group => hold::release_group(tx, group),
    })?;
    through(|after| {
        let (act, it) = (act.clone(), group.clone());
        session.write(move |tx, now, catalog| match leave_jobs_held {
            true => hold::keep_held(tx, now, as_group(&it), after, STEP),
            false => hold::flip_released(
                tx,
                now,
                catalog,
                Actor { who: &act.who(), reason: &act.reason },
                as_group(&it),
                after,
                STEP,
            ),
        })
    })
}

/// What becomes of the jobs of a batch or collection that is held.
pub const HELD_GROUP: &str =
    "held; running jobs finish their stage, and those that are being recorded go on to the end";

pub fn hold(args: Hold, global: &Global) -> Result<Exit, Failure> {
    let session = Session::open(global)?;
    let Some(group) = group_of(&args.which) else {
        let done = for_jobs(&session, &args.which.jobs, &args.act, hold::hold_job)?;
        let lines: Vec<String> = args
            .which
            .jobs
            .iter()
            .zip(done)
            .map(|(job, done)| match done {
                JobHold::Now => format!("job {job} is held"),
                JobHold::AfterRun => {
                    format!("job {job} is running; it finishes its stage, and is held then")
                }
            })
            .collect();
        return told(&session, &json!({"held": args.which.jobs}), &lines.join("\n"));
    };
    hold_members(&session, &group, &args.act)?;
    told(&session, &json!({"held": {"batch": group.0, "collection": group.1}}), HELD_GROUP)
}

#[derive(clap::Args)]
pub struct Release {
    #[command(flatten)]
    which: Which,
    /// Lift the hold, and leave its jobs held for release one by one
    #[arg(long, conflicts_with = "jobs")]
    leave_jobs_held: bool,
    #[command(flatten)]
    act: Act,
}

pub fn release(args: Release, global: &Global) -> Result<Exit, Failure> {
    let session = Session::open(global)?;
    let Some(group) = group_of(&args.which) else {
        for_jobs(&session, &args.which.jobs, &args.act, hold::release_job)?;
        return told(
            &session,
            &json!({"released": args.which.jobs}),
            &format!("{} released", output::count(args.which.jobs.len(), "job")),
        );
    };
    release_members(&session, &group, &args.act, args.leave_jobs_held)?;
    told(&session, &json!({"released": {"batch": group.0, "collection": group.1}}), "released")
}

#[derive(clap::Args)]
pub struct Cancel {
    /// The jobs' numbers
    #[arg(value_parser = number::<JobId>, required_unless_present = "batch")]
    jobs: Vec<JobId>,
    /// All jobs of this batch
    #[arg(value_parser = number::<BatchId>, long, conflicts_with = "jobs")]
    batch: Option<BatchId>,
    #[command(flatten)]
    act: Act,
}

/// Whether the batch had no jobs yet. It would get them all the same: it fails instead, and is
/// reported.
fn fail_pending(tx: &mut db::Tx<'_>, now: db::Micros, id: BatchId, act: &Act) -> QueueResult<bool> {
    let why = format!("cancelled by {}: {}", act.who(), act.reason);
    match batch::fail(tx, now, id, &why) {
        Ok(_) => return Ok(true),
        Err(queue::Error::Refused(_)) => {}
        Err(error) => return Err(error),
    }
    let found = batch::load(tx, id)?;
    if found.open == 0 && found.failed == 0 {
        return Err(queue::Error::Refused(format!(
            "batch {id} is {}; there is nothing left to cancel",
            found.state
        )));
    }
    Ok(false)
}

pub fn cancel(args: Cancel, global: &Global) -> Result<Exit, Failure> {
    let session = Session::open(global)?;
    if let Some(id) = args.batch {
        let act = args.act.clone();
        let unbegun = session.write(move |tx, now, _| fail_pending(tx, now, id, &act))?;
        through(|after| {
            let act = args.act.clone();
            session.write(move |tx, now, catalog| {
                cancelling::cancel_some(
                    tx,
                    now,
                    catalog,
                    Actor { who: &act.who(), reason: &act.reason },
                    id,
                    after,
                    STEP,
                )
            })
        })?;
        let sentence = match unbegun {
            true => format!("batch {id} is cancelled; none of it had begun"),
            false => format!(
                "the jobs of batch {id} are cancelled; running ones stop at their next checkpoint"
            ),
        };
        return told(&session, &json!({"cancelled": {"batch": id}}), &sentence);
    }
    let done = for_jobs(&session, &args.jobs, &args.act, cancel_rule::cancel)?;
    let requested = |c: &cancel_rule::Cancelled| *c == cancel_rule::Cancelled::Requested;
    let lines: Vec<String> = args
        .jobs
        .iter()
        .zip(&done)
        .map(|(job, c)| match requested(c) {
            true => format!("job {job} is running; it has been asked to stop"),
            false => format!("job {job} is cancelled"),
        })
        .collect();
    let json: Vec<_> = args
        .jobs
        .iter()
        .zip(&done)
        .map(|(job, c)| json!({"id": job, "requested": requested(c)}))
        .collect();
    told(&session, &json!({"jobs": json}), &lines.join("\n"))
}

#[derive(clap::Args)]
#[group(skip)]
struct Where {
    /// The queue's name, or one stage of it: ingest/validating
    #[arg(required_unless_present = "all")]
    name: Option<String>,
    /// Only this stage of it
    #[arg(long)]
    stage: Option<String>,
    /// Everything
    #[arg(long, conflicts_with = "name")]
    all: bool,
}

impl Where {
    fn scope(&self, catalog: &Catalog) -> QueueResult<Scope> {
        let Some(name) = &self.name else { return Ok(Scope::Everything) };
        let (pipeline, named) = catalog.place(name)?;
        match (&self.stage, named) {
            (Some(stage), _) => Ok(Scope::Stage(pipeline.stage_named(stage)?.id)),
            (None, Some(stage)) => Ok(Scope::Stage(stage.id)),
            (None, None) => Ok(Scope::Pipeline(pipeline.id)),
        }
    }

    fn shown(&self) -> String {
        match (&self.name, &self.stage) {
            (None, _) => "everything".to_string(),
            (Some(name), None) => name.clone(),
            (Some(_), Some(stage)) if stage.contains('/') => stage.clone(),
            (Some(name), Some(stage)) => format!("{name}/{stage}"),
        }
    }
}

#[derive(clap::Args)]
pub struct Pause {
    #[command(flatten)]
    place: Where,
    #[command(flatten)]
    act: Act,
}

pub fn pause(args: Pause, global: &Global) -> Result<Exit, Failure> {
    let session = Session::open(global)?;
    let shown = args.place.shown();
    session.write(move |tx, now, catalog| {
        let scope = args.place.scope(catalog)?;
        pause_rule::pause(
            tx,
            now,
            catalog,
            Actor { who: &args.act.who(), reason: &args.act.reason },
            scope,
        )
    })?;
    told(
        &session,
        &json!({"paused": shown}),
        &format!("{shown} is paused; running work finishes, and adding goes on"),
    )
}

#[derive(clap::Args)]
pub struct Unpause {
    #[command(flatten)]
    place: Where,
}

pub fn unpause(args: Unpause, global: &Global) -> Result<Exit, Failure> {
    let session = Session::open(global)?;
    let shown = args.place.shown();
    session.write(move |tx, _, catalog| {
        let scope = args.place.scope(catalog)?;
        pause_rule::unpause(tx, catalog, scope)
    })?;
    told(&session, &json!({"unpaused": shown}), &format!("{shown} goes on"))
}

#[derive(clap::Args)]
#[command(after_help = "Example:\n  accession queue prune --ended-before 30d")]
pub struct Prune {
    /// Everything that ended longer ago than this (default: each queue's retention_seconds)
    #[arg(long, value_parser = parse_duration, value_name = "TIME")]
    ended_before: Option<Duration>,
}

pub fn prune(args: Prune, global: &Global) -> Result<Exit, Failure> {
    let session = Session::open(global)?;
    let ago = args.ended_before.map(|d| i64::try_from(d.as_micros()).unwrap_or(i64::MAX));
    let mut pruned = 0;
    through(|after| {
        let step = session.write(move |tx, now, catalog| {
            prune_rule::prune(tx, now, catalog, ago.map(|ago| now.saturating_sub(ago)), after, STEP)
        })?;
        pruned += step.jobs;
        Ok(step.next)
    })?;
    session.write(|tx, now, _| prune_rule::prune_traces(tx, now))?;
    told(
        &session,
        &json!({"pruned": pruned}),
        &format!("{} and their history removed", output::count(pruned, "ended job")),
    )
}

fn whole_batch(batch: BatchId) -> Which {
    Which { jobs: Vec::new(), batch: Some(batch), collection: None }
}

pub fn hold_batch(batch: BatchId, act: &Act, global: &Global) -> Result<Exit, Failure> {
    hold(Hold { which: whole_batch(batch), act: act.clone() }, global)
}

pub fn release_batch(batch: BatchId, act: &Act, global: &Global) -> Result<Exit, Failure> {
    let which = whole_batch(batch);
    release(Release { which, leave_jobs_held: false, act: act.clone() }, global)
}

pub fn cancel_batch(batch: BatchId, act: &Act, global: &Global) -> Result<Exit, Failure> {
    cancel(Cancel { jobs: Vec::new(), batch: Some(batch), act: act.clone() }, global)
}
