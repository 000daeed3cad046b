//! One claim under way: it judges ready jobs, takes their locks, and puts aside what cannot run now.

use super::rows::{Context, ReadyJob};
use super::{PAGE_MAX, READY, Request, START, mark_overtaken, page_after};
use crate::catalog::{Pipeline, Stage};
use crate::codes::{State, Status};
use crate::engine::{self, Claimant, LockRequest};
use crate::error::{Entity, Error, Result};
use crate::id::{JobId, PipelineId, StageId};
use crate::job::{Amounts, Carryover, Claimed, Lease};
use crate::rules::breaker::{self, Breakers};
use crate::rules::budget::{self, BudgetFit, Budgets};
use crate::rules::history::{Event, Journal, Weight};
use crate::rules::line::{self, Candidate};
use crate::rules::operator::hold::{self, HeldNames};
use db::{Micros, Statement, Tx, statement};
use std::collections::{BTreeSet, HashMap, HashSet};

/// Pages of ready jobs that one claim reads before it leaves the rest to the next.
const PAGES_MAX: usize = 16;
/// Blocked jobs that a claim tries as the probe of a target, in case it may not have the first.
const PROBES_MAX: i64 = 16;

/// A candidate whose lock was taken.
pub(super) struct Taken {
    candidate: ReadyJob,
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

pub(super) struct Claiming<'c> {
    pub now: Micros,
    pub request: Request<'c>,
    /// The id of its pipeline.
    pub pipeline: &'c Pipeline,
    /// The id of the stage.
    pub stage: &'c Stage,
    pub context: Context,
    /// How many are held.
    pub held: HeldNames,
    pub breakers: Breakers,
    pub budgets: Budgets,
    pub journal: Journal,
    pub taken: Vec<Taken>,
    /// How many of them are started at once.
    pub started: usize,
    /// Some were put aside because a target is down.
    pub blocked: bool,
}

impl Claiming<'_> {
    fn room(&self) -> usize {
        self.request.limit - self.taken.len()
    }

    /// One job for each target that is down and due for a look.
    pub fn probes(&mut self, tx: &mut Tx<'_>) -> Result<()> {
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
            for mut candidate in tx.query::<ReadyJob>(&BLOCKED, &params)? {
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
    pub fn pages(&mut self, tx: &mut Tx<'_>, mut first: Option<Vec<ReadyJob>>) -> Result<()> {
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

    fn take_page(&mut self, tx: &mut Tx<'_>, page: Vec<ReadyJob>) -> Result<()> {
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

    /// As [`Self::judge`], and judges again if a target that seemed down has come up since.
    fn judge_surely(&mut self, tx: &mut Tx<'_>, candidate: &ReadyJob) -> Result<Verdict> {
        loop {
            match self.judge(candidate)? {
                Verdict::Aside(State::Blocked, target)
                    if !self.breakers.confirm_down(tx, &target)? => {}
                verdict => return Ok(verdict),
            }
        }
    }

    fn judge(&mut self, candidate: &ReadyJob) -> Result<Verdict> {
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
            BudgetFit::Yes => Verdict::Take,
            BudgetFit::NotHere => Verdict::NotHere,
            BudgetFit::No(resource) => Verdict::Aside(State::Starved, resource),
        })
    }

    /// Holds (I9), and where the job's bytes are.
    fn judge_place(&self, candidate: &ReadyJob) -> Verdict {
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
        candidate: &ReadyJob,
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
        // The next job in the line may go now.
        line::promote(tx, self.now, &BTreeSet::from([candidate.lock.clone()]))
    }

    /// Takes the locks of good candidates; those that lose the race for theirs are parked.
    fn take(&mut self, tx: &mut Tx<'_>, good: Vec<ReadyJob>) -> Result<()> {
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
                lost.push(Candidate {
                    id: candidate.id,
                    stage: self.stage.id,
                    lock: candidate.lock,
                });
            }
        }
        line::make_ready(tx, self.now, &lost)?;
        // Others may have been put aside for want of what the losers had taken.
        given_back.iter().try_for_each(|resource| budget::feed(tx, self.now, resource))
    }

    fn note_taken(&mut self, tx: &mut Tx<'_>, candidate: &ReadyJob, token: i64) -> Result<()> {
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

    pub fn finish(mut self, tx: &mut Tx<'_>) -> Result<Vec<Claimed>> {
        self.budgets.write(tx, self.request.worker)?;
        std::mem::take(&mut self.journal).write(tx)?;
        let (pipeline, stage) = (self.pipeline.id, self.stage.id);
        self.taken.into_iter().map(|taken| taken.claimed(pipeline, stage)).collect()
    }
}

impl Taken {
    fn claimed(self, pipeline: PipelineId, stage: StageId) -> Result<Claimed> {
        let Taken { candidate, token, started } = self;
        let (Some(subject), Some(added_at)) = (candidate.subject, candidate.added_at) else {
            return Err(Error::unknown(
                Entity::Job,
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
            carryover: Carryover::default(),
        })
    }
}

fn got_of<'a>(good: &'a [ReadyJob], got: &'a [bool]) -> impl Iterator<Item = &'a ReadyJob> {
    good.iter().zip(got).filter(|(_, got)| **got).map(|(candidate, _)| candidate)
}

/// What the run needs: the stage's needs and the job's own, whichever is more.
fn needs_of(stage: &Stage, candidate: &ReadyJob) -> Result<Amounts> {
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
fn one_per_lock(tx: &mut Tx<'_>, candidates: &[ReadyJob]) -> Result<Vec<usize>> {
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
        let owner: Option<(JobId, StageId, Micros, Option<String>)> =
            tx.first(&OWNER, &db::params![lock])?;
        if owner.is_some_and(|o| o.0 == candidates[rival].id) {
            first.insert(lock, rival);
        }
    }
    let mut chosen: Vec<usize> = first.into_values().collect();
    chosen.sort_unstable();
    Ok(chosen)
}
