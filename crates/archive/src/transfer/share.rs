//! The share of a stage's places that runs may have which wait for servers. Every deposit passes
//! through `examining` and `estimating`. A slow server that a depositor names must not keep deposits
//! waiting that need no server, so some places are never held by runs that wait for one. A run that
//! finds the share in use waits outside of the stage.

use crate::model::error::{Error, Result};
use db::{Db, Micros};
use queue::Outcome;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// How long a run waits in its place while others leave the share. Servers that answer quickly make
/// no run wait outside.
const LEAVING: Duration = Duration::from_secs(1);
/// When a run comes back that waits outside.
const AGAIN_MICROS: Micros = 15_000_000;

/// One stage's share in this process.
#[derive(Debug)]
pub struct Share {
    state: Mutex<State>,
    left: Notify,
}

#[derive(Debug)]
struct State {
    inside: usize,
    /// When a run last left.
    left_at: Instant,
}

/// A run inside the share, until it is dropped.
#[derive(Debug)]
pub struct Inside<'s>(&'s Share);

impl Default for Share {
    fn default() -> Share {
        let state = State { inside: 0, left_at: Instant::now() };
        Share { state: Mutex::new(state), left: Notify::new() }
    }
}

impl Share {
    /// Enters the share of a stage that has so many places; `None` where it is in use and no run
    /// leaves it soon.
    pub async fn enter(&self, places: usize) -> Option<Inside<'_>> {
        loop {
            // Hears of what happens from here on, so that no leaving is missed.
            let left = self.left.notified();
            let patience = {
                let mut state = self.state();
                if state.inside < share_of(places) {
                    state.inside += 1;
                    return Some(Inside(self));
                }
                LEAVING.checked_sub(state.left_at.elapsed())?
            };
            let _ = tokio::time::timeout(patience, left).await;
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.inside -= 1;
        state.left_at = Instant::now();
        drop(state);
        self.0.left.notify_one();
    }
}

/// Three quarters of the places, and always one.
fn share_of(places: usize) -> usize {
    places.saturating_sub(places.div_ceil(4)).max(1)
}

/// Puts a run off that found the share in use.
pub async fn put_off(db: &Db) -> Result<Outcome> {
    let now = db.read(|tx| Ok::<_, Error>(tx.now())).await?;
    let why = "as many deposits as may are waiting for the servers that they name".to_string();
    Ok(Outcome::Wait { due: now + AGAIN_MICROS, why })
}

/// The shares of the stages that every deposit passes through.
#[derive(Debug, Default)]
pub struct Shares {
    pub examining: Share,
    pub estimating: Share,
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    #[tokio::test]
    async fn some_places_stay_free() {
        for (places, share) in [(0, 1), (1, 1), (2, 1), (3, 2), (4, 3), (8, 6)] {
            assert_eq!(share_of(places), share, "{places} places");
        }
        let share = Share::default();
        let _first = share.enter(2).await.unwrap();
        assert!(share.enter(2).await.is_none());
        assert!(share.enter(2).now_or_never().is_some(), "nobody leaves: it does not wait");
    }

    #[tokio::test]
    async fn a_run_waits_in_its_place_for_one_that_leaves() {
        let share = Share::default();
        let first = share.enter(1).await.unwrap();
        let mut second = Box::pin(share.enter(1));
        assert!(second.as_mut().now_or_never().is_none());
        drop(first);
        assert!(second.await.is_some());
    }
}
