//! What surrounds the contract: callers, the worker runtime, plans, migrations, examples. `conformance` has the
//! contract itself.
#![allow(clippy::unwrap_used)]

mod callers;
mod deleting;
mod examples;
mod migrations;
mod plans;
mod runtime;
#[path = "../support/mod.rs"]
mod support;
mod why;
