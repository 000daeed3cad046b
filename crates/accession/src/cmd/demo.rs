//! `accession demo`: a queue with failures, a hold and a re-add, worked before your eyes.

use crate::cli::Global;
use crate::exit::{Exit, Failure};
use crate::output;
use crate::session::{Session, os_user};
use db::Options;
use queue::rules::add::add;
use queue::rules::people::{Actor, hold, requeue};
use queue::rules::pipelines::{self, PipelineSpec};
use queue::runtime::{Context, Settings, Stop, Summary, Work, Worker};
use queue::view::{self, ListFilter};
use queue::{Claimed, JobError, NewJob, Outcome, Status};
use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::watch;

const QUEUE: &str = "demo";

#[derive(clap::Args)]
#[command(
    after_help = "The demo works in a fresh directory of its own and tells you where it is, so that you can look
around in it with the other commands."
)]
pub struct Args {
    /// How many subjects
    #[arg(long, default_value_t = 300)]
    subjects: u64,
}

/// Every tenth subject fails once and then works; every fiftieth is broken until it is mended.
#[derive(Clone, Default)]
struct Ward {
    seen: Arc<Mutex<HashSet<String>>>,
    mended: Arc<Mutex<bool>>,
}

impl Work for Ward {
    async fn run(&self, job: &Claimed, _: &Context) -> Outcome {
        tokio::time::sleep(Duration::from_millis(2)).await;
        let number: u64 = job.subject.trim_start_matches("letter-").parse().unwrap_or(1);
        let first =
            self.seen.lock().unwrap_or_else(PoisonError::into_inner).insert(job.subject.clone());
        let mended = *self.mended.lock().unwrap_or_else(PoisonError::into_inner);
        if number.is_multiple_of(50) && !mended {
            return Outcome::Permanent(JobError::new(
                "ink_faded",
                format!("{} cannot be read; find a better scan", job.subject),
            ));
        }
        if number.is_multiple_of(10) && first {
            return Outcome::Transient(JobError::new(
                "lamp_flickered",
                "the light went out; trying again helps",
            ));
        }
        Outcome::success()
    }
}

pub fn run(args: Args, global: &Global) -> Result<Exit, Failure> {
    let dir = tempfile::Builder::new().prefix("accession-demo-").tempdir()?.keep();
    let global = Global { data: Some(dir.clone()), database: None, ..global.clone() };
    let session = Session::open_with(&global, Options::default())?;
    let say = |text: &str| if global.json { Ok(()) } else { output::line(text) };

    say(&format!("A queue in {}", dir.display()))?;
    session.write(|tx, now, _| {
        let mut spec = PipelineSpec::queue(QUEUE);
        spec.full_history = true;
        spec.stages[0].1.workers = 8;
        spec.stages[0].1.buffer = 16;
        spec.stages[0].1.backoff_seconds = 1;
        pipelines::create(tx, now, "demo", &spec)
    })?;
    let count = args.subjects.max(60);
    let jobs: Vec<NewJob> = (1..=count).map(|n| NewJob::new(format!("letter-{n}"))).collect();
    let added = session
        .write(move |tx, now, catalog| add(tx, now, catalog.named(QUEUE)?, "demo", &jobs))?;
    let (first, held) = (added[0].job, added[6].job);
    say(&format!("{count} subjects added"))?;
    let again = session.write(|tx, now, catalog| {
        add(tx, now, catalog.named(QUEUE)?, "demo", &[NewJob::new("letter-1")])
    })?;
    say(&format!(
        "letter-1 added again: it waits already, so it is still job {} and not a second one",
        again[0].job
    ))?;
    session.write(move |tx, now, catalog| {
        hold::hold_job(
            tx,
            now,
            catalog,
            Actor { who: &os_user(), reason: "is this Aunt Ida's hand?" },
            held,
        )
    })?;
    say(&format!("job {held} is held by a person"))?;

    let ward = Ward::default();
    let summary = work(&session, ward.clone())?;
    say(&format!(
        "\nworked: {} runs, {} succeeded, {} ended in an error\n",
        summary.runs, summary.succeeded, summary.errors
    ))?;
    show(&session, &global)?;
    let why = session.read(move |tx, now, catalog| view::why(tx, now, catalog, held))?;
    say(&format!("\nwhy is job {held} not running? {why}"))?;

    session.write(move |tx, now, catalog| {
        let actor = Actor { who: &os_user(), reason: "it is hers" };
        hold::release_job(tx, now, catalog, actor, held)
    })?;
    *ward.mended.lock().unwrap_or_else(PoisonError::into_inner) = true;
    let failed = session.read(|tx, _, catalog| {
        view::list(
            tx,
            catalog,
            &ListFilter { status: Some(Status::Failed), limit: 1000, ..ListFilter::default() },
        )
    })?;
    let (by_hand, by_adding) = failed.split_at(failed.len() / 2);
    let ids: Vec<i64> = by_hand.iter().map(|j| j.id).collect();
    let subjects: Vec<NewJob> = by_adding.iter().map(|j| NewJob::new(j.subject.clone())).collect();
    session.write(move |tx, now, catalog| {
        let actor = Actor { who: &os_user(), reason: "scanned again" };
        ids.iter()
            .try_for_each(|id| requeue::requeue(tx, now, catalog, actor, *id, None).map(|_| ()))?;
        add(tx, now, catalog.named(QUEUE)?, "demo", &subjects)
    })?;
    say(&format!(
        "\nthe hold is released; {} failed jobs are requeued, {} added again after their scans were mended",
        by_hand.len(),
        by_adding.len()
    ))?;
    let summary = work(&session, ward)?;
    say(&format!("worked: {} runs, {} succeeded\n", summary.runs, summary.succeeded))?;
    show(&session, &global)?;
    let open = session.read(|tx, _, catalog| {
        let failed = view::failed(tx, catalog, None, false, 10)?.len();
        Ok(failed)
    })?;
    let data = dir.display();
    say(&format!(
        "\nLook around:\n  accession --data {data} queue list\n  accession --data {data} queue show {first}\n  accession --data {data} queue show {held}\n  accession --data {data} queue stats"
    ))?;
    Ok(if open == 0 { Exit::Yes } else { Exit::No })
}

fn show(session: &Session, global: &Global) -> Result<(), Failure> {
    let (stats, now) =
        session.read(|tx, now, catalog| Ok((view::stats(tx, now, catalog, None)?, now)))?;
    match global.json {
        true => Ok(output::json(&stats)?),
        false => super::queue::print_stats(&stats, now),
    }
}

/// Works until only held and failed jobs are left.
fn work(session: &Session, ward: Ward) -> Result<Summary, Failure> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let settings = Settings { name: "demo".to_string(), until_empty: true, ..Settings::default() };
    let worker = Worker::new(session.db.clone(), settings).stage(QUEUE, QUEUE, ward);
    let (_stop, stopped) = watch::channel(Stop::No);
    Ok(runtime.block_on(worker.run(stopped))?)
}
