//! Wake-ups within this process: a counter for each topic.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use tokio::sync::watch;

/// One counter for each topic, which subscribers see grow. Wake-ups that come close together merge.
#[derive(Default)]
pub(crate) struct Wakes {
    topics: Mutex<HashMap<i64, watch::Sender<u64>>>,
}

impl Wakes {
    pub fn subscribe(&self, topic: i64) -> watch::Receiver<u64> {
        let mut topics = self.topics.lock().unwrap_or_else(PoisonError::into_inner);
        topics.entry(topic).or_insert_with(|| watch::channel(0).0).subscribe()
    }

    /// Wakes the subscribers of these topics.
    pub fn ring(&self, topics: &[i64]) {
        let known = self.topics.lock().unwrap_or_else(PoisonError::into_inner);
        for sender in topics.iter().filter_map(|t| known.get(t)) {
            sender.send_modify(|count| *count += 1);
        }
    }

    /// Wakes all subscribers, when the topics are not known.
    pub fn ring_all(&self) {
        let known = self.topics.lock().unwrap_or_else(PoisonError::into_inner);
        for sender in known.values() {
            sender.send_modify(|count| *count += 1);
        }
    }
}
