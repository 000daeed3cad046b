//! Reads and checks a package, for an ingest and for a check before the deposit.

use crate::ErrorCode;
use crate::metadata::Metadata;
use crate::model::error::{Error, Result};
use crate::model::problem::Problems;
use crate::package::Package;
use crate::package::bounds::Bounds;
use crate::package::empty::{self, EmptyDirectory};
use crate::package::known::Known;
use crate::package::pass::{self, How, Progress, Reading, Task};
use crate::package::survey::Survey;
use crate::package::validate;
use bagit::Serialization;
use bagit::source::Members;
use std::collections::HashSet;
use std::sync::{Arc, OnceLock};

/// A file that was read before: number, path, size, SHA-512, other digests.
pub type Done = (i64, String, Option<i64>, Option<String>, Option<String>);

/// What an earlier run has read, and the source it was read from.
#[derive(Debug, Clone, Default)]
pub struct ReadBefore {
    pub source: Option<String>,
    pub files: Vec<Done>,
}

impl ReadBefore {
    /// Files are known by their places in the listing, so those of another source are not these.
    fn is_stale(&self, source: &str) -> bool {
        !self.files.is_empty() && self.source.as_deref() != Some(source)
    }
}

/// How a run of a [`Reader`] ended.
pub enum ReadOutcome {
    Checked(Box<Checked>),
    /// What was read before is not of this package as it is now: forget it and read everything.
    Stale,
}

/// What reading and checking a package has found.
pub struct Checked {
    pub survey: Survey,
    pub problems: Problems,
    pub metadata: Metadata,
    pub local_ids: Vec<String>,
    pub files: u64,
    pub bytes: u64,
    /// Directories without anything in them: stores keep files only.
    pub empty: Vec<EmptyDirectory>,
    /// Those of the files that the object keeps: structure files of a bag are only compared.
    pub kept: Kept,
}

/// Files that become part of an object.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Kept {
    pub files: u64,
    pub bytes: u64,
}

impl Kept {
    fn add(&mut self, bytes: u64) {
        self.files += 1;
        self.bytes += bytes;
    }
}

/// What reads and checks a package, on a thread of its own.
pub struct Reader {
    pub package: Package,
    pub serialization: Option<Serialization>,
    pub how: How,
    pub bounds: Bounds,
    pub claimed: Option<crate::model::item::ExpectedDigest>,
    pub original: Package,
    pub profile: Option<bagit::Profile>,
    pub progress: Progress,
    /// Hears how many bytes `progress` will tell of, once that is known.
    pub expect: Arc<dyn Fn(u64) + Send + Sync>,
    /// Gets the source of what is read before any file is told: see [`ReadBefore::source`].
    pub source: Arc<OnceLock<String>>,
}

impl Reader {
    /// Reads what was not read before, and tells `tell` of each file; stops when that answers false.
    pub fn run(
        mut self,
        before: ReadBefore,
        tell: &mut dyn FnMut(Reading) -> bool,
    ) -> Result<ReadOutcome> {
        // Known without reading anything; that of a directory is its listing.
        if let Some(source) = &self.original.fingerprint
            && before.is_stale(source)
        {
            return Ok(ReadOutcome::Stale);
        }
        let mut problems = Problems::default();
        if let Some(claimed) = &self.claimed {
            validate::check_claimed(&self.original, claimed, &self.progress, &mut problems)?;
        }
        let members = self.package.open()?;
        let stored = self.original.stored_bytes()?;
        let survey = Survey::take(&self.package, &*members, self.bounds, stored, &mut problems)?;
        let source = self.original.fingerprint.as_ref().unwrap_or(&survey.listing);
        if before.is_stale(source) {
            return Ok(ReadOutcome::Stale);
        }
        let _ = self.source.set(source.clone());
        let empty = empty::find(&survey, &*members, &mut problems)?;
        let inner = validate::InnerManifest::find(&survey, &*members, &mut problems)?;
        self.how.algorithms = self.how.algorithms.union(survey.algorithms);
        if let Some(inner) = &inner {
            self.how.algorithms = self.how.algorithms.union(inner.algorithms);
        }
        let mut known = Known::default();
        let mut skip = HashSet::new();
        let (mut files, mut bytes, mut kept) = (0, 0, Kept::default());
        for (number, path, size, sha512, digests) in before.files {
            let Some(read) = validate::digests_of(sha512.as_deref(), digests.as_deref()) else {
                continue;
            };
            let size = u64::try_from(size.unwrap_or(0)).unwrap_or(0);
            known.insert(validate::inside(&survey, &path), size, read);
            skip.insert(number);
            files += 1;
            bytes += size;
            kept.add(size);
        }
        let claimed = self.claimed.as_ref().and(stored).unwrap_or(0);
        (self.expect)(claimed + survey.bytes.saturating_sub(kept.bytes));
        let (all, most) = (&self.progress, self.bounds.bytes_max);
        pass::run(
            &self.package,
            &*members,
            &self.how,
            all,
            |put| list(&survey, &*members, &skip, put),
            |answer| match answer {
                Ok(reading) => {
                    files += 1;
                    bytes += reading.size;
                    known.insert(&reading.task.inside, reading.size, reading.digests.clone());
                    // Structure files are compared, and not kept.
                    if reading.task.path.is_empty() {
                        return bytes <= most;
                    }
                    kept.add(reading.size);
                    bytes <= most && tell(reading)
                }
                Err((task, error)) => {
                    problems.error(
                        ErrorCode::UnreadableFile,
                        &task.inside,
                        format!("{} cannot be read: {error}; check the package", task.inside),
                    );
                    true
                }
            },
        )?;
        if !all(0) {
            return Err(Error::Stopped);
        }
        self.bounds.check(&self.package.name, files, bytes, stored)?;
        let mut metadata = validate::package_metadata(&survey, &*members, &mut problems)?;
        let mut local_ids = Vec::new();
        if survey.is_bag {
            let observer = validate::Comparing { known: &known, progress: &self.progress };
            let report = validate::bag(
                members.clone(),
                &self.package.name,
                self.serialization,
                self.profile.take(),
                &observer,
            )?;
            validate::take_report(&report, &mut problems);
            let (said, ids) = validate::bag_info(&report, &mut problems);
            metadata = metadata.or(said);
            local_ids = ids;
        } else if let Some(inner) = &inner {
            inner.compare(&survey, &*members, &known, &mut problems)?;
        }
        if kept.files == 0 && !problems.has_errors() {
            problems.error(
                ErrorCode::EmptyPackage,
                &self.package.name,
                format!("{} has no files; deposit something", self.package.name),
            );
        }
        let checked = Checked { survey, problems, metadata, local_ids, files, bytes, empty, kept };
        Ok(ReadOutcome::Checked(Box::new(checked)))
    }
}

/// Names the files to be read. Numbers are places in the listing, so they are the same in every run
/// that reads the same source.
fn list(
    survey: &Survey,
    members: &dyn Members,
    skip: &HashSet<i64>,
    put: &mut dyn FnMut(Task) -> bool,
) -> Result<()> {
    let mut number = 0;
    let listed = members.list(false, &mut |member| {
        if member.kind != bagit::source::Kind::File {
            return Ok(());
        }
        number += 1;
        let Some(inside) = member.path.strip_prefix(survey.root.as_str()) else { return Ok(()) };
        let path = survey.path_of(&member).unwrap_or_default();
        if skip.contains(&number) {
            return Ok(());
        }
        let inside = inside.to_string();
        let task =
            Task { number, path, inside, locator: member.locator, modified: member.modified };
        match put(task) {
            true => Ok(()),
            false => Err(bagit::Error::Stopped),
        }
    });
    match listed {
        // The caller stopped it, and knows why.
        Ok(()) | Err(bagit::Error::Stopped) => Ok(()),
        Err(error) => Err(crate::package::reading_failed(error)),
    }
}
