//! Attacks that once succeeded, each a case: hostile packages, lying servers, damaged stores,
//! processes killed at the worst moment, jobs requeued after their data was discarded.
//!
//! Cases that take longer than a minute are marked `ignore` and run by `scripts/torture attacks`.
#![allow(clippy::unwrap_used)]

mod fetching;
mod memory;
mod packages;
mod processes;
mod registry;
mod retention;
#[path = "../support/mod.rs"]
mod support;
