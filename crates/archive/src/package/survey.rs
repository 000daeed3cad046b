//! The first look at a package: is it a bag, what does it need to be read with, and is there
//! anything in it that no object can have.

use super::bounds::Bounds;
use super::path;
use super::unpack::{is_called_archive, is_called_foreign_archive};
use super::{Form, Package, reading_failed};
use crate::ErrorCode;
use crate::model::error::Result;
use crate::model::problem::Problems;
use bagit::source::{Ending, Kind, Member, Members};
use bagit::{Algorithm, Algorithms};
use digest::{Sha256, to_hex};
use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use unicode_normalization::UnicodeNormalization;

/// What the first look found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Survey {
    pub is_bag: bool,
    /// The directory of the bag in the container, with a slash at its end; or nothing.
    pub root: String,
    /// What its manifests are made with.
    pub algorithms: Algorithms,
    /// The container has bytes that no file of the object has: after or before the archive, or in
    /// files outside of the bag.
    pub goes_on: bool,
    /// Of a directory, what changes when a file in it is added, removed, renamed or written to, or
    /// when the directory lists them in another order.
    pub listing: String,
    pub files: u64,
    /// Of files whose size the container tells.
    pub bytes: u64,
}

impl Survey {
    /// Lists the members. Problems that concern single members are gathered; more members or bytes
    /// than the bounds allow are an error at once. `stored` is the size of the container as it was
    /// deposited.
    pub fn take(
        package: &Package,
        members: &dyn Members,
        bounds: Bounds,
        stored: Option<u64>,
        problems: &mut Problems,
    ) -> Result<Survey> {
        let mut survey = Survey {
            is_bag: false,
            root: String::new(),
            algorithms: Algorithms::NONE,
            goes_on: false,
            listing: String::new(),
            files: 0,
            bytes: 0,
        };
        let mut stop = None;
        let mut listing = (package.form == Form::Directory).then(Sha256::new);
        let listed = members.list(true, &mut |member| {
            if let Some(listing) = &mut listing {
                let (path, size, modified) = (&member.path, member.size, member.modified);
                // The length keeps two names from being read as one.
                let line = format!("{}:{path}:{size:?}:{modified:?}\n", path.len());
                listing.update(line.as_bytes());
            }
            if member.kind == Kind::File {
                survey.files += 1;
                survey.bytes = survey.bytes.saturating_add(member.size.unwrap_or(0));
                survey.look_for_bag(&member.path);
            }
            match bounds.check(&package.name, survey.files, survey.bytes, stored) {
                Ok(()) => Ok(()),
                Err(error) => {
                    stop = Some(error);
                    Err(bagit::Error::Stopped)
                }
            }
        });
        if let Some(error) = stop {
            return Err(error);
        }
        listed.map_err(reading_failed)?;
        survey.listing = listing.map(|hash| to_hex(&hash.finish())).unwrap_or_default();
        survey.goes_on = members.ending().is_some_and(Ending::leaves_data_out);
        check_tree(members, problems)?;
        if survey.is_bag {
            survey.look_into_bag(members)?;
        } else {
            check_plain(members, problems)?;
            check_name(package, problems)?;
            // The validation of bags looks at the end of an archive itself.
            check_end(package, members, problems);
        }
        Ok(survey)
    }

    fn look_for_bag(&mut self, path: &str) {
        let depth = path.matches('/').count();
        let here = path == "bagit.txt" || path.ends_with("/bagit.txt");
        // The shallowest declaration is the bag's; deeper ones belong to bags in its payload.
        if here && depth <= 1 && (!self.is_bag || depth < self.root.matches('/').count()) {
            self.is_bag = true;
            self.root = path.trim_end_matches("bagit.txt").to_string();
        }
    }

    /// Finds the algorithms that the bag's manifests are named after, and whether there are files
    /// outside of the bag: the validation of bags only warns of those that systems leave behind.
    fn look_into_bag(&mut self, members: &dyn Members) -> Result<()> {
        let mut algorithms = Algorithms::NONE;
        members
            .list(false, &mut |member| {
                let Some(name) = member.path.strip_prefix(self.root.as_str()) else {
                    self.goes_on |= member.kind == Kind::File;
                    return Ok(());
                };
                let name = name.strip_prefix("tag").unwrap_or(name);
                let algorithm = name.strip_prefix("manifest-").and_then(|n| n.strip_suffix(".txt"));
                if let Some(algorithm) = algorithm.and_then(|a| a.parse::<Algorithm>().ok()) {
                    algorithms.insert(algorithm);
                }
                Ok(())
            })
            .map_err(reading_failed)?;
        self.algorithms = algorithms;
        Ok(())
    }

    /// The path in the object of a member, and `None` for what is not kept or not of the bag.
    pub fn path_of(&self, member: &Member) -> Option<String> {
        let inside = member.path.strip_prefix(self.root.as_str())?;
        path::in_object(inside, self.is_bag)
    }
}

/// A file that is called a container and is none is kept as it is, but may have come to harm.
fn check_name(package: &Package, problems: &mut Problems) -> Result<()> {
    let name = &package.name;
    if package.form == Form::File && is_called_archive(name) && package.sniff()?.is_none() {
        problems.warning(ErrorCode::NotAContainer, name, format!("{name} is called a container and is none, so it is kept as a single file; if it should be one, see whether it came whole, and deposit it again"));
    } else if package.form == Form::File && is_called_foreign_archive(name) {
        problems.warning(ErrorCode::ContainerKeptWhole, name, format!("{name} is a container of a kind that is not unpacked, so it is kept as a single file, and what is in it is neither checked nor identified; to have its files kept, deposit it as .tar, .tar.gz, .tar.bz2, .tar.zst or .zip"));
    }
    Ok(())
}

/// Warns of a tar without its end marker, or with data after it.
fn check_end(package: &Package, members: &dyn Members, problems: &mut Problems) {
    let Some(ending) = members.ending() else { return };
    let code = match ending {
        Ending::DataAfter { .. } => ErrorCode::ArchiveDataAfterEnd,
        Ending::DataBefore { .. } => ErrorCode::ArchiveDataBeforeStart,
        Ending::Marked | Ending::Unmarked => ErrorCode::ArchiveUnmarked,
    };
    if let Some(fault) = ending.fault() {
        problems.warning(code, &package.name, format!("{}: {fault}", package.name));
    }
}

/// Finds files that are in the place of a directory of other files: no object can have both `a`
/// and `a/b`.
fn check_tree(members: &dyn Members, problems: &mut Problems) -> Result<()> {
    let (one, other) = (RandomState::new(), RandomState::new());
    let key = |text: &str| (one.hash_one(text), other.hash_one(text));
    let mut directories = HashSet::new();
    let each = |visit: &mut dyn FnMut(&str)| {
        members.list(false, &mut |member| {
            if member.kind == Kind::File {
                visit(&member.path);
            }
            Ok(())
        })
    };
    each(&mut |path| {
        // From the longest: the directories above one that is known are known as well.
        for (at, _) in path.rmatch_indices('/') {
            if !directories.insert(key(&path[..at])) {
                break;
            }
        }
    })
    .map_err(reading_failed)?;
    each(&mut |path| {
        if directories.contains(&key(path)) {
            problems.error(ErrorCode::PathConflict, path, format!("{path} is a file, and other files are below it as in a directory; no object can have both, rename one"));
        }
    })
    .map_err(reading_failed)
}

/// Finds in a package that is no bag what validation finds in a bag.
fn check_plain(members: &dyn Members, problems: &mut Problems) -> Result<()> {
    // Keys made anew, so that a depositor cannot choose names that collide; 128 bits, so that none do by chance.
    let (one, other) = (RandomState::new(), RandomState::new());
    let key = |text: &str| (one.hash_one(text), other.hash_one(text));
    let (mut exact, mut folded) = (HashSet::new(), HashSet::new());
    // Names that are not UTF-8 are kept as text, which may be another file's name.
    let mut spelled = HashSet::new();
    members
        .list(false, &mut |member| {
            let shown = &member.path;
            let advice = match member.kind {
                Kind::Directory => return Ok(()),
                Kind::File => None,
                Kind::Symlink => Some("is a symbolic link, which is never followed; put the file itself in its place"),
                Kind::HardLink => Some("is a hard link; put the file itself in its place"),
                Kind::Special => Some("is a device, pipe or socket, which cannot be kept; remove it"),
                Kind::Unsupported(why) => {
                    problems.error(ErrorCode::UnsupportedMember, shown, format!("{shown}: it is {why}, which cannot be read; pack it in another way"));
                    return Ok(());
                }
            };
            if let Some(advice) = advice {
                problems.error(ErrorCode::NotAFile, shown, format!("{shown} {advice}"));
                return Ok(());
            }
            if let Some(fault) = path::fault(shown) {
                problems.error(ErrorCode::UnsafePath, shown, format!("{shown}: its path is not accepted, because {fault}; rename it"));
                return Ok(());
            }
            if !member.utf8 {
                spelled.insert(key(shown));
                problems.warning(ErrorCode::PathNotUtf8, shown, format!("{shown} is what a name is kept as that is not UTF-8: %XX stands for a byte of it"));
            }
            if !exact.insert(key(shown)) {
                let what = match spelled.contains(&key(shown)) {
                    true => "is the name of one file, and what the name of another, which is not UTF-8, is kept as; rename one",
                    false => "is in the package twice; remove one",
                };
                problems.error(ErrorCode::DuplicatePath, shown, format!("{shown} {what}"));
            } else {
                let same: String = shown.nfc().flat_map(char::to_lowercase).collect();
                if !folded.insert(key(&same)) {
                    problems.warning(ErrorCode::SimilarPaths, shown, format!("{shown} differs from another file only in case or in how its letters are composed; some file systems cannot keep both"));
                }
            }
            Ok(())
        })
        .map_err(reading_failed)
}
