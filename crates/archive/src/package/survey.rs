//! The first look at a package: is it a bag, what does it need to be read with, and is there
//! anything in it that no object can have.

use super::path;
use super::unpack::{is_called_archive, sniff};
use super::{Form, Package, reading_failed};
use crate::error::{Error, Result};
use crate::problem::Problems;
use bagit::source::{Kind, Member, Members};
use bagit::{Algorithm, Algorithms};
use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use unicode_normalization::UnicodeNormalization;

/// What a package may be at most.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    pub files_max: u64,
    pub bytes_max: u64,
}

/// What the first look found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Survey {
    pub is_bag: bool,
    /// The directory of the bag in the container, with a slash at its end; or nothing.
    pub root: String,
    /// What its manifests are made with.
    pub algorithms: Algorithms,
    pub files: u64,
    /// Of files whose size the container tells.
    pub bytes: u64,
}

impl Survey {
    /// Lists the members once. Problems that concern single members are gathered; more members
    /// or bytes than the collection takes are an error at once.
    pub fn take(
        package: &Package,
        members: &dyn Members,
        bounds: Bounds,
        problems: &mut Problems,
    ) -> Result<Survey> {
        let mut survey = Survey {
            is_bag: false,
            root: String::new(),
            algorithms: Algorithms::NONE,
            files: 0,
            bytes: 0,
        };
        let mut stop = None;
        let listed = members.list(true, &mut |member| {
            if member.kind == Kind::File {
                survey.files += 1;
                survey.bytes = survey.bytes.saturating_add(member.size.unwrap_or(0));
                survey.look_for_bag(&member.path);
            }
            if let Some(error) = exceeded(&survey, bounds, &package.name) {
                stop = Some(error);
                return Err(bagit::Error::Stopped);
            }
            Ok(())
        });
        if let Some(error) = stop {
            return Err(error);
        }
        listed.map_err(reading_failed)?;
        if survey.is_bag {
            survey.find_algorithms(members)?;
        } else {
            check_plain(members, problems)?;
            check_name(package, problems)?;
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

    /// The algorithms that its manifests are named after.
    fn find_algorithms(&mut self, members: &dyn Members) -> Result<()> {
        let mut algorithms = Algorithms::NONE;
        members
            .list(false, &mut |member| {
                let name = member.path.strip_prefix(self.root.as_str()).unwrap_or_default();
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

fn exceeded(survey: &Survey, bounds: Bounds, name: &str) -> Option<Error> {
    if survey.files > bounds.files_max {
        let most = bounds.files_max;
        return Some(Error::permanent(
            "too_many_files",
            format!(
                "{name} has more than {most} files, which is the collection's limit; raise files_max or divide the package"
            ),
        ));
    }
    (survey.bytes > bounds.bytes_max).then(|| {
        let most = bounds.bytes_max;
        Error::permanent(
            "too_many_bytes",
            format!(
                "{name} has more than {most} bytes, which is the collection's limit; raise bytes_max or divide the package"
            ),
        )
    })
}

/// A file that is called a container and is none is kept as it is, but may have come to harm.
fn check_name(package: &Package, problems: &mut Problems) -> Result<()> {
    let name = &package.name;
    if package.form == Form::File && is_called_archive(name) && sniff(&package.path())?.is_none() {
        problems.warning("not_a_container", name, format!("{name} is called a container and is none, so it is kept as a single file; if it should be one, see whether it came whole, and deposit it again"));
    }
    Ok(())
}

/// What BagIt would find in a bag, and nobody else finds in a package that is none.
fn check_plain(members: &dyn Members, problems: &mut Problems) -> Result<()> {
    // Keys made anew, so that nobody can choose names that collide; 128 bits, so that none do.
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
                    problems.error("unsupported_member", shown, format!("{shown}: it is {why}, which cannot be read; pack it in another way"));
                    return Ok(());
                }
            };
            if let Some(advice) = advice {
                problems.error("not_a_file", shown, format!("{shown} {advice}"));
                return Ok(());
            }
            if let Some(fault) = path::fault(shown) {
                problems.error("unsafe_path", shown, format!("{shown}: its path is not accepted, because {fault}; rename it"));
                return Ok(());
            }
            if !member.utf8 {
                spelled.insert(key(shown));
                problems.warning("path_not_utf8", shown, format!("{shown} is what a name is kept as that is not UTF-8: %XX stands for a byte of it"));
            }
            if !exact.insert(key(shown)) {
                let what = match spelled.contains(&key(shown)) {
                    true => "is the name of one file, and what the name of another, which is not UTF-8, is kept as; rename one",
                    false => "is in the package twice; remove one",
                };
                problems.error("duplicate_path", shown, format!("{shown} {what}"));
            } else {
                let same: String = shown.nfc().flat_map(char::to_lowercase).collect();
                if !folded.insert(key(&same)) {
                    problems.warning("similar_paths", shown, format!("{shown} differs from another file only in case or in how its letters are composed; some file systems cannot keep both"));
                }
            }
            Ok(())
        })
        .map_err(reading_failed)
}
