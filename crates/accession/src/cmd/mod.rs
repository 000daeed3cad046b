//! One file (or directory) a command: its options, and what it does with them.

pub mod bench;
pub mod completions;
pub mod formats;
pub mod identify;
pub mod man;
