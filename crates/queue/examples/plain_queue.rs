//! A plain queue: subjects go in, a worker takes them out, and every end is kept.
//!
//! `cargo run -p queue --example plain_queue`

use queue::rules::add::add;
use queue::rules::pipelines::{PipelineSpec, create};
use queue::runtime::{Context, Handler, Settings, Stop, Worker};
use queue::{Catalog, Claimed, JobError, JobId, NewJob, Outcome, view};

/// Counts the letters of a subject.
struct Count;

impl Handler for Count {
    async fn run(&self, job: &Claimed, _: &Context) -> Outcome {
        match job.subject.chars().filter(|c| c.is_alphabetic()).count() {
            // Trying again would change nothing: a person has to look.
            0 => Outcome::Permanent(JobError::new("no_letters", "it has no letters; correct it")),
            letters => Outcome::Skip(format!("{letters} letters")),
        }
    }
}

pub fn main() -> queue::Result<()> {
    let Ok(directory) = tempfile::tempdir() else { return Ok(()) };
    let address = db::Address::sqlite(directory.path().join("queue.db"));
    let db = db::Db::open(&address, queue::MIGRATIONS, &db::Options::default())?;

    // A subject that waits already is one job, not two.
    db.write_blocking::<_, queue::Error, _>(|tx| {
        let names = create(tx, tx.now(), "ann", &PipelineSpec::queue("names"))?;
        let jobs = ["Bach", "Händel", "1685", "Bach"].map(NewJob::new);
        let added = add(tx, tx.now(), &names, "ann", &jobs)?;
        assert!(added[3].coalesced);
        Ok(())
    })?;

    let settings = Settings { until_empty: true, ..Settings::default() };
    let worker = Worker::new(db.clone(), settings).stage("names", "names", Count);
    let (_stop, stopped) = tokio::sync::watch::channel(Stop::No);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let Ok(runtime) = runtime else { return Ok(()) };
    let summary = runtime.block_on(worker.run(stopped))?;
    println!("{} succeeded, {} failed", summary.succeeded, summary.failed);
    assert_eq!((summary.succeeded, summary.failed), (2, 1));

    db.write_blocking::<_, queue::Error, _>(|tx| {
        let (now, catalog) = (tx.now(), Catalog::load(tx)?);
        for job in (1..=3).map(JobId::new) {
            println!("job {job}: {}", view::why(tx, now, &catalog, job)?);
        }
        Ok(())
    })
}
