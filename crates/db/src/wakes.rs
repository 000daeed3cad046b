//! Wake-ups: who waits for which topic, within this process.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use tokio::sync::watch;

/// One counter a topic; whoever waits sees it grow. Wake-ups that come close together merge.
#[derive(Default)]
pub(crate) struct Wakes {
    topics: Mutex<HashMap<i64, watch::Sender<u64>>>,
}

impl Wakes {
    pub fn subscribe(&self, topic: i64) -> watch::Receiver<u64> {
        let mut topics = self.topics.lock().unwrap_or_else(PoisonError::into_inner);
        topics.entry(topic).or_insert_with(|| watch::channel(0).0).subscribe()
    }

    /// True if somebody waited for one of them.
    pub fn ring(&self, topics: &[i64]) -> bool {
        let known = self.topics.lock().unwrap_or_else(PoisonError::into_inner);
        let mut heard = false;
        for sender in topics.iter().filter_map(|t| known.get(t)) {
            sender.send_modify(|count| *count += 1);
            heard |= sender.receiver_count() > 0;
        }
        heard
    }

    /// For news that does not say what it is about.
    pub fn ring_all(&self) {
        let known = self.topics.lock().unwrap_or_else(PoisonError::into_inner);
        for sender in known.values() {
            sender.send_modify(|count| *count += 1);
        }
    }
}
