//! Directories of a package that have nothing in them. OCFL keeps files only, so a version's record
//! names them, so that a restoration can create them.

use super::survey::Survey;
use super::{path, reading_failed};
use crate::ErrorCode;
use crate::model::error::Result;
use crate::model::problem::Problems;
use bagit::source::{Kind, Members};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};

/// So many are recorded of one package.
pub const RECORDED_MAX: usize = 100_000;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EmptyDirectory {
    /// In the object: data/…, tags/….
    pub path: String,
    /// When it was last written to; microseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modified: Option<i64>,
}

/// Finds the empty directories of a package, and warns of each.
pub fn find(
    survey: &Survey,
    members: &dyn Members,
    problems: &mut Problems,
) -> Result<Vec<EmptyDirectory>> {
    let empty = names(members)?;
    if empty.is_empty() {
        return Ok(Vec::new());
    }
    let mut found = Vec::new();
    let mut left_out = 0_u64;
    // What is asked for dates is slower to list.
    let listed = members.list(true, &mut |member| {
        let shown = &member.path;
        if member.kind != Kind::Directory || !empty.contains(shown) {
            return Ok(());
        }
        let inside = shown.strip_prefix(survey.root.as_str()).unwrap_or_default();
        // The top of the package, or of a bag's payload.
        if matches!(inside, "" | ".") || (survey.is_bag && inside == "data") {
            return Ok(());
        }
        if let Some(fault) = path::fault(shown) {
            problems.warning(ErrorCode::EmptyDirectory, shown, format!("{shown} is an empty directory that is not recorded, because {fault}"));
        } else if found.len() >= RECORDED_MAX {
            left_out += 1;
        } else if let Some(path) = survey.path_of(&member) {
            problems.warning(ErrorCode::EmptyDirectory, shown, format!("{shown} is an empty directory; stores keep files only, so the record of the version keeps its name"));
            found.push(EmptyDirectory { path, modified: member.modified });
        }
        Ok(())
    });
    listed.map_err(reading_failed)?;
    if left_out > 0 {
        problems.warning(ErrorCode::EmptyDirectory, "", format!("{left_out} more empty directories are not recorded: one package may have {RECORDED_MAX}; put them into an archive to keep them"));
    }
    // A tar may name one twice.
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found.dedup_by(|a, b| a.path == b.path);
    Ok(found)
}

/// The paths of directories that have nothing in them, and are no files as well.
fn names(members: &dyn Members) -> Result<HashSet<String>> {
    // Keys made anew, so that a depositor cannot choose names that collide; 128 bits, so that none do by chance.
    let (one, other) = (RandomState::new(), RandomState::new());
    let key = |path: &str| (one.hash_one(path), other.hash_one(path));
    let (mut parents, mut directories) = (HashSet::new(), 0_u64);
    let listed = members.list(false, &mut |member| {
        directories += u64::from(member.kind == Kind::Directory);
        // From the longest: the directories above one that is known are known as well.
        for (at, _) in member.path.rmatch_indices('/') {
            if !parents.insert(key(&member.path[..at])) {
                break;
            }
        }
        Ok(())
    });
    listed.map_err(reading_failed)?;
    let mut names = HashSet::new();
    if directories == 0 {
        return Ok(names);
    }
    let listed = members.list(false, &mut |member| {
        if member.kind == Kind::Directory && !parents.contains(&key(&member.path)) {
            names.insert(member.path);
        }
        Ok(())
    });
    listed.map_err(reading_failed)?;
    if !names.is_empty() {
        let listed = members.list(false, &mut |member| {
            if member.kind != Kind::Directory {
                names.remove(&member.path);
            }
            Ok(())
        });
        listed.map_err(reading_failed)?;
    }
    Ok(names)
}
