//! What stores promise, tried on real ones: directories, S3 servers, and S3 servers that fail.

// Helpers of tests may unwrap like tests.
#![allow(clippy::unwrap_used)]

mod conformance;
mod contradictions;
mod faults;
mod local;
mod manners;
mod moto;
mod reaching;
mod server;
mod suite;
