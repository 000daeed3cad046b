//! Checkm manifests as others write them, and as this crate does. `memory` has its own process, because it reads
//! the high-water mark of that process.
#![allow(clippy::unwrap_used)]

mod follow;
mod fuzz;
mod json;
mod reading;
mod roundtrip;
mod scan;
