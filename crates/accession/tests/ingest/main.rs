//! Whole ingests with the real binary: what is taken in again, what is refused, and what happens
//! when a process dies at the worst moment; on SQLite and a local directory, and on PostgreSQL and
//! S3.
#![allow(clippy::unwrap_used)]

mod changed;
mod commands;
mod crash;
mod dates;
mod ezid;
mod found;
mod identity;
mod invalid;
mod json;
mod matrix;
mod moving;
mod names;
mod outage;
mod progress;
mod recovery;
mod status;
mod superseding;
#[path = "../support/mod.rs"]
mod support;
mod told;
mod waiting;
mod watched;
