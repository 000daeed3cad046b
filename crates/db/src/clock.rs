//! Time as the rules see it: integer microseconds since 1970, from the engine or injected.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// Microseconds since 1970-01-01T00:00:00Z.
pub type Micros = i64;

/// Where `now` comes from.
#[derive(Clone, Default)]
pub enum Clock {
    /// The engine's own: the server's clock on PostgreSQL, this machine's on SQLite.
    #[default]
    Engine,
    /// A clock that a test moves.
    Manual(Arc<AtomicI64>),
}

impl Clock {
    /// Returns a manual clock that shows `start`.
    pub fn manual(start: Micros) -> Clock {
        Clock::Manual(Arc::new(AtomicI64::new(start)))
    }

    /// Moves a manual clock; an engine clock cannot be moved.
    pub fn advance(&self, by: Micros) {
        if let Clock::Manual(now) = self {
            now.fetch_add(by, Ordering::SeqCst);
        }
    }

    /// Returns the injected time, or None where the engine decides.
    pub fn injected(&self) -> Option<Micros> {
        match self {
            Clock::Engine => None,
            Clock::Manual(now) => Some(now.load(Ordering::SeqCst)),
        }
    }

    pub(crate) fn now_here(&self) -> Micros {
        self.injected().unwrap_or_else(system_now)
    }
}

/// Returns the time by this machine's clock.
pub fn system_now() -> Micros {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}
