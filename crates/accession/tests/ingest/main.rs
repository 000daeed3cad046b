//! Whole ingests with the real binary: what is taken in again, what is refused, and what happens
//! when a process dies at the worst moment; on SQLite and a local directory, and on PostgreSQL and
//! S3.
#![allow(clippy::unwrap_used)]

mod crash;
mod invalid;
mod matrix;
mod packages;
#[allow(dead_code)]
#[path = "../../../ocfl/tests/support/s3.rs"]
mod s3;
mod told;
mod world;
