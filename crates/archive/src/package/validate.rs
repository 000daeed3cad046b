//! What is compared with what: the rules of a package beside the bytes that were read.

use crate::ErrorCode;
use crate::metadata::{self, Metadata};
use crate::model::error::{Error, Result};
use crate::model::item::ExpectedDigest;
use crate::model::problem::{PROBLEMS_MAX, Problems};
use crate::model::profile::Profile;
use crate::package::known::Known;
use crate::package::pass::Progress;
use crate::package::survey::Survey;
use crate::package::{Form, Package, reading_failed, unreadable};
use bagit::source::{Ending, Kind, Member, Members, Serialization};
use bagit::{
    Algorithm, Algorithms, Bag, Digest, Digests, Hasher, Limits, Observer, Options, Severity,
};
use std::io::{self, Read};
use std::sync::Arc;

/// The bag profile of a collection.
pub fn bag_profile(profile: &Profile) -> Result<Option<bagit::Profile>> {
    let Some(name) = &profile.bag_profile else { return Ok(None) };
    let wrong = |why: String| {
        Error::permanent(
            ErrorCode::BagProfile,
            format!(
                "the collection's bag profile `{name}` cannot be used: {why}; set bag_profile to a file that can be read"
            ),
        )
    };
    bagit::Profile::open(name).map(Some).map_err(|e| wrong(e.to_string()))
}

/// Compares the package itself with the digest that was given with it.
pub fn check_claimed(
    package: &Package,
    claimed: &ExpectedDigest,
    progress: &Progress,
    problems: &mut Problems,
) -> Result<()> {
    if package.form == Form::Directory {
        problems.error(
            ErrorCode::DigestOfDirectory,
            &package.name,
            format!(
                "{}: a directory has no digest; leave it out, or deposit an archive",
                package.name
            ),
        );
        return Ok(());
    }
    let Ok(algorithm) = claimed.algorithm.parse::<Algorithm>() else {
        problems.error(
            ErrorCode::UnknownAlgorithm,
            &package.name,
            format!(
                "`{}` is no digest algorithm that is known here; use sha256 or sha512",
                claimed.algorithm
            ),
        );
        return Ok(());
    };
    let path = package.path();
    let mut file = package.file()?;
    let mut hasher = Hasher::new([algorithm].into_iter().collect());
    let mut buffer = vec![0; 256 * 1024];
    loop {
        let read = file.read(&mut buffer).map_err(|e| unreadable(&path, &e))?;
        if read == 0 {
            break;
        }
        hasher.update(&buffer[..read]);
        if !progress(read as u64) {
            return Err(Error::Stopped);
        }
    }
    let found = hasher.finish().get(algorithm).map(|d| d.to_string()).unwrap_or_default();
    compare_claimed(&package.name, claimed, &found, problems);
    Ok(())
}

/// Digests are compared in any case.
pub fn compare_claimed(name: &str, claimed: &ExpectedDigest, found: &str, problems: &mut Problems) {
    if !claimed.digest.eq_ignore_ascii_case(found) {
        problems.error(
            ErrorCode::DigestMismatch,
            name,
            format!(
                "{name}: its {} is {found}, and {} was given; it was damaged on the way or is another one: send it again",
                claimed.algorithm, claimed.digest
            ),
        );
    }
}

/// Digests as they were written down.
pub fn digests_of(sha512: Option<&str>, others: Option<&str>) -> Option<Digests> {
    let mut digests = vec![(Algorithm::Sha512, Digest::from_hex(sha512?)?)];
    if let Some(others) = others {
        let others: std::collections::BTreeMap<String, String> =
            serde_json::from_str(others).ok()?;
        for (algorithm, digest) in others {
            digests.push((algorithm.parse().ok()?, Digest::from_hex(&digest)?));
        }
    }
    Some(digests.into_iter().collect())
}

/// The path in the package of a path in the object.
pub fn inside<'p>(survey: &Survey, path: &'p str) -> &'p str {
    match survey.is_bag {
        true => path.strip_prefix("tags/").unwrap_or(path),
        false => path.strip_prefix("data/").unwrap_or(path),
    }
}

/// What was read, for the validator of bags: it reads nothing a second time.
pub struct Comparing<'a> {
    pub known: &'a Known,
    pub progress: &'a Progress,
}

impl Observer for Comparing<'_> {
    fn known(&self, path: &str) -> Option<(u64, Digests)> {
        self.known.get(path)
    }

    fn stopped(&self) -> bool {
        !(self.progress)(0)
    }
}

/// Members that say what they were deposited as: a compressed tar is read as a plain one.
struct Deposited {
    members: Arc<dyn Members>,
    serialization: Option<Serialization>,
}

impl Members for Deposited {
    fn serialization(&self) -> Serialization {
        self.serialization.unwrap_or_else(|| self.members.serialization())
    }

    fn list(
        &self,
        sizes: bool,
        visit: &mut dyn FnMut(Member) -> Result<(), bagit::Error>,
    ) -> Result<(), bagit::Error> {
        self.members.list(sizes, visit)
    }

    fn open<'a>(&'a self, locator: &[u8]) -> io::Result<Box<dyn Read + 'a>> {
        self.members.open(locator)
    }

    fn size(&self, locator: &[u8]) -> io::Result<u64> {
        self.members.size(locator)
    }

    fn stored_bytes(&self) -> Option<u64> {
        self.members.stored_bytes()
    }

    fn ending(&self) -> Option<Ending> {
        self.members.ending()
    }
}

/// Checks a bag whose files have been read.
pub fn bag(
    members: Arc<dyn Members>,
    name: &str,
    serialization: Option<Serialization>,
    profile: Option<bagit::Profile>,
    observer: &Comparing<'_>,
) -> Result<bagit::Report> {
    let bag = Bag::from_members(Deposited { members, serialization }, name);
    // The bounds of the package were checked before it was read.
    let limits = Limits { ratio_max: None, ..Limits::default() };
    let options = Options { problems_max: PROBLEMS_MAX, profile, limits, ..Options::default() };
    bag.validate_observed(&options, observer).map_err(reading_failed)
}

/// The problems of a bag among those of its package.
pub fn take_report(report: &bagit::Report, problems: &mut Problems) {
    for problem in &report.problems {
        let place = problem.path.as_deref().or(problem.file.as_deref()).unwrap_or(&report.bag);
        // Its code is told apart from the message.
        let whole = problem.to_string();
        let message = whole.strip_suffix(&format!(" [{}]", problem.code)).unwrap_or(&whole);
        match problem.severity {
            Severity::Error => problems.error(problem.code, place, message),
            _ => problems.warning(problem.code, place, message),
        }
    }
    // Those that the validator counted and did not list.
    let listed =
        |severity| report.problems.iter().filter(|p| p.severity == severity).count() as u64;
    problems.errors += report.errors - listed(Severity::Error);
    problems.warnings += report.warnings - listed(Severity::Warning);
}

/// What `bag-info.txt` says of the object, and the identifiers it gives it.
pub fn bag_info(report: &bagit::Report, problems: &mut Problems) -> (Metadata, Vec<String>) {
    let tags = report.tags.0.iter().map(|tag| (tag.label.as_str(), tag.value.as_str()));
    let said = metadata::from_bag_info(tags).unwrap_or_else(|error| {
        problems.warning(ErrorCode::Metadata, "bag-info.txt", error.to_string());
        Metadata::default()
    });
    let ids = report.tags.values("External-Identifier").map(|v| v.trim().to_string());
    (said, ids.filter(|id| !id.is_empty()).collect())
}

/// Whether a bag has an identifier of its own in `bag-info.txt`.
pub fn says_what_it_is(survey: &Survey, members: &dyn Members) -> Result<bool> {
    let wanted = format!("{}bag-info.txt", survey.root);
    let mut found = None;
    let listed = members.list(false, &mut |member| {
        if survey.is_bag && member.kind == Kind::File && member.path == wanted {
            found = Some(member.locator);
        }
        Ok(())
    });
    listed.map_err(reading_failed)?;
    let Some(locator) = found else { return Ok(false) };
    let text = read_small(members, &locator)?;
    let text = String::from_utf8_lossy(&text);
    Ok(text.lines().any(|line| {
        let tag = line.split_once(':').filter(|(_, value)| !value.trim().is_empty());
        tag.is_some_and(|(label, _)| label.trim().eq_ignore_ascii_case("External-Identifier"))
    }))
}

/// Files of descriptive metadata that a package may have, the first to be believed.
const DC_FILES: [&str; 3] = ["mrt-dc.xml", "dc.xml", "dublin_core.xml"];
const ERC_FILES: [&str; 2] = ["mrt-erc.txt", "erc.txt"];

/// What the package says of itself in files made for that. One that cannot be read is a warning:
/// the object is no worse for it.
pub fn package_metadata(
    survey: &Survey,
    members: &dyn Members,
    problems: &mut Problems,
) -> Result<Metadata> {
    let mut found: Vec<(usize, String, Vec<u8>)> = Vec::new();
    members
        .list(false, &mut |member| {
            let name = member.path.strip_prefix(survey.root.as_str()).unwrap_or_default();
            let name = name.strip_prefix("data/").filter(|_| survey.is_bag).unwrap_or(name);
            let rank = DC_FILES.iter().chain(&ERC_FILES).position(|known| *known == name);
            if let Some(rank) = rank.filter(|_| member.kind == Kind::File) {
                found.push((rank, member.path.clone(), member.locator));
            }
            Ok(())
        })
        .map_err(reading_failed)?;
    found.sort();
    let mut all = Metadata::default();
    for (rank, path, locator) in found {
        let parsed = read_small(members, &locator).and_then(|bytes| match rank < DC_FILES.len() {
            true => metadata::parse_dc(&bytes),
            false => metadata::parse_erc(&bytes),
        });
        match parsed {
            Ok(said) => all = all.or(said),
            Err(error) => problems.warning(ErrorCode::Metadata, &path, format!("{path}: {error}")),
        }
    }
    Ok(all)
}

fn read_small(members: &dyn Members, locator: &[u8]) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let failed =
        |e: io::Error| Error::permanent(ErrorCode::Metadata, format!("it cannot be read: {e}"));
    let most = metadata::FILE_BYTES_MAX as u64 + 1;
    members.open(locator).map_err(failed)?.take(most).read_to_end(&mut bytes).map_err(failed)?;
    Ok(bytes)
}

/// A manifest of the object inside a container that is no bag.
pub struct InnerManifest {
    path: String,
    locator: Vec<u8>,
    pub algorithms: Algorithms,
}

const INNER_NAMES: [&str; 2] = ["mrt-manifest.txt", "manifest.checkm"];

impl InnerManifest {
    pub fn find(
        survey: &Survey,
        members: &dyn Members,
        problems: &mut Problems,
    ) -> Result<Option<InnerManifest>> {
        if survey.is_bag {
            return Ok(None);
        }
        let mut found = None;
        members
            .list(false, &mut |member| {
                if member.kind == Kind::File && INNER_NAMES.contains(&member.path.as_str()) {
                    found = Some((member.path, member.locator));
                }
                Ok(())
            })
            .map_err(reading_failed)?;
        let Some((path, locator)) = found else { return Ok(None) };
        let mut inner = InnerManifest { path, locator, algorithms: Algorithms::NONE };
        let mut algorithms = Algorithms::NONE;
        inner.rows(members, Some(problems), &mut |row| {
            let named = row.algorithm.as_deref().and_then(|a| a.parse::<Algorithm>().ok());
            if let Some(algorithm) = named {
                algorithms.insert(algorithm);
            }
        })?;
        inner.algorithms = algorithms;
        Ok(Some(inner))
    }

    fn rows(
        &self,
        members: &dyn Members,
        problems: Option<&mut Problems>,
        visit: &mut dyn FnMut(&checkm::Row<'_>),
    ) -> Result<()> {
        let wrong = |e: checkm::Error| {
            Error::permanent(
                ErrorCode::InnerManifest,
                format!("{}: {e}; write it again", self.path),
            )
            .about(&self.path)
        };
        let file = members.open(&self.locator).map_err(|e| {
            Error::transient(ErrorCode::PackageUnreadable, format!("{}: {e}", self.path))
                .about(&self.path)
        })?;
        let mut reader = checkm::Reader::new(io::BufReader::new(file), &checkm::Options::default())
            .map_err(wrong)?;
        while let Some(row) = reader.next_row().map_err(wrong)? {
            visit(&row);
        }
        let report = reader.finish().map_err(wrong)?;
        if let Some(problems) = problems {
            crate::package::manifest::take_report(&self.path, &report, problems);
        }
        Ok(())
    }

    /// Both ways: what it names is there and the same, and what is there is named.
    pub fn compare(
        &self,
        survey: &Survey,
        members: &dyn Members,
        known: &Known,
        problems: &mut Problems,
    ) -> Result<()> {
        let mut named = std::collections::HashSet::new();
        let mut found = Vec::new();
        self.rows(members, None, &mut |row| {
            let Some(name) = row.file_name() else { return };
            let line = row.place.line;
            named.insert(name.to_string());
            let Some((size, digests)) = known.get(&name) else {
                found.push((
                    ErrorCode::InnerMissing,
                    name.to_string(),
                    format!(
                        "line {line} of {} names {name}, which is not in the package",
                        self.path
                    ),
                ));
                return;
            };
            if row.size.is_some_and(|said| said != size) {
                found.push((
                    ErrorCode::InnerSize,
                    name.to_string(),
                    format!(
                        "{name} has {size} bytes, and line {line} of {} says {}",
                        self.path,
                        row.size.unwrap_or(0)
                    ),
                ));
            }
            let algorithm = row.algorithm.as_deref().and_then(|a| a.parse::<Algorithm>().ok());
            let digest = algorithm.and_then(|a| digests.get(a)).map(|d| d.to_string());
            if let (Some(digest), Some(said)) = (digest, row.digest.as_deref())
                && !said.eq_ignore_ascii_case(&digest)
            {
                found.push((
                    ErrorCode::InnerDigest,
                    name.to_string(),
                    format!(
                        "{name}: its digest is {digest}, and line {line} of {} says {said}",
                        self.path
                    ),
                ));
            }
        })?;
        for (code, place, message) in found {
            problems.error(code, &place, message);
        }
        members
            .list(false, &mut |member| {
                let inside = member.path.strip_prefix(survey.root.as_str()).unwrap_or_default();
                let extra =
                    member.kind == Kind::File && inside != self.path && !named.contains(inside);
                if extra {
                    problems.error(
                        ErrorCode::InnerExtra,
                        inside,
                        format!("{inside} is in the package and not in {}", self.path),
                    );
                }
                Ok(())
            })
            .map_err(reading_failed)
    }
}
