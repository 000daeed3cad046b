//! How a manifest is read: one table of settings with their defaults.

use crate::profile::Profile;
use std::path::PathBuf;

/// The two ways a manifest is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Lines of text, separated by bars.
    Checkm,
    /// The same content as JSON.
    Json,
}

/// Settings of a [`Reader`](crate::Reader). The defaults suit manifests from strangers.
#[derive(Debug, Clone)]
pub struct Options {
    /// The profile the manifest must have, or has when it does not say; any by default.
    pub profile: Option<Profile>,
    /// The format; by default the first character tells.
    pub format: Option<Format>,
    /// How many problems of each code are kept with their message; all are counted.
    pub problems_max: usize,
    /// The longest line, and the longest row in JSON; longer ones are errors.
    pub line_bytes_max: usize,
    /// How much memory finding duplicates may take before it goes on in a temporary file.
    pub memory_bytes_max: usize,
    /// Where that temporary file is; by default where the system has such files.
    pub temporary_directory: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            profile: None,
            format: None,
            problems_max: 100,
            line_bytes_max: 256 << 10,
            memory_bytes_max: 16 << 20,
            temporary_directory: None,
        }
    }
}
