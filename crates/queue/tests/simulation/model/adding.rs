//! Adding, by the model.

use super::{Failed, Job, Model, Place, Verdict, Waiting, same};
use queue::{Added, JobId, NewJob};
use std::collections::BTreeMap;

impl Model {
    pub(super) fn added(&mut self, pipe: usize, jobs: &[NewJob], added: &[Added]) -> Verdict {
        same("answers", added.len(), jobs.len())?;
        for (new, answer) in jobs.iter().zip(added) {
            self.add_one(pipe, new, answer.coalesced.then_some(answer.job), Some(answer.job))?;
        }
        Ok(())
    }

    /// One add. `merged` is what the rules say it merged with, `id` the id it got.
    pub(super) fn add_one(
        &mut self,
        pipe: usize,
        new: &NewJob,
        merged: Option<JobId>,
        id: Option<JobId>,
    ) -> Verdict {
        let lock = self.lock_of(pipe, new);
        let found = self.mergeable(pipe, &new.subject, &lock, new.batch);
        same("coalesced with", merged, found)?;
        let due = new.due.unwrap_or(self.now);
        if let Some(existing) = found {
            let job = self.change(existing);
            job.payload.clone_from(&new.payload);
            job.priority = job.priority.min(new.priority.unwrap_or(50));
            if let Place::Waiting(w) = &mut job.place {
                w.due = (w.due.0.min(due), w.due.1.min(due));
            }
            return Ok(());
        }
        let id = id.ok_or("a new job has no id")?;
        let mut job = self.fresh(pipe, new, id, lock)?;
        let held = self.held_by(new.batch, new.collection.as_deref());
        let free = held.is_none() && due <= self.now && self.is_simple(&job);
        job.place = Place::Waiting(Waiting {
            due: (due, due),
            held,
            begun: false,
            owns: false,
            in_line_since: free.then_some(self.step),
            entered: self.step,
        });
        self.touched.extend(job.batch);
        self.jobs.insert(id, job);
        Ok(())
    }

    pub(super) fn added_failed(&mut self, pipe: usize, new: &NewJob, id: JobId) -> Verdict {
        let lock = self.lock_of(pipe, new);
        let mut job = self.fresh(pipe, new, id, lock)?;
        job.place = Place::Failed(Failed {
            recoverable: false,
            review: true,
            overtaken: false,
            discarded: false,
        });
        self.touched.extend(job.batch);
        self.jobs.insert(id, job);
        Ok(())
    }

    fn lock_of(&self, pipe: usize, new: &NewJob) -> String {
        let default = || format!("queue/{}/{}", self.pipes[pipe].name, new.subject);
        new.lock.clone().unwrap_or_else(default)
    }

    fn fresh(&mut self, pipe: usize, new: &NewJob, id: JobId, lock: String) -> Verdict<Job> {
        if id <= self.newest {
            return Err(format!("job {id} is not newer than {}", self.newest));
        }
        self.newest = id;
        Ok(Job {
            id,
            pipe,
            position: 0,
            subject: new.subject.clone(),
            lock,
            batch: new.batch,
            collection: new.collection.clone(),
            priority: new.priority.unwrap_or(50),
            payload: new.payload.clone(),
            targets: new.targets.clone(),
            workspace: new.workspace.clone(),
            needs: new.needs.clone(),
            place: Place::Failed(Failed {
                recoverable: false,
                review: false,
                overtaken: false,
                discarded: false,
            }),
            tries: BTreeMap::new(),
            checkpoints: BTreeMap::new(),
            last_token: None,
            replaced_by: None,
            states: BTreeMap::new(),
        })
    }

    /// True if nothing but its lock, its time and a hold can keep the job back.
    pub(super) fn is_simple(&self, job: &Job) -> bool {
        job.targets.is_empty() && job.needs.is_empty() && self.stage_of(job).needs.is_empty()
    }
}
