//! One suite for both engines: every rule of the queue's contract, quoted and shown.
//!
//! The PostgreSQL half runs where `$ACCESSION_TEST_POSTGRES` names a server, and says so where not.
#![allow(clippy::unwrap_used)]

#[path = "../support/mod.rs"]
mod support;

mod adding;
mod batches;
mod breakers;
mod carrying;
mod claiming;
mod clock;
mod finishing;
mod holding;
mod leases;
mod operator;
mod preparing;
mod seam;
mod seed_000;
mod seed_002_003;
mod skipping;
mod state;
mod superseding;
