#![doc = include_str!("../README.md")]

mod constants;
mod kernel;
mod pair;
#[cfg(target_arch = "x86_64")]
mod stitched;
#[cfg(test)]
mod tests;

pub use kernel::{Way, way};
pub use pair::{Both, Pair};
