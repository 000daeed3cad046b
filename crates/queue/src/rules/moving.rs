//! Runs that succeeded and have another stage before them. If the worker has a free slot in that
//! stage, and no waiting job there goes first, they are carried on: the transaction that settles a run
//! also claims and starts the next one, so that the worker keeps the job. All others wait in the next
//! stage for a claim.

use crate::catalog::{Pipeline, Stage};
use crate::codes::{State, Status};
use crate::error::Result;
use crate::id::{JobId, StageId, WorkerId};
use crate::job::{Amounts, Carryover, Claimed, Handover, Lease, Settled, Settlement};
use crate::rules::claim;
use crate::rules::history::{Event, Weight};
use crate::rules::running::Run;
use crate::rules::settle::{Hold, SettleBatch};
use db::{Micros, Statement, Tx, Value, statement};
use std::collections::{BTreeMap, BTreeSet};

/// How many more jobs a worker can run at once, by stage.
pub type FreeSlots = BTreeMap<StageId, usize>;

/// A run on its way to the next stage.
struct StageMove<'w> {
    /// Which settlement it is of.
    index: usize,
    pipeline: &'w Pipeline,
    stage: &'w Stage,
    next: &'w Stage,
    lease: &'w Lease,
    run: Run,
    handover: Handover,
    carryover: Carryover,
    hold: Option<Hold>,
}

/// Runs that move on, and the places their worker has for them.
pub(crate) struct StageMoves<'w> {
    places: FreeSlots,
    /// What the worker can reach; None if it may not be handed out anything.
    workspaces: Option<Vec<String>>,
    moves: Vec<StageMove<'w>>,
}

impl<'w> StageMoves<'w> {
    /// Before anything else is locked, as a claim does it.
    pub fn begin(
        tx: &mut Tx<'_>,
        now: Micros,
        worker: WorkerId,
        places: &FreeSlots,
    ) -> Result<StageMoves<'w>> {
        const CONTEXT: Statement = statement!(moving::carry_context);
        let mut workspaces = None;
        if places.values().any(|free| *free > 0) {
            claim::enter(tx)?;
            let found: Option<(String,)> = tx.first(&CONTEXT, &db::params![worker, now])?;
            workspaces = found.and_then(|(names,)| serde_json::from_str(&names).ok());
        }
        Ok(StageMoves { places: places.clone(), workspaces, moves: Vec::new() })
    }

    /// Has a run move on from a stage to another; `index` says of which settlement it is.
    pub fn add(
        &mut self,
        (index, item, run): (usize, &'w Settlement, Run),
        (pipeline, stage, next): (&'w Pipeline, &'w Stage, &'w Stage),
        handover: Handover,
        hold: Option<Hold>,
    ) {
        let (lease, carryover) = (&item.lease, item.carryover.clone());
        self.moves.push(StageMove {
            index,
            pipeline,
            stage,
            next,
            lease,
            run,
            handover,
            carryover,
            hold,
        });
    }

    /// Writes where each job went.
    pub fn end(
        mut self,
        tx: &mut Tx<'_>,
        work: &mut SettleBatch<'_>,
        answers: &mut [Option<Settled>],
    ) -> Result<()> {
        for one in &mut self.moves {
            one.hand_over(tx)?;
        }
        // In the order in which a claim would hand them out.
        self.moves.sort_by_key(|one| (one.run.priority, one.lease.job));
        let carried = self.choose(tx, work)?;
        let (on, waiting): (Vec<_>, Vec<_>) =
            self.moves.iter().partition(|one| carried.contains(&one.lease.job));
        for one in &self.moves {
            one.note_moved(work);
            let status = match &one.hold {
                Some(hold) => {
                    work.note_held(one.pipeline, one.lease.job, one.next.id, hold);
                    Status::Held
                }
                None => Status::Queued,
            };
            answers[one.index] = Some(Settled::Now(status));
        }
        leave_waiting(tx, work.now, &waiting)?;
        if work.failures {
            claim::mark_overtaken(tx, on.iter().map(|one| one.lease.lock.as_str()))?;
        }
        for (one, token) in carry(tx, work.now, &on)? {
            one.note_claimed(work, token);
            answers[one.index] = Some(Settled::Carried(Box::new(one.claimed(token))));
        }
        Ok(())
    }

    /// Returns the jobs that are carried on.
    fn choose(&mut self, tx: &mut Tx<'_>, work: &SettleBatch<'_>) -> Result<BTreeSet<JobId>> {
        const FIRST: Statement = statement!(moving::first_ready);
        let Some(workspaces) = &self.workspaces else { return Ok(BTreeSet::new()) };
        let stages: BTreeSet<StageId> = self.moves.iter().map(|one| one.next.id).collect();
        let rows: Vec<[Value<'_>; 1]> = stages
            .iter()
            .filter(|stage| self.places.get(*stage).is_some_and(|free| *free > 0))
            .map(|stage| [Value::from(stage)])
            .collect();
        let first: BTreeMap<StageId, Option<i64>> = tx
            .each::<(StageId, Option<i64>), 1>(&FIRST, &[Value::Int(work.now)], &rows)?
            .into_iter()
            .collect();
        let mut chosen = BTreeSet::new();
        for one in &self.moves {
            let Some(free) = self.places.get_mut(&one.next.id).filter(|free| **free > 0) else {
                continue;
            };
            let waits = first.get(&one.next.id).copied().flatten();
            let overtakes = waits.is_some_and(|priority| priority <= one.run.priority);
            if !overtakes && one.may_go(workspaces, work) {
                *free -= 1;
                chosen.insert(one.lease.job);
            }
        }
        Ok(chosen)
    }
}

impl StageMove<'_> {
    /// What the stage said about the job, from here on.
    fn hand_over(&mut self, tx: &mut Tx<'_>) -> Result<()> {
        const HANDOVER: Statement = statement!(moving::hand_over);
        let handover = &self.handover;
        let needs = handover.needs.as_ref().map(|needs| serde_json::json!(needs).to_string());
        let targets = handover.targets.as_ref().map(|t| t.join("\n"));
        let priority = handover.priority.map(|p| p.clamp(0, 99));
        let workspace = handover.workspace.clone();
        if priority.is_some() || targets.is_some() || needs.is_some() || workspace.is_some() {
            tx.send(
                &HANDOVER,
                &db::params![self.lease.job, priority, &targets, &workspace, &needs],
            )?;
        }
        let run = &mut self.run;
        run.priority = priority.unwrap_or(run.priority);
        run.targets = targets.or(run.targets.take());
        run.needs = needs.or(run.needs.take());
        run.workspace = workspace.or(run.workspace.take());
        Ok(())
    }

    /// As a claim would judge: it is not held (I9), its bytes are in reach, what it needs is up, and
    /// it takes nothing that there is a budget for.
    fn may_go(&self, workspaces: &[String], work: &SettleBatch<'_>) -> bool {
        let own = self.run.needs.as_deref().map(serde_json::from_str::<Amounts>);
        let needs_none = own.is_none_or(|own| own.is_ok_and(|own| own.is_empty()))
            && self.next.settings.needs.is_empty();
        needs_none
            && self.hold.is_none()
            && self.run.workspace.as_ref().is_none_or(|w| workspaces.contains(w))
            && work.breakers.down(self.run.targets.as_deref()).is_none()
    }

    fn note_moved(&self, work: &mut SettleBatch<'_>) {
        let event = Event::new(self.lease.job, work.now, &work.who, "moved")
            .from(self.run.stage, Status::Running)
            .to(self.next.id, Status::Queued)
            .token(self.lease.token);
        work.journal.note(self.pipeline, Weight::Step, event.because(self.note()));
    }

    /// What the stage says, and which stages it says have nothing to do.
    fn note(&self) -> Option<String> {
        let skipped = self.pipeline.between(self.stage, self.next);
        let note = self.handover.note.clone();
        match skipped.is_empty() {
            true => note,
            false => {
                let skips = format!("nothing to do in {}", skipped.join(", "));
                Some(note.map_or(skips.clone(), |note| format!("{note}; {skips}")))
            }
        }
    }

    fn note_claimed(&self, work: &mut SettleBatch<'_>, token: i64) {
        let event = Event::new(self.lease.job, work.now, &work.who, "claimed")
            .from(self.next.id, Status::Queued)
            .to(self.next.id, Status::Running)
            .token(token);
        work.journal.note(self.pipeline, Weight::Step, event);
    }

    fn claimed(&self, token: i64) -> Claimed {
        let run = &self.run;
        let targets = run.targets.as_deref().unwrap_or_default();
        Claimed {
            lease: Lease { token, stage: self.next.id, probe: false, ..self.lease.clone() },
            pipeline: self.pipeline.id,
            stage: self.next.id,
            subject: run.subject.clone(),
            payload: run.payload.clone(),
            collection: run.collection.clone(),
            targets: targets.lines().map(str::to_string).collect(),
            workspace: run.workspace.clone(),
            priority: run.priority,
            added_at: run.added_at,
            attempt: run.attempts_next + 1,
            started: true,
            token_before: Some(self.lease.token),
            carryover: self.carryover.clone(),
        }
    }
}

/// Keeps job and lock together, without a worker until it is claimed.
fn leave_waiting(tx: &mut Tx<'_>, now: Micros, moves: &[&StageMove<'_>]) -> Result<()> {
    const FREE: Statement = statement!(running::free_runs);
    const MOVED: Statement = statement!(moving::insert_moved);
    const ASIDE: Statement = statement!(line::put_aside);
    let runs: Vec<[Value<'_>; 3]> =
        moves.iter().map(|one| db::params![&one.lease.lock, one.lease.job, one.next.id]).collect();
    tx.send_each(&FREE, &[], &runs)?;
    let rows: Vec<[Value<'_>; 2]> =
        moves.iter().map(|one| db::params![one.lease.job, one.next.id]).collect();
    tx.send_each(&MOVED, &db::params![now], &rows)?;
    for one in moves {
        match &one.hold {
            Some(hold) => {
                tx.send(&ASIDE, &db::params![one.lease.job, State::Held, hold.by, now])?;
            }
            None => tx.wake(one.next.id),
        }
    }
    Ok(())
}

/// Same job, same lock, same worker; each with its new token.
fn carry<'m, 'w>(
    tx: &mut Tx<'_>,
    now: Micros,
    moves: &[&'m StageMove<'w>],
) -> Result<Vec<(&'m StageMove<'w>, i64)>> {
    const CARRY: Statement = statement!(moving::carry_runs);
    if moves.is_empty() {
        return Ok(Vec::new());
    }
    let tokens: Option<Vec<i64>> = moves.iter().map(|one| one.run.token_next).collect();
    let tokens = tokens.map_or_else(|| tx.next_ids("tokens", moves.len()), Ok)?;
    let carried: Vec<(&StageMove<'_>, i64)> = moves.iter().copied().zip(tokens).collect();
    let rows: Vec<[Value<'_>; 4]> = carried
        .iter()
        .map(|(one, token)| db::params![&one.lease.lock, one.lease.job, one.next.id, *token])
        .collect();
    tx.send_each(&CARRY, &db::params![now], &rows)?;
    Ok(carried)
}
