//! What was read of a package, for those who compare it with manifests.

use bagit::Digests;
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

/// Sizes and digests by path, at some 150 bytes a file however long its path is.
#[derive(Default)]
pub struct Known {
    keys: (RandomState, RandomState),
    files: HashMap<(u64, u64), (u64, Digests)>,
}

impl Known {
    fn key(&self, path: &str) -> (u64, u64) {
        (self.keys.0.hash_one(path), self.keys.1.hash_one(path))
    }

    pub fn insert(&mut self, path: &str, size: u64, digests: Digests) {
        self.files.insert(self.key(path), (size, digests));
    }

    pub fn get(&self, path: &str) -> Option<(u64, Digests)> {
        self.files.get(&self.key(path)).cloned()
    }
}
