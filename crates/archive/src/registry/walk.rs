//! Walks over the objects of a store: past one that cannot be read, and not past a store that is
//! down.

use crate::model::error::{Error, Result};

/// If a store does not answer for so many objects in a row, it is down.
const UNANSWERED_MAX: u32 = 5;

/// Counts the objects in a row for which a store did not answer.
#[derive(Debug, Default)]
pub(super) struct Outage {
    unanswered: u32,
}

impl Outage {
    pub(super) fn answered(&mut self) {
        self.unanswered = 0;
    }

    /// Gives the error back to be reported, if it is about one object; fails with it, if it is
    /// about the store or the database.
    pub(super) fn pass(&mut self, error: Error) -> Result<Error> {
        match &error {
            Error::Queue(queue::Error::Db(db::Error::Duplicate(_) | db::Error::Constraint(_)))
            | Error::Permanent { .. }
            | Error::Invalid { .. } => self.answered(),
            Error::Transient { .. } | Error::Down { .. } => {
                self.unanswered += 1;
                if self.unanswered >= UNANSWERED_MAX {
                    return Err(error);
                }
            }
            Error::Queue(_) | Error::Output(_) | Error::Stopped => return Err(error),
        }
        Ok(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorCode;

    #[test]
    fn one_object_is_passed_over_and_a_store_that_is_down_is_not() {
        let mut outage = Outage::default();
        let down = || Error::transient(ErrorCode::StoreUnavailable, "no answer");
        for _ in 1..UNANSWERED_MAX {
            outage.pass(down()).expect("it goes on");
        }
        outage.pass(Error::permanent(ErrorCode::BadRecord, "damaged")).expect("it goes on");
        for _ in 1..UNANSWERED_MAX {
            outage.pass(down()).expect("it goes on");
        }
        assert!(outage.pass(down()).is_err());
        let lost = db::Error::Unavailable("x".to_string(), "y".to_string());
        assert!(Outage::default().pass(lost.into()).is_err());
    }
}
