//! The worker runtime, as the author of a stage meets it.

use db::{Address, Db, Options, Statement, Tx};
use queue::rules::add::add;
use queue::rules::operator::{Actor, cancel};
use queue::rules::pipelines::{PipelineSpec, create};
use queue::rules::prune::prune;
use queue::runtime::{Context, Handler, Settings, Stop, Summary, Worker};
use queue::{Carryover, Catalog, Claimed, JobError, JobId, NewJob, Outcome, Result, Status, view};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::{Notify, watch};

struct House {
    db: Db,
    _dir: tempfile::TempDir,
}

impl House {
    async fn with(spec: PipelineSpec, subjects: &[&str]) -> House {
        let dir = tempfile::tempdir().unwrap();
        let address = Address::sqlite(dir.path().join("q.db"));
        let db = Db::open(&address, queue::MIGRATIONS, &Options::default()).unwrap();
        let jobs: Vec<NewJob> = subjects.iter().map(|s| NewJob::new(*s)).collect();
        let made: Result<_> = db
            .write(move |tx| {
                let pipeline = create(tx, tx.now(), "ann", &spec)?;
                add(tx, tx.now(), &pipeline, "ann", &jobs)
            })
            .await;
        made.unwrap();
        House { db, _dir: dir }
    }

    async fn job(&self, id: JobId) -> view::JobView {
        self.with_catalog(move |tx, catalog| view::show(tx, catalog, id)).await.unwrap()
    }

    /// Runs `work` with the catalog at hand.
    async fn with_catalog<T: Send + 'static>(
        &self,
        work: impl Fn(&mut Tx<'_>, &Catalog) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.db
            .write(move |tx| {
                let catalog = Catalog::load(tx)?;
                work(tx, &catalog)
            })
            .await
    }

    fn worker(&self) -> Worker {
        Worker::new(self.db.clone(), Settings { until_empty: true, ..Settings::default() })
    }
}

async fn work(worker: Worker) -> Summary {
    let (_stop, stopped) = watch::channel(Stop::No);
    worker.run(stopped).await.unwrap()
}

/// A stage made of a function.
struct Does<F>(F);

impl<F: Fn(&Claimed, &Context) -> Outcome + Send + Sync + 'static> Handler for Does<F> {
    async fn run(&self, job: &Claimed, context: &Context) -> Outcome {
        (self.0)(job, context)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_panic_fails_its_job_with_its_message_and_the_worker_goes_on() {
    let house = House::with(PipelineSpec::queue("q"), &["bomb", "letter"]).await;
    let summary = work(house.worker().stage(
        "q",
        "q",
        Does(|job: &Claimed, _: &Context| match job.subject.as_str() {
            "bomb" => panic!("it was a bomb"),
            _ => Outcome::success(),
        }),
    ))
    .await;
    assert_eq!((summary.succeeded, summary.errors), (1, 1));
    let bomb = house.job(JobId::new(1)).await;
    assert_eq!((bomb.status, bomb.error_code.as_deref()), (Status::Failed, Some("panic")));
    assert!(bomb.error.unwrap().contains("it was a bomb"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_goes_through_all_stages_and_what_they_record_commits_with_them() {
    const NOTE: Statement = Statement {
        name: "note",
        sqlite: "insert into checkpoints (job, stage, key, value, at) values ($1, 0, 'note', 'x', 0)",
        postgres: "",
    };
    const NOTES: Statement = Statement {
        name: "notes",
        sqlite: "select job from checkpoints where key = 'note'",
        postgres: "",
    };
    let house = House::with(PipelineSpec::staged("p", &["one", "two"]), &["a", "b"]).await;
    let first = Does(|job: &Claimed, context: &Context| {
        let id = job.lease.job;
        context.record(move |tx| Ok(tx.execute(&NOTE, &db::params![id]).map(|_| ())?));
        match job.subject.as_str() {
            "b" => {
                context.record(|_| Err(queue::Error::Refused("no room in the book".to_string())));
                Outcome::success()
            }
            _ => Outcome::success(),
        }
    });
    work(house.worker().stage("p", "one", first).stage(
        "p",
        "two",
        Does(|_: &Claimed, _: &Context| Outcome::success()),
    ))
    .await;
    assert_eq!(house.job(JobId::new(1)).await.status, Status::Succeeded);
    let failed = house.job(JobId::new(2)).await;
    assert_eq!(
        (failed.status, failed.error_code.as_deref(), failed.stage.as_str()),
        (Status::Failed, Some("record_failed"), "one")
    );
    let notes: Result<Vec<(i64,)>> = house.db.read(|tx| Ok(tx.query(&NOTES, &[])?)).await;
    assert_eq!(notes.unwrap(), [(1,)], "what the failed one recorded was undone");
}

/// Counts who is at work, and who was told something by the run before.
#[derive(Default)]
struct Counted {
    now: AtomicUsize,
    most: AtomicUsize,
    told: AtomicUsize,
}

struct Slow(Arc<Counted>);

impl Handler for Slow {
    async fn run(&self, job: &Claimed, _: &Context) -> Outcome {
        let now = self.0.now.fetch_add(1, Ordering::SeqCst) + 1;
        self.0.most.fetch_max(now, Ordering::SeqCst);
        if let Some(subject) = job.carryover.get::<String>() {
            assert_eq!(*subject, job.subject);
            self.0.told.fetch_add(1, Ordering::SeqCst);
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
        self.0.now.fetch_sub(1, Ordering::SeqCst);
        Outcome::success()
    }
}

fn tells(job: &Claimed, context: &Context) -> Outcome {
    context.carry_over(Carryover::new(job.subject.clone()));
    Outcome::success()
}

fn tells_even_later(job: &Claimed, context: &Context) -> Outcome {
    context.carry_over(Carryover::new(job.subject.clone()).keep(job.subject.len()));
    Outcome::success()
}

#[tokio::test(flavor = "multi_thread")]
async fn no_more_jobs_run_at_once_than_there_are_places_wherever_they_come_from() {
    let mut spec = PipelineSpec::staged("p", &["one", "two"]);
    (spec.stages[0].1.workers, spec.stages[1].1.workers) = (4, 1);
    let subjects: Vec<String> = (0..60).map(|n| format!("s{n}")).collect();
    let subjects: Vec<&str> = subjects.iter().map(String::as_str).collect();
    let house = House::with(spec, &subjects).await;
    let counted = Arc::new(Counted::default());
    let worker = house.worker().stage("p", "one", Does(tells_even_later));
    let worker = worker.stage("p", "two", Slow(counted.clone()));
    assert_eq!(work(worker).await, Summary { runs: 120, succeeded: 120, errors: 0, failed: 0 });
    assert_eq!(counted.most.load(Ordering::SeqCst), 1);
    let told = counted.told.load(Ordering::SeqCst);
    assert_eq!(told, 60, "all of them were run by the same worker, at once or later");
}

/// Succeeds at once, but for the long ones, which wait until they may end.
struct Mixed {
    began: Arc<Notify>,
    end: Arc<Notify>,
}

impl Handler for Mixed {
    async fn run(&self, job: &Claimed, _: &Context) -> Outcome {
        if job.subject.starts_with("long") {
            self.began.notify_one();
            self.end.notified().await;
        }
        Outcome::success()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn short_jobs_are_not_kept_waiting_behind_a_long_one_while_others_could_do_them() {
    let mut spec = PipelineSpec::queue("q");
    (spec.stages[0].1.workers, spec.stages[0].1.buffer) = (1, 8);
    // The first ones tell the worker that runs are short, so that it starts what it claims.
    let first: Vec<String> = (0..20).map(|n| format!("first {n}")).collect();
    let house = House::with(spec, &first.iter().map(String::as_str).collect::<Vec<_>>()).await;
    let (began, end) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let worker = || {
        let mixed = Mixed { began: began.clone(), end: end.clone() };
        Worker::new(house.db.clone(), Settings::default()).stage("q", "q", mixed)
    };
    let (stop, stopped) = watch::channel(Stop::No);
    let busy = tokio::spawn(worker().run(stopped.clone()));
    while house.job(JobId::new(20)).await.status != Status::Succeeded {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let jobs: Vec<NewJob> =
        ["long", "a", "b", "c", "d", "e", "f"].into_iter().map(NewJob::new).collect();
    let added =
        house.with_catalog(move |tx, catalog| add(tx, tx.now(), catalog.named("q")?, "ann", &jobs));
    let added = added.await.unwrap();
    began.notified().await;
    let idle = tokio::spawn(worker().run(stopped));
    let shorts = async {
        for short in &added[1..] {
            while house.job(short.job).await.status != Status::Succeeded {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    };
    let in_time = tokio::time::timeout(Duration::from_secs(60), shorts).await;
    assert!(in_time.is_ok(), "the other worker never got them");
    assert_eq!(house.job(added[0].job).await.status, Status::Running);
    end.notify_one();
    while house.job(added[0].job).await.status != Status::Succeeded {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    stop.send_replace(Stop::Shutdown);
    let runs = busy.await.unwrap().unwrap().runs + idle.await.unwrap().unwrap().runs;
    assert_eq!(runs, 27, "each ran once");
    for job in &added {
        let tries = house.with_catalog({
            let id = job.job;
            move |tx, catalog| view::tries(tx, catalog, id)
        });
        assert!(tries.await.unwrap().is_empty(), "being given back counts as nothing");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_is_carried_on_with_what_is_known_of_it() {
    let house = House::with(PipelineSpec::staged("p", &["one", "two"]), &[]).await;
    let counted = Arc::new(Counted::default());
    let worker = Worker::new(house.db.clone(), Settings::default())
        .stage("p", "one", Does(tells))
        .stage("p", "two", Slow(counted.clone()));
    let (stop, stopped) = watch::channel(Stop::No);
    let worker = tokio::spawn(worker.run(stopped));
    // The second stage may be looking for work just then; it does so once a second.
    let mut added = 0;
    while counted.told.load(Ordering::SeqCst) == 0 {
        added += 1;
        assert!(added < 200, "nobody was carried on");
        let job = NewJob::new(format!("s{added}"));
        let done = house.with_catalog(move |tx, catalog| {
            add(tx, tx.now(), catalog.named("p")?, "ann", std::slice::from_ref(&job))
        });
        let id = done.await.unwrap()[0].job;
        while house.job(id).await.status != Status::Succeeded {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
    stop.send_replace(Stop::Shutdown);
    let summary = worker.await.unwrap().unwrap();
    assert_eq!(summary, Summary { runs: 2 * added, succeeded: 2 * added, errors: 0, failed: 0 });
}

#[tokio::test(flavor = "multi_thread")]
async fn stopping_again_and_again_interrupts_nothing_that_had_not_begun() {
    const TRIES: Statement =
        Statement { name: "tries", sqlite: "select job from tries", postgres: "" };
    let stages = ["one", "two", "three", "four"];
    let subjects: Vec<String> = (0..200).map(|n| format!("s{n}")).collect();
    let subjects: Vec<&str> = subjects.iter().map(String::as_str).collect();
    let house = House::with(PipelineSpec::staged("p", &stages), &subjects).await;
    let worker = |until_empty| {
        let settings = Settings { until_empty, ..Settings::default() };
        stages.iter().fold(Worker::new(house.db.clone(), settings), |worker, stage| {
            worker.stage("p", stage, Does(|_: &Claimed, _: &Context| Outcome::success()))
        })
    };
    let mut runs = 0;
    for round in 0..12 {
        let (stop, stopped) = watch::channel(Stop::No);
        let running = tokio::spawn(worker(false).run(stopped));
        tokio::time::sleep(Duration::from_millis(3 + 2 * (round % 5))).await;
        stop.send_replace(Stop::Shutdown);
        runs += running.await.unwrap().unwrap().runs;
    }
    runs += work(worker(true)).await.runs;
    assert_eq!(runs, 800, "each job ran once in each stage");
    let tries: Result<Vec<(i64,)>> = house.db.read(|tx| Ok(tx.query(&TRIES, &[])?)).await;
    assert_eq!(tries.unwrap(), []);
}

/// Runs until it is told to stop.
struct Waits(Arc<Notify>);

impl Handler for Waits {
    async fn run(&self, _: &Claimed, context: &Context) -> Outcome {
        self.0.notify_one();
        match context.stopped().await {
            Stop::Cancelled => Outcome::Cancelled,
            _ => Outcome::Interrupted("told to stop".to_string()),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_running_job_hears_that_it_is_cancelled() {
    let house = House::with(PipelineSpec::queue("q"), &["a"]).await;
    let began = Arc::new(Notify::new());
    let worker = tokio::spawn(work(house.worker().stage("q", "q", Waits(began.clone()))));
    began.notified().await;
    let asked = house.with_catalog(|tx, catalog| {
        let actor = Actor { who: "ann", reason: "sent twice" };
        cancel::cancel(tx, tx.now(), catalog, actor, JobId::new(1))
    });
    let asked = asked.await;
    assert_eq!(asked.unwrap(), cancel::Cancelled::Requested);
    worker.await.unwrap();
    let job = house.job(JobId::new(1)).await;
    assert_eq!((job.status, job.ended_why.as_deref()), (Status::Cancelled, Some("sent twice")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_stops_gives_back_what_it_did_not_begin_and_counts_only_what_it_did() {
    let mut spec = PipelineSpec::queue("q");
    (spec.stages[0].1.workers, spec.stages[0].1.buffer) = (1, 3);
    let house = House::with(spec, &["a", "b", "c"]).await;
    let began = Arc::new(Notify::new());
    let (stop, stopped) = watch::channel(Stop::No);
    let worker = house.worker().stage("q", "q", Waits(began.clone()));
    let worker = tokio::spawn(worker.run(stopped));
    began.notified().await;
    stop.send_replace(Stop::Shutdown);
    worker.await.unwrap().unwrap();
    for id in (1..=3).map(JobId::new) {
        let job = house.job(id).await;
        assert_eq!((job.status, job.worker), (Status::Queued, None), "job {id}");
    }
    let tries =
        |id| house.with_catalog(move |tx, catalog| view::tries(tx, catalog, JobId::new(id)));
    assert_eq!(tries(1).await.unwrap()[0].interruptions_ever, 1);
    assert!(tries(2).await.unwrap().is_empty(), "it never began");
    let workers = house.db.read(|tx| view::workers(tx, tx.now(), 0)).await.unwrap();
    assert_eq!(workers[0].state, "stopped");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_over_its_time_is_a_transient_error() {
    let mut spec = PipelineSpec::queue("q");
    (spec.stages[0].1.timeout_seconds, spec.stages[0].1.max_attempts) = (1, 1);
    let house = House::with(spec, &["a"]).await;
    work(house.worker().stage("q", "q", Waits(Arc::new(Notify::new())))).await;
    assert_eq!(house.job(JobId::new(1)).await.error_code.as_deref(), Some("timeout"));
}

#[tokio::test(flavor = "multi_thread")]
async fn added_work_is_picked_up_at_once_and_errors_are_kept_for_each_attempt() {
    let mut spec = PipelineSpec::queue("q");
    (spec.stages[0].1.backoff_seconds, spec.stages[0].1.max_attempts) = (0, 3);
    let house = House::with(spec, &["a"]).await;
    work(house.worker().stage(
        "q",
        "q",
        Does(|job: &Claimed, _: &Context| {
            Outcome::Transient(JobError::new("flaky", format!("attempt {}", job.attempt)))
        }),
    ))
    .await;
    let events =
        house.db.read(|tx| queue::rules::history::of_job(tx, JobId::new(1), 0, 100)).await.unwrap();
    let errors: Vec<String> = events.into_iter().filter_map(|e| e.why).collect();
    assert_eq!(errors, ["attempt 1", "attempt 2", "attempt 3"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_ended_is_pruned_in_steps_and_nothing_else() {
    let house = House::with(PipelineSpec::queue("q"), &["a", "b", "c", "bad"]).await;
    work(house.worker().stage(
        "q",
        "q",
        Does(|job: &Claimed, _: &Context| match job.subject.as_str() {
            "bad" => Outcome::Permanent(JobError::new("bad", "bad")),
            _ => Outcome::success(),
        }),
    ))
    .await;
    let step = |after| {
        house.with_catalog(move |tx, catalog| {
            prune(tx, tx.now(), catalog, Some(tx.now() + 1), after, 2)
        })
    };
    let first = step(JobId::default()).await.unwrap();
    assert_eq!((first.jobs, first.next), (2, Some(JobId::new(2))));
    assert_eq!(step(JobId::new(2)).await.unwrap().jobs, 1);
    assert_eq!(
        house.job(JobId::new(4)).await.status,
        Status::Failed,
        "a failed job waits for a person"
    );
    let gone = house.with_catalog(|tx, catalog| view::show(tx, catalog, JobId::new(1))).await;
    assert!(gone.unwrap_err().to_string().contains("there is no job"));
}

/// A stage that feeds another queue: the other one is empty for a long time, and not at its end.
#[tokio::test(flavor = "multi_thread")]
async fn until_empty_means_all_queues_of_the_worker() {
    let house = House::with(PipelineSpec::queue("first"), &["a", "b", "c"]).await;
    let made: Result<_> =
        house.db.write(|tx| create(tx, tx.now(), "ann", &PipelineSpec::queue("second"))).await;
    let second = made.unwrap();
    let db = house.db.clone();
    struct Feeds(Db, queue::Pipeline);
    impl Handler for Feeds {
        async fn run(&self, job: &Claimed, _: &Context) -> Outcome {
            // Long enough for the other loop to find its queue empty more than once.
            tokio::time::sleep(std::time::Duration::from_millis(120)).await;
            let (jobs, pipeline) = ([NewJob::new(job.subject.as_str())], self.1.clone());
            let added: Result<_> =
                self.0.write(move |tx| add(tx, tx.now(), &pipeline, "first", &jobs)).await;
            added.unwrap();
            Outcome::success()
        }
    }
    let worker = house.worker().stage("first", "first", Feeds(db, second)).stage(
        "second",
        "second",
        Does(|_: &Claimed, _: &Context| Outcome::success()),
    );
    let summary = tokio::time::timeout(std::time::Duration::from_secs(60), work(worker)).await;
    assert_eq!(summary.expect("it comes to its end").succeeded, 6);
}
