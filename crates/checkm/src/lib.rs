#![doc = include_str!("../README.md")]

mod algorithm;
mod code;
mod column;
mod date;
mod error;
mod escape;
mod excerpts;
mod follow;
mod json;
mod layout;
mod lines;
mod name;
mod options;
mod profile;
mod reader;
mod report;
mod row;
mod rules;
mod scan;
mod text;
mod unique;
mod url;
mod write;

pub use code::{Code, Severity};
pub use column::Column;
pub use error::{Error, WriteError};
pub use follow::{Followed, follow};
pub use json::{FORMAT, SCHEMA};
pub use layout::Header;
pub use options::{Format, Options};
pub use profile::Profile;
pub use reader::{Reader, check};
pub use report::{Count, Place, Problem, Report};
pub use row::Row;
pub use scan::{Hash, Scan, ScanError, Scanned};
pub use write::Writer;
