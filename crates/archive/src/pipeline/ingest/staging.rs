//! Makes each file addressable on its own. Members of a tar are ranges of it, those of a zip are
//! found by its directory, fetched files are files: nothing is copied. What was compressed as a
//! whole has been unpacked when it was validated.

use super::storing::package;
use super::{Run, Step};
use crate::model::error::Result;
use queue::Outcome;

pub struct Staging;

impl Step for Staging {
    const NAME: &'static str = "staging";

    async fn run(run: Run<'_>) -> Result<Outcome> {
        if !run.ingest.unchanged {
            // Still there, and still the same: later stages read it where it is.
            package(&run)?.open()?;
        }
        Ok(Outcome::success())
    }
}
