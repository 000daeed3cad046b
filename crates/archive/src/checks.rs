//! Programs of a collection that look at what is deposited.

use crate::error::Result;
use crate::event::Event;
use crate::ingest::JobFile;
use crate::package::Package;
use crate::stage::Run;

pub async fn run(_run: &Run<'_>, _package: &Package, _left: &[JobFile]) -> Result<Vec<Event>> {
    Ok(Vec::new())
}
