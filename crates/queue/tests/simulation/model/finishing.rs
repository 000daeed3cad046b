//! How runs end, by the model; and what else a worker does with its jobs.

use super::{Failed, HeldBy, Model, Place, Target, Verdict, Waiting, Worker, same};
use crate::call::{Answer, Call, Item};
use crate::world::SECOND;
use queue::{JobError, JobId, Outcome, Settled, Status, WorkerId};

const ERRORS_TO_OPEN: i64 = 5;
const PROBE_WAIT: i64 = 10 * SECOND;
const PROBE_WAIT_MAX: i64 = 300 * SECOND;

/// The stage that a success names to go on with.
fn named(outcome: &Outcome) -> Option<&str> {
    match outcome {
        Outcome::Success(handover) => handover.next_stage.as_deref(),
        _ => None,
    }
}

/// The state that a success leaves.
fn left(outcome: &Outcome) -> Option<String> {
    match outcome {
        Outcome::Success(handover) => {
            handover.state.as_ref().map(|s| serde_json::json!(s).to_string())
        }
        _ => None,
    }
}

impl Model {
    pub(super) fn settled(
        &mut self,
        worker: WorkerId,
        items: &[Item],
        answers: &[Settled],
    ) -> Verdict {
        same("answers", answers.len(), items.len())?;
        // Plain successes at the last stage (probes are not) are settled together, before all others.
        let mut expected: Vec<Option<Settled>> = vec![None; items.len()];
        let mut resolving = Vec::new();
        for (item, slot) in items.iter().zip(&mut expected) {
            let plain = item.recorded.is_none()
                && !item.lease.probe
                && matches!(item.outcome, Outcome::Success(_) | Outcome::Skip(_))
                && named(&item.outcome).is_none()
                && left(&item.outcome).is_none();
            if plain && self.is_current(worker, &item.lease) && self.is_last(item.lease.job) {
                self.up(item.lease.job);
                self.end(item.lease.job, Status::Succeeded);
                resolving.push(item.lease.job);
                *slot = Some(Settled::Now(Status::Succeeded));
            }
        }
        resolving.into_iter().for_each(|job| self.resolve(job));
        for (item, slot) in items.iter().zip(&mut expected) {
            if slot.is_none() {
                *slot = Some(match self.is_current(worker, &item.lease) {
                    true => Settled::Now(self.finish(item)),
                    false => Settled::Stale,
                });
            }
        }
        let expected: Vec<Settled> = expected.into_iter().flatten().collect();
        // One that is carried on has moved first.
        let moved = |answer: &Settled| match answer {
            Settled::Carried(_) => Settled::Now(Status::Queued),
            answer => answer.clone(),
        };
        let answers: Vec<Settled> = answers.iter().map(moved).collect();
        same("outcomes", answers.as_slice(), expected.as_slice())
    }

    fn is_last(&self, id: JobId) -> bool {
        let job = &self.jobs[&id];
        job.position + 1 == self.pipes[job.pipe].stages.len()
    }

    fn finish(&mut self, item: &Item) -> Status {
        let id = item.lease.job;
        if item.recorded == Some(false) {
            return self.permanent(id);
        }
        let cancel = self.run(id).cancel;
        let Some(next) = self.onward(id, named(&item.outcome)) else {
            return self.permanent(id);
        };
        match &item.outcome {
            Outcome::Success(_) | Outcome::Skip(_) => {
                self.up(id);
                if let Some(state) = left(&item.outcome) {
                    let stage = self.stage_of(&self.jobs[&id]).id;
                    self.change(id).states.insert(stage, state);
                }
                if self.is_last(id) {
                    self.end(id, Status::Succeeded);
                    self.resolve(id);
                } else if cancel {
                    self.probe_over(id, false);
                    self.end(id, Status::Cancelled);
                } else {
                    self.move_on(id, next, &item.outcome);
                }
            }
            Outcome::Wait { due, .. } => {
                self.probe_over(id, false);
                self.back(id, (*due, *due));
            }
            Outcome::Transient(error) => self.transient(id, error),
            Outcome::Permanent(_) => drop(self.permanent(id)),
            Outcome::Relock(lock) => {
                self.probe_over(id, false);
                if cancel {
                    self.end(id, Status::Cancelled);
                } else {
                    self.change(id).lock.clone_from(lock);
                    let held = self.held_after_run(id);
                    self.wait(id, (self.now, self.now), false, held);
                }
            }
            Outcome::Interrupted(_) => self.interrupt(id),
            Outcome::GivenBack => {
                self.probe_over(id, false);
                self.back(id, (self.now, self.now));
            }
            Outcome::Cancelled => {
                self.probe_over(id, false);
                self.end(id, Status::Cancelled);
            }
        }
        self.jobs[&id].status()
    }

    /// The position a job goes on to; None if it may not go to the stage that is named.
    fn onward(&self, id: JobId, named: Option<&str>) -> Option<usize> {
        let job = &self.jobs[&id];
        let pipe = &self.pipes[job.pipe];
        let Some(name) = named else { return Some(job.position + 1) };
        let next = pipe.stages.iter().position(|s| s.name == name)?;
        let passes = pipe.forward.is_some_and(|f| job.position < f && next > f);
        (next > job.position && !passes).then_some(next)
    }

    fn run(&self, id: JobId) -> &super::Running {
        self.jobs[&id].running().expect("a current lease is of a running job")
    }

    /// On to another stage: same job, same lock.
    fn move_on(&mut self, id: JobId, next: usize, outcome: &Outcome) {
        let held = self.held_after_run(id);
        let job = self.change(id);
        job.position = next;
        if let Outcome::Success(handover) = outcome {
            job.priority = handover.priority.unwrap_or(job.priority);
            job.targets = handover.targets.clone().unwrap_or_else(|| job.targets.clone());
            job.needs = handover.needs.clone().unwrap_or_else(|| job.needs.clone());
            if handover.workspace.is_some() {
                job.workspace.clone_from(&handover.workspace);
            }
        }
        self.wait(id, (self.now, self.now), true, held);
    }

    /// I9: what holds a job when its run ends; a run of the forward-only stages is followed by others.
    fn held_after_run(&self, id: JobId) -> Option<HeldBy> {
        let job = &self.jobs[&id];
        let own = (self.run(id).hold && self.may_be_held(job)).then_some(HeldBy::Job);
        own.or_else(|| self.group_of(job))
    }

    fn wait(&mut self, id: JobId, due: (i64, i64), owns: bool, held: Option<HeldBy>) {
        let entered = self.step;
        self.change(id).place =
            Place::Waiting(Waiting { due, held, begun: true, owns, in_line_since: None, entered });
    }

    /// Back to the queue: cancelled if that was asked, superseded if it was added again in the
    /// first stage of a coalescing pipeline and is of no batch, else waiting with its lock.
    fn back(&mut self, id: JobId, due: (i64, i64)) {
        let job = &self.jobs[&id];
        let newer = self.mergeable(job.pipe, &job.subject, &job.lock, job.batch);
        let newer = newer.filter(|_| job.position == 0 && job.batch.is_none());
        if self.run(id).cancel {
            self.end(id, Status::Cancelled);
        } else if let Some(newer) = newer {
            self.supersede(id, newer);
        } else {
            let held = self.held_after_run(id);
            self.wait(id, due, true, held);
        }
    }

    /// A claimed job that has not started is taken out of its worker's buffer.
    pub(super) fn take_back(&mut self, id: JobId) {
        self.probe_over(id, false);
        self.back(id, (self.now, self.now));
    }

    fn transient(&mut self, id: JobId, error: &JobError) {
        let (now, target) = (self.now, error.target.as_deref());
        let was_probe = self.run(id).probe.clone();
        self.probe_over(id, target.is_some() && was_probe.as_deref() == target);
        let mut was_down = false;
        if let Some(name) = target {
            let new = Target { probe_wait: PROBE_WAIT, ..Target::default() };
            let state = self.targets.entry(name.to_string()).or_insert(new);
            state.errors += 1;
            was_down = state.next_probe.is_some();
            if !was_down && (error.down || state.errors >= ERRORS_TO_OPEN) {
                state.next_probe = Some(now + PROBE_WAIT);
                state.probe_wait = PROBE_WAIT;
            }
            was_down |= error.down;
        }
        let learn = |model: &mut Model| {
            let job = model.change(id);
            if let (Some(name), Place::Waiting(_)) = (target, &job.place)
                && !job.targets.iter().any(|t| t == name)
            {
                job.targets.push(name.to_string());
            }
        };
        if was_probe.is_some() || was_down {
            self.back(id, (now, now));
            return learn(self);
        }
        let stage = self.stage_of(&self.jobs[&id]).clone();
        let tries = self.change(id).tries.entry(stage.id).or_default();
        tries.attempts += 1;
        tries.attempts_ever += 1;
        let attempts = tries.attempts;
        if attempts >= stage.max_attempts {
            return self.fail(id);
        }
        let seconds =
            (stage.backoff_seconds << (attempts - 1).min(30)).min(stage.backoff_seconds_max);
        let fifth = seconds * SECOND / 5;
        self.back(id, (now + seconds * SECOND - fifth, now + seconds * SECOND + fifth));
        learn(self);
    }

    fn permanent(&mut self, id: JobId) -> Status {
        // Probes count no attempt.
        if self.run(id).probe.is_none() {
            let stage = self.stage_of(&self.jobs[&id]).id;
            let tries = self.change(id).tries.entry(stage).or_default();
            tries.attempts += 1;
            tries.attempts_ever += 1;
        }
        self.probe_over(id, false);
        self.fail(id);
        self.jobs[&id].status()
    }

    fn fail(&mut self, id: JobId) {
        if self.run(id).cancel {
            return self.end(id, Status::Cancelled);
        }
        self.change(id).place = Place::Failed(Failed {
            recoverable: true,
            review: true,
            overtaken: false,
            discarded: false,
        });
        self.touched.extend(self.jobs[&id].batch);
        self.preparer_ended(id);
    }

    fn interrupt(&mut self, id: JobId) {
        self.probe_over(id, false);
        let (started, cancel) = (self.run(id).started, self.run(id).cancel);
        if started {
            let stage = self.stage_of(&self.jobs[&id]).clone();
            let tries = self.change(id).tries.entry(stage.id).or_default();
            tries.interruptions += 1;
            tries.interruptions_ever += 1;
            if tries.interruptions > stage.max_interruptions && !cancel {
                return self.fail(id);
            }
        }
        self.back(id, (self.now, self.now));
    }

    /// A probe is over; the next one comes later if its target was to blame.
    fn probe_over(&mut self, id: JobId, to_blame: bool) {
        let Some(name) = self.run(id).probe.clone() else { return };
        let now = self.now;
        let Some(target) = self.targets.get_mut(&name).filter(|t| t.next_probe.is_some()) else {
            return;
        };
        target.probe_job = None;
        if to_blame {
            target.probe_wait = (target.probe_wait * 2).min(PROBE_WAIT_MAX);
        }
        target.next_probe = Some(now + target.probe_wait);
    }

    /// One success of a job that needs a target closes its breaker.
    fn up(&mut self, id: JobId) {
        let job = &self.jobs[&id];
        let names: Vec<String> = job.targets.iter().chain(&self.run(id).probe).cloned().collect();
        for name in names {
            self.targets.remove(&name);
        }
    }

    /// Failed jobs of the same pipeline, collection and subject that were accepted earlier, and not in
    /// the same batch, are resolved by a success.
    fn resolve(&mut self, id: JobId) {
        let by = self.jobs[&id].clone();
        let moot = |j: &&super::Job| {
            let thing = |j: &super::Job| (j.pipe, j.collection.clone(), j.subject.clone());
            let same = thing(j) == thing(&by);
            let rows = j.batch.is_some() && j.batch == by.batch;
            same && j.failed().is_some() && j.id < by.id && !rows
        };
        let moot: Vec<JobId> = self.jobs.values().filter(moot).map(|j| j.id).collect();
        moot.into_iter().for_each(|job| self.supersede(job, id));
    }

    /// Ends a job whose place another one takes.
    pub(super) fn supersede(&mut self, id: JobId, by: JobId) {
        self.end(id, Status::Cancelled);
        self.change(id).replaced_by = Some(by);
    }

    pub(super) fn worked(&mut self, call: &Call, answer: &Answer) -> Verdict {
        match (call, answer) {
            (Call::Register { worker }, Answer::Registered(id)) => {
                let worker = Worker {
                    lease_until: self.now + crate::world::LEASE,
                    ended: false,
                    capacity: worker.capacity.clone(),
                    workspaces: worker.workspaces.clone(),
                };
                same("a worker of this id", self.workers.insert(*id, worker).is_some(), false)
            }
            (Call::Renew { worker }, Answer::Holdings(held)) => {
                let until = self.now + crate::world::LEASE;
                self.workers.entry(*worker).and_modify(|w| w.lease_until = until);
                let mut held: Vec<(JobId, i64, bool)> =
                    held.iter().map(|h| (h.job, h.token, h.cancel_requested)).collect();
                held.sort_unstable();
                let mine = |j: &super::Job| {
                    let run = j.running().filter(|r| r.worker == *worker)?;
                    Some((j.id, run.token, run.cancel))
                };
                same("holdings", held, self.jobs.values().filter_map(mine).collect())
            }
            (Call::FollowClock, Answer::Done) => {
                self.follow_clock();
                Ok(())
            }
            (Call::Reap, Answer::Reaped(lost)) => self.reaped(*lost),
            (Call::Deregister { worker }, Answer::Done) => {
                self.worker_ends(*worker);
                Ok(())
            }
            (Call::Start { worker, leases }, Answer::Ids(ids)) => {
                let mut good = Vec::new();
                for lease in leases {
                    if self.is_current(*worker, lease) {
                        good.push(lease.job);
                        self.change_run(lease.job, |run| run.started = true);
                    }
                }
                same("started", ids, &good)
            }
            (Call::Progress { worker, lease }, Answer::Yes(yes)) => {
                same("progress", *yes, self.is_current(*worker, lease))
            }
            (Call::ErrorSeen { worker, lease }, Answer::Yes(yes)) => {
                let current = self.is_current(*worker, lease);
                if current {
                    self.change_run(lease.job, |run| run.error_seen = true);
                }
                same("error seen", *yes, current)
            }
            (Call::Checkpoint { worker, lease, key, value }, Answer::Yes(yes)) => {
                let current = self.is_current(*worker, lease);
                if current {
                    let stage = self.stage_of(&self.jobs[&lease.job]).id;
                    self.change(lease.job).checkpoints.insert((stage, key.clone()), value.clone());
                }
                same("checkpoint", *yes, current)
            }
            other => Err(format!("unexpected answer: {other:?}")),
        }
    }

    fn change_run(&mut self, id: JobId, change: impl FnOnce(&mut super::Running)) {
        if let Place::Running(run) = &mut self.change(id).place {
            change(run);
        }
    }

    /// What was counted from a moment that has not come yet is counted from now.
    fn follow_clock(&mut self) {
        let (now, back) = (self.now, self.latest - self.now);
        let ahead = now + queue::rules::clock::TOLERANCE_MICROS;
        for worker in self.workers.values_mut().filter(|w| !w.ended) {
            if worker.lease_until - crate::world::LEASE > ahead {
                worker.lease_until = now + crate::world::LEASE;
            }
        }
        for target in self.targets.values_mut() {
            if target.next_probe.is_some_and(|at| at - target.probe_wait > ahead) {
                target.next_probe = Some(now + target.probe_wait);
            }
        }
        for job in self.jobs.values_mut() {
            // When it began to wait is in the tables: by how much it is sooner is looked at there.
            if let Place::Waiting(w) = &mut job.place
                && w.begun
            {
                w.due.0 -= back;
            }
        }
    }

    fn reaped(&mut self, lost: Option<WorkerId>) -> Verdict {
        let expired = |w: &Worker| !w.ended && w.lease_until < self.now;
        match lost {
            Some(id) if self.workers.get(&id).is_some_and(expired) => {
                self.worker_ends(id);
                Ok(())
            }
            Some(id) => Err(format!("worker {id} is reaped with a good lease")),
            None => same("an expired worker", self.workers.values().any(expired), false),
        }
    }

    fn worker_ends(&mut self, id: WorkerId) {
        self.workers.entry(id).and_modify(|w| w.ended = true);
        let held = |j: &&super::Job| j.running().is_some_and(|r| r.worker == id);
        let held: Vec<JobId> = self.jobs.values().filter(held).map(|j| j.id).collect();
        held.into_iter().for_each(|job| self.interrupt(job));
    }
}
