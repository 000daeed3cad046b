//! Bags as a depositor, an archivist or an attacker makes them.
#![allow(clippy::unwrap_used)]

mod bombs;
mod common;
mod conformance;
mod containers;
mod fetching;
mod fuzz;
mod hostile;
mod profiles;
mod rules;
mod sparse;
mod writing;
