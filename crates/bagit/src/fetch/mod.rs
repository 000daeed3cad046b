//! `fetch.txt`: listing what is still to be fetched, and fetching it.

pub mod guard;
#[cfg(feature = "http")]
mod http;
mod place;

#[cfg(feature = "http")]
pub use http::HttpFetcher;

use crate::Observer;
use crate::entry;
use crate::error::Error;
use crate::path;
use crate::pool::{self, lock};
use crate::problem::{Code, Problem, Problems};
use crate::source::open::Bag;
use crate::text::{Line, Lines};
use crate::validate::survey::Survey;
use crate::validate::tags::TagFiles;
use crate::validate::{Limits, Options};
use digest::{Algorithm, Algorithms, Digest};
use serde::Serialize;
use std::collections::HashMap;
use std::io::Read;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// Lines of fetch.txt that are worked on at once; the manifests are read once for each batch.
const BATCH_LINES: usize = 10_000;

/// The bytes behind a URL.
pub struct Fetched {
    pub length: Option<u64>,
    pub body: Box<dyn Read + Send>,
}

/// Gets the bytes behind a URL. Implement it to fetch from an object store, or from anywhere else.
pub trait Fetcher: Sync {
    fn get(&self, url: &str) -> Result<Fetched, Error>;
}

/// A line of fetch.txt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FetchLine {
    pub line: u64,
    pub url: String,
    pub length: Option<u64>,
    /// The path in the bag, decoded.
    pub path: String,
}

/// How to fetch.
#[derive(Debug, Clone)]
pub struct FetchOptions {
    /// No file may be larger.
    pub file_bytes_max: Option<u64>,
    /// Files that are fetched at the same time.
    pub workers: usize,
    pub problems_max: usize,
}

impl Default for FetchOptions {
    fn default() -> FetchOptions {
        FetchOptions { file_bytes_max: None, workers: 4, problems_max: 1000 }
    }
}

/// What was fetched.
#[derive(Debug, Clone, Serialize)]
pub struct FetchReport {
    pub fetched: u64,
    pub bytes: u64,
    /// Files that were there already; validation says whether they are right.
    pub present: u64,
    pub failed: u64,
    pub problems: Vec<Problem>,
}

/// A file to be fetched, and the digests it must have.
struct Wanted {
    line: FetchLine,
    checks: Vec<(Algorithm, Digest)>,
}

struct Opened {
    survey: Survey,
    tags: TagFiles,
}

fn open(bag: &Bag, observer: &dyn Observer) -> Result<Opened, Error> {
    // Only tag files are read, so it does not matter how far an archive would expand.
    let limits = Limits { ratio_max: None, ..Limits::default() };
    let options = Options { limits, ..Options::default() };
    let survey = Survey::take(bag, &options, Algorithms::NONE, observer, &mut Problems::new(0))?;
    let tags = TagFiles::read(bag, &survey, &mut Problems::new(0))?;
    Ok(Opened { survey, tags })
}

impl Opened {
    /// Reads fetch.txt; lines that are none go to `bad`.
    fn each(
        &self,
        bag: &Bag,
        bad: &mut dyn FnMut(Problem),
        visit: &mut dyn FnMut(FetchLine) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let Some(aside) = &self.tags.fetch else { return Ok(()) };
        let failed = |e| Error::io("fetch.txt", e);
        let reader = self.survey.open(bag, aside).map_err(failed)?;
        let mut lines = Lines::new(reader, self.tags.encoding());
        let mut line = Line::default();
        while lines.next(&mut line).map_err(failed)? {
            if line.text.trim().is_empty() {
                continue;
            }
            let at = |p: Problem| p.file("fetch.txt").line(line.number);
            match entry::parse_fetch_line(&line.text) {
                Ok(entry) if entry.path.starts_with("data/") && !line.cut => visit(FetchLine {
                    line: line.number,
                    url: entry.url.to_owned(),
                    length: entry.length,
                    path: path::percent_decode(&entry.path).into_owned(),
                })?,
                Ok(_) => {
                    let message = "the path is not in data/, or the line is too long";
                    bad(at(Problem::error(Code::FetchPathOutsidePayload, message)));
                }
                Err(error) => bad(at(Problem::error(Code::FetchLineMalformed, error.to_string()))),
            }
        }
        Ok(())
    }

    /// Finds the digests of a batch in the payload manifests.
    fn find_checks(&self, bag: &Bag, batch: &mut [Wanted]) -> Result<(), Error> {
        let index: HashMap<String, usize> =
            batch.iter().enumerate().map(|(i, w)| (w.line.path.clone(), i)).collect();
        for manifest in self.tags.manifests.iter().filter(|m| !m.is_tag) {
            let failed = |e| Error::io(&manifest.name, e);
            let reader = self.survey.open(bag, &manifest.aside).map_err(failed)?;
            let mut lines = Lines::new(reader, self.tags.encoding());
            let mut line = Line::default();
            while lines.next(&mut line).map_err(failed)? {
                let Ok(entry) = entry::parse_manifest_line(&line.text, manifest.algorithm) else {
                    continue;
                };
                if let Some(at) = index.get(path::percent_decode(&entry.path).as_ref()) {
                    batch[*at].checks.push((manifest.algorithm, entry.digest));
                }
            }
        }
        Ok(())
    }
}

impl Bag {
    /// Reads fetch.txt of a bag in any container. Lines that are malformed are left out;
    /// validation reports them.
    pub fn fetch_list(
        &self,
        visit: &mut dyn FnMut(FetchLine) -> Result<(), Error>,
    ) -> Result<(), Error> {
        open(self, &())?.each(self, &mut |_| {}, visit)
    }
}

/// Fetches the files of fetch.txt that are not there into a bag that is a directory. A file is
/// put in place only when it has the digests of every manifest that lists it.
pub fn fetch(
    directory: &Path,
    fetcher: &dyn Fetcher,
    options: &FetchOptions,
    observer: &dyn Observer,
) -> Result<FetchReport, Error> {
    let bag = Bag::directory(directory);
    let opened = open(&bag, observer)?;
    let run = Run {
        directory,
        fetcher,
        options,
        observer,
        tally: Mutex::new(Tally {
            problems: Problems::new(options.problems_max),
            ..Tally::default()
        }),
    };
    let mut batch = Vec::new();
    let mut bad = |problem| lock(&run.tally).problems.add(problem);
    opened.each(&bag, &mut bad, &mut |line| {
        batch.push(Wanted { line, checks: Vec::new() });
        if batch.len() < BATCH_LINES {
            return Ok(());
        }
        run.batch(&opened, &bag, std::mem::take(&mut batch))
    })?;
    run.batch(&opened, &bag, batch)?;
    let tally = run.tally.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(FetchReport {
        fetched: tally.fetched,
        bytes: tally.bytes,
        present: tally.present,
        failed: tally.problems.errors(),
        problems: tally.problems.into_sorted(),
    })
}

struct Tally {
    fetched: u64,
    bytes: u64,
    present: u64,
    problems: Problems,
}

impl Default for Tally {
    fn default() -> Tally {
        Tally { fetched: 0, bytes: 0, present: 0, problems: Problems::new(0) }
    }
}

struct Run<'a> {
    directory: &'a Path,
    fetcher: &'a dyn Fetcher,
    options: &'a FetchOptions,
    observer: &'a dyn Observer,
    tally: Mutex<Tally>,
}

impl Run<'_> {
    fn batch(&self, opened: &Opened, bag: &Bag, mut batch: Vec<Wanted>) -> Result<(), Error> {
        opened.find_checks(bag, &mut batch)?;
        let work = |wanted: Wanted, buffer: &mut [u8]| {
            if self.observer.stopped() {
                return Err(Error::Stopped);
            }
            self.one(wanted, buffer);
            self.observer.files(1);
            Ok(())
        };
        pool::run(self.options.workers, crate::hashing::CHUNK_BYTES, work, |put| {
            for wanted in batch {
                if !put(wanted) {
                    break;
                }
            }
            Ok(())
        })
    }

    fn one(&self, wanted: Wanted, buffer: &mut [u8]) {
        let outcome = place::fetch_one(self.directory, self.fetcher, &wanted, buffer, &|bytes| {
            self.observer.bytes(bytes);
            match (self.observer.stopped(), self.options.file_bytes_max) {
                (true, _) => None,
                (_, max) => Some(max.unwrap_or(u64::MAX)),
            }
        });
        let mut tally = lock(&self.tally);
        match outcome {
            Ok(Some(bytes)) => {
                tally.fetched += 1;
                tally.bytes += bytes;
            }
            Ok(None) => tally.present += 1,
            Err((code, message)) => {
                let problem = Problem::error(code, format!("{}: {message}", wanted.line.path));
                let problem = problem.file("fetch.txt").line(wanted.line.line);
                tally.problems.add(problem.path(&wanted.line.path));
            }
        }
    }
}
