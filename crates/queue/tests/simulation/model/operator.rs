//! What people do, by the model.

use super::{HeldBy, Job, Model, Place, Verdict, Waiting, same, scope_key};
use crate::call::{Answer, Call, Whose};
use queue::rules::operator::cancel::Cancelled;
use queue::rules::operator::retry::{Filter, Retried};
use queue::{BatchId, BatchState, JobId, StageId, Status};

fn is_of(job: &Job, whose: &Whose) -> bool {
    match whose {
        Whose::Batch(id) => job.batch == Some(*id),
        Whose::Collection(name) => job.collection.as_ref() == Some(name),
    }
}

impl Model {
    /// Why a call must be refused; None if it must be done.
    pub(super) fn predict_for_people(&self, call: &Call) -> Option<&'static str> {
        let refuse = |yes: bool, why: &'static str| yes.then_some(why);
        match call {
            Call::HoldJob { job } => self.refuse_hold(&self.jobs[job]),
            Call::ReleaseJob { job } => {
                let job = &self.jobs[job];
                if job.running().is_some_and(|r| r.hold) {
                    return None;
                }
                let group = self.held_by(job.batch, job.collection.as_deref());
                refuse(job.status() != Status::Held, "not held")
                    .or(refuse(group.is_some(), "held with its group"))
            }
            Call::Hold { whose: Whose::Batch(id) } => {
                let batch = &self.batches[id];
                let late = !matches!(batch.state, BatchState::Pending | BatchState::Processing);
                refuse(late || batch.held, "too late, or held already")
            }
            Call::Hold { whose } => refuse(self.holds.contains(whose), "held already"),
            Call::Release { whose } => refuse(!self.holds.contains(whose), "not held"),
            Call::Pause { scope } => refuse(self.pauses.contains(&scope_key(*scope)), "paused"),
            Call::Unpause { scope } => {
                refuse(!self.pauses.contains(&scope_key(*scope)), "not paused")
            }
            Call::Discard { job } => self.refuse_discard(&self.jobs[job]),
            Call::Requeue { job, to } => self.refuse_requeue(&self.jobs[job], to.as_deref()),
            Call::Cancel { job } => self.refuse_cancel(&self.jobs[job]),
            Call::Seen { job } => {
                refuse(!self.jobs[job].failed().is_some_and(|f| f.review), "no review needed")
            }
            _ => self.predict_for_batches(call),
        }
    }

    fn refuse_hold(&self, job: &Job) -> Option<&'static str> {
        match &job.place {
            Place::Waiting(w) if w.held.is_some() => Some("held already"),
            Place::Waiting(_) | Place::Running(_) if !self.may_be_held(job) => {
                Some("it can only go forward")
            }
            Place::Waiting(_) => None,
            Place::Running(run) => (run.cancel || run.hold).then_some("asked already"),
            _ => Some("it has ended"),
        }
    }

    /// At once if it waits, else when its run ends; one that has not started does not start.
    fn hold_job(&mut self, id: JobId) {
        match &mut self.change(id).place {
            Place::Running(run) => {
                run.hold = true;
                if !run.started {
                    self.take_back(id);
                }
            }
            _ => self.set_held(id, Some(HeldBy::Job)),
        }
    }

    fn release_job(&mut self, id: JobId) {
        match &mut self.change(id).place {
            Place::Running(run) => run.hold = false,
            _ => self.set_held(id, None),
        }
    }

    /// The job that prepares a batch is held with it.
    fn hold_preparer(&mut self, batch: BatchId) {
        let job =
            self.batches[&batch].preparer.filter(|j| self.refuse_hold(&self.jobs[j]).is_none());
        if let Some(job) = job {
            self.hold_job(job);
        }
    }

    pub(super) fn release_preparer(&mut self, batch: BatchId) {
        let held = |j: &JobId| {
            let job = &self.jobs[j];
            job.status() == Status::Held || job.running().is_some_and(|r| r.hold)
        };
        let Some(id) = self.batches[&batch].preparer.filter(held) else { return };
        let job = &self.jobs[&id];
        match self.held_by(job.batch, job.collection.as_deref()) {
            // Its collection holds it still.
            Some(still) if job.running().is_none() => self.set_held(id, Some(still)),
            _ => self.release_job(id),
        }
    }

    fn refuse_cancel(&self, job: &Job) -> Option<&'static str> {
        if let Place::Ended(_) = job.place {
            return Some("ended already");
        }
        if self.must_go_forward(job) {
            return Some("it can only go forward");
        }
        job.running().filter(|r| r.cancel).map(|_| "asked already")
    }

    /// From some stage on, a job that has begun can only go forward.
    pub(super) fn must_go_forward(&self, job: &Job) -> bool {
        let begun = job.owns() || job.failed().is_some();
        let Some(from) = self.pipes[job.pipe].forward else { return false };
        // What is held there has not begun it.
        let at_the_door = job.status() == Status::Held && job.position == from;
        begun && !at_the_door && job.position >= from
    }

    fn refuse_discard(&self, job: &Job) -> Option<&'static str> {
        match &job.place {
            Place::Failed(_) if self.must_go_forward(job) => Some("it can only go forward"),
            Place::Failed(_) => None,
            _ => Some("it has not failed"),
        }
    }

    fn refuse_requeue(&self, job: &Job, to: Option<&str>) -> Option<&'static str> {
        let wanted = to.map(|name| self.position(job, name));
        match &job.place {
            Place::Running(_) => Some("it is running"),
            Place::Ended(_) => Some("it has ended"),
            Place::Waiting(w) if !w.begun => Some("it is queued already"),
            Place::Waiting(_) => match wanted {
                Some(position) if position < job.position => None,
                _ => Some("not an earlier stage"),
            },
            Place::Failed(f) if !f.recoverable => Some("not recoverable"),
            Place::Failed(_) if wanted.is_some_and(|p| p > job.position) => Some("a later stage"),
            Place::Failed(f) if f.discarded && wanted.is_some_and(|p| p > 0) => {
                Some("its data were discarded")
            }
            Place::Failed(_) => self
                .mergeable(job.pipe, &job.subject, &job.lock, job.batch)
                .map(|_| "a newer one waits"),
        }
    }

    fn position(&self, job: &Job, name: &str) -> usize {
        let stages = &self.pipes[job.pipe].stages;
        stages.iter().position(|s| s.name == name).expect("the stage is of the pipeline")
    }

    pub(super) fn acted(&mut self, call: &Call, answer: &Answer) -> Verdict {
        match (call, answer) {
            (Call::HoldJob { job }, Answer::Done) => self.hold_job(*job),
            (Call::ReleaseJob { job }, Answer::Done) => self.release_job(*job),
            (Call::Hold { whose }, Answer::Done) => {
                // Held from now on, whether or not their rows are flipped yet.
                for job in self.members(whose, JobId::default(), i64::MAX, false) {
                    self.set_held(job, None);
                }
                self.holds.insert(whose.clone());
                self.set_batch_held(whose, true);
                if let Whose::Batch(id) = whose {
                    self.hold_preparer(*id);
                }
            }
            (Call::Release { whose }, Answer::Done) => {
                self.holds.remove(whose);
                self.set_batch_held(whose, false);
                if let Whose::Batch(id) = whose {
                    self.release_preparer(*id);
                }
            }
            (Call::FlipHeld { whose, after, limit }, Answer::Last(last)) => {
                return self.flip_held(whose, *after, *limit, *last);
            }
            (Call::FlipReleased { whose, after, limit }, Answer::Last(last)) => {
                return self.flip_released(whose, *after, *limit, *last);
            }
            (Call::KeepHeld { whose, after, limit }, Answer::Last(last)) => {
                let members = match self.holds.contains(whose) {
                    true => Vec::new(),
                    false => self.members(whose, *after, *limit, true),
                };
                members.iter().for_each(|job| self.set_held(*job, Some(HeldBy::Job)));
                return same("the last", *last, members.last().copied());
            }
            (Call::Pause { scope }, Answer::Done) => drop(self.pauses.insert(scope_key(*scope))),
            (Call::Unpause { scope }, Answer::Done) => drop(self.pauses.remove(&scope_key(*scope))),
            (Call::Requeue { job, to }, Answer::Requeued(done)) => {
                self.requeue(*job, to.as_deref());
                let job = &self.jobs[job];
                return same(
                    "requeued",
                    (done.job, done.stage, done.status),
                    (job.id, self.stage_of(job).id, job.status()),
                );
            }
            (Call::Discard { job }, Answer::Yes(first)) => return self.discard(*job, *first),
            (Call::Cancel { job }, Answer::Cancelled(done)) => {
                let running = self.jobs[job].running().is_some();
                self.cancel(*job);
                let expected = if running { Cancelled::Requested } else { Cancelled::Now };
                return same("cancelled", *done, expected);
            }
            (Call::Empty { stage, limit }, Answer::Count(count)) => {
                return self.empty(*stage, *limit, *count);
            }
            (Call::Retry { filter, dry_run, after, limit }, Answer::Retried(done)) => {
                return self.retry(filter, *dry_run, *after, *limit, *done);
            }
            (Call::Seen { job }, Answer::Done) => {
                if let Place::Failed(failed) = &mut self.change(*job).place {
                    failed.review = false;
                }
            }
            (Call::SetTotal { resource, total }, Answer::Done) => match total {
                Some(total) => drop(self.totals.insert(resource.clone(), *total)),
                None => drop(self.totals.remove(resource)),
            },
            (Call::Set { pipeline, stage, name, value }, Answer::Done) => {
                self.set(pipeline, stage, name, *value);
            }
            _ => return self.acted_on_batch(call, answer),
        }
        Ok(())
    }

    fn discard(&mut self, id: JobId, first: bool) -> Verdict {
        let job = self.change(id);
        let Place::Failed(failed) = &mut job.place else {
            return Err("a job that has not failed was discarded".into());
        };
        let expected = !std::mem::replace(&mut failed.discarded, true);
        job.checkpoints.clear();
        same("discarded first", first, expected)
    }

    fn set(&mut self, pipeline: &str, stage: &str, name: &str, value: i64) {
        let pipe = self.pipes.iter_mut().find(|p| p.name == pipeline);
        let Some(stage) = pipe.and_then(|p| p.stages.iter_mut().find(|s| s.name == stage)) else {
            return;
        };
        match (name, value) {
            ("max_attempts", _) => stage.max_attempts = value,
            ("max_interruptions", _) => stage.max_interruptions = value,
            (other, 0) => drop(stage.needs.remove(other.trim_start_matches("needs."))),
            (other, _) => {
                stage.needs.insert(other.trim_start_matches("needs.").to_string(), value);
            }
        }
        // What was solidly in line may now starve.
        for job in self.jobs.values_mut() {
            if let Place::Waiting(w) = &mut job.place {
                w.in_line_since = None;
            }
        }
    }

    pub(super) fn set_held(&mut self, id: JobId, held: Option<HeldBy>) {
        if let Place::Waiting(w) = &mut self.change(id).place {
            w.held = held;
            w.in_line_since = None;
        }
    }

    fn set_batch_held(&mut self, whose: &Whose, held: bool) {
        if let Whose::Batch(id) = whose
            && let Some(batch) = self.batches.get_mut(id)
        {
            batch.held = held;
        }
    }

    /// Waiting jobs of a group: those held with it, or those not held.
    fn members(&self, whose: &Whose, after: JobId, limit: i64, held: bool) -> Vec<JobId> {
        let kind = match whose {
            Whose::Batch(_) => HeldBy::Batch,
            Whose::Collection(_) => HeldBy::Collection,
        };
        let of = |j: &&Job| is_of(j, whose);
        let wanted = |j: &&Job| {
            let state = j.waiting().map(|w| w.held);
            j.id > after && if held { state == Some(Some(kind)) } else { state == Some(None) }
        };
        let members = self.jobs.values().filter(of).filter(wanted).map(|j| j.id);
        members.take(usize::try_from(limit).unwrap_or(0)).collect()
    }

    fn flip_held(
        &mut self,
        whose: &Whose,
        after: JobId,
        limit: i64,
        last: Option<JobId>,
    ) -> Verdict {
        if after == JobId::default() && self.holds.contains(whose) {
            let idle = |j: &&Job| {
                is_of(j, whose) && j.running().is_some_and(|r| !r.started) && self.may_be_held(j)
            };
            let idle: Vec<JobId> = self.jobs.values().filter(idle).map(|j| j.id).collect();
            idle.into_iter().for_each(|job| self.take_back(job));
        }
        // Someone may have released the group while another still flipped its jobs.
        let members = match self.holds.contains(whose) {
            true => self.members(whose, after, limit, false),
            false => Vec::new(),
        };
        let kind = match whose {
            Whose::Batch(_) => HeldBy::Batch,
            Whose::Collection(_) => HeldBy::Collection,
        };
        for job in &members {
            if self.may_be_held(&self.jobs[job]) {
                self.set_held(*job, Some(kind));
            }
        }
        same("the last", last, members.last().copied())
    }

    fn flip_released(
        &mut self,
        whose: &Whose,
        after: JobId,
        limit: i64,
        last: Option<JobId>,
    ) -> Verdict {
        let members = self.members(whose, after, limit, true);
        for id in &members {
            let job = &self.jobs[id];
            // Another group may hold it still.
            let still = self.held_by(job.batch, job.collection.as_deref());
            let batch = self.prepared_by(*id).map(Whose::Batch);
            let alone = batch.filter(|batch| self.holds.contains(batch)).map(|_| HeldBy::Job);
            self.set_held(*id, still.or(alone));
        }
        same("the last", last, members.last().copied())
    }

    fn cancel(&mut self, id: JobId) {
        match &mut self.change(id).place {
            Place::Running(run) => run.cancel = true,
            _ => {
                self.end(id, Status::Cancelled);
                self.count();
            }
        }
    }

    /// Cancels what can be cancelled of a job of a batch or stage; true if it has ended.
    pub(super) fn cancel_if_allowed(&mut self, id: JobId) -> bool {
        let allowed = self.refuse_cancel(&self.jobs[&id]).is_none();
        if allowed {
            self.cancel(id);
        }
        allowed && self.jobs[&id].status() == Status::Cancelled
    }

    fn empty(&mut self, stage: StageId, limit: i64, count: i64) -> Verdict {
        let here = |j: &&Job| self.stage_of(j).id == stage && j.waiting().is_some();
        let ids: Vec<JobId> =
            self.jobs.values().filter(here).map(|j| j.id).take(limit as usize).collect();
        let ended = ids.into_iter().filter(|id| self.cancel_if_allowed(*id)).count();
        same("emptied", count, ended as i64)
    }

    pub(super) fn requeue(&mut self, id: JobId, to: Option<&str>) {
        let job = &self.jobs[&id];
        let was = job.position;
        let mut position = to.map_or(was, |name| self.position(job, name));
        if job.failed().is_some_and(|f| f.overtaken) {
            position = position.min(self.pipes[job.pipe].restart);
        }
        if job.failed().is_some_and(|f| f.discarded) {
            position = 0;
        }
        let again: Vec<StageId> =
            self.pipes[job.pipe].stages[position..].iter().map(|s| s.id).collect();
        let forward = self.pipes[job.pipe].forward.is_some_and(|f| position >= f && position > 0);
        let held = self.held_by(job.batch, job.collection.as_deref()).filter(|_| !forward);
        let (now, step) = (self.now, self.step);
        let job = self.change(id);
        for (stage, tries) in &mut job.tries {
            if again.contains(stage) {
                tries.attempts = 0;
                tries.interruptions = 0;
            }
        }
        job.tries.entry(again[0]).or_default().requeues += 1;
        job.states.retain(|stage, _| !again.contains(stage));
        if position < was {
            job.checkpoints.retain(|(stage, _), _| !again.contains(stage));
        }
        job.position = position;
        if job.failed().is_some() {
            job.place = Place::Waiting(Waiting {
                due: (now, now),
                held,
                begun: false,
                owns: false,
                in_line_since: None,
                entered: step,
            });
            let batch = job.batch;
            self.touched.extend(batch);
            self.count();
            self.preparer_requeued(id);
        }
    }

    fn retry(
        &mut self,
        filter: &Filter,
        dry_run: bool,
        after: JobId,
        limit: i64,
        answer: Retried,
    ) -> Verdict {
        let mut trial = self.clone();
        let fits = |j: &&Job| {
            j.failed().is_some()
                && filter.pipeline.is_none_or(|p| self.pipes[j.pipe].id == p)
                && filter.stage.is_none_or(|s| self.stage_of(j).id == s)
                && filter.batch.is_none_or(|b| j.batch == Some(b))
        };
        let all: Vec<&Job> = self.jobs.values().filter(fits).collect();
        let mut expected = Retried::default();
        let chunk: Vec<&&Job> = all.iter().filter(|j| j.id > after).take(limit as usize).collect();
        for job in &chunk {
            let good = job.failed().is_some_and(|f| f.recoverable);
            let newer = |o: &&&Job| {
                let as_good = o.failed().is_some_and(|f| f.recoverable) >= good;
                let rows = o.batch.is_some() && o.batch == job.batch;
                let thing = |j: &Job| (j.pipe, j.collection.clone(), j.subject.clone());
                o.id > job.id && thing(o) == thing(job) && as_good && !rows
            };
            if let Some(newest) = all.iter().filter(|o| newer(o)).map(|o| o.id).max() {
                expected.superseded += 1;
                trial.supersede(job.id, newest);
                trial.count();
            } else if trial.refuse_requeue(&trial.jobs[&job.id], None).is_some() {
                expected.refused += 1;
            } else {
                expected.requeued += 1;
                trial.requeue(job.id, None);
            }
        }
        expected.next = chunk.last().map(|j| j.id).filter(|_| chunk.len() as i64 == limit);
        same("retried", answer, expected)?;
        if !dry_run {
            *self = trial;
        }
        Ok(())
    }
}
