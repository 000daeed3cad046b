//! Work that does nothing but be counted, for measuring the queue.

use crate::error_code::ErrorCode;
use crate::exit::Failure;
use db::{Address, Db, Options, Statement};
use queue::rules::add::add;
use queue::rules::claim::{Request, claim};
use queue::rules::lease::{NewWorker, register};
use queue::rules::pipelines::{self, PipelineSpec};
use queue::runtime::{Context, Handler, Settings, Stop, Summary, Worker};
use queue::{Catalog, Claimed, NewJob, Outcome, Pipeline, WorkerId};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::sync::watch;
use tokio::task::JoinHandle;

const QUEUE: &str = "bench";
/// Jobs claimed ahead: large, so that a commit carries many.
const BUFFER: i64 = 2000;

pub struct Load {
    db: Db,
    pub concurrency: u64,
    payload_bytes: usize,
    full_history: bool,
    shuffled: bool,
}

impl Load {
    pub fn open(address: &Address, options: &Options, concurrency: u64) -> Result<Load, Failure> {
        let db = Db::open(address, queue::MIGRATIONS, options)?;
        Ok(Load { db, concurrency, payload_bytes: 100, full_history: false, shuffled: false })
    }

    pub fn with_payload(self, payload_bytes: usize) -> Load {
        Load { payload_bytes, ..self }
    }

    /// Names in no order, so that neighbours in the queue are none in an index of names.
    pub fn shuffled(self, shuffled: bool) -> Load {
        Load { shuffled, ..self }
    }

    pub fn with_full_history(self, full_history: bool) -> Load {
        Load { full_history, ..self }
    }

    /// Makes the queue: exclusion, coalescing and fencing on, as always.
    pub async fn setup(&self) -> Result<(), Failure> {
        let mut spec = PipelineSpec::queue(QUEUE);
        spec.full_history = self.full_history;
        spec.stages[0].1.workers = i64::try_from(self.concurrency).unwrap_or(16);
        spec.stages[0].1.buffer = BUFFER;
        let made: queue::Result<_> =
            self.db.write(move |tx| pipelines::create(tx, tx.now(), "bench", &spec)).await;
        made?;
        Ok(())
    }

    fn job(&self, i: u64) -> NewJob {
        let at =
            SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64() * 1000.0;
        let payload =
            format!("{{\"i\":{i},\"t\":{at},\"p\":\"{}\"}}", "x".repeat(self.payload_bytes));
        NewJob { payload: Some(payload.into_bytes()), ..NewJob::new(self.subject(i)) }
    }

    /// In the order of their names, as a listing gives them, unless they are to be in none.
    fn subject(&self, i: u64) -> String {
        const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
        let number = if self.shuffled { i.wrapping_mul(ODD) } else { i };
        format!("subject-{number:010}")
    }

    pub async fn pipeline(&self) -> Result<Pipeline, Failure> {
        let catalog: queue::Result<Catalog> = self.db.read(Catalog::load).await;
        Ok(catalog?.named(QUEUE)?.clone())
    }

    pub async fn add_bulk(&self, from: u64, to: u64, together: u64) -> Result<(), Failure> {
        let pipeline = self.pipeline().await?;
        let mut lowest = from;
        while lowest < to {
            let jobs: Vec<NewJob> =
                (lowest..to.min(lowest + together)).map(|i| self.job(i)).collect();
            let pipeline = pipeline.clone();
            let added: queue::Result<_> =
                self.db.write(move |tx| add(tx, tx.now(), &pipeline, "bench", &jobs)).await;
            added?;
            lowest += together;
        }
        Ok(())
    }

    /// One job in a transaction of its own.
    pub async fn add_one(&self, pipeline: &Arc<Pipeline>, i: u64) -> queue::Result<()> {
        let (pipeline, job) = (pipeline.clone(), self.job(i));
        self.db
            .write(move |tx| {
                add(tx, tx.now(), &pipeline, "bench", std::slice::from_ref(&job)).map(drop)
            })
            .await
    }

    /// One call a job, `lanes` calls under way at once.
    pub async fn add_singly(&self, from: u64, to: u64, lanes: u64) -> Result<(), Failure> {
        let pipeline = Arc::new(self.pipeline().await?);
        let mut tasks: tokio::task::JoinSet<queue::Result<()>> = tokio::task::JoinSet::new();
        for lane in 0..lanes {
            let jobs: Vec<u64> =
                (from + lane..to).step_by(usize::try_from(lanes).unwrap_or(1)).collect();
            let (load, pipeline) = (self.clone(), pipeline.clone());
            tasks.spawn(async move {
                for i in jobs {
                    load.add_one(&pipeline, i).await?;
                }
                Ok(())
            });
        }
        while let Some(done) = tasks.join_next().await {
            done.map_err(|e| Failure::unable(ErrorCode::Bench, e.to_string()))??;
        }
        Ok(())
    }

    pub async fn start_worker(&self, tally: Tally) -> Result<Running, Failure> {
        let (stop, stopped) = watch::channel(Stop::No);
        let worker = Worker::new(self.db.clone(), Settings::default()).stage(QUEUE, QUEUE, tally);
        Ok(Running { stop, task: tokio::spawn(worker.run(stopped)) })
    }

    /// Works beside other processes until nothing is left.
    pub async fn work_until_empty(&self) -> Result<(), Failure> {
        let (_stop, stopped) = watch::channel(Stop::No);
        let settings = Settings { until_empty: true, ..Settings::default() };
        let worker = Worker::new(self.db.clone(), settings).stage(QUEUE, QUEUE, Tally::new(0));
        worker.run(stopped).await?;
        Ok(())
    }

    /// Removes what an earlier round left on PostgreSQL, dead rows too, so that rounds begin alike.
    /// Each round on SQLite has a file of its own.
    pub async fn reset(&self) -> Result<(), Failure> {
        const RESET: Statement = Statement {
            name: "bench_reset",
            sqlite: "select 1",
            postgres:
                "truncate waiting, leases, job_records, endings, history, failures, tries, minutes,
              stages, pipelines",
        };
        self.on_postgres(&RESET).await
    }

    async fn on_postgres(&self, statement: &'static Statement) -> Result<(), Failure> {
        let done: queue::Result<_> = self
            .db
            .write(|tx| match tx.engine() {
                db::Engine::Postgres => Ok(tx.execute(statement, &[])?),
                db::Engine::Sqlite => Ok(0),
            })
            .await;
        done?;
        Ok(())
    }

    /// What PostgreSQL does by itself at some moment, done now. SQLite needs nothing of the kind.
    pub async fn analyze(&self) -> Result<(), Failure> {
        const ANALYZE: Statement =
            Statement { name: "bench_analyze", sqlite: "select 1", postgres: "analyze" };
        self.on_postgres(&ANALYZE).await
    }

    /// Puts everything that waits where a claim does not find it, at the head of the line.
    pub async fn set_aside(&self, state: queue::State) -> Result<(), Failure> {
        const ASIDE: Statement = Statement {
            name: "bench_aside",
            sqlite: "update waiting set state = $1, priority = 0, due = due + case when $1 = 2 then 3600000000 else 0 end",
            postgres: "update waiting set state = $1, priority = 0, due = due + case when $1 = 2 then 3600000000 else 0 end",
        };
        let done: queue::Result<u64> =
            self.db.write(move |tx| Ok(tx.execute(&ASIDE, &db::params![state])?)).await;
        done?;
        Ok(())
    }

    /// History of jobs that are long over.
    pub async fn add_history(&self, rows: u64) -> Result<(), Failure> {
        const ROWS: Statement = Statement {
            name: "bench_history",
            sqlite: "with recursive n (i) as (select $1 union all select i + 1 from n where i + 1 < $2)
                insert into history (job, id, at, who, event) select -i - 1, i, 0, 'bench', 'succeeded' from n",
            postgres: "insert into history (job, id, at, who, event) select -i - 1, i, 0, 'bench', 'succeeded' from generate_series($1::bigint, $2::bigint - 1) as n (i)",
        };
        let mut from = 0;
        while from < rows {
            let to = rows.min(from + 50_000);
            let (a, b) = (i64::try_from(from).unwrap_or(0), i64::try_from(to).unwrap_or(0));
            let done: queue::Result<u64> =
                self.db.write(move |tx| Ok(tx.execute(&ROWS, &db::params![a, b])?)).await;
            done?;
            from = to;
        }
        Ok(())
    }

    /// How long each of `times` claims of `n` jobs takes.
    pub async fn time_claims(&self, n: usize, times: usize) -> Result<Vec<Duration>, Failure> {
        let catalog: queue::Result<Catalog> = self.db.read(Catalog::load).await;
        let catalog = catalog?;
        let stage = catalog.named(QUEUE)?.first().id;
        let new = NewWorker { name: "bench".to_string(), ..NewWorker::default() };
        let worker: queue::Result<WorkerId> =
            self.db.write(move |tx| register(tx, tx.now(), &new, 3_600_000_000)).await;
        let worker = worker?;
        let mut took = Vec::with_capacity(times);
        for _ in 0..times {
            let catalog = catalog.clone();
            let began = Instant::now();
            let claimed: queue::Result<Vec<Claimed>> = self
                .db
                .write(move |tx| {
                    claim(
                        tx,
                        tx.now(),
                        &catalog,
                        Request { worker, who: "bench", stage, limit: n, start: n },
                    )
                })
                .await;
            if claimed?.len() == n {
                took.push(began.elapsed());
            }
        }
        Ok(took)
    }

    /// True while a job is not settled.
    pub async fn pending(&self) -> Result<bool, Failure> {
        const PENDING: Statement = Statement {
            name: "bench_pending",
            sqlite: "select case when exists (select 1 from queue_waiting) or exists (select 1 from queue_leases) then 1 else 0 end",
            postgres: "select case when exists (select 1 from queue_waiting) or exists (select 1 from queue_leases) then 1 else 0 end",
        };
        let pending: queue::Result<(bool,)> = self.db.read(|tx| Ok(tx.one(&PENDING, &[])?)).await;
        Ok(pending?.0)
    }
}

impl Clone for Load {
    fn clone(&self) -> Load {
        Load { db: self.db.clone(), ..*self }
    }
}

pub struct Running {
    stop: watch::Sender<Stop>,
    task: JoinHandle<queue::Result<Summary>>,
}

impl Running {
    pub async fn stop(self) -> Result<(), Failure> {
        self.stop.send_replace(Stop::Shutdown);
        self.task.await.map_err(|e| Failure::unable(ErrorCode::Bench, e.to_string()))??;
        Ok(())
    }
}

/// What the worker saw: which jobs, how often, and how long after they were added.
#[derive(Clone)]
pub struct Tally {
    seen: Arc<Mutex<Seen>>,
    last: Arc<Mutex<Instant>>,
    missing: Arc<AtomicU64>,
    duplicates: Arc<AtomicU64>,
}

struct Seen {
    jobs: Vec<bool>,
    latencies_ms: Vec<f32>,
}

impl Tally {
    pub fn new(n: u64) -> Tally {
        let jobs = vec![false; usize::try_from(n).unwrap_or(0)];
        Tally {
            seen: Arc::new(Mutex::new(Seen { latencies_ms: Vec::with_capacity(jobs.len()), jobs })),
            last: Arc::new(Mutex::new(Instant::now())),
            missing: Arc::new(AtomicU64::new(n)),
            duplicates: Arc::default(),
        }
    }

    pub fn missing(&self) -> u64 {
        self.missing.load(Ordering::SeqCst)
    }

    pub fn duplicates(&self) -> u64 {
        self.duplicates.load(Ordering::SeqCst)
    }

    /// How long nothing has happened.
    pub fn idle(&self) -> Duration {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).elapsed()
    }

    pub fn latencies_ms<const N: usize>(&self, at: [f64; N]) -> [Option<f32>; N] {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.latencies_ms.sort_by(f32::total_cmp);
        at.map(|p| {
            seen.latencies_ms
                .get(((seen.latencies_ms.len() as f64 * p).ceil() as usize).saturating_sub(1))
                .copied()
        })
    }
}

#[derive(serde::Deserialize)]
struct Payload {
    i: usize,
    t: f64,
}

impl Handler for Tally {
    async fn run(&self, job: &Claimed, _: &Context) -> Outcome {
        let now =
            SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64() * 1000.0;
        let parsed = job.payload.as_deref().and_then(|p| serde_json::from_slice::<Payload>(p).ok());
        let Some(payload) = parsed else { return Outcome::success() };
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.latencies_ms.push((now - payload.t) as f32);
        match seen.jobs.get_mut(payload.i) {
            Some(first @ false) => {
                *first = true;
                self.missing.fetch_sub(1, Ordering::SeqCst);
            }
            _ => {
                self.duplicates.fetch_add(1, Ordering::SeqCst);
            }
        }
        Outcome::success()
    }
}

/// The most memory this process has had, in KiB.
pub fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|l| l.starts_with("VmHWM"));
    line.and_then(|l| l.split_whitespace().nth(1)).and_then(|n| n.parse().ok()).unwrap_or(0)
}
