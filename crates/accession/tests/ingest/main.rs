//! Whole ingests with the real binary: what is taken in again, what is refused, and what happens
//! when a process dies at the worst moment; on SQLite and a local directory, and on PostgreSQL and
//! S3.
#![allow(clippy::unwrap_used)]

mod changed;
mod checked;
mod cold;
mod commands;
mod contradictory;
mod crash;
mod dates;
mod described;
mod ezid;
mod found;
mod identity;
mod invalid;
mod json;
mod matrix;
mod moving;
mod names;
mod outage;
mod premis;
mod progress;
mod recovery;
mod refused;
mod status;
mod superseding;
#[path = "../support/mod.rs"]
mod support;
mod told;
mod verified;
mod waiting;
mod watched;
