//! Reading manifests and `fetch.txt` into the sort.

use super::record::{Expected, Item, Pending};
use super::survey::Survey;
use super::tags::{Manifest, TagFiles, bom, unreadable};
use crate::entry::{self, EntryError};
use crate::error::Error;
use crate::path;
use crate::problem::{Code, Problem, Problems, Severity};
use crate::source::open::Bag;
use crate::text::{Line, Lines};
use std::io;

/// Reads every manifest and `fetch.txt`.
pub(crate) fn expect(
    bag: &Bag,
    survey: &mut Survey,
    tags: &TagFiles,
    problems: &mut Problems,
) -> Result<(), Error> {
    for (index, manifest) in tags.manifests.iter().enumerate() {
        let index = index as u16;
        let mut style = Style::default();
        for_each_line(
            bag,
            survey,
            tags,
            &manifest.name,
            &manifest.aside,
            problems,
            &mut |survey, line, problems| {
                manifest_line(survey, manifest, index, line, tags, &mut style, problems)
            },
        )?;
        style.report(&manifest.name, problems);
    }
    if let Some(aside) = &tags.fetch {
        for_each_line(bag, survey, tags, "fetch.txt", aside, problems, &mut fetch_line)?;
    }
    Ok(())
}

type Visit<'a> = &'a mut dyn FnMut(&mut Survey, &Line, &mut Problems) -> io::Result<()>;

fn for_each_line(
    bag: &Bag,
    survey: &mut Survey,
    tags: &TagFiles,
    name: &str,
    aside: &super::survey::Aside,
    problems: &mut Problems,
    visit: Visit<'_>,
) -> Result<(), Error> {
    let source = match survey.open(bag, aside) {
        Ok(source) => source,
        Err(error) => {
            problems.add(unreadable(name, &error));
            return Ok(());
        }
    };
    let mut lines = Lines::new(source, tags.encoding());
    let mut line = Line::default();
    loop {
        match lines.next(&mut line) {
            Ok(true) => {}
            Ok(false) => break,
            Err(error) => {
                problems.add(unreadable(name, &error));
                break;
            }
        }
        if line.malformed {
            let message = "bytes are not in the declared encoding";
            problems
                .add(Problem::error(Code::TagFileEncoding, message).file(name).line(line.number));
        }
        if line.cut {
            let message = "the line is longer than 64 KiB and is passed over";
            problems.add(Problem::error(Code::LineTooLong, message).file(name).line(line.number));
        } else if !line.text.trim().is_empty() {
            visit(survey, &line, problems).map_err(|e| Error::io("temporary file", e))?;
        }
    }
    if lines.has_utf8_bom() {
        problems.add(bom(name));
    }
    Ok(())
}

/// Habits of a whole manifest, which are reported once.
#[derive(Default)]
struct Style {
    asterisk: Option<u64>,
    untidy: Option<u64>,
}

impl Style {
    fn report(&self, name: &str, problems: &mut Problems) {
        if let Some(line) = self.asterisk {
            let message = "paths have an asterisk before them, as md5sum writes";
            problems.add(Problem::warning(Code::ManifestAsterisk, message).file(name).line(line));
        }
        if let Some(line) = self.untidy {
            let message = "paths are written with './' or doubled slashes";
            problems
                .add(Problem::warning(Code::ManifestPathRelative, message).file(name).line(line));
        }
    }
}

fn manifest_line(
    survey: &mut Survey,
    manifest: &Manifest,
    index: u16,
    line: &Line,
    tags: &TagFiles,
    style: &mut Style,
    problems: &mut Problems,
) -> io::Result<()> {
    let at = |problem: Problem| problem.file(&manifest.name).line(line.number);
    let entry = match entry::parse_manifest_line(&line.text, manifest.algorithm) {
        Ok(entry) => entry,
        Err(error) => {
            let code = match error {
                EntryError::UnsafePath(..) => Code::ManifestPathUnsafe,
                _ => Code::ManifestLineMalformed,
            };
            problems.add(at(Problem::error(code, error.to_string())));
            // The line is wrong, and its file is listed all the same.
            let Some(path) = entry::path_of_malformed_line(&line.text) else { return Ok(()) };
            let path = path.into_owned();
            let digest = None;
            let listed =
                Expected { manifest: index, line: line.number, path: path.clone(), digest };
            return survey.expect(&Item::Expected(listed), &path);
        }
    };
    let in_payload = entry.path.starts_with("data/");
    if entry.asterisk {
        style.asterisk.get_or_insert(line.number);
    }
    if entry.untidy {
        style.untidy.get_or_insert(line.number);
    }
    if !manifest.is_tag && !in_payload {
        let message = "a payload manifest lists a path that is not in data/";
        problems
            .add(at(Problem::error(Code::ManifestPathOutsidePayload, message)).path(entry.path));
        return Ok(());
    }
    if manifest.is_tag && in_payload {
        let message = "a tag manifest lists a payload file";
        problems.add(
            at(Problem::warning(Code::TagmanifestListsPayload, message)).path(entry.path.as_ref()),
        );
    }
    if manifest.is_tag && entry.path.starts_with("tagmanifest-") && !entry.path.contains('/') {
        let severity = if tags.is_strict() { Severity::Error } else { Severity::Warning };
        let message = "a tag manifest lists a tag manifest";
        let problem = Problem::new(severity, Code::TagmanifestListsTagmanifest, message);
        problems.add(at(problem).path(entry.path.as_ref()));
    }
    let path = entry.path.into_owned();
    let expected =
        Expected { manifest: index, line: line.number, path, digest: Some(entry.digest) };
    let path = expected.path.clone();
    survey.expect(&Item::Expected(expected), &path)
}

fn fetch_line(survey: &mut Survey, line: &Line, problems: &mut Problems) -> io::Result<()> {
    let at = |problem: Problem| problem.file("fetch.txt").line(line.number);
    let entry = match entry::parse_fetch_line(&line.text) {
        Ok(entry) => entry,
        Err(error) => {
            let code = match error {
                EntryError::UnsafePath(..) => Code::FetchPathUnsafe,
                _ => Code::FetchLineMalformed,
            };
            problems.add(at(Problem::error(code, error.to_string())));
            return Ok(());
        }
    };
    if !path::percent_decode(&entry.path).starts_with("data/") {
        let message = "fetch.txt lists a path that is not in data/";
        problems.add(at(Problem::error(Code::FetchPathOutsidePayload, message)).path(entry.path));
        return Ok(());
    }
    let path = entry.path.into_owned();
    let pending = Pending { line: line.number, path: path.clone(), length: entry.length };
    survey.expect(&Item::Pending(pending), &path)
}
