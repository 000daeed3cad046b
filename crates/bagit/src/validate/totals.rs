//! What is known of the whole bag at the end: its payload's size against Payload-Oxum, and its
//! structure.

use super::survey::Survey;
use super::tags::TagFiles;
use super::{Mode, Options};
use crate::info::Oxum;
use crate::problem::{Code, Problem, Problems};
use crate::source::Serialization;
use crate::source::open::Bag;

/// What the merge counted.
#[derive(Debug, Clone)]
pub(crate) struct Totals {
    pub payload: Oxum,
    /// Something is in `data/`, readable or not.
    pub payload_seen: bool,
    /// Payload files that are there and whose size is not known, because reading them failed.
    pub unread: u64,
    /// System files that are listed and gone, whose absence is tolerated.
    pub system_missing: u64,
    /// Files of `fetch.txt` that are not there yet.
    pub pending: u64,
    /// Patterns of the profile that some file has matched.
    pub required_seen: Vec<bool>,
}

impl Default for Totals {
    fn default() -> Totals {
        let payload = Oxum { octets: 0, files: 0 };
        Totals {
            payload,
            payload_seen: false,
            unread: 0,
            system_missing: 0,
            pending: 0,
            required_seen: Vec::new(),
        }
    }
}

/// What the first pass saw and the end needs.
#[derive(Debug)]
pub(crate) struct Facts {
    pub has_data_directory: bool,
    pub has_fetch: bool,
    pub serialization: Serialization,
}

impl Facts {
    pub fn of(bag: &Bag, survey: &Survey, tags: &TagFiles) -> Facts {
        Facts {
            has_data_directory: survey.has_data_directory(),
            has_fetch: tags.fetch.is_some(),
            serialization: bag.serialization(),
        }
    }
}

pub(crate) fn check(
    facts: &Facts,
    totals: &Totals,
    tags: &TagFiles,
    options: &Options,
    problems: &mut Problems,
) {
    if !facts.has_data_directory && !totals.payload_seen {
        let message = "there is no payload directory data/";
        problems.add(Problem::error(Code::PayloadDirectoryMissing, message).path("data"));
    }
    let info = tags.info.as_ref();
    let repeated = info.and_then(|info| info.all("Payload-Oxum").nth(1));
    if let Some(tag) = repeated {
        let message = "Payload-Oxum is given more than once; the first is used";
        problems
            .add(Problem::warning(Code::OxumRepeated, message).file(tags.info_name).line(tag.line));
    }
    match info.and_then(|info| info.oxum()) {
        Some(Ok((oxum, line))) => {
            if let Some(problem) = compare(oxum, totals) {
                problems.add(problem.file(tags.info_name).line(line));
            }
        }
        Some(Err(line)) => {
            let message = "Payload-Oxum must be octets, a dot and the number of files";
            problems
                .add(Problem::error(Code::OxumMalformed, message).file(tags.info_name).line(line));
        }
        None if options.mode == Mode::Fast => {
            let message =
                "there is no Payload-Oxum to compare with; validate without the fast mode";
            problems.add(Problem::error(Code::OxumMissing, message));
        }
        None => {}
    }
}

fn compare(declared: Oxum, totals: &Totals) -> Option<Problem> {
    let actual = totals.payload;
    // A file that cannot be read is a problem of its own, and not one of the oxum as well.
    if declared == actual || totals.unread > 0 && declared.files == actual.files {
        return None;
    }
    let message = format!("Payload-Oxum says {declared}, and the payload has {actual}");
    let explained = totals.system_missing > 0
        && actual.files + totals.system_missing == declared.files
        && actual.octets <= declared.octets;
    Some(match explained {
        true => Problem::warning(Code::OxumMismatch, format!("{message}; system files are gone")),
        false => Problem::error(Code::OxumMismatch, message),
    })
}
