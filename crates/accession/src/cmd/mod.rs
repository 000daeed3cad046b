//! One file (or directory) a command: its options, and what it does with them.

pub mod completions;
pub mod man;
pub mod store;
