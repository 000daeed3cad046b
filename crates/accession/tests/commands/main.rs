//! Commands as people and scripts meet them: what they print, what they refuse, and their exit status. Ingests are in
//! `ingest`, jobs and workers in `processes`.
#![allow(clippy::unwrap_used)]

#[path = "../support/answers.rs"]
mod answers;
mod bag;
mod config;
mod identify;
mod manifest;
mod ocfl;
mod ocfl_s3;
#[path = "../../../ocfl/tests/support/s3.rs"]
mod s3;
#[path = "../support/schema.rs"]
mod schema;
mod store_check;
