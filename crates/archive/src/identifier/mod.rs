//! The names that objects are known by: ARKs minted here or by EZID, and what depositors supply.

mod ark;
mod ezid;
mod minter;
mod supplied;

pub use ark::Ark;
pub use ezid::Ezid;
pub use minter::{Minter, check};
pub use supplied::normalise;

/// No identifier is longer.
pub const IDENTIFIER_BYTES_MAX: usize = 1024;
