//! Ingest as a whole, by the real binary: killed at every place and at random, databases and
//! stores that go away, full disks, versions that arrive while others are on their way. After
//! everything the same invariants are checked.

#![allow(clippy::unwrap_used)]

mod failpoints;
mod kills;
mod outages;
#[path = "../processes/server.rs"]
mod server;
#[path = "../support/mod.rs"]
mod support;
mod versions;
