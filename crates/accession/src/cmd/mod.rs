//! One file (or directory) a command: its options, and what it does with them.

pub mod bag;
pub mod bench;
pub mod collection;
pub mod completions;
pub mod config;
pub mod db;
pub mod demo;
pub mod doctor;
pub mod formats;
pub mod identify;
pub mod man;
pub mod manifest;
pub mod ocfl;
pub mod queue;
pub mod store;
