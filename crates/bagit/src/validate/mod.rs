//! Validation: a first pass notes the members, the tag files say what is expected, and a merge of
//! both, sorted by path, finds what is missing, extra or different.

pub(crate) mod expect;
pub(crate) mod group;
pub(crate) mod hashing;
pub(crate) mod matching;
pub(crate) mod record;
pub(crate) mod stream;
pub(crate) mod survey;
pub(crate) mod tags;
pub(crate) mod totals;

use crate::Observer;
use crate::declaration::Version;
use crate::error::Error;
use crate::info::{Oxum, Tags};
use crate::problem::{Code, Problem, Problems, Severity};
use crate::profile::Profile;
use crate::source::open::{Bag, Container};
use crate::source::{Ending, Serialization};
use crate::spill;
use digest::{Algorithm, Algorithms};
use serde::Serialize;
use survey::Survey;
use tags::TagFiles;

/// How much is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// The structure, and that the payload has the octets and files of Payload-Oxum.
    Fast,
    /// That all files are there and none is extra (RFC 8493 §3: the bag is complete).
    Completeness,
    /// Everything, every checksum included (§3: the bag is valid).
    Full,
}

impl Mode {
    pub(crate) fn needs_sizes(self) -> bool {
        self != Mode::Full
    }
}

/// What protects the machine that validates.
#[derive(Debug, Clone)]
pub struct Limits {
    pub members_max: Option<u64>,
    pub bytes_max: Option<u64>,
    /// How many times larger than itself an archive may be when it is read.
    pub ratio_max: Option<u64>,
}

/// The ratio does not count below this many bytes: small archives of zeros do no harm.
const RATIO_FROM_BYTES: u64 = 64 * 1024 * 1024;

/// Whether an archive of `stored` bytes that expands to `expanded` bytes is a decompression bomb:
/// more than 64 MiB, and more than `ratio_max` times its size. The same rule holds for every
/// container, whatever makes it expand: compression, or the holes of sparse members.
pub fn is_bomb(expanded: u64, stored: u64, ratio_max: u64) -> bool {
    expanded > RATIO_FROM_BYTES && expanded > stored.max(1).saturating_mul(ratio_max)
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { members_max: None, bytes_max: None, ratio_max: Some(1000) }
    }
}

impl Limits {
    pub(crate) fn check(&self, taken: u64, stored: Option<u64>) -> Result<(), Error> {
        let advice = "raise the limit if this is expected";
        if let Some(limit) = self.bytes_max.filter(|limit| taken > *limit) {
            return Err(Error::Limit { what: "bytes of the bag".into(), limit, advice });
        }
        match (self.ratio_max, stored) {
            (Some(limit), Some(stored)) if is_bomb(taken, stored, limit) => {
                let what = "how many times it expands, as a decompression bomb does".into();
                Err(Error::Limit { what, limit, advice })
            }
            _ => Ok(()),
        }
    }
}

/// How to validate.
#[derive(Debug, Clone)]
pub struct Options {
    pub mode: Mode,
    /// Threads that hash; by default one for each processor.
    pub workers: usize,
    /// How many errors, and how many warnings, are kept; all are counted.
    pub problems_max: usize,
    pub profile: Option<Profile>,
    pub limits: Limits,
    /// What a stream is hashed with before its manifests are known.
    pub stream_algorithms: Algorithms,
    /// Memory for sorting; what does not fit goes to a temporary file.
    pub memory_bytes: usize,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            mode: Mode::Full,
            workers: std::thread::available_parallelism().map_or(1, usize::from),
            problems_max: 1000,
            profile: None,
            limits: Limits::default(),
            stream_algorithms: Algorithms::LIKELY,
            memory_bytes: spill::MEMORY_BYTES,
        }
    }
}

/// What validation found out.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    pub bag: String,
    pub valid: bool,
    pub mode: Mode,
    pub serialization: Serialization,
    pub version: Option<Version>,
    pub algorithms: Vec<Algorithm>,
    /// What the payload has, whatever bag-info.txt says.
    pub payload: Oxum,
    pub errors: u64,
    pub warnings: u64,
    /// There were more problems than are listed.
    pub truncated: bool,
    pub problems: Vec<Problem>,
    #[serde(skip)]
    pub tags: Tags,
}

/// Validates a bag; see [`Bag::validate`].
pub(crate) fn validate(
    bag: &Bag,
    options: &Options,
    observer: &dyn Observer,
) -> Result<Report, Error> {
    run(bag, options, observer).map_err(|error| match error {
        Error::Limit { what, limit, advice } => {
            Error::Limit { what: format!("{}: {what}", bag.name()), limit, advice }
        }
        other => other,
    })
}

fn run(bag: &Bag, options: &Options, observer: &dyn Observer) -> Result<Report, Error> {
    let mut problems = Problems::new(options.problems_max);
    let algorithms = match options.mode {
        Mode::Full => options.stream_algorithms,
        _ => Algorithms::NONE,
    };
    let mut survey = Survey::take(bag, options, algorithms, observer, &mut problems)?;
    let mut tags = TagFiles::read(bag, &survey, &mut problems)?;
    let needed = tags.algorithms();
    let is_stream = matches!(bag.container, Container::Stream { .. });
    let lacking = needed.iter().any(|a| !algorithms.contains(a));
    if is_stream && lacking && options.mode == Mode::Full && bag.can_reread() {
        // The manifests came after the payload and name an algorithm that was not computed.
        problems = Problems::new(options.problems_max);
        survey = Survey::take(bag, options, needed, observer, &mut problems)?;
        tags = TagFiles::read(bag, &survey, &mut problems)?;
    }
    if survey.root.is_empty() && bag.serialization().is_archive() && survey.root_is_certain {
        let message =
            "the bag's files are at the top of the archive; they should be in one directory";
        problems.add(Problem::warning(Code::BaseDirectoryMissing, message));
    }
    check_base_name(bag, &survey, options, &mut problems);
    if let Some((ending, fault)) = survey.ending.and_then(|e| Some((e, e.fault()?))) {
        let code = match ending {
            Ending::DataAfter { .. } => Code::ArchiveDataAfterEnd,
            Ending::DataBefore { .. } => Code::ArchiveDataBeforeStart,
            Ending::Marked | Ending::Unmarked => Code::ArchiveUnmarked,
        };
        problems.add(Problem::warning(code, fault));
    }
    if options.mode != Mode::Fast {
        expect::expect(bag, &mut survey, &tags, &mut problems)?;
    }
    let facts = totals::Facts::of(bag, &survey, &tags);
    let merged = group::merge(bag, survey, &tags, options, observer, problems)?;
    let (totals, mut problems) = (merged.totals, merged.problems);
    totals::check(&facts, &totals, &tags, options, &mut problems);
    if let Some(profile) = &options.profile {
        crate::profile::check(profile, &facts, &totals, &tags, &mut problems);
    }
    Ok(Report {
        bag: bag.name().to_owned(),
        valid: problems.errors() == 0,
        mode: options.mode,
        serialization: bag.serialization(),
        version: tags.declaration.version,
        algorithms: tags.payload_algorithms().iter().collect(),
        payload: totals.payload,
        errors: problems.errors(),
        warnings: problems.warnings(),
        truncated: problems.errors() > options.problems_max as u64
            || problems.warnings() > options.problems_max as u64,
        problems: problems.into_sorted(),
        tags: tags.info.unwrap_or_default(),
    })
}

fn check_base_name(bag: &Bag, survey: &Survey, options: &Options, problems: &mut Problems) {
    let base = survey.root.trim_end_matches('/');
    if let Some(stem) = bag.stem().filter(|stem| !base.is_empty() && *stem != base) {
        let message = format!("the archive is named {stem:?}, and the bag in it {base:?}");
        let must = options.profile.as_ref().is_some_and(|profile| profile.base_must_match);
        let severity = if must { Severity::Error } else { Severity::Warning };
        problems.add(Problem::new(severity, Code::BaseDirectoryName, message));
    }
}
