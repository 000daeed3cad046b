//! One file (or directory) a command: its options, and what it does with them.

pub mod bag;
pub mod batches;
pub mod bench;
pub mod check_deposit;
pub mod collection;
pub mod completions;
pub mod config;
pub mod db;
pub mod demo;
pub mod deposit;
pub mod doctor;
pub mod formats;
pub mod identify;
pub mod ingest;
pub mod jobs;
pub mod man;
pub mod manifest;
pub mod objects;
pub mod ocfl;
pub mod queue;
pub mod site;
pub mod status;
pub mod store;
pub mod work;
