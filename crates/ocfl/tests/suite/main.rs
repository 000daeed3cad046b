//! Objects and storage roots: written, read, validated, killed in the middle, and judged by others.

mod crash;
mod fixtures;
mod foreign;
mod fuzz;
mod histories;
mod large;
mod readers;
mod send;
#[path = "../support/mod.rs"]
mod support;
mod writing;
