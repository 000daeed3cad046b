//! How far a run has come among the large files of a portion: each of them is worth a mark of its
//! own, so that an outage costs no more than the one that was under way.

use super::Run;
use crate::model::error::Result;
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Marks are durable, and files that take less than this are cheaper to do again.
const EVERY: Duration = Duration::from_millis(500);

pub struct Mark {
    key: String,
    /// The last file that is done for certain.
    done: i64,
    written: Instant,
}

impl Mark {
    /// Takes up the mark of an earlier run, if there is one.
    pub fn of(marks: &HashMap<String, String>, key: String) -> Mark {
        let done = marks.get(&key).and_then(|mark| mark.parse().ok()).unwrap_or(0);
        Mark { key, done, written: Instant::now() }
    }

    pub fn covers(&self, number: i64) -> bool {
        number <= self.done
    }

    /// Nothing is done for certain any more.
    pub async fn forget(&mut self, run: &Run<'_>) -> Result<()> {
        self.done = 0;
        Ok(run.context.checkpoint(self.key.clone(), "0").await?)
    }

    /// Files are passed in their order.
    pub async fn pass(&mut self, run: &Run<'_>, number: i64) -> Result<()> {
        if number > self.done && self.written.elapsed() >= EVERY {
            run.context.checkpoint(self.key.clone(), number.to_string()).await?;
            (self.done, self.written) = (number, Instant::now());
        }
        Ok(())
    }
}
