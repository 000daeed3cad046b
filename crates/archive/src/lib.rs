//! The archive itself: who deposits what, the stages that bring a deposit into every store it
//! should be in, the registry of what is kept, and what depositors are told.

pub mod config;
mod error;
pub mod external;
pub mod fetch;
pub mod profile;

pub use error::{Error, Result};
