//! What whole ingests are tested with: an archive of a test's own, packages, servers, and what must
//! be true in the end.

// Each test program uses its part.
#![allow(dead_code)]

pub mod answers;
pub mod disk;
pub mod invariants;
pub mod outside;
pub mod packages;
#[path = "../../../store/tests/real/mod.rs"]
pub mod real;
pub mod s3;
pub mod schema;
pub mod web;
pub mod world;
