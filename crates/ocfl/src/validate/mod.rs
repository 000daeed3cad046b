//! Validation: everything that the specification asks of objects and roots, with its codes.

mod content;
mod earlier;
mod object;
mod root;

pub use object::validate_object;
pub use root::{RootReport, validate_root};

use crate::Limits;
use std::fmt;
use std::sync::Arc;

/// How to validate.
#[derive(Clone)]
pub struct Validation {
    /// Read all content and compare its digests with manifest and fixity blocks.
    pub fixity: bool,
    /// So many files are read at once.
    pub parallel: usize,
    pub limits: Limits,
    /// Called with the bytes of each content file that was read.
    pub progress: Option<Progress>,
}

/// Hears of each content file that was read: its path in the object, and its length.
pub type Progress = Arc<dyn Fn(&str, u64) + Send + Sync>;

impl Default for Validation {
    fn default() -> Validation {
        Validation { fixity: true, parallel: 8, limits: Limits::default(), progress: None }
    }
}

impl fmt::Debug for Validation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Validation")
            .field("fixity", &self.fixity)
            .field("parallel", &self.parallel)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

/// The extensions that are registered with the OCFL community.
pub(crate) const REGISTERED: &[&str] = &[
    "0001-digest-algorithms",
    "0002-flat-direct-storage-layout",
    "0003-hash-and-id-n-tuple-storage-layout",
    "0004-hashed-n-tuple-storage-layout",
    "0005-mutable-head",
    "0006-flat-omit-prefix-storage-layout",
    "0007-n-tuple-omit-prefix-storage-layout",
    "0008-schema-registry",
    "0009-digest-algorithms",
    "0010-differential-n-tuple-omit-prefix-storage-layout",
    "0011-direct-clean-path-layout",
    "0012-hash-and-no-prefix-id-n-tuple-storage-layout",
    "initial",
];
