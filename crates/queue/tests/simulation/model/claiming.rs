//! Claiming, by the model: which answers are allowed, and what follows from the one given.

use super::{Job, Model, Place, Running, Verdict, same};
use queue::rules::moving::FreeSlots;
use queue::{Amounts, Claimed, JobId, Settled, StageId, WorkerId};
use std::collections::{BTreeMap, BTreeSet};

/// A claim looks through this many pages of as many rows as it still wants.
const PAGES: usize = 16;

impl Model {
    pub(super) fn claimed(
        &mut self,
        worker: WorkerId,
        stage: StageId,
        limit: usize,
        start: usize,
        claimed: &[Claimed],
        probes: &BTreeMap<JobId, String>,
    ) -> Verdict {
        if self.is_paused(stage) && !claimed.is_empty() {
            return Err(format!("I9: claimed {} jobs of a paused stage", claimed.len()));
        }
        if claimed.len() > limit {
            return Err(format!("claimed {} jobs, over the limit of {limit}", claimed.len()));
        }
        let before = self.clone();
        let mut last = None;
        for one in claimed {
            let probe = self.take_one(worker, stage, one, probes.get(&one.lease.job))?;
            let job = &before.jobs[&one.lease.job];
            let key = (job.priority, job.waiting().map(|w| w.due.1), job.id);
            if last.as_ref().is_some_and(|last| *last > key) && !probe {
                return Err(format!("job {} comes out of order", job.id));
            }
            last = if probe { None } else { Some(key) };
        }
        let started = claimed.iter().filter(|c| c.started).count();
        if started > start || (started == 0 && start > 0 && claimed.len() >= limit && limit == 1) {
            return Err(format!("{started} jobs are started, and {start} were asked for"));
        }
        if !self.is_paused(stage) {
            before.nothing_missed(self, worker, stage, limit, claimed)?;
        }
        Ok(())
    }

    /// One claimed job: whether it may be, and that it is what the model knows. True for a probe.
    fn take_one(
        &mut self,
        worker: WorkerId,
        stage: StageId,
        one: &Claimed,
        probe: Option<&String>,
    ) -> Verdict<bool> {
        let id = one.lease.job;
        let job = &self.job(id)?.clone();
        let probe = probe.cloned();
        self.may_probe(job, probe.as_deref())?;
        if let Some(why) = self.why_not(worker, stage, job) {
            return Err(format!("job {id} is claimed, but {why}"));
        }
        if let Some(why) = self.over_budget(worker, &self.needs(job)) {
            return Err(format!("job {id} is claimed, but {why}"));
        }
        if probe.is_none() {
            self.goes_first(job)?;
        }
        if one.lease.token <= self.token {
            return Err(format!("token {} is not above {}", one.lease.token, self.token));
        }
        let tries = job.tries.get(&stage).map_or(0, |t| t.attempts);
        same("its attempt", one.attempt, tries + 1)?;
        same("its lock", &one.lease.lock, &job.lock)?;
        same("its batch", one.lease.batch, job.batch)?;
        same("its payload", &one.payload, &job.payload)?;
        same("its subject", &one.subject, &job.subject)?;
        same("its priority", one.priority, job.priority)?;
        same("its targets", &one.targets, &job.targets)?;
        let before = job.last_token.filter(|_| self.owner(&job.lock) == Some(id));
        same("the token of its last run", one.token_before, before)?;
        self.token = one.lease.token;
        let run = Running {
            worker,
            token: one.lease.token,
            started: one.started,
            claimed_at: self.now,
            cancel: false,
            error_seen: false,
            probe: probe.clone(),
            reserved: self.needs(job),
            hold: false,
        };
        let lock = job.lock.clone();
        if let Some(target) = probe.as_ref().and_then(|t| self.targets.get_mut(t)) {
            target.probe_job = Some(id);
        }
        self.change(id).last_token = Some(run.token);
        self.change(id).place = Place::Running(run);
        for other in self.jobs.values_mut().filter(|j| j.lock == lock) {
            if let Place::Failed(failed) = &mut other.place {
                failed.overtaken = true;
            }
        }
        Ok(probe.is_some())
    }

    /// Jobs that were claimed for their next stage by the call that settled them: as claims are, and
    /// past nobody who waited there.
    pub(super) fn carried(
        &mut self,
        worker: WorkerId,
        places: &FreeSlots,
        answers: &[Settled],
    ) -> Verdict {
        let mut carried: Vec<&Claimed> = answers.iter().filter_map(Settled::carried).collect();
        carried.sort_by_key(|one| one.lease.token);
        let mut left = places.clone();
        let mut still: Vec<JobId> = carried.iter().map(|one| one.lease.job).collect();
        for one in carried {
            let (id, stage) = (one.lease.job, one.stage);
            let free = left.get_mut(&stage).filter(|free| **free > 0);
            *free.ok_or(format!("job {id} is carried on to where there is no place"))? -= 1;
            let holder = &self.workers[&worker];
            if holder.ended || holder.lease_until < self.now {
                return Err(format!("job {id} is carried on by a worker that is not there"));
            }
            if self.is_paused(stage) {
                return Err(format!("I9: job {id} is carried on to a paused stage"));
            }
            let priority = self.job(id)?.priority;
            let first = |j: &&Job| {
                j.priority <= priority
                    && !still.contains(&j.id)
                    && j.waiting().is_some_and(|w| w.due.1 <= self.now && w.entered < self.step)
                    && self.down(j).is_none()
                    && self.needs(j).is_empty()
                    && self.owner(&j.lock) == Some(j.id)
                    && self.why_not(worker, stage, j).is_none()
            };
            if let Some(other) = self.jobs.values().find(first) {
                return Err(format!("job {id} is carried on past job {}", other.id));
            }
            if !one.started {
                return Err(format!("job {id} is carried on and not started"));
            }
            self.take_one(worker, stage, one, None)?;
            still.retain(|other| *other != id);
        }
        Ok(())
    }

    fn down(&self, job: &Job) -> Option<Vec<String>> {
        let open = |t: &&String| self.targets.get(*t).is_some_and(|t| t.next_probe.is_some());
        let down: Vec<String> = job.targets.iter().filter(open).cloned().collect();
        (!down.is_empty()).then_some(down)
    }

    /// A job whose target is down may only run as a probe: one at a time, not before its time.
    fn may_probe(&self, job: &Job, probe: Option<&str>) -> Verdict {
        let wrong = |what: String| Err(format!("job {} is claimed, but {what}", job.id));
        match (self.down(job), probe) {
            (None, None) => Ok(()),
            (Some(down), None) => wrong(format!("{down:?} is down")),
            (_, Some(probe)) => match self.targets.get(probe) {
                Some(t)
                    if t.probe_job.is_none() && t.next_probe.is_some_and(|at| at <= self.now) =>
                {
                    same("it needs what it probes", job.targets.iter().any(|t| t == probe), true)
                }
                target => wrong(format!("{probe} is not to be probed now: {target:?}")),
            },
        }
    }

    /// Why the job may not be claimed now, apart from its targets and budgets.
    fn why_not(&self, worker: WorkerId, stage: StageId, job: &Job) -> Option<String> {
        if self.stage_of(job).id != stage {
            return Some(format!("it is in {}", self.stage_of(job).name));
        }
        let Some(w) = job.waiting() else { return Some(format!("it is {}", job.status())) };
        if w.held.is_some() || self.group_of(job).is_some() {
            return Some("it is held (I9)".to_string());
        }
        if w.due.0 > self.latest {
            return Some("it is not due".to_string());
        }
        match self.owner(&job.lock) {
            Some(owner) if owner != job.id => {
                return Some(format!("job {owner} owns its lock (I3)"));
            }
            _ => {}
        }
        let reach = &self.workers[&worker].workspaces;
        if job.workspace.as_ref().is_some_and(|w| !reach.contains(w)) {
            return Some("its work space is out of reach".to_string());
        }
        None
    }

    fn over_budget(&self, worker: WorkerId, needs: &Amounts) -> Option<String> {
        let capacity = &self.workers[&worker].capacity;
        needs.iter().find_map(|(name, amount)| {
            let (used, here) = self.used(name, worker);
            let over = self.totals.get(name).is_some_and(|t| used + amount > *t)
                || capacity.get(name).is_some_and(|t| here + amount > *t);
            over.then(|| format!("it needs {amount} of {name}, and {used} are used, {here} here"))
        })
    }

    /// Jobs of one lock that do not coalesce run in the order they were accepted.
    fn goes_first(&self, job: &Job) -> Verdict {
        let Some(mine) = job.waiting().filter(|w| !w.owns) else { return Ok(()) };
        let ahead = |other: &&Job| {
            other.lock == job.lock
                && other.id < job.id
                && !self.pipes[other.pipe].coalesces
                && other.waiting().and_then(|w| w.in_line_since).is_some_and(|s| s <= mine.entered)
        };
        let wrong = |o: &Job| Err(format!("job {} is claimed before {} of its lock", job.id, o.id));
        match self.pipes[job.pipe].coalesces {
            true => Ok(()),
            false => self.jobs.values().find(ahead).map_or(Ok(()), wrong),
        }
    }

    /// What could have been claimed was, unless there is an excuse. `self` is the state before.
    fn nothing_missed(
        &self,
        after: &Model,
        worker: WorkerId,
        stage: StageId,
        limit: usize,
        claimed: &[Claimed],
    ) -> Verdict {
        let rows =
            self.jobs.values().filter(|j| j.waiting().is_some() && self.stage_of(j).id == stage);
        if rows.clone().count() > PAGES * limit || limit == 0 {
            return Ok(());
        }
        let taken: BTreeSet<JobId> = claimed.iter().map(|c| c.lease.job).collect();
        let could = |j: &&Job| {
            let due = j.waiting().is_some_and(|w| w.due.1 <= self.now);
            due && self.down(j).is_none() && self.why_not(worker, stage, j).is_none()
        };
        let could: Vec<&Job> = rows.clone().filter(could).collect();
        let key = |j: &Job| (j.priority, j.waiting().map(|w| w.due.1), j.id);
        let last = claimed.last().map(|c| key(&self.jobs[&c.lease.job]));
        let mut rivals: BTreeMap<&str, usize> = BTreeMap::new();
        for job in &could {
            *rivals.entry(job.lock.as_str()).or_default() += 1;
        }
        // One that met an owner of its lock had taken of the budget what others then lacked; they
        // are ready again by now.
        let loses = |j: &Job| self.owner(&j.lock).is_some_and(|owner| owner != j.id);
        let contested = rivals.values().any(|n| *n > 1) || rows.clone().any(loses);
        for job in could.iter().filter(|j| !taken.contains(&j.id)) {
            let owns = job.owns();
            let rival = |o: &&Job| {
                o.lock == job.lock
                    && o.id != job.id
                    && o.waiting().is_some_and(|w| w.held.is_none())
            };
            let in_line = !owns && self.jobs.values().any(|o| rival(&o));
            let needs = self.needs(job);
            let starved =
                after.over_budget(worker, &needs).is_some() || (contested && !needs.is_empty());
            let later =
                claimed.len() == limit && last.as_ref().is_some_and(|last| key(job) > *last);
            // A probe takes a place whatever its order.
            let probes = claimed.len() == limit
                && claimed.iter().any(|c| self.down(&self.jobs[&c.lease.job]).is_some());
            if !(in_line || starved || later || probes) {
                return Err(format!("job {} could have been claimed and was not", job.id));
            }
        }
        Ok(())
    }

    pub(super) fn taken_over(
        &mut self,
        worker: WorkerId,
        stage: StageId,
        limit: usize,
        claimed: &[Claimed],
    ) -> Verdict {
        let before = self.clone();
        for one in claimed {
            let job = self.job(one.lease.job)?;
            let run = job.running().ok_or("a job is taken over that does not run")?.clone();
            if !before.may_take_over(worker, stage, job) {
                return Err(format!("job {} must not be taken over", job.id));
            }
            let mut mine = self.clone();
            mine.change(one.lease.job).place = Place::Ended(queue::Status::Cancelled);
            // Of the whole it has reserved what it needs already, even if there is less by now.
            mine.totals.clear();
            if let Some(why) = mine.over_budget(worker, &run.reserved) {
                return Err(format!("job {} is taken over, but {why}", job.id));
            }
            if one.lease.token <= self.token {
                return Err(format!("token {} is not above {}", one.lease.token, self.token));
            }
            same("started", one.started, true)?;
            self.token = one.lease.token;
            let now = self.now;
            let run =
                Running { worker, token: one.lease.token, started: true, claimed_at: now, ..run };
            self.change(one.lease.job).last_token = Some(run.token);
            self.change(one.lease.job).place = Place::Running(run);
        }
        let could = before.jobs.values().filter(|j| before.may_take_over(worker, stage, j));
        let missed = |j: &&Job| {
            let free = j.running().is_some_and(|r| r.reserved.is_empty());
            free && !claimed.iter().any(|c| c.lease.job == j.id)
        };
        match could.clone().find(missed) {
            Some(job) if claimed.len() < limit && could.count() <= limit => {
                Err(format!("job {} could have been taken over and was not", job.id))
            }
            _ => Ok(()),
        }
    }

    fn may_take_over(&self, worker: WorkerId, stage: StageId, job: &Job) -> bool {
        let reach = &self.workers[&worker].workspaces;
        let reached = job.workspace.as_ref().is_none_or(|w| reach.contains(w));
        let idle = |r: &Running| {
            !r.started
                && r.worker != worker
                && r.probe.is_none()
                && r.claimed_at < self.now - crate::world::SECOND
        };
        !self.is_paused(stage)
            && self.group_of(job).is_none()
            && reached
            && self.stage_of(job).id == stage
            && job.running().is_some_and(idle)
    }
}
