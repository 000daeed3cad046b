//! The worker slots of each stage in one process: how many runs it may have at once, and how many it
//! has. A stage's loop fills them from its claims. The settler takes free slots for jobs that move on
//! from the stage before.

use crate::id::StageId;
use crate::job::Claimed;
use crate::rules::moving;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// A message to a stage's loop: a job that was carried on to it, or None for a free slot.
pub(crate) type Handed = Option<Claimed>;

#[derive(Default)]
pub(crate) struct Slots {
    stages: Mutex<BTreeMap<StageId, Stage>>,
}

struct Stage {
    limit: usize,
    taken: usize,
    /// Whether jobs may be carried on to it.
    open: bool,
    ended: bool,
    /// Has at most one job for each slot.
    inbox: UnboundedSender<Handed>,
}

impl Slots {
    fn stages(&self) -> MutexGuard<'_, BTreeMap<StageId, Stage>> {
        self.stages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A stage's loop begins.
    pub fn begin(&self, stage: StageId) -> UnboundedReceiver<Handed> {
        let (inbox, news) = unbounded_channel();
        self.stages().insert(stage, Stage { limit: 0, taken: 0, open: false, ended: false, inbox });
        news
    }

    /// Its loop ends: nothing is handed to it any more. What was is in its receiver.
    pub fn end(&self, stage: StageId) {
        if let Some(stage) = self.stages().get_mut(&stage) {
            (stage.open, stage.ended) = (false, true);
        }
    }

    pub fn set(&self, stage: StageId, limit: usize, open: bool) {
        if let Some(stage) = self.stages().get_mut(&stage) {
            (stage.limit, stage.open) = (limit, open);
        }
    }

    pub fn limit(&self, stage: StageId) -> usize {
        self.stages().get(&stage).map_or(0, |stage| stage.limit)
    }

    pub fn taken(&self, stage: StageId) -> usize {
        self.stages().get(&stage).map_or(0, |stage| stage.taken)
    }

    /// Takes up to `most` slots; returns how many.
    pub fn take(&self, stage: StageId, most: usize) -> usize {
        self.stages().get_mut(&stage).map_or(0, |stage| stage.take(most))
    }

    pub fn give_back(&self, stage: StageId, count: usize) {
        if let Some(stage) = self.stages().get_mut(&stage) {
            stage.taken = stage.taken.saturating_sub(count);
        }
    }

    /// Takes a slot for each job that may go on to one of these stages, as long as there are free ones.
    pub fn lend(&self, wanted: impl Iterator<Item = StageId>) -> moving::FreeSlots {
        let mut stages = self.stages();
        let mut lent = moving::FreeSlots::new();
        for stage in wanted {
            let got = stages.get_mut(&stage).filter(|s| s.open).map_or(0, |s| s.take(1));
            if got > 0 {
                *lent.entry(stage).or_default() += got;
            }
        }
        lent
    }

    /// Takes back what was lent and not used.
    pub fn unlend(&self, unused: moving::FreeSlots) {
        let mut stages = self.stages();
        for (id, count) in unused.into_iter().filter(|(_, count)| *count > 0) {
            if let Some(stage) = stages.get_mut(&id) {
                stage.taken = stage.taken.saturating_sub(count);
                // Its loop may not have looked for work because of them.
                let _ = stage.inbox.send(None);
            }
        }
    }

    /// Hands a job to the loop of its stage, in a slot that was lent; returns the job if the loop has ended.
    pub fn deliver(&self, job: Claimed) -> Option<Claimed> {
        match self.stages().get_mut(&job.stage) {
            Some(stage) if !stage.ended => {
                // Its receiver is there for as long as it has not ended.
                let _ = stage.inbox.send(Some(job));
                None
            }
            _ => Some(job),
        }
    }
}

impl Stage {
    fn take(&mut self, most: usize) -> usize {
        let got = most.min(self.limit.saturating_sub(self.taken));
        self.taken += got;
        got
    }
}
