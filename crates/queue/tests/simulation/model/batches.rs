//! Batches, by the model.

use super::{Batch, Model, Verdict, same};
use crate::call::{Answer, Call, Whose, preparer};
use queue::{BatchId, BatchState, JobId, NewJob};
use std::collections::BTreeMap;

impl Model {
    pub(super) fn predict_for_batches(&self, call: &Call) -> Option<&'static str> {
        let refuse = |yes: bool, why: &'static str| yes.then_some(why);
        match call {
            Call::BatchFill { batch, .. }
            | Call::BatchAccept { batch }
            | Call::BatchFail { batch } => {
                refuse(self.batches[batch].state != BatchState::Pending, "not pending")
            }
            Call::BatchDelete { batch } => {
                let found = &self.batches[batch];
                let failed =
                    matches!(found.state, BatchState::Failed | BatchState::UpdateReporting);
                let may = (found.held || failed) && found.state != BatchState::Deleted;
                refuse(!may, "neither held nor failed")
            }
            Call::ReportAgain { batch } => {
                let state = self.batches[batch].state;
                let done = matches!(state, BatchState::Completed | BatchState::Failed);
                refuse(!done || self.sums(*batch).open > 0, "not done")
            }
            _ => None,
        }
    }

    pub(super) fn acted_on_batch(&mut self, call: &Call, answer: &Answer) -> Verdict {
        match (call, answer) {
            (
                Call::BatchCreate { pipeline, collection, priority, .. },
                Answer::Created(id, job),
            ) => {
                let batch = Batch {
                    pipe: *pipeline,
                    collection: collection.clone(),
                    priority: *priority,
                    state: BatchState::Pending,
                    held: false,
                    broken: false,
                    entries: BTreeMap::new(),
                    dropped: 0,
                    reports: 0,
                    preparer: *job,
                };
                same("a batch of this id", self.batches.insert(*id, batch).is_some(), false)?;
                match job {
                    Some(job) => {
                        let pipe = crate::world::PREPARING;
                        self.add_one(pipe, &preparer(*id, collection), None, Some(*job))
                    }
                    None => Ok(()),
                }
            }
            (Call::BatchFill { batch, entries }, Answer::Done) => {
                let known = &mut self.batch(*batch).entries;
                for e in entries {
                    let entry = (e.subject.clone(), e.lock.clone(), e.payload.clone());
                    known.entry(e.number).or_insert(entry);
                }
                Ok(())
            }
            (Call::BatchAccept { batch }, Answer::Done) => {
                self.batch(*batch).state = BatchState::Processing;
                let sums = self.sums(*batch);
                let found = self.batch(*batch);
                found.broken = sums.total == 0;
                found.preparer = None;
                if sums.open == 0 {
                    found.state = BatchState::Reporting;
                }
                Ok(())
            }
            (Call::BatchFail { batch }, Answer::Done) => {
                self.release_preparer(*batch);
                self.batch(*batch).preparer = None;
                self.break_batch(*batch);
                Ok(())
            }
            (Call::BatchMove { limit }, Answer::Moved(count, new)) => {
                self.moved(*limit, *count, new)
            }
            (Call::BatchCancel { batch, after, limit }, Answer::Last(last)) => {
                let ids = self.cancel_batch(*batch, *after, *limit as usize);
                same("the last", *last, ids.last().copied())
            }
            (Call::BatchDelete { batch }, Answer::Done) => {
                self.cancel_batch(*batch, JobId::default(), usize::MAX);
                self.release_preparer(*batch);
                let found = self.batch(*batch);
                found.state = BatchState::Deleted;
                found.held = false;
                found.preparer = None;
                self.holds.remove(&Whose::Batch(*batch));
                Ok(())
            }
            (Call::Report, Answer::Reported(report)) => self.reported(report.as_deref()),
            (Call::ReportAgain { batch }, Answer::Done) => {
                self.batch(*batch).state = BatchState::UpdateReporting;
                Ok(())
            }
            other => Err(format!("unexpected answer: {other:?}")),
        }
    }

    fn batch(&mut self, id: BatchId) -> &mut Batch {
        self.batches.get_mut(&id).expect("the model knows the batch")
    }

    fn break_batch(&mut self, id: BatchId) {
        let found = self.batch(id);
        found.broken = true;
        found.entries.clear();
        found.state = BatchState::Reporting;
    }

    pub(super) fn prepared_by(&self, job: JobId) -> Option<BatchId> {
        self.batches.iter().find(|(_, b)| b.preparer == Some(job)).map(|(id, _)| *id)
    }

    /// A batch ends with the job that prepares it.
    pub(super) fn preparer_ended(&mut self, job: JobId) {
        let Some(id) = self.prepared_by(job) else { return };
        if self.batches[&id].state == BatchState::Pending {
            self.break_batch(id);
        }
        if self.jobs[&job].failed().is_none() {
            self.batch(id).preparer = None;
        }
    }

    /// It is pending again when that job is requeued.
    pub(super) fn preparer_requeued(&mut self, job: JobId) {
        let Some(id) = self.prepared_by(job) else { return };
        let found = self.batch(id);
        found.state = BatchState::Pending;
        found.broken = false;
    }

    fn moved(&mut self, limit: i64, count: i64, new: &[JobId]) -> Verdict {
        let moving =
            |b: &&Batch| b.state == BatchState::Processing && !b.held && !b.entries.is_empty();
        let found = self.batches.iter().find(|(_, b)| moving(b)).map(|(id, _)| *id);
        let Some(id) = found else { return same("moved", count, 0) };
        let jobs = self.sums(id).total;
        // Small deposits are not stuck behind huge ones.
        let by_size = (5.0 + 10.0 * (jobs as f64).ln()).floor().min(99.0) as i64;
        let batch = self.batch(id);
        let numbers: Vec<i64> = batch.entries.keys().copied().take(limit as usize).collect();
        same("moved", count, numbers.len() as i64)?;
        let pipe = batch.pipe;
        let mut new = new.iter().copied();
        for number in numbers {
            let batch = self.batch(id);
            let (subject, lock, payload) = batch.entries.remove(&number).expect("it is there");
            let job = NewJob {
                subject,
                lock,
                payload,
                priority: Some(batch.priority.unwrap_or(by_size)),
                batch: Some(id),
                collection: batch.collection.clone(),
                ..NewJob::default()
            };
            let lock = job
                .lock
                .clone()
                .unwrap_or_else(|| format!("queue/{}/{}", self.pipes[pipe].name, job.subject));
            let merged = self.mergeable(pipe, &job.subject, &lock, Some(id));
            let fresh = if merged.is_none() { new.next() } else { None };
            self.add_one(pipe, &job, merged, fresh)?;
        }
        self.touched.clear();
        same("jobs too many", new.next(), None)
    }

    /// Cancels entries and up to `limit` jobs after `after`; the jobs that were looked at.
    fn cancel_batch(&mut self, id: BatchId, after: JobId, limit: usize) -> Vec<JobId> {
        let pending = self.batches[&id].state == BatchState::Pending;
        let dropped = std::mem::take(&mut self.batch(id).entries).len() as i64;
        if dropped > 0 && !pending {
            self.batch(id).dropped += dropped;
            if self.batches[&id].state == BatchState::Processing {
                self.touched.insert(id);
                self.count();
            }
        }
        let open = |j: &&super::Job| {
            j.batch == Some(id) && j.id > after && !matches!(j.place, super::Place::Ended(_))
        };
        let ids: Vec<JobId> = self.jobs.values().filter(open).map(|j| j.id).take(limit).collect();
        for job in &ids {
            self.cancel_if_allowed(*job);
        }
        ids
    }

    fn reported(&mut self, report: Option<&queue::rules::report::Report>) -> Verdict {
        let due = |(id, b): &(&BatchId, &Batch)| {
            matches!(b.state, BatchState::Reporting | BatchState::UpdateReporting)
                && self.sums(**id).open == 0
        };
        let found = self.batches.iter().find(due).map(|(id, _)| *id);
        same("the batch reported", report.map(|r| r.batch), found)?;
        let (Some(id), Some(report)) = (found, report) else { return Ok(()) };
        let sums = self.sums(id);
        let rows = self.jobs.values().filter(|j| j.batch == Some(id));
        let replaced = rows.filter(|j| j.replaced_by.is_some()).count() as i64;
        let took =
            |j: &super::Job| j.replaced_by.is_some_and(|by| self.jobs[&by].batch == Some(id));
        let replaces = self.jobs.values().filter(|j| took(j)).count();
        let batch = self.batch(id);
        batch.reports += 1;
        // Nothing of this world is compared, so nothing superseded is known to be preserved.
        let good = !batch.broken && sums.succeeded > 0 && sums.failed == 0 && replaced == 0;
        batch.state = if good { BatchState::Completed } else { BatchState::Failed };
        same("the state reported", report.state, batch.state)?;
        same("the version", report.version, batch.reports)?;
        same(
            "the counts reported",
            (report.submitted, report.succeeded, report.failed, report.cancelled),
            (sums.total, sums.succeeded, sums.failed, sums.cancelled),
        )?;
        let listed = (report.superseded, report.replaced.len() as i64, report.replaces.len());
        same("what superseded what", listed, (replaced, replaced, replaces))?;
        let jobs_cancelled = sums.cancelled - self.batches[&id].dropped - replaced;
        same("the cancellations listed", report.cancellations.len() as i64, jobs_cancelled)?;
        same("the failures listed", report.failures.len() as i64, sums.failed)
    }
}
