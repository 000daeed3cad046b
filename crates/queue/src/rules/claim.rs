//! Claiming: up to n jobs of a stage for one worker, each with its own token, in one transaction.
//! What cannot be claimed is skipped, and put where it is not met again until that changes.

use crate::catalog::{Catalog, Pipeline, Stage};
use crate::codes::{State, Status};
use crate::engine::{self, Claimant, LockRequest};
use crate::error::{Error, Result};
use crate::job::{Amounts, Claimed, Lease, Passed};
use crate::rules::breaker::{self, Breakers};
use crate::rules::budget::{self, Budgets, Fit};
use crate::rules::history::{Event, Journal, Weight};
use crate::rules::line::{self, Hopeful};
use crate::rules::people::hold::{self, Held};
use db::{FromRow, Micros, Row, Statement, Tx, Value, statement};
use std::collections::{BTreeSet, HashMap, HashSet};

/// Pages of candidates one claim looks through before it leaves the rest to the next.
const PAGES_MAX: usize = 16;
/// Blocked jobs that a claim tries as the probe of a target, in case it may not have the first.
const PROBES_MAX: i64 = 16;
/// Candidates that one look finds: those that one range of tokens is enough for.
const PAGE_MAX: usize = 4096;
/// Rows that one claim makes ready because their time has come.
const DUE_MAX: i64 = 1000;

const CONTEXT: Statement = statement!(claim::claim_context);
const READY: Statement = statement!(claim::ready_jobs);

/// Who claims what.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    pub worker: i64,
    /// How the worker is named in history.
    pub who: &'a str,
    pub stage: i64,
    pub limit: usize,
    /// How many of them are started at once; the others lie in a buffer until they are.
    pub start: usize,
}

/// What the claim finds when it begins.
pub(crate) struct Context {
    lease_until: Micros,
    ended: bool,
    pub capacity: Amounts,
    pub workspaces: Vec<String>,
    paused: bool,
    pub holds: bool,
    targets: bool,
    due: bool,
    failures: bool,
    budgets: bool,
    /// When the first delayed job is due.
    next_due: Option<Micros>,
}

impl FromRow for Context {
    fn from_row(row: &Row<'_>) -> db::Result<Context> {
        let broken =
            |e: serde_json::Error| db::Error::Other("a worker's row".to_string(), e.to_string());
        let (capacity, workspaces): (String, String) = (row.get(2)?, row.get(3)?);
        Ok(Context {
            lease_until: row.get(0)?,
            ended: row.get(1)?,
            capacity: serde_json::from_str(&capacity).map_err(broken)?,
            workspaces: serde_json::from_str(&workspaces).map_err(broken)?,
            paused: row.get(4)?,
            holds: row.get(5)?,
            targets: row.get(6)?,
            due: row.get(7)?,
            failures: row.get(8)?,
            budgets: row.get(9)?,
            next_due: row.get(10)?,
        })
    }
}

/// A ready row.
#[derive(Debug, Clone)]
pub(crate) struct Candidate {
    id: i64,
    priority: i64,
    due: Micros,
    lock: String,
    begun: bool,
    batch: Option<i64>,
    collection: Option<String>,
    targets: Option<String>,
    workspace: Option<String>,
    needs: Option<String>,
    /// None if its record is gone.
    subject: Option<String>,
    payload: Option<Vec<u8>>,
    added_at: Option<Micros>,
    attempts: Option<i64>,
    /// The first of the tokens for the leases to be, where the engine gives them out with the page.
    first_token: Option<i64>,
    /// That of its last run.
    token_before: Option<i64>,
    probe: Option<String>,
}

impl FromRow for Candidate {
    fn from_row(row: &Row<'_>) -> db::Result<Candidate> {
        Ok(Candidate {
            id: row.get(0)?,
            priority: row.get(1)?,
            due: row.get(2)?,
            lock: row.get(3)?,
            begun: row.get(4)?,
            batch: row.get(5)?,
            collection: row.get(6)?,
            targets: row.get(7)?,
            workspace: row.get(8)?,
            needs: row.get(9)?,
            subject: row.get(10)?,
            payload: row.get(11)?,
            added_at: row.get(12)?,
            attempts: row.get(13)?,
            first_token: row.get(14)?,
            token_before: row.get(15)?,
            probe: None,
        })
    }
}

/// A candidate whose lock was taken.
struct Taken {
    candidate: Candidate,
    token: i64,
    started: bool,
}

/// What is to be done with a candidate.
enum Verdict {
    Take,
    /// Out of the index until something changes: the new state and what it waits for.
    Aside(State, String),
    /// Not for this worker.
    NotHere,
}

struct Claiming<'c> {
    now: Micros,
    request: Request<'c>,
    pipeline: &'c Pipeline,
    stage: &'c Stage,
    context: Context,
    held: Held,
    breakers: Breakers,
    budgets: Budgets,
    journal: Journal,
    taken: Vec<Taken>,
    /// How many of them are started at once.
    started: usize,
    /// Some were put aside because a target is down.
    blocked: bool,
}

/// What a claim hands out.
#[derive(Debug, Default)]
pub struct Claims {
    pub jobs: Vec<Claimed>,
    /// When the stage may have something to claim without any news.
    pub next: Option<Micros>,
}

/// Claims jobs for a worker whose lease is good.
pub fn claim(
    tx: &mut Tx<'_>,
    now: Micros,
    catalog: &Catalog,
    request: Request<'_>,
) -> Result<Vec<Claimed>> {
    Ok(claim_and_look_ahead(tx, now, catalog, request)?.jobs)
}

/// As [`claim`], and says when to look again.
pub fn claim_and_look_ahead(
    tx: &mut Tx<'_>,
    now: Micros,
    catalog: &Catalog,
    request: Request<'_>,
) -> Result<Claims> {
    let (pipeline, stage) = catalog.stage(request.stage)?;
    let Some((context, page)) = look_round_and_ahead(tx, now, pipeline, stage, request)? else {
        return Ok(Claims::default());
    };
    // What is done before pages are looked through may change what is on the first.
    let page = Some(page).filter(|_| !context.due && !context.targets);
    let mut due = context.next_due;
    if context.due {
        wake_due(tx, now, stage)?;
        due = next_due(tx, stage)?;
    }
    let mut claiming = Claiming {
        held: if context.holds { hold::held_names_locked(tx)? } else { Held::default() },
        breakers: if context.targets { Breakers::load(tx)? } else { Breakers::default() },
        budgets: Budgets::default(),
        journal: Journal::default(),
        taken: Vec::new(),
        started: 0,
        blocked: false,
        now,
        request,
        pipeline,
        stage,
        context,
    };
    if claiming.context.budgets || !claiming.context.capacity.is_empty() {
        claiming.budgets = Budgets::load(tx, request.worker, &claiming.context.capacity)?;
    }
    let next = [due, claiming.breakers.next_probe()].into_iter().flatten().min();
    claiming.probes(tx)?;
    claiming.pages(tx, page)?;
    if claiming.blocked {
        // Those just put aside may include the first that can look after a target.
        claiming.probes(tx)?;
    }
    Ok(Claims { jobs: claiming.finish(tx)?, next: next.map(|at| at.max(now)) })
}

/// Returns whether one more claim may look at a stage now.
pub fn enter_lane(tx: &mut Tx<'_>, stage: i64) -> Result<bool> {
    engine::of(tx).enter_lane(tx, stage)
}

/// I9: a pause or a hold waits for claims under way, and claims that follow see it.
pub(crate) fn enter(tx: &mut Tx<'_>) -> Result<()> {
    engine::of(tx).enter_claims(tx)
}

/// What a worker whose lease is good finds at a stage; None if nothing is handed out there.
pub(crate) fn look_round(
    tx: &mut Tx<'_>,
    now: Micros,
    pipeline: &Pipeline,
    stage: &Stage,
    request: Request<'_>,
) -> Result<Option<Context>> {
    enter(tx)?;
    let params = db::params![request.worker, stage.id, pipeline.id, now];
    tx.first(&CONTEXT, &params)?
        .map_or(Err(Error::LeaseLost(request.worker)), |context: Context| {
            context.admit(now, request)
        })
}

/// As [`look_round`], with the first page of what is ready: most claims need nothing else.
fn look_round_and_ahead(
    tx: &mut Tx<'_>,
    now: Micros,
    pipeline: &Pipeline,
    stage: &Stage,
    request: Request<'_>,
) -> Result<Option<(Context, Vec<Candidate>)>> {
    enter(tx)?;
    let params = db::params![request.worker, stage.id, pipeline.id, now];
    let page = page_after(stage.id, START, request.limit.min(PAGE_MAX));
    let (found, page): (Vec<Context>, Vec<Candidate>) =
        tx.query_both((&CONTEXT, &params), (&READY, &page))?;
    let context = found.into_iter().next().ok_or(Error::LeaseLost(request.worker))?;
    Ok(context.admit(now, request)?.map(|context| (context, page)))
}

/// Before all that is ready: priority, due time, job.
const START: (i64, i64, i64) = (-1, 0, 0);

fn page_after(stage: i64, after: (i64, i64, i64), want: usize) -> [Value<'static>; 5] {
    db::params![stage, after.0, after.1, after.2, i64::try_from(want).unwrap_or(i64::MAX)]
}

impl Context {
    /// None if nothing is handed out.
    fn admit(self, now: Micros, request: Request<'_>) -> Result<Option<Context>> {
        if self.ended || self.lease_until < now {
            return Err(Error::LeaseLost(request.worker));
        }
        Ok((!self.paused && request.limit > 0).then_some(self))
    }
}

/// Jobs whose time has come: ready, or parked if their lock is taken.
fn wake_due(tx: &mut Tx<'_>, now: Micros, stage: &Stage) -> Result<()> {
    const DUE: Statement = statement!(claim::due_jobs);
    let due: Vec<(i64, String)> = tx.query(&DUE, &db::params![stage.id, now, DUE_MAX])?;
    let hopefuls: Vec<Hopeful> =
        due.into_iter().map(|(id, lock)| Hopeful { id, stage: stage.id, lock }).collect();
    line::make_ready(tx, now, &hopefuls)
}

impl Claiming<'_> {
    fn room(&self) -> usize {
        self.request.limit - self.taken.len()
    }

    /// One job for each target that is down and due for a look.
    fn probes(&mut self, tx: &mut Tx<'_>) -> Result<()> {
        const BLOCKED: Statement = statement!(claim::first_blocked);
        const TURN: Statement = statement!(claim::probe_turn);
        breaker::release_some(tx, self.now, &self.breakers)?;
        for target in self.breakers.due_for_probe(self.now) {
            if self.room() == 0 {
                return Ok(());
            }
            // One at a time: another claim may be handing one out just now.
            if tx.first::<(String,)>(&TURN, &db::params![&target, self.now])?.is_none() {
                continue;
            }
            let params = db::params![&target, self.stage.id, PROBES_MAX];
            for mut candidate in tx.query::<Candidate>(&BLOCKED, &params)? {
                candidate.probe = Some(target.clone());
                let before = self.taken.len();
                if matches!(self.judge(&candidate)?, Verdict::Take) {
                    self.take(tx, vec![candidate])?;
                }
                if self.taken.len() > before {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Looks through what is ready, beginning with the first page if it was read already.
    fn pages(&mut self, tx: &mut Tx<'_>, mut first: Option<Vec<Candidate>>) -> Result<()> {
        let mut after = START;
        for _ in 0..PAGES_MAX {
            let want = self.room().min(PAGE_MAX);
            if want == 0 {
                break;
            }
            let page = match first.take() {
                Some(page) => page,
                None => tx.query(&READY, &page_after(self.stage.id, after, want))?,
            };
            let Some(last) = page.last() else { break };
            after = (last.priority, last.due, last.id);
            let full = page.len() == want;
            self.take_page(tx, page)?;
            if !full {
                break;
            }
        }
        Ok(())
    }

    fn take_page(&mut self, tx: &mut Tx<'_>, page: Vec<Candidate>) -> Result<()> {
        let mut good = Vec::with_capacity(page.len());
        for candidate in page {
            match self.judge_surely(tx, &candidate)? {
                Verdict::Take => good.push(candidate),
                Verdict::NotHere => {}
                Verdict::Aside(state, what) => self.put_aside(tx, &candidate, state, &what)?,
            }
        }
        self.take(tx, good)
    }

    /// As [`Self::judge`], again for as long as a target that seemed down has come up meanwhile.
    fn judge_surely(&mut self, tx: &mut Tx<'_>, candidate: &Candidate) -> Result<Verdict> {
        loop {
            match self.judge(candidate)? {
                Verdict::Aside(State::Blocked, target)
                    if !self.breakers.confirm_down(tx, &target)? => {}
                verdict => return Ok(verdict),
            }
        }
    }

    fn judge(&mut self, candidate: &Candidate) -> Result<Verdict> {
        let place = self.judge_place(candidate);
        if matches!(place, Verdict::Aside(..)) {
            return Ok(place);
        }
        if candidate.probe.is_none()
            && let Some(target) = self.breakers.down(candidate.targets.as_deref())
        {
            return Ok(Verdict::Aside(State::Blocked, target));
        }
        if matches!(place, Verdict::NotHere) {
            return Ok(place);
        }
        let needs = needs_of(self.stage, candidate)?;
        Ok(match self.budgets.take(candidate.id, &needs) {
            Fit::Yes => Verdict::Take,
            Fit::NotHere => Verdict::NotHere,
            Fit::No(resource) => Verdict::Aside(State::Starved, resource),
        })
    }

    /// Holds (I9), and where the job's bytes are.
    fn judge_place(&self, candidate: &Candidate) -> Verdict {
        if !self.held.is_empty() && hold::may_be_held(self.pipeline, self.stage, candidate.begun) {
            let job = self.held.has_job(candidate.id).then_some("job");
            let group = || self.held.of(candidate.batch, candidate.collection.as_deref());
            if let Some(by) = job.or_else(group) {
                return Verdict::Aside(State::Held, by.to_string());
            }
        }
        match &candidate.workspace {
            Some(workspace) if !self.context.workspaces.contains(workspace) => Verdict::NotHere,
            _ => Verdict::Take,
        }
    }

    fn put_aside(
        &mut self,
        tx: &mut Tx<'_>,
        candidate: &Candidate,
        state: State,
        what: &str,
    ) -> Result<()> {
        const ASIDE: Statement = statement!(line::put_aside);
        tx.send(&ASIDE, &db::params![candidate.id, state, what, self.now])?;
        self.blocked |= state == State::Blocked;
        if state == State::Held {
            let taken = match what {
                "job" => hold::take_job_hold(tx, candidate.id)?,
                _ => None,
            };
            let (who, why) =
                taken.unwrap_or_else(|| ("rule".to_string(), format!("its {what} is held")));
            let event = Event::new(candidate.id, self.now, &who, "held")
                .from(self.stage.id, Status::Queued)
                .to(self.stage.id, Status::Held);
            self.journal.note(self.pipeline, Weight::Step, event.why(why));
        }
        // Whoever stood behind it in the line may go now.
        line::promote(tx, self.now, &BTreeSet::from([candidate.lock.clone()]))
    }

    /// Takes the locks of good candidates; those that lose the race for theirs are parked.
    fn take(&mut self, tx: &mut Tx<'_>, good: Vec<Candidate>) -> Result<()> {
        if good.is_empty() {
            return Ok(());
        }
        let tokens: Vec<i64> = match good[0].first_token {
            Some(first) => (first..).take(good.len()).collect(),
            None => tx.next_ids("tokens", good.len())?,
        };
        let mut tried = one_per_lock(tx, &good)?;
        let to_start = self.request.start - self.started.min(self.request.start);
        let started: HashSet<usize> = tried.iter().copied().take(to_start).collect();
        // One order for everyone, so that two claims cannot deadlock.
        tried.sort_unstable_by(|a, b| good[*a].lock.cmp(&good[*b].lock));
        let wanted: Vec<LockRequest<'_>> = tried
            .iter()
            .map(|&i| LockRequest {
                lock: &good[i].lock,
                job: good[i].id,
                token: tokens[i],
                started_at: started.contains(&i).then_some(self.now),
                probe: good[i].probe.as_deref(),
                begun: good[i].begun,
            })
            .collect();
        let (worker, stage, now) = (self.request.worker, self.stage.id, self.now);
        let hits = engine::of(tx).take_locks(tx, Claimant { worker, stage, now }, &wanted)?;
        let mut got = vec![false; good.len()];
        tried.into_iter().zip(hits).for_each(|(i, hit)| got[i] = hit);
        if self.context.failures {
            mark_overtaken(tx, got_of(&good, &got).map(|c| c.lock.as_str()))?;
        }
        let mut lost = Vec::new();
        let mut given_back = BTreeSet::new();
        for (i, candidate) in good.into_iter().enumerate() {
            if got[i] {
                self.note_taken(tx, &candidate, tokens[i])?;
                let started = started.contains(&i);
                self.started += usize::from(started);
                self.taken.push(Taken { candidate, token: tokens[i], started });
            } else {
                given_back.extend(self.budgets.give_back(candidate.id).into_keys());
                lost.push(Hopeful { id: candidate.id, stage: self.stage.id, lock: candidate.lock });
            }
        }
        line::make_ready(tx, self.now, &lost)?;
        // Others may have been put aside for want of what the losers had taken.
        given_back.iter().try_for_each(|resource| budget::feed(tx, self.now, resource))
    }

    fn note_taken(&mut self, tx: &mut Tx<'_>, candidate: &Candidate, token: i64) -> Result<()> {
        if self.journal.keeps(self.pipeline, Weight::Step) {
            let event = Event::new(candidate.id, self.now, self.request.who, "claimed")
                .from(self.stage.id, Status::Queued)
                .to(self.stage.id, Status::Running)
                .token(token);
            let why = candidate.probe.as_ref().map(|t| format!("to see whether {t} is up again"));
            self.journal.note(self.pipeline, Weight::Step, event.because(why));
        }
        if let Some(target) = &candidate.probe {
            breaker::probing(tx, target, candidate.id, token)?;
            self.breakers.note_probe(target, candidate.id);
        }
        Ok(())
    }

    fn finish(mut self, tx: &mut Tx<'_>) -> Result<Vec<Claimed>> {
        self.budgets.write(tx, self.request.worker)?;
        std::mem::take(&mut self.journal).write(tx)?;
        let (pipeline, stage) = (self.pipeline.id, self.stage.id);
        self.taken.into_iter().map(|taken| taken.claimed(pipeline, stage)).collect()
    }
}

impl Taken {
    fn claimed(self, pipeline: i64, stage: i64) -> Result<Claimed> {
        let Taken { candidate, token, started } = self;
        let (Some(subject), Some(added_at)) = (candidate.subject, candidate.added_at) else {
            return Err(Error::unknown(
                "job",
                candidate.id,
                "its record is gone; restore a backup",
            ));
        };
        let targets = candidate.targets.as_deref().unwrap_or_default();
        Ok(Claimed {
            lease: Lease {
                job: candidate.id,
                lock: candidate.lock,
                token,
                batch: candidate.batch,
                stage,
                probe: candidate.probe.is_some(),
            },
            pipeline,
            stage,
            subject,
            payload: candidate.payload,
            collection: candidate.collection,
            targets: targets.lines().map(str::to_string).collect(),
            workspace: candidate.workspace,
            priority: candidate.priority,
            added_at,
            attempt: candidate.attempts.unwrap_or(0) + 1,
            started,
            token_before: candidate.token_before,
            passed: Passed::default(),
        })
    }
}

fn got_of<'a>(good: &'a [Candidate], got: &'a [bool]) -> impl Iterator<Item = &'a Candidate> {
    good.iter().zip(got).filter(|(_, got)| **got).map(|(candidate, _)| candidate)
}

/// Failed jobs of a lock that someone else has now begun to work on resume earlier if requeued.
pub(crate) fn mark_overtaken<'l>(
    tx: &mut Tx<'_>,
    locks: impl Iterator<Item = &'l str>,
) -> Result<()> {
    const OVERTAKE: Statement = statement!(claim::mark_overtaken);
    let rows: Vec<[Value<'_>; 1]> = locks.map(|lock| [Value::Text(lock)]).collect();
    tx.send_each(&OVERTAKE, &[], &rows)?;
    Ok(())
}

/// When the first delayed job of a stage is due.
fn next_due(tx: &mut Tx<'_>, stage: &Stage) -> Result<Option<Micros>> {
    const DUE: Statement = statement!(claim::next_due);
    Ok(tx.one::<(Option<Micros>,)>(&DUE, &db::params![stage.id])?.0)
}

/// Whether nothing but held jobs is left in a stage, and nothing can come from an earlier one or
/// from a batch.
pub fn is_empty(tx: &mut Tx<'_>, stage: i64) -> Result<bool> {
    const LEFT: Statement = statement!(claim::anything_left);
    Ok(tx.first::<(i64,)>(&LEFT, &db::params![stage])?.is_none())
}

/// Where a waiting job's bytes are.
pub(crate) fn workspace_of(tx: &mut Tx<'_>, job: i64) -> Result<Option<String>> {
    const WORKSPACE: Statement = statement!(claim::waiting_workspace);
    Ok(tx.first::<(Option<String>,)>(&WORKSPACE, &db::params![job])?.and_then(|r| r.0))
}

/// What the run needs: the stage's needs and the job's own, whichever is more.
fn needs_of(stage: &Stage, candidate: &Candidate) -> Result<Amounts> {
    let mut needs = stage.settings.needs.clone();
    if let Some(own) = &candidate.needs {
        let own: Amounts = serde_json::from_str(own).map_err(|e| {
            Error::BadInput(format!("the needs of job {} cannot be read: {e}", candidate.id))
        })?;
        for (resource, amount) in own {
            let entry = needs.entry(resource).or_default();
            *entry = amount.max(*entry);
        }
    }
    Ok(needs)
}

/// Which to try, in their order: one of each lock, and the one that owns its lock already if there
/// is one.
fn one_per_lock(tx: &mut Tx<'_>, candidates: &[Candidate]) -> Result<Vec<usize>> {
    const OWNER: Statement = statement!(line::lock_owner);
    let mut first: HashMap<&str, usize> = HashMap::with_capacity(candidates.len());
    let mut rivals = Vec::new();
    for (i, candidate) in candidates.iter().enumerate() {
        let chosen = first.entry(candidate.lock.as_str()).or_insert(i);
        match (candidate.begun, candidates[*chosen].begun) {
            (true, false) => *chosen = i,
            (true, true) if *chosen != i => rivals.push(i),
            _ => {}
        }
    }
    // One that moved to this lock has begun too, and does not own it.
    for rival in rivals {
        let lock = candidates[rival].lock.as_str();
        let owner: Option<(i64, i64, Micros, Option<String>)> =
            tx.first(&OWNER, &db::params![lock])?;
        if owner.is_some_and(|o| o.0 == candidates[rival].id) {
            first.insert(lock, rival);
        }
    }
    let mut chosen: Vec<usize> = first.into_values().collect();
    chosen.sort_unstable();
    Ok(chosen)
}
