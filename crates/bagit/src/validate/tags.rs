//! The tag files that decide how a bag is read: declaration, information, and which manifests
//! there are.

use super::survey::{Aside, Survey};
use crate::declaration::{Declaration, FlawKind, Version};
use crate::error::Error;
use crate::info::{Flaw, Tags};
use crate::problem::{Code, Problem, Problems, Severity};
use crate::source::open::Bag;
use crate::source::zip::CrcMismatch;
use crate::text::{Encoding, Lines};
use digest::{Algorithm, Algorithms};
use std::collections::BTreeMap;
use std::io::Read;

/// bagit.txt has two lines; what is longer is not one.
const DECLARATION_BYTES_MAX: u64 = 64 * 1024;

/// A manifest that can be read.
#[derive(Debug, Clone)]
pub(crate) struct Manifest {
    pub name: String,
    pub algorithm: Algorithm,
    pub is_tag: bool,
    pub aside: Aside,
}

/// What the tag files say.
#[derive(Debug, Default)]
pub(crate) struct TagFiles {
    pub declaration: Declaration,
    pub info: Option<Tags>,
    pub info_name: &'static str,
    /// The tags of other files, of which a profile says more.
    pub others: BTreeMap<String, Tags>,
    pub manifests: Vec<Manifest>,
    /// Names of algorithms in manifests that cannot be computed: name, and whether of tags.
    pub unknown: Vec<(String, bool)>,
    pub fetch: Option<Aside>,
}

impl TagFiles {
    pub fn read(bag: &Bag, survey: &Survey, problems: &mut Problems) -> Result<TagFiles, Error> {
        let mut tags = TagFiles::default();
        tags.read_declaration(bag, survey, problems)?;
        tags.find_manifests(survey, problems);
        tags.read_info(bag, survey, problems);
        for (name, aside) in survey.wanted_files() {
            if let Some(read) = tags.read_tags(bag, survey, name, &aside, problems) {
                tags.others.insert(name.to_owned(), read);
            }
        }
        tags.fetch = survey.tag_file("fetch.txt");
        Ok(tags)
    }

    /// Rules of RFC 8493 apply to bags that declare 1.0, and to those that declare nothing.
    pub fn is_strict(&self) -> bool {
        self.declaration.version.is_none_or(Version::is_strict)
    }

    pub fn encoding(&self) -> Encoding {
        self.declaration.encoding.unwrap_or(Encoding::UTF_8)
    }

    pub fn algorithms(&self) -> Algorithms {
        self.manifests.iter().map(|m| m.algorithm).collect()
    }

    pub fn payload_algorithms(&self) -> Algorithms {
        self.manifests.iter().filter(|m| !m.is_tag).map(|m| m.algorithm).collect()
    }

    /// The algorithms of tag manifests; where there are none, others.
    pub fn tag_algorithms_or(&self, others: Algorithms) -> Algorithms {
        let own: Algorithms =
            self.manifests.iter().filter(|m| m.is_tag).map(|m| m.algorithm).collect();
        if own.is_empty() { others } else { own }
    }

    /// Names of the algorithms of payload or tag manifests, computable or not.
    pub fn manifest_algorithms(&self, is_tag: bool) -> Vec<&str> {
        let known =
            self.manifests.iter().filter(|m| m.is_tag == is_tag).map(|m| m.algorithm.name());
        let unknown = self.unknown.iter().filter(|u| u.1 == is_tag).map(|u| u.0.as_str());
        known.chain(unknown).collect()
    }

    fn read_declaration(
        &mut self,
        bag: &Bag,
        survey: &Survey,
        problems: &mut Problems,
    ) -> Result<(), Error> {
        let Some(aside) = survey.tag_file("bagit.txt") else {
            let message = "there is no bagit.txt, so this is not a bag";
            problems.add(Problem::error(Code::BagitTxtMissing, message).path("bagit.txt"));
            return Ok(());
        };
        let mut bytes = Vec::new();
        let read = survey
            .open(bag, &aside)
            .and_then(|r| r.take(DECLARATION_BYTES_MAX).read_to_end(&mut bytes));
        if let Err(error) = read {
            problems.add(unreadable("bagit.txt", &error));
            return Ok(());
        }
        let (declaration, flaws) = Declaration::parse(&bytes);
        for flaw in flaws {
            let (severity, code) = match flaw.kind {
                FlawKind::Malformed => (Severity::Error, Code::BagitTxtMalformed),
                FlawKind::Lax => (Severity::Warning, Code::BagitTxtMalformed),
                FlawKind::Bom => (Severity::Error, Code::BagitTxtBom),
                FlawKind::Version => (Severity::Error, Code::VersionUnsupported),
                FlawKind::Encoding => (Severity::Error, Code::EncodingUnknown),
            };
            let mut problem = Problem::new(severity, code, flaw.message).file("bagit.txt");
            problem.line = flaw.line;
            problems.add(problem);
        }
        self.declaration = declaration;
        Ok(())
    }

    fn find_manifests(&mut self, survey: &Survey, problems: &mut Problems) {
        for (name, aside) in survey.tag_files() {
            let (is_tag, rest) =
                match (name.strip_prefix("tagmanifest-"), name.strip_prefix("manifest-")) {
                    (Some(rest), _) => (true, rest),
                    (None, Some(rest)) => (false, rest),
                    (None, None) => continue,
                };
            let algorithm_name = rest.strip_suffix(".txt").unwrap_or(rest);
            match algorithm_name.parse::<Algorithm>() {
                Ok(algorithm) => self.manifests.push(Manifest {
                    name: name.to_owned(),
                    algorithm,
                    is_tag,
                    aside: aside.clone(),
                }),
                Err(error) => {
                    self.unknown.push((algorithm_name.to_owned(), is_tag));
                    let message = format!("{error}; the manifest is not checked");
                    problems.add(Problem::warning(Code::AlgorithmUnknown, message).file(name));
                }
            }
        }
        // The order of a directory is anyone's; that of the report is not.
        self.manifests.sort_by(|a, b| (a.is_tag, &a.name).cmp(&(b.is_tag, &b.name)));
        if !self.manifests.iter().any(|m| !m.is_tag) {
            let message = "there is no payload manifest of a known algorithm";
            problems.add(Problem::error(Code::PayloadManifestMissing, message));
        }
    }

    fn read_info(&mut self, bag: &Bag, survey: &Survey, problems: &mut Problems) {
        // Up to 0.95 the file had another name.
        let found = ["bag-info.txt", "package-info.txt"]
            .into_iter()
            .find_map(|name| survey.tag_file(name).map(|aside| (name, aside)));
        let Some((name, aside)) = found else { return };
        self.info_name = name;
        self.info = self.read_tags(bag, survey, name, &aside, problems);
    }

    /// Reads the tags of a file; what cannot be read is a problem and gives none.
    fn read_tags(
        &self,
        bag: &Bag,
        survey: &Survey,
        name: &str,
        aside: &Aside,
        problems: &mut Problems,
    ) -> Option<Tags> {
        let strict = self.is_strict();
        let reader = match survey.open(bag, aside) {
            Ok(reader) => reader,
            Err(error) => {
                problems.add(unreadable(name, &error));
                return None;
            }
        };
        let mut lines = Lines::new(reader, self.encoding());
        let read = Tags::read(&mut lines, &mut |flaw, line| {
            if let Some(problem) = info_problem(flaw, strict) {
                problems.add(problem.file(name).line(line));
            }
        });
        if lines.has_utf8_bom() {
            problems.add(bom(name));
        }
        read.map_err(|error| problems.add(unreadable(name, &error))).ok()
    }
}

pub(crate) fn bom(name: &str) -> Problem {
    let message = "the file starts with a byte order mark, which UTF-8 tag files should not have";
    Problem::warning(Code::TagFileBom, message).file(name)
}

pub(crate) fn unreadable(name: &str, error: &std::io::Error) -> Problem {
    if error.get_ref().is_some_and(|inner| inner.is::<CrcMismatch>()) {
        return Problem::error(Code::MemberCrcMismatch, error.to_string()).path(name);
    }
    Problem::error(Code::FileUnreadable, format!("it could not be read: {error}")).path(name)
}

fn info_problem(flaw: Flaw, strict: bool) -> Option<Problem> {
    let error = |code, text: &str| Some(Problem::error(code, text));
    match flaw {
        Flaw::NoColon => error(Code::InfoLineMalformed, "there is no colon in the line"),
        Flaw::NoLabel => error(Code::InfoLineMalformed, "there is no label before the colon"),
        Flaw::FoldWithoutTag => error(
            Code::InfoLineMalformed,
            "the line continues a value, but there is none before it",
        ),
        Flaw::Encoding => error(Code::TagFileEncoding, "bytes are not in the declared encoding"),
        Flaw::TooLong => error(Code::LineTooLong, "the line is longer than 64 KiB and was cut"),
        Flaw::TooMany => error(Code::InfoTooLarge, "there are more tags than are read"),
        Flaw::Whitespace if strict => Some(Problem::warning(
            Code::InfoWhitespace,
            "the colon should follow the label and be followed by one space or tab",
        )),
        Flaw::Whitespace => None,
    }
}
