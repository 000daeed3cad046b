//! The worker runtime: claims jobs of its stages, runs them, renews its lease, settles the outcomes, and
//! gives back what it did not start when it stops.

mod carryovers;
mod context;
mod housekeeping;
mod label;
mod lease;
mod observer;
mod settler;
mod slots;
mod stage;

pub use context::{Context, Stop};
pub use label::Label;
pub use observer::{Observer, RunEvent};
pub(crate) use stage::DynHandler;

use crate::catalog::Catalog;
use crate::error::{Error, Result};
use crate::id::{StageId, WorkerId};
use crate::job::{Amounts, Claimed, Outcome};
use crate::rules::claim::is_empty;
use crate::rules::lease::{NewWorker, deregister, register};
use crate::rules::pipelines;
use db::{Db, Micros, Tx};
use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

/// How long outcomes are waited for at the end of a process that leaves a blocked run behind.
const SETTLE_AT_END: Duration = Duration::from_secs(2);

/// How a process works.
#[derive(Debug, Clone)]
pub struct Settings {
    /// How the worker is named in history.
    pub name: String,
    /// How long the others wait before they take the jobs of a process that is gone.
    pub lease: Duration,
    /// How long running work may take to reach a checkpoint when the process stops.
    pub grace: Duration,
    /// What there is of each resource here.
    pub capacity: Amounts,
    /// Work spaces that it reaches.
    pub workspaces: Vec<String>,
    /// Overrides of a stage's `workers` and `buffer` for this process.
    pub workers: Option<i64>,
    /// Overrides the `buffer` of all stages.
    pub buffer: Option<i64>,
    /// Stop when nothing is left to do.
    pub until_empty: bool,
    /// Stop after this many runs.
    pub runs_max: Option<u64>,
    /// Moves batches, writes reports, reaps the lost, prunes. On in all but special processes.
    pub housekeeping: bool,
    /// Is told what the worker does.
    pub observer: Option<Observer>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            name: host_name(),
            lease: Duration::from_secs(60),
            grace: Duration::from_secs(30),
            capacity: Amounts::new(),
            workspaces: Vec::new(),
            workers: None,
            buffer: None,
            until_empty: false,
            runs_max: None,
            housekeeping: true,
            observer: None,
        }
    }
}

/// This machine's name, as workers are shown with it.
pub fn host_name() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname")
        .map_or_else(|_| "localhost".to_string(), |n| n.trim().to_string())
}

/// What a stage does with a job.
///
/// ```
/// use queue::{Claimed, Outcome, runtime::{Context, Handler}};
///
/// struct Shout;
/// impl Handler for Shout {
///     async fn run(&self, job: &Claimed, _: &Context) -> Outcome {
///         println!("{}!", job.subject.to_uppercase());
///         Outcome::success()
///     }
/// }
/// ```
pub trait Handler: Send + Sync + 'static {
    /// Runs the job and returns how the run ended.
    fn run(&self, job: &Claimed, context: &Context) -> impl Future<Output = Outcome> + Send;
}

/// A process that works on stages.
pub struct Worker {
    db: Db,
    settings: Settings,
    handlers: BTreeMap<(String, String), Arc<dyn DynHandler>>,
}

/// What a worker did from start to stop.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Summary {
    /// Runs that ended.
    pub runs: u64,
    /// Runs that succeeded.
    pub succeeded: u64,
    /// Runs that ended in an error; their jobs may be tried again.
    pub errors: u64,
    /// Jobs that failed here: no retry is left, or trying again changes nothing.
    pub failed: u64,
}

/// What the parts of a running worker share.
pub(crate) struct Shared {
    pub db: Db,
    /// Its settings.
    pub settings: Settings,
    /// The id of the worker.
    pub worker: WorkerId,
    /// Who acts or acted.
    pub who: String,
    pub catalog: watch::Receiver<Catalog>,
    /// No for as long as the process should go on.
    pub stop: watch::Receiver<Stop>,
    pub fence: lease::Fence,
    pub settlements: mpsc::Sender<crate::job::Settlement>,
    /// How many run.
    pub running: context::Running,
    pub places: Arc<slots::Slots>,
    pub kept: Arc<carryovers::Carryovers>,
    pub counters: settler::Counters,
    pub idle: Idle,
    /// A run did not end after the grace period, because it blocks its thread.
    pub left_behind: AtomicBool,
}

impl Shared {
    fn tell(&self, told: RunEvent<'_>) {
        if let Some(observer) = &self.settings.observer {
            observer.tell(told);
        }
    }
}

/// The `tracing` target of log lines about runs that ended in an error, for programs that show these
/// errors in another way.
pub const RUNS: &str = "queue::runs";

/// Logs a warning, except for a database that cannot be reached: the database layer logs that once.
macro_rules! quietly {
    ($error:ident, $($what:tt)*) => {
        match $error.is_outage() {
            true => tracing::debug!($($what)*),
            false => tracing::warn!($($what)*),
        }
    };
}
use quietly;

/// Which stages of a worker have nothing left. Stages feed each other, and batches feed stages, so
/// none of them is at its end before all are.
pub(crate) struct Idle {
    stages: Vec<StageId>,
    empty: Mutex<HashSet<StageId>>,
    all: AtomicBool,
}

impl Idle {
    fn new(stages: Vec<StageId>) -> Idle {
        Idle { stages, empty: Mutex::default(), all: AtomicBool::new(false) }
    }

    /// Notes whether a stage was found empty; true once all were, though maybe not all at once.
    pub fn note(&self, stage: StageId, empty: bool) -> bool {
        let mut stages = self.empty.lock().unwrap_or_else(PoisonError::into_inner);
        if empty {
            stages.insert(stage);
        } else {
            stages.remove(&stage);
        }
        stages.len() == self.stages.len()
    }

    /// Looks at all stages in one moment: what one of them lacked, another may have put there since.
    pub async fn confirm(&self, db: &Db) -> Result<()> {
        let stages = self.stages.clone();
        let look = move |tx: &mut Tx<'_>| -> Result<bool> {
            for stage in &stages {
                if !is_empty(tx, *stage)? {
                    return Ok(false);
                }
            }
            Ok(true)
        };
        match db.read(look).await {
            Ok(true) => self.all.store(true, Ordering::SeqCst),
            Ok(false) => {}
            Err(error) if error.is_transient() => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Returns whether the worker has nothing left to do.
    pub fn is_over(&self) -> bool {
        self.all.load(Ordering::SeqCst)
    }
}

impl Worker {
    /// Makes a worker without stages.
    pub fn new(db: Db, settings: Settings) -> Worker {
        Worker { db, settings, handlers: BTreeMap::new() }
    }

    /// Works on a stage of a pipeline. A plain queue's stage has the queue's name.
    pub fn stage(mut self, pipeline: &str, stage: &str, handler: impl Handler) -> Worker {
        self.handlers.insert(
            (pipeline.to_string(), stage.to_string()),
            Arc::new(stage::ErasedHandler(handler)),
        );
        self
    }

    /// Runs until `stop` says so, or until there is nothing left to do if the settings say so. A
    /// worker that lost its lease drops what it held and registers anew.
    pub async fn run(self, stop: watch::Receiver<Stop>) -> Result<Summary> {
        let mut total = Summary::default();
        loop {
            let (summary, lost) = self.live(stop.clone()).await?;
            total.runs += summary.runs;
            total.succeeded += summary.succeeded;
            total.errors += summary.errors;
            total.failed += summary.failed;
            if !lost || *stop.borrow() != Stop::No {
                return Ok(total);
            }
            tracing::warn!(
                worker = self.settings.name,
                "the lease was lost; what it covered was dropped, and the worker registers anew"
            );
        }
    }

    /// Works from registering to deregistering; returns true if the lease was lost.
    async fn live(&self, outer: watch::Receiver<Stop>) -> Result<(Summary, bool)> {
        let catalog = self.db.read(Catalog::load).await?;
        let stages = self.resolve(&catalog)?;
        let began = std::time::Instant::now();
        let worker = self.register().await?;
        let who = format!("worker {} #{worker}", self.settings.name);
        let (stop_sender, stop) = watch::channel(*outer.borrow());
        let (catalog_sender, catalog) = watch::channel(catalog);
        let (settlements, finished) = mpsc::channel(4096);
        let shared = Arc::new(Shared {
            db: self.db.clone(),
            settings: self.settings.clone(),
            worker,
            who,
            catalog,
            stop,
            fence: lease::Fence::new(began + self.settings.lease),
            settlements,
            running: context::Running::default(),
            places: Arc::default(),
            kept: Arc::default(),
            counters: settler::Counters::default(),
            idle: Idle::new(stages.iter().map(|(stage, _)| *stage).collect()),
            left_behind: AtomicBool::new(false),
        });
        tracing::info!(
            worker = worker.number(),
            name = self.settings.name,
            stages = stages.len(),
            "worker started"
        );

        let mut background = JoinSet::new();
        background.spawn(refresh_catalog(self.db.clone(), catalog_sender));
        background.spawn(lease::renew(shared.clone()));
        background.spawn(lease::listen(shared.clone()));
        background.spawn(forward_stop(outer, stop_sender.clone(), shared.clone()));
        if self.settings.housekeeping {
            background.spawn(housekeeping::run(shared.clone()));
        }
        let settler = settler::Settler {
            db: self.db.clone(),
            worker,
            who: shared.who.clone(),
            catalog: shared.catalog.clone(),
            fence: shared.fence.clone(),
            places: shared.places.clone(),
            kept: shared.kept.clone(),
            counters: shared.counters.clone(),
            observer: self.settings.observer.clone(),
        };
        let settler = tokio::spawn(settler::run(settler, finished));
        let mut loops = JoinSet::new();
        if stages.is_empty() && !self.settings.until_empty {
            loops.spawn(wait_for_the_end(shared.clone()));
        }
        for (stage, handler) in stages {
            loops.spawn(stage::run(shared.clone(), stage, handler));
        }
        let mut failure = None;
        while let Some(ended) = loops.join_next().await {
            if let Err(error) =
                ended.unwrap_or_else(|e| Err(Error::Refused(format!("a stage loop ended: {e}"))))
            {
                failure.get_or_insert(error);
                stop_sender.send_replace(Stop::Shutdown);
            }
        }
        let lost = shared.fence.is_lost();
        background.shutdown().await;
        let counters = shared.counters.clone();
        let left_behind = shared.left_behind.load(Ordering::SeqCst);
        let goodbye = (shared.db.clone(), shared.who.clone(), shared.catalog.borrow().clone());
        drop(shared);
        if left_behind {
            // A run that blocks its thread keeps its sender. What others sent is settled; the jobs
            // of this process go on elsewhere once its lease has run out, and it has ended.
            let _ = tokio::time::timeout(SETTLE_AT_END, settler).await;
            return Ok((counters.summary(), lost));
        }
        // Ends once every sender is gone and what was sent is settled.
        let _ = settler.await;
        if !lost {
            let (db, who, catalog) = goodbye;
            if self.settings.housekeeping {
                // The last outcome may have been what a report waited for.
                while housekeeping::batches(&db, &catalog).await.unwrap_or(false) {}
            }
            let ended = db.write(move |tx| deregister(tx, tx.now(), &catalog, worker, &who)).await;
            if let Err(error) = ended {
                tracing::warn!(worker = worker.number(), %error, "the worker could not say goodbye; its lease will run out");
            }
        }
        match failure {
            Some(error) => Err(error),
            None => Ok((counters.summary(), lost)),
        }
    }

    fn resolve(&self, catalog: &Catalog) -> Result<Vec<(StageId, Arc<dyn DynHandler>)>> {
        self.handlers
            .iter()
            .map(|((pipeline, stage), handler)| {
                Ok((catalog.named(pipeline)?.stage_named(stage)?.id, handler.clone()))
            })
            .collect()
    }

    async fn register(&self) -> Result<WorkerId> {
        let new = NewWorker {
            name: self.settings.name.clone(),
            boot: boot_id(),
            host: host_name(),
            pid: i64::from(std::process::id()),
            stages: self.handlers.keys().map(|(p, s)| format!("{p}/{s}")).collect(),
            capacity: self.settings.capacity.clone(),
            workspaces: self.settings.workspaces.clone(),
        };
        let lease = micros(self.settings.lease);
        self.db.write(move |tx| register(tx, tx.now(), &new, lease)).await
    }
}

pub(crate) fn micros(duration: Duration) -> Micros {
    Micros::try_from(duration.as_micros()).unwrap_or(Micros::MAX)
}

/// Different at every start of a process.
fn boot_id() -> String {
    format!("{:x}-{:x}", std::process::id(), db::system_now())
}

/// Reads the catalog again when settings change, and periodically.
async fn refresh_catalog(db: Db, sender: watch::Sender<Catalog>) {
    let mut news = db.subscribe(pipelines::TOPIC);
    loop {
        let _ = tokio::time::timeout(Duration::from_secs(5), news.changed()).await;
        match db.read(Catalog::load).await {
            Ok(catalog) => {
                sender.send_replace(catalog);
            }
            Err(error) => tracing::debug!(%error, "settings could not be read; the old ones stay"),
        }
    }
}

/// Runs a worker without stages, which does only the housekeeping until it is told to stop.
async fn wait_for_the_end(shared: Arc<Shared>) -> Result<()> {
    let mut stop = shared.stop.clone();
    while *stop.borrow_and_update() == Stop::No && !shared.fence.is_lost() {
        // Wakes up to check whether the lease was lost.
        let _ = tokio::time::timeout(Duration::from_secs(1), stop.changed()).await;
    }
    Ok(())
}

/// Passes the process's stop on to the jobs under way.
async fn forward_stop(
    mut outer: watch::Receiver<Stop>,
    inner: watch::Sender<Stop>,
    shared: Arc<Shared>,
) {
    while *outer.borrow_and_update() == Stop::No {
        if outer.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
    inner.send_replace(Stop::Shutdown);
    shared.running.stop_all(Stop::Shutdown);
    std::future::pending::<()>().await;
}
