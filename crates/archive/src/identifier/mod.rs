//! The names that objects are known by: ARKs minted here or by EZID, and what depositors supply.

mod ark;
mod minter;
mod supplied;

pub use ark::Ark;
pub use minter::{Minter, check};
pub use supplied::normalise;

/// No identifier is longer.
pub const IDENTIFIER_BYTES_MAX: usize = 1024;

/// Whether a text says of itself that it is an ARK.
pub fn is_ark(text: &str) -> bool {
    text.get(..4).is_some_and(|start| start.eq_ignore_ascii_case("ark:"))
}
