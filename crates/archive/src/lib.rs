//! The archive itself: who deposits what, the stages that bring a deposit into every store it
//! should be in, the registry of what is kept, and what depositors are told.

mod error;
mod http;
pub mod identifier;
pub mod metadata;
pub mod outbox;
pub mod premis;
pub mod report;
mod xml;

pub use error::{Error, Result};
