//! One stage in one process: prefetches jobs, starts as many as there are slots for, and gives back the
//! jobs that it did not start.

use crate::catalog::Stage;
use crate::error::{Error, Result};
use crate::error_code::ErrorCode;
use crate::id::StageId;
use crate::job::{Claimed, JobError, Lease, Outcome, Settlement};
use crate::rules::claim::{Claims, Request, claim_and_look_ahead, enter_lane, is_empty};
use crate::rules::lease::take_over;
use crate::rules::running::start;
use crate::runtime::context::{Context, Stop};
use crate::runtime::label::Label;
use crate::runtime::observer::RunEvent;
use crate::runtime::slots::Handed;
use crate::runtime::{Handler, Shared, quietly};
use db::{Lane, Micros};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::{JoinError, JoinSet};

/// The poll interval when no wake-up comes.
const POLL: Duration = Duration::from_secs(1);
/// A buffer that is worked off within this time is not worth taking over, so its jobs are started
/// when they are claimed and not one by one. If it is not, they are given back.
const QUICK_BUFFER: Duration = Duration::from_secs(1);
/// The first back-off after an error of the database.
const PAUSE_FIRST: Duration = Duration::from_millis(50);
/// Claims of one stage under way at once.
const CLAIMS_MAX: usize = 2;
/// Claimed in one transaction at most.
const CLAIM_MAX: usize = 2000;
/// A claim of this many jobs first enters a lane, shared with other processes.
const CLAIM_LARGE: usize = 200;
/// The first wait for a lane; it doubles, since every try is a transaction.
const TURN_FIRST: Duration = Duration::from_millis(20);
const TURN_LONGEST: Duration = Duration::from_millis(160);

/// How long runs that are cut short have to end.
const CUT_SHORT: Duration = Duration::from_secs(1);

/// A [`Handler`] of any type.
pub trait DynHandler: Send + Sync {
    fn handle<'a>(
        &'a self,
        job: &'a Claimed,
        context: &'a Context,
    ) -> Pin<Box<dyn Future<Output = Outcome> + Send + 'a>>;
}

pub(crate) struct ErasedHandler<W>(pub W);

impl<W: Handler> DynHandler for ErasedHandler<W> {
    fn handle<'a>(
        &'a self,
        job: &'a Claimed,
        context: &'a Context,
    ) -> Pin<Box<dyn Future<Output = Outcome> + Send + 'a>> {
        Box::pin(self.0.run(job, context))
    }
}

/// What the last claim found.
struct Claim {
    jobs: Vec<Claimed>,
    /// When something may become claimable without a wake-up.
    next: Option<Micros>,
    /// Anything left that is not held.
    empty: bool,
    /// All lanes were taken, so nothing is known.
    busy: bool,
    now: Micros,
}

struct Loop {
    shared: Arc<Shared>,
    stage: StageId,
    handler: Arc<dyn DynHandler>,
    buffer: VecDeque<Claimed>,
    /// When a job last came into the empty buffer, or left it.
    buffer_moved: Instant,
    /// Jobs that were carried on from the stage before, each with its place.
    carried: UnboundedReceiver<Handed>,
    runs: JoinSet<(i64, Duration)>,
    /// How long runs take, smoothed.
    mean: Option<Duration>,
    began: u64,
    /// The claims under way, each with the number of jobs it asks for.
    claims: JoinSet<(usize, Result<Claim>)>,
    /// How many jobs they ask for together.
    asked: usize,
    /// The last claim got all it asked for, so there are probably more jobs.
    plenty: bool,
    /// When to poll next, if no wake-up comes.
    look_at: Instant,
    /// When to try to enter a lane again.
    turn_at: Instant,
    /// How long to wait for it.
    turn: Duration,
    /// The back-off after an error of the database.
    pause: Duration,
    stolen_at: Instant,
}

/// Works on a stage until told to stop, or until nothing is left if the settings say so.
pub(crate) async fn run(
    shared: Arc<Shared>,
    stage: StageId,
    handler: Arc<dyn DynHandler>,
) -> Result<()> {
    let carried = shared.places.begin(stage);
    let mut this = Loop {
        shared,
        stage,
        handler,
        buffer: VecDeque::new(),
        buffer_moved: Instant::now(),
        carried,
        runs: JoinSet::new(),
        mean: None,
        began: 0,
        claims: JoinSet::new(),
        asked: 0,
        plenty: false,
        look_at: Instant::now(),
        turn_at: Instant::now(),
        turn: TURN_FIRST,
        pause: PAUSE_FIRST,
        stolen_at: Instant::now(),
    };
    let result = this.work().await;
    this.wind_up().await;
    result
}

impl Loop {
    fn settings(&self) -> Result<Stage> {
        let mut stage = self.shared.catalog.borrow().stage(self.stage)?.1.clone();
        stage.settings.workers = self.shared.settings.workers.unwrap_or(stage.settings.workers);
        stage.settings.buffer = self.shared.settings.buffer.unwrap_or(stage.settings.buffer);
        Ok(stage)
    }

    async fn work(&mut self) -> Result<()> {
        let mut news = self.shared.db.subscribe(self.stage);
        let mut stop = self.shared.stop.clone();
        let mut catalog = self.shared.catalog.clone();
        loop {
            let over = *stop.borrow() != Stop::No || self.shared.idle.is_over();
            if over || self.shared.fence.is_lost() || self.spent() {
                return Ok(());
            }
            let stage = self.settings()?;
            self.set_places(&stage);
            self.start_buffered(&stage).await?;
            self.give_up_buffer().await;
            let want = self.room(&stage);
            if want > 0 && self.may_claim() && Instant::now() >= self.claim_at() {
                if self.shared.fence.is_good() {
                    news.borrow_and_update();
                    // A task of its own: runs go on in parallel, and its jobs are never dropped.
                    self.asked += want;
                    self.set_places(&stage);
                    let claim = self.claim(&stage, want);
                    self.claims.spawn(async move { (want, claim.await) });
                    continue;
                }
                self.look_at = Instant::now() + POLL / 10;
            }
            let (idle, claim_at) = (want > 0 && self.may_claim(), self.claim_at());
            tokio::select! {
                Some(news) = self.carried.recv() => {
                    if let Some(job) = news {
                        self.spawn(&stage, job);
                    }
                }
                Some(ended) = self.runs.join_next() => self.ended(ended),
                Some(answer) = self.claims.join_next() => {
                    let (want, found) = answer.map_err(|e| Error::Refused(format!("a claim ended: {e}")))?;
                    self.asked -= want;
                    if self.found(&stage, want, found).await? {
                        return Ok(());
                    }
                }
                _ = tokio::time::sleep_until(claim_at.into()), if idle => {}
                _ = tokio::time::sleep_until((self.buffer_moved + QUICK_BUFFER).into()), if self.started_ahead() => {}
                changed = news.changed(), if idle => { changed.ok(); self.look_at = Instant::now(); }
                _ = stop.changed() => {}
                _ = catalog.changed() => {}
            }
            while let Some(ended) = self.runs.try_join_next() {
                self.ended(ended);
            }
        }
    }

    /// Says how many runs there may be, and whether jobs may be carried on to here: not while any
    /// are in the buffer, who go first.
    fn set_places(&self, stage: &Stage) {
        let limit = usize::try_from(stage.settings.workers).unwrap_or(0);
        let open = self.buffer.is_empty()
            && self.shared.settings.runs_max.is_none()
            && self.shared.fence.is_good();
        self.shared.places.set(self.stage, limit, open);
    }

    /// Takes a claim's answer in; true if the loop is at its end.
    async fn found(&mut self, stage: &Stage, want: usize, found: Result<Claim>) -> Result<bool> {
        match found {
            Ok(found) if found.busy => {
                self.turn_at = Instant::now() + self.turn;
                self.turn = (self.turn * 2).min(TURN_LONGEST);
                Ok(false)
            }
            Ok(found) => {
                self.pause = PAUSE_FIRST;
                (self.turn_at, self.turn) = (Instant::now(), TURN_FIRST);
                let (got, nothing) = (found.jobs.len(), found.jobs.is_empty());
                self.plenty = got >= want;
                self.accept(found.jobs);
                if nothing && self.shared.settings.runs_max.is_some() && self.has_nothing() {
                    // It is asked for so many runs, and not to wait for them.
                    return Ok(true);
                }
                if nothing && self.stolen_at.elapsed() > POLL {
                    self.stolen_at = Instant::now();
                    self.steal(stage).await?;
                }
                let wait = found.next.map_or(POLL, |at| {
                    Duration::from_micros(u64::try_from(at - found.now).unwrap_or(0))
                });
                // Whether the other stages have ended needs a query.
                let most = if self.shared.settings.until_empty { POLL / 40 } else { POLL };
                let wait = if got >= want {
                    Duration::ZERO
                } else {
                    wait.clamp(Duration::from_millis(1), most)
                };
                self.look_at = Instant::now() + wait;
                let idle = found.empty && self.has_nothing() && self.claims.is_empty();
                if self.shared.idle.note(self.stage, idle) {
                    self.shared.idle.confirm(&self.shared.db).await?;
                }
                Ok(self.shared.idle.is_over())
            }
            Err(Error::LeaseLost(_)) => {
                self.shared.fence.lose();
                self.shared.running.stop_all(Stop::LeaseLost);
                Ok(true)
            }
            Err(error) if error.is_transient() => {
                quietly!(error, stage = stage.name, %error, "nothing could be claimed; trying again");
                self.look_at = Instant::now() + self.pause;
                self.pause = (self.pause * 2).min(Duration::from_secs(2));
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// How many jobs to claim now: none until half the buffer is used up, so that claims are large.
    fn room(&self, stage: &Stage) -> usize {
        let size = |n: i64| usize::try_from(n).unwrap_or(0);
        let (workers, buffer) = (size(stage.settings.workers), size(stage.settings.buffer));
        if workers == 0 {
            return 0;
        }
        let held = self.shared.places.taken(self.stage) + self.buffer.len() + self.asked;
        let room = (workers + buffer).saturating_sub(held).min(CLAIM_MAX);
        let room = match self.shared.settings.runs_max {
            Some(most) => room
                .min(usize::try_from(most.saturating_sub(self.began)).unwrap_or(0))
                .saturating_sub(self.buffer.len() + self.asked),
            None => room,
        };
        // Until it is known how long runs take, nothing is claimed ahead: whether a buffer is worth
        // starting at once depends on it.
        let room = if self.mean.is_none() { room.min(workers.saturating_sub(held)) } else { room };
        let idle_slots = workers.saturating_sub(held);
        let ahead = self.buffer.len() + self.asked;
        if idle_slots == 0 && room <= buffer / 2 && ahead > buffer / 2 { 0 } else { room }
    }

    /// One claim at a time, and a second one beside it while there is plenty: on PostgreSQL they go
    /// over connections of their own.
    fn may_claim(&self) -> bool {
        self.claims.len() < if self.plenty { CLAIMS_MAX } else { 1 }
    }

    fn has_nothing(&self) -> bool {
        self.runs.is_empty() && self.buffer.is_empty()
    }

    fn claim_at(&self) -> Instant {
        self.look_at.max(self.turn_at)
    }

    /// True when the process has run as many jobs as it should.
    fn spent(&self) -> bool {
        self.shared.settings.runs_max.is_some_and(|most| self.began >= most) && self.runs.is_empty()
    }

    fn claim(
        &self,
        stage: &Stage,
        want: usize,
    ) -> impl Future<Output = Result<Claim>> + Send + use<> {
        let workers = usize::try_from(stage.settings.workers).unwrap_or(0);
        let free = workers.saturating_sub(self.shared.places.taken(self.stage));
        let rounds = (want + self.buffer.len()).div_ceil(workers.max(1));
        let ahead = u32::try_from(rounds).unwrap_or(u32::MAX);
        let quick = self.mean.is_some_and(|mean| mean.saturating_mul(ahead) < QUICK_BUFFER);
        let start = if quick { want } else { free.min(want) };
        let (worker, who, id) = (self.shared.worker, self.shared.who.clone(), self.stage);
        let catalog = self.shared.catalog.borrow().clone();
        // A stage that has something to do is not at its end, and need not query all that is under way.
        let may_end = self.shared.settings.until_empty && self.has_nothing();
        let crowded = self.plenty && want >= CLAIM_LARGE;
        self.shared.db.write(move |tx| {
            let now = tx.now();
            if crowded && !enter_lane(tx, id)? {
                return Ok(Claim { jobs: Vec::new(), next: None, empty: false, busy: true, now });
            }
            let request = Request { worker, who: &who, stage: id, limit: want, start };
            let Claims { jobs, next } = claim_and_look_ahead(tx, now, &catalog, request)?;
            let less = jobs.len() < want;
            let empty = less && may_end && is_empty(tx, id)?;
            Ok(Claim { jobs, next, empty, busy: false, now })
        })
    }

    /// Nothing is ready: takes what lies in the buffers of others.
    async fn steal(&mut self, stage: &Stage) -> Result<()> {
        let workers = usize::try_from(stage.settings.workers).unwrap_or(0);
        let taken = self.shared.places.taken(self.stage);
        let free = workers.saturating_sub(taken + self.buffer.len());
        if free == 0 || self.shared.settings.runs_max.is_some() {
            return Ok(());
        }
        let (worker, who, id) = (self.shared.worker, self.shared.who.clone(), self.stage);
        let catalog = self.shared.catalog.borrow().clone();
        let taken = self
            .shared
            .db
            .write(move |tx| {
                let request = Request { worker, who: &who, stage: id, limit: free, start: free };
                take_over(tx, tx.now(), &catalog, request)
            })
            .await;
        match taken {
            Ok(jobs) => self.accept(jobs),
            Err(error) if error.is_transient() => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    fn accept(&mut self, mut jobs: Vec<Claimed>) {
        for job in &mut jobs {
            job.carryover = self.shared.kept.take(job);
        }
        if self.buffer.is_empty() {
            self.buffer_moved = Instant::now();
        }
        self.buffer.extend(jobs);
    }

    /// Fills free slots from the buffer; jobs that were only claimed are started first.
    async fn start_buffered(&mut self, stage: &Stage) -> Result<()> {
        let places = self.shared.places.clone();
        while !self.buffer.is_empty() && self.shared.fence.is_good() {
            if self.buffer.front().is_some_and(|job| job.started) {
                if places.take(self.stage, 1) == 0 {
                    return Ok(());
                }
                if let Some(job) = self.buffer.pop_front() {
                    self.buffer_moved = Instant::now();
                    self.spawn(stage, job);
                }
                continue;
            }
            let free = places.take(self.stage, self.buffer.len());
            if free == 0 {
                return Ok(());
            }
            let batch: Vec<Claimed> = self.buffer.drain(..free).collect();
            self.buffer_moved = Instant::now();
            let leases: Vec<Lease> = batch.iter().map(|job| job.lease.clone()).collect();
            let worker = self.shared.worker;
            let started = self
                .shared
                .db
                .write_in(Lane::Urgent, move |tx| start(tx, tx.now(), worker, &leases))
                .await;
            let started = match started {
                Ok(started) => started,
                Err(error) => {
                    places.give_back(self.stage, free);
                    batch.into_iter().rev().for_each(|job| self.buffer.push_front(job));
                    if !error.is_transient() {
                        return Err(error);
                    }
                    quietly!(error, stage = stage.name, %error, "claimed jobs could not be started; trying again");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    return Ok(());
                }
            };
            for job in batch {
                // Other workers have taken over the jobs that are not in the answer.
                match started.contains(&job.lease.job) {
                    true => self.spawn(stage, job),
                    false => places.give_back(self.stage, 1),
                }
            }
        }
        Ok(())
    }

    /// Returns whether the buffer has jobs that other workers cannot take over, since they are started.
    fn started_ahead(&self) -> bool {
        self.buffer.iter().any(|job| job.started)
    }

    /// Gives such jobs back if it turns out that no place gets free for them soon: runs that are
    /// much longer than those before must not hold up what other workers could do.
    async fn give_up_buffer(&mut self) {
        let still = self.buffer_moved.elapsed();
        if still < QUICK_BUFFER || !self.started_ahead() {
            return;
        }
        // Those that are claimed in their stead are not started before there is a place.
        self.mean = self.mean.max(Some(still));
        let (started, others) = self.buffer.drain(..).partition(|job| job.started);
        self.buffer = others;
        self.give_back(started).await;
    }

    async fn give_back(&self, jobs: VecDeque<Claimed>) {
        for job in jobs {
            let settlement = Settlement::new(job.lease, Outcome::GivenBack);
            // If the settler is gone, deregistering queues the job again.
            let _ = self.shared.settlements.send(settlement).await;
        }
    }

    /// Runs a job in a slot that was taken for it.
    fn spawn(&mut self, stage: &Stage, job: Claimed) {
        self.began += 1;
        let run = self.shared.running.begin(job.lease.clone());
        let context = Context::new(self.shared.clone(), run);
        let label = Label {
            job: job.lease.job,
            batch: job.lease.batch,
            stage: stage.name.clone(),
            attempt: job.attempt,
            worker: self.shared.worker,
            subject: job.subject.clone(),
        };
        self.shared.tell(RunEvent::Began {
            job: job.lease.job,
            stage: &stage.name,
            subject: &job.subject,
        });
        let (shared, handler) = (self.shared.clone(), self.handler.clone());
        let limit = u64::try_from(stage.settings.timeout_seconds)
            .ok()
            .filter(|s| *s > 0)
            .map(Duration::from_secs);
        self.runs.spawn(label.on(one_run(shared, handler, job, context, limit)));
    }

    fn ended(&mut self, ended: std::result::Result<(i64, Duration), JoinError>) {
        self.shared.places.give_back(self.stage, 1);
        // A run catches its own panics, so a join error is only ever an abort at the very end.
        let Ok((token, took)) = ended else { return };
        self.shared.running.end(token);
        if self.plenty {
            // A slot is free and there are more jobs; otherwise a wake-up will come.
            self.look_at = Instant::now();
        }
        self.mean = Some(self.mean.map_or(took, |mean| (mean * 7 + took) / 8));
    }

    /// Gives the buffer back, and gives running work its grace.
    async fn wind_up(&mut self) {
        while let Some(answer) = self.claims.join_next().await {
            if let Ok((_, Ok(found))) = answer {
                self.accept(found.jobs);
            }
        }
        self.shared.places.end(self.stage);
        while let Ok(news) = self.carried.try_recv() {
            self.buffer.extend(news);
        }
        let left = std::mem::take(&mut self.buffer);
        self.give_back(left).await;
        if self.shared.fence.is_lost() {
            self.shared.running.stop_all(Stop::LeaseLost);
        }
        let deadline = tokio::time::Instant::now() + self.shared.settings.grace;
        while !self.runs.is_empty() {
            match tokio::time::timeout_at(deadline, self.runs.join_next()).await {
                Ok(Some(ended)) => self.ended(ended),
                Ok(None) => break,
                Err(_) => {
                    tracing::warn!(
                        stage = self.stage.number(),
                        runs = self.runs.len(),
                        "the grace period is over; the runs left are cut short"
                    );
                    self.runs.abort_all();
                    let rest = async { while self.runs.join_next().await.is_some() {} };
                    // A run that blocks its thread cannot be cut short, and is left behind.
                    if tokio::time::timeout(CUT_SHORT, rest).await.is_err() {
                        self.shared.left_behind.store(true, Ordering::SeqCst);
                        self.runs.detach_all();
                    }
                    break;
                }
            }
        }
    }
}

/// Runs one job and hands its outcome to the settler; the token and how long it took.
async fn one_run(
    shared: Arc<Shared>,
    handler: Arc<dyn DynHandler>,
    job: Claimed,
    context: Context,
    limit: Option<Duration>,
) -> (i64, Duration) {
    let began = Instant::now();
    let outcome = match limit {
        None => caught(handler.handle(&job, &context)).await,
        Some(limit) => {
            match tokio::time::timeout(limit, caught(handler.handle(&job, &context))).await {
                Ok(outcome) => outcome,
                Err(_) => Outcome::Transient(JobError::new(
                    ErrorCode::Timeout,
                    format!(
                        "it took longer than {} s (timeout_seconds) and was stopped",
                        limit.as_secs()
                    ),
                )),
            }
        }
    };
    let took = began.elapsed();
    match &outcome {
        Outcome::Transient(e) | Outcome::Permanent(e) => {
            tracing::warn!(
                target: super::RUNS,
                code = e.code,
                target_name = e.target,
                error = e.message,
                "run ended in an error"
            );
        }
        outcome => tracing::debug!(?outcome, took = ?took, "run ended"),
    }
    let token = job.lease.token;
    shared.tell(RunEvent::Over { job: job.lease.job });
    let (records, carryover) = (context.take_records(), context.take_carryover());
    let settlement = Settlement { lease: job.lease, outcome, records, carryover };
    // If the settler is gone the process is at its end, and deregistering queues the job again.
    let _ = shared.settlements.send(settlement).await;
    (token, took)
}

/// A panic is a permanent error with its message, not the end of the worker.
async fn caught(mut run: Pin<Box<dyn Future<Output = Outcome> + Send + '_>>) -> Outcome {
    let outcome =
        std::future::poll_fn(|cx| match catch_unwind(AssertUnwindSafe(|| run.as_mut().poll(cx))) {
            Ok(poll) => poll.map(Ok),
            Err(panic) => Poll::Ready(Err(panic)),
        })
        .await;
    outcome.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<&str>().map(|s| (*s).to_string());
        let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
        Outcome::Permanent(JobError::new(
            ErrorCode::Panic,
            format!("the worker's code panicked: {text}; this is a bug, please report it"),
        ))
    })
}
