//! Formats of real and hostile files, by the official signatures and by ours.

#[path = "../common/build.rs"]
mod build;
#[path = "../common/mod.rs"]
mod common;
mod essential;
mod further;
mod fuzz;
#[cfg(feature = "http")]
mod latest;
mod library;
mod skeletons;
