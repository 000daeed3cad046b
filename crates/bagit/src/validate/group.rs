//! The merge: all that is known about one path, under any spelling, comes together here.

use super::hashing::{self, Check, Shared, Task};
use super::matching::{self, Match};
use super::record::{Expected, Found, Item, Pending, What};
use super::survey::Survey;
use super::tags::TagFiles;
use super::totals::Totals;
use super::{Mode, Options};
use crate::Observer;
use crate::error::Error;
use crate::path;
use crate::pool::lock;
use crate::problem::{Code, Problem, Problems, Severity};
use crate::source::open::{Bag, Container};
use crate::spill::Record;
use std::sync::PoisonError;

pub(crate) struct Merged {
    pub totals: Totals,
    pub problems: Problems,
}

/// Everything under one key.
#[derive(Default)]
struct Group {
    found: Vec<Found>,
    expected: Vec<Expected>,
    pending: Vec<Pending>,
}

/// A hostile archive or manifest may repeat one path, or spellings of it, without end; what is
/// beyond this is reported as an error and dropped.
const SAME_KEY_MAX: usize = 512;

pub(crate) fn merge(
    bag: &Bag,
    survey: Survey,
    tags: &TagFiles,
    options: &Options,
    observer: &dyn Observer,
    problems: Problems,
) -> Result<Merged, Error> {
    let shared = Shared::new(tags, options, observer, problems);
    let root = survey.root.clone();
    let judge = Judge { bag, shared: &shared, root: &root, strict: tags.is_strict() };
    let failed = |e| Error::io("temporary file", e);
    let mut sorted = survey.sorter.sorted().map_err(failed)?;
    let produce = |put: &mut dyn FnMut(Task) -> bool| -> Result<(), Error> {
        let mut record = Record::default();
        let mut key = Vec::new();
        let mut group = Group::default();
        while sorted.next(&mut record).map_err(failed)? {
            if record.key != key {
                if !judge.group(&mut group, put)? {
                    return Ok(());
                }
                std::mem::swap(&mut key, &mut record.key);
            }
            judge.collect(&mut group, Item::decode(&record.body).map_err(failed)?);
        }
        judge.group(&mut group, put).map(drop)
    };
    match &bag.container {
        Container::Random(members) => hashing::run(&**members, &shared, produce)?,
        Container::Stream { .. } => produce_without_tasks(produce)?,
    }
    Ok(Merged {
        totals: shared.totals.into_inner().unwrap_or_else(PoisonError::into_inner),
        problems: shared.problems.into_inner().unwrap_or_else(PoisonError::into_inner),
    })
}

fn produce_without_tasks(
    produce: impl FnOnce(&mut dyn FnMut(Task) -> bool) -> Result<(), Error>,
) -> Result<(), Error> {
    // Files of a stream have their digests already, so no task is ever put.
    produce(&mut |_| true)
}

/// Decides about one path after another.
struct Judge<'a> {
    bag: &'a Bag,
    shared: &'a Shared<'a>,
    root: &'a str,
    strict: bool,
}

impl Judge<'_> {
    fn add(&self, problem: Problem) {
        self.shared.add(problem);
    }

    /// An error since RFC 8493, a warning in bags of the drafts.
    fn severity(&self) -> Severity {
        if self.strict { Severity::Error } else { Severity::Warning }
    }

    fn manifest_name(&self, index: u16) -> &str {
        &self.shared.tags.manifests[usize::from(index)].name
    }

    fn collect(&self, group: &mut Group, item: Item) {
        match item {
            Item::Found(found) => self.collect_found(group, found),
            Item::Expected(expected) if group.expected.len() < SAME_KEY_MAX => {
                self.check_duplicate(group, &expected);
                group.expected.push(expected);
            }
            Item::Pending(pending) if group.pending.len() < SAME_KEY_MAX => {
                if group.pending.iter().any(|p| p.path == pending.path) {
                    let message = format!("{}: fetch.txt lists it more than once", pending.path);
                    let problem = Problem::warning(Code::FetchDuplicate, message);
                    self.add(problem.file("fetch.txt").line(pending.line).path(&pending.path));
                }
                group.pending.push(pending);
            }
            Item::Expected(expected) => {
                let message = format!("{}: listed too many times", expected.path);
                let name = self.manifest_name(expected.manifest);
                let problem = Problem::error(Code::ManifestDuplicate, message);
                self.add(problem.file(name).line(expected.line).path(&expected.path));
            }
            Item::Pending(pending) => {
                let message = format!("{}: listed too many times", pending.path);
                let problem = Problem::error(Code::FetchDuplicate, message);
                self.add(problem.file("fetch.txt").line(pending.line));
            }
        }
    }

    /// Takes a member into the group, under its path in the bag.
    fn collect_found(&self, group: &mut Group, mut found: Found) {
        let Some(inside) = found.path.strip_prefix(self.root) else {
            let severity =
                if path::is_system_file(&found.path) { Severity::Warning } else { Severity::Error };
            let message = format!("the member is outside the bag's directory {:?}", self.root);
            self.add(Problem::new(severity, Code::MemberOutsideBag, message).path(found.path));
            return;
        };
        found.path = inside.to_owned();
        if group.found.iter().any(|f| f.path == found.path) {
            let message = "the archive has more than one member of this path";
            self.add(Problem::error(Code::MemberDuplicate, message).path(found.path));
            return;
        }
        if let Some(other) = group.found.first() {
            let same = path::normal(&other.path) == path::normal(&found.path);
            let case = other.path.to_lowercase() == found.path.to_lowercase();
            let (code, how) = match (same, case) {
                (true, _) => (Code::PathNormalizationCollision, "Unicode normal form"),
                _ => (Code::PathCaseCollision, "case or normal form"),
            };
            if same || case || path::percent_decode(&other.path) == other.path {
                let message = format!("it differs from {} in {how} only", other.path);
                self.add(Problem::warning(code, message).path(&found.path));
            }
        }
        if group.found.len() < SAME_KEY_MAX {
            group.found.push(found);
        } else {
            let message = "too many names differ in spelling only; this file is not checked";
            self.add(Problem::error(Code::PathCaseCollision, message).path(found.path));
        }
    }

    fn check_duplicate(&self, group: &Group, expected: &Expected) {
        let earlier = group
            .expected
            .iter()
            .find(|e| e.manifest == expected.manifest && e.path == expected.path);
        let Some(earlier) = earlier else { return };
        if earlier.digest.is_none() || expected.digest.is_none() {
            return;
        }
        let name = self.manifest_name(expected.manifest);
        let problem = if earlier.digest == expected.digest {
            let message = format!("{}: listed in line {} already", expected.path, earlier.line);
            Problem::new(self.severity(), Code::ManifestDuplicate, message)
        } else {
            let message =
                format!("{}: line {} has a different checksum", expected.path, earlier.line);
            Problem::error(Code::ManifestConflict, message)
        };
        self.add(problem.file(name).line(expected.line).path(&expected.path));
    }

    /// Judges a group and empties it; false when no more are wanted.
    fn group(&self, group: &mut Group, put: &mut dyn FnMut(Task) -> bool) -> Result<bool, Error> {
        if self.shared.observer.stopped() {
            return Err(Error::Stopped);
        }
        let mut checks: Vec<Vec<Check>> = vec![Vec::new(); group.found.len()];
        // Manifests that name a file in a line that has no checksum.
        let mut named: Vec<Vec<u16>> = vec![Vec::new(); group.found.len()];
        let mut missing: Vec<&Expected> = Vec::new();
        if self.shared.options.mode != Mode::Fast {
            for expected in &group.expected {
                let files = group.found.iter().map(|f| f.path.as_str());
                match matching::choose(&expected.path, files, self.strict) {
                    Some((index, how)) => {
                        self.warn_of_spelling(expected, &group.found[index].path, how);
                        let algorithm =
                            self.shared.tags.manifests[usize::from(expected.manifest)].algorithm;
                        let Expected { digest, manifest, line, .. } = *expected;
                        match digest {
                            Some(digest) => {
                                checks[index].push(Check { algorithm, digest, manifest, line });
                            }
                            None => named[index].push(manifest),
                        }
                    }
                    // A line that is wrong is told of; what it seems to name may not be meant.
                    None if expected.digest.is_none() => {}
                    None => missing.push(expected),
                }
            }
            self.report_missing(group, &missing);
        }
        let fetches = self.judge_pending(group);
        group.expected.clear();
        group.pending.clear();
        let found = group.found.drain(..).zip(checks).zip(named).zip(fetches);
        for (((found, checks), named), fetch) in found {
            if !self.file(found, checks, &named, fetch, put)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn warn_of_spelling(&self, expected: &Expected, file: &str, how: Match) {
        let (code, message) = match how {
            Match::Exact => return,
            Match::Literal => {
                (Code::PathPercent, "the percent sign of the name is not written as %25")
            }
            Match::Normalization => {
                (Code::PathNormalization, "the name differs in Unicode normal form")
            }
            Match::Case => (Code::PathCase, "the name differs in the case of letters"),
        };
        let message = format!("{}: {message} from the file {file}", expected.path);
        let name = self.manifest_name(expected.manifest);
        let problem = Problem::warning(code, message);
        self.add(problem.file(name).line(expected.line).path(&expected.path));
    }

    fn report_missing(&self, group: &Group, missing: &[&Expected]) {
        for (index, expected) in missing.iter().enumerate() {
            let again = missing[..index].iter().any(|e| e.path == expected.path);
            let fetchable = group.pending.iter().any(|p| p.path == expected.path);
            if again || fetchable {
                continue;
            }
            let name = self.manifest_name(expected.manifest);
            let is_tag = self.shared.tags.manifests[usize::from(expected.manifest)].is_tag;
            let problem = if path::is_system_file(&expected.path) {
                lock(&self.shared.totals).system_missing += u64::from(!is_tag);
                let message = format!("{}: a system file is listed but gone", expected.path);
                Problem::warning(Code::SystemFileMissing, message)
            } else {
                let code = if is_tag { Code::TagFileMissing } else { Code::PayloadFileMissing };
                Problem::error(code, format!("{}: listed, but not there", expected.path))
            };
            self.add(problem.file(name).line(expected.line).path(&expected.path));
        }
    }

    /// Judges the lines of `fetch.txt`; gives the announced length for every file that is there.
    fn judge_pending(&self, group: &Group) -> Vec<Option<(u64, u64)>> {
        let mut lengths = vec![None; group.found.len()];
        for pending in &group.pending {
            let at =
                |problem: Problem| problem.file("fetch.txt").line(pending.line).path(&pending.path);
            let lists =
                |index: usize| group.expected.iter().any(|e| usize::from(e.manifest) == index);
            let manifests = self.shared.tags.manifests.iter().enumerate();
            let lacking: Vec<&str> = manifests
                .filter(|(index, m)| !m.is_tag && !lists(*index))
                .map(|(_, m)| m.name.as_str())
                .collect();
            if !lacking.is_empty() {
                let message = format!("{}: not listed in {}", pending.path, lacking.join(", "));
                self.add(at(Problem::new(self.severity(), Code::FetchUnlisted, message)));
            }
            let files = group.found.iter().map(|f| f.path.as_str());
            match matching::choose(&pending.path, files, self.strict) {
                Some((index, _)) => lengths[index] = pending.length.map(|l| (pending.line, l)),
                None => {
                    lock(&self.shared.totals).pending += 1;
                    let message = format!("{}: to be fetched, and not there yet", pending.path);
                    self.add(at(Problem::error(Code::FetchPending, message)));
                }
            }
        }
        lengths
    }

    fn file(
        &self,
        found: Found,
        checks: Vec<Check>,
        named: &[u16],
        fetch: Option<(u64, u64)>,
        put: &mut dyn FnMut(Task) -> bool,
    ) -> Result<bool, Error> {
        let is_payload = found.path.starts_with("data/");
        if !found.utf8 {
            let message = "the name is not UTF-8; bytes that cannot be read are shown as %XX";
            self.add(Problem::warning(Code::PathNotUtf8, message).path(&found.path));
        }
        if is_payload {
            lock(&self.shared.totals).payload_seen = true;
        }
        if self.shared.options.mode != Mode::Fast && !matches!(found.what, What::Wrong { .. }) {
            self.judge_listing(&found.path, is_payload, &checks, named);
        }
        if let Some(profile) = &self.shared.options.profile {
            let mut totals = lock(&self.shared.totals);
            let problem = crate::profile::see_file(profile, &found.path, &mut totals.required_seen);
            drop(totals);
            problem.into_iter().for_each(|p| self.add(p));
        }
        match found.what {
            What::Wrong { unsupported, why } => {
                let code = if unsupported { Code::MemberUnsupported } else { Code::SpecialFile };
                self.add(Problem::error(code, why).path(&found.path));
                Ok(true)
            }
            What::Digests(digests) => {
                if self.shared.options.mode == Mode::Full {
                    self.shared.compare(&found.path, &digests, &checks);
                }
                self.count(&found.path, found.size.unwrap_or_default(), fetch);
                Ok(true)
            }
            What::Locator(locator) => {
                if self.shared.options.mode == Mode::Full && !checks.is_empty() {
                    return Ok(put(Task { path: found.path, locator, checks, fetch }));
                }
                let size = match (found.size, &self.bag.container) {
                    (None, Container::Random(members)) if is_payload => members.size(&locator),
                    (size, _) => Ok(size.unwrap_or_default()),
                };
                match size {
                    Ok(size) => self.count(&found.path, size, fetch),
                    Err(error) => self.add(super::tags::unreadable(&found.path, &error)),
                }
                Ok(true)
            }
        }
    }

    fn count(&self, path: &str, size: u64, fetch: Option<(u64, u64)>) {
        self.shared.compare_length(path, size, fetch);
        if path.starts_with("data/") {
            let mut totals = lock(&self.shared.totals);
            totals.payload.octets += size;
            totals.payload.files += 1;
        }
    }

    /// Says whether a file is in all manifests in which it must be.
    fn judge_listing(&self, path: &str, is_payload: bool, checks: &[Check], named: &[u16]) {
        if path::is_system_file(path) {
            let message =
                "operating systems leave such files behind; is it meant to be in the bag?";
            self.add(Problem::warning(Code::SystemFile, message).path(path));
        }
        let manifests = &self.shared.tags.manifests;
        let kind = || manifests.iter().enumerate().filter(|(_, m)| m.is_tag != is_payload);
        let lines = || checks.iter().map(|check| check.manifest).chain(named.iter().copied());
        let listed = |index: usize| lines().any(|manifest| usize::from(manifest) == index);
        let lacking = || kind().filter(|(index, _)| !listed(*index)).map(|(_, m)| m.name.as_str());
        let in_none = kind().all(|(index, _)| !listed(index));
        if is_payload && in_none {
            if kind().next().is_some() {
                let message = "the payload file is in no manifest";
                self.add(Problem::error(Code::PayloadFileUnlisted, message).path(path));
            }
        } else if is_payload {
            for name in lacking() {
                let message = format!("{path}: in another payload manifest, but not in this one");
                let problem = Problem::new(self.severity(), Code::ManifestIncomplete, message);
                self.add(problem.file(name).path(path));
            }
        } else if manifests.iter().any(|m| !m.is_tag && m.name == path) {
            for name in lacking() {
                let message = format!("{path}: the tag manifest must list this payload manifest");
                let problem =
                    Problem::new(self.severity(), Code::TagmanifestMissesManifest, message);
                self.add(problem.file(name).path(path));
            }
        } else if in_none && kind().next().is_some() && !path.starts_with("tagmanifest-") {
            let message = "the tag file is in no tag manifest";
            self.add(Problem::warning(Code::TagFileUnlisted, message).path(path));
        }
    }
}
