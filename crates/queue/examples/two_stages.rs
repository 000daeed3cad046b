//! A pipeline of two stages: the first measures, the second uses what was measured. The job's state
//! goes from stage to stage in the database, so any worker on any machine may run the second.
//!
//! `cargo run -p queue --example two_stages`

use queue::rules::add::add;
use queue::rules::pipelines::{PipelineSpec, create};
use queue::runtime::{Context, Handler, Settings, Stop, Worker};
use queue::{Catalog, Claimed, Handover, JobError, JobState, NewJob, Outcome, view};

struct Measure;

impl Handler for Measure {
    async fn run(&self, job: &Claimed, _: &Context) -> Outcome {
        let mut state = JobState::new();
        state.insert("bytes".to_string(), job.subject.len().into());
        // Written in the transaction that ends this run: there with the success, or not at all.
        Outcome::Success(Handover::with_state(state))
    }
}

struct Report;

impl Handler for Report {
    async fn run(&self, job: &Claimed, context: &Context) -> Outcome {
        let Ok(state) = context.state().await else {
            return Outcome::Interrupted("the database did not answer".to_string());
        };
        match state.get("bytes").and_then(serde_json::Value::as_i64) {
            Some(bytes) => Outcome::Skip(format!("{} has {bytes} bytes", job.subject)),
            None => Outcome::Permanent(JobError::new("not_measured", "requeue it to `measure`")),
        }
    }
}

pub fn main() -> queue::Result<()> {
    let Ok(directory) = tempfile::tempdir() else { return Ok(()) };
    let address = db::Address::sqlite(directory.path().join("queue.db"));
    let db = db::Db::open(&address, queue::MIGRATIONS, &db::Options::default())?;
    let job = db.write_blocking::<_, queue::Error, _>(|tx| {
        let spec = PipelineSpec::staged("titles", &["measure", "report"]);
        let titles = create(tx, tx.now(), "ann", &spec)?;
        let added = add(tx, tx.now(), &titles, "ann", &[NewJob::new("Die Kunst der Fuge")])?;
        Ok(added[0].job)
    })?;

    let settings = Settings { until_empty: true, ..Settings::default() };
    let worker = Worker::new(db.clone(), settings)
        .stage("titles", "measure", Measure)
        .stage("titles", "report", Report);
    let (_stop, stopped) = tokio::sync::watch::channel(Stop::No);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let Ok(runtime) = runtime else { return Ok(()) };
    let summary = runtime.block_on(worker.run(stopped))?;
    assert_eq!((summary.succeeded, summary.errors), (2, 0));

    db.write_blocking::<_, queue::Error, _>(move |tx| {
        let (now, catalog) = (tx.now(), Catalog::load(tx)?);
        for left in view::states(tx, &catalog, job)? {
            println!("{} left {}", left.stage, serde_json::Value::Object(left.state));
        }
        println!("{}", view::why(tx, now, &catalog, job)?);
        Ok(())
    })
}
