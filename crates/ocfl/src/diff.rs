//! What changed between two versions.

use crate::inventory::{Entry, Inventory, Version};
use std::collections::HashMap;

/// A difference between two versions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change<'a> {
    Added(&'a str),
    Removed(&'a str),
    Modified(&'a str),
    /// The same content under another path.
    Renamed {
        from: &'a str,
        to: &'a str,
    },
}

impl<'a> Change<'a> {
    /// The path it is about; the new one of a rename.
    pub fn path(&self) -> &'a str {
        match self {
            Change::Added(path) | Change::Removed(path) | Change::Modified(path) => path,
            Change::Renamed { to, .. } => to,
        }
    }
}

impl Inventory {
    /// The changes from one version to another, in the order of paths. Without an earlier
    /// version, everything was added.
    pub fn diff<'a>(&'a self, from: Option<&Version>, to: &Version) -> Vec<Change<'a>> {
        let before = from.map(|version| version.state.as_slice()).unwrap_or_default();
        let (mut removed, mut added, mut changes) = (Vec::new(), Vec::new(), Vec::new());
        // Both states are sorted by path number: one pass finds all differences.
        let (mut old, mut new) = (before.iter().peekable(), to.state.iter().peekable());
        loop {
            match (old.peek(), new.peek()) {
                (Some(a), Some(b)) if a.path == b.path => {
                    if a.digest != b.digest {
                        changes.push(Change::Modified(self.paths.get(b.path)));
                    }
                    old.next();
                    new.next();
                }
                (Some(a), Some(b)) if a.path < b.path => removed.extend(old.next()),
                (Some(_), None) => removed.extend(old.next()),
                (_, Some(_)) => added.extend(new.next()),
                (None, None) => break,
            }
        }
        self.renames(removed, added, &mut changes);
        changes.sort_by(|a, b| a.path().cmp(b.path()));
        changes
    }

    /// Pairs what was removed with what was added of the same content.
    fn renames<'a>(
        &'a self,
        removed: Vec<&Entry>,
        added: Vec<&Entry>,
        changes: &mut Vec<Change<'a>>,
    ) {
        let mut by_digest: HashMap<u32, Vec<u32>> = HashMap::new();
        for entry in removed.iter().rev() {
            by_digest.entry(entry.digest).or_default().push(entry.path);
        }
        for entry in added {
            let to = self.paths.get(entry.path);
            let from = by_digest.get_mut(&entry.digest).and_then(Vec::pop);
            changes.push(match from {
                Some(from) => Change::Renamed { from: self.paths.get(from), to },
                None => Change::Added(to),
            });
        }
        let left = by_digest.into_values().flatten();
        changes.extend(left.map(|path| Change::Removed(self.paths.get(path))));
    }
}
