//! Restores with the real binary: what goes out is what came in, whatever is wrong with a copy and
//! whenever a process dies; on SQLite and a local directory, and on PostgreSQL and S3.
#![allow(clippy::unwrap_used)]

mod batches;
mod buckets;
mod cat;
mod cold;
mod damage;
mod full;
mod killed;
mod ocfl;
mod refused;
mod round_trips;
#[path = "../support/mod.rs"]
mod support;
