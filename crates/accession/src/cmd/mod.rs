//! One file (or directory) a command: its options, and what it does with them.

pub mod bag;
pub mod bench;
pub mod completions;
pub mod man;
