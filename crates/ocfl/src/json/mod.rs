//! JSON as a stream: a reader that never holds more than one string, and a writer of strings.

mod read;
mod write;

pub(crate) use read::{Fault, Kind, Reader};
pub(crate) use write::write_string;
