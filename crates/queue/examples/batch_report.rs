//! A batch: everything that one depositor submits in one go, accepted whole or not at all, and
//! reported when its last job has ended.
//!
//! `cargo run -p queue --example batch_report`

use queue::rules::batch::{Entry, NewBatch, accept, create as open_batch, fill};
use queue::rules::pipelines::{PipelineSpec, create};
use queue::rules::report;
use queue::runtime::{Context, Handler, Settings, Stop, Worker};
use queue::{BatchState, Catalog, Claimed, JobError, Outcome};

struct Keep;

impl Handler for Keep {
    async fn run(&self, job: &Claimed, _: &Context) -> Outcome {
        match job.subject.as_str() {
            "torn" => Outcome::Permanent(JobError::new("torn", "page 3 is missing; scan it again")),
            _ => Outcome::success(),
        }
    }
}

pub fn main() -> queue::Result<()> {
    let Ok(directory) = tempfile::tempdir() else { return Ok(()) };
    let address = db::Address::sqlite(directory.path().join("queue.db"));
    let db = db::Db::open(&address, queue::MIGRATIONS, &db::Options::default())?;
    let batch = db.write_blocking::<_, queue::Error, _>(|tx| {
        let now = tx.now();
        let letters = create(tx, now, "ann", &PipelineSpec::staged("letters", &["keep"]))?;
        let new = NewBatch {
            label: "Box 17",
            pipeline: letters.id,
            collection: None,
            submitter: "ann",
            mode: "new",
            priority: None,
        };
        let batch = open_batch(tx, now, &new)?;
        let entries: Vec<Entry> = (1..)
            .zip(["whole", "torn", "also whole"])
            .map(|(number, subject)| Entry {
                number,
                subject: subject.to_string(),
                lock: None,
                payload: None,
            })
            .collect();
        let catalog = Catalog::load(tx)?;
        fill(tx, &catalog, batch, &entries)?;
        // From here every entry becomes a job.
        accept(tx, now, batch)?;
        Ok(batch)
    })?;

    // Housekeeping turns entries into jobs, and writes the report when the last one has ended.
    let settings = Settings { until_empty: true, ..Settings::default() };
    let worker = Worker::new(db.clone(), settings).stage("letters", "keep", Keep);
    let (_stop, stopped) = tokio::sync::watch::channel(Stop::No);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let Ok(runtime) = runtime else { return Ok(()) };
    runtime.block_on(worker.run(stopped))?;

    db.write_blocking::<_, queue::Error, _>(move |tx| {
        let found = queue::rules::batch::load(tx, batch)?;
        println!("{}: {} of {} succeeded", found.label, found.succeeded, found.total);
        assert_eq!((found.state, found.succeeded), (BatchState::Failed, 2));
        println!("{}", report::newest(tx, batch)?.unwrap_or_default());
        Ok(())
    })
}
