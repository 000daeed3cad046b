//! The first pass: every member of the container is noted, and the tag files that decide how the
//! rest is read are set aside.

use super::record::{Found, Item, What};
use super::stream::{hash_member, pass_over};
use super::{Mode, Options};
use crate::Observer;
use crate::error::Error;
use crate::path::{self, Unsafe};
use crate::problem::{Code, Problem, Problems};
use crate::profile::Profile;
use crate::source::open::{Bag, Container, TarStream, start_stream};
use crate::source::read_at::Section;
use crate::source::{Ending, Kind, Member};
use crate::spill::Sorter;
use digest::Algorithms;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::sync::atomic::Ordering;

/// Manifests and the like beyond this number are not set aside.
const SET_ASIDE_MAX: usize = 256;
const TOPS_MAX: usize = 8;

/// A tag file that was set aside.
#[derive(Debug, Clone)]
pub(crate) struct Aside {
    /// From the top of the container.
    pub path: String,
    place: Place,
}

#[derive(Debug, Clone)]
enum Place {
    Locator(Vec<u8>),
    Spool { at: u64, end: u64 },
}

/// What the first pass found.
pub(crate) struct Survey {
    pub sorter: Sorter,
    asides: Vec<Aside>,
    /// The tag files of which a profile says more, by their paths in the bag.
    wanted: Vec<String>,
    too_many: bool,
    spool: Option<File>,
    spool_bytes: u64,
    /// Directories called `data`, near the top.
    data_directories: BTreeSet<String>,
    tops: BTreeSet<String>,
    /// The directory of the bag in the container, with a slash at its end; or nothing.
    pub root: String,
    pub root_is_certain: bool,
    pub members: u64,
    /// How a tar archive ends.
    pub ending: Option<Ending>,
    body: Vec<u8>,
}

impl Survey {
    /// Reads through the container once.
    pub fn take(
        bag: &Bag,
        options: &Options,
        algorithms: Algorithms,
        observer: &dyn Observer,
        problems: &mut Problems,
    ) -> Result<Survey, Error> {
        let mut survey = Survey {
            sorter: Sorter::new(options.memory_bytes),
            asides: Vec::new(),
            wanted: options
                .profile
                .iter()
                .flat_map(Profile::constrained_files)
                .map(Into::into)
                .collect(),
            too_many: false,
            spool: None,
            spool_bytes: 0,
            data_directories: BTreeSet::new(),
            tops: BTreeSet::new(),
            root: String::new(),
            root_is_certain: true,
            members: 0,
            ending: None,
            body: Vec::new(),
        };
        match &bag.container {
            Container::Random(members) => {
                let archive = members.serialization().is_archive();
                // Where the payload is not read, it does not matter how far it would expand.
                let stored = members.stored_bytes().filter(|_| options.mode == Mode::Full);
                let mut announced = 0_u64;
                members.list(options.mode.needs_sizes(), &mut |member| {
                    if observer.stopped() {
                        return Err(Error::Stopped);
                    }
                    survey.count(options)?;
                    // What an archive announces is enough to refuse it before anything is unpacked.
                    announced = announced.saturating_add(member.size.unwrap_or_default());
                    options.limits.check(announced, stored)?;
                    match survey.accept(member, archive, problems) {
                        Some(member) => survey.note_random(member),
                        None => Ok(()),
                    }
                })?;
                survey.ending = members.ending();
            }
            Container::Stream { serialization, opener } => {
                let (tar, stored) = start_stream(bag.name(), *serialization, opener)?;
                let limits = StreamLimits { options, stored: &stored, taken: 0 };
                survey.read_stream(tar, algorithms, limits, observer, problems)?;
            }
        }
        if survey.too_many {
            let message =
                format!("only the first {SET_ASIDE_MAX} manifests and tag files are read");
            problems.add(Problem::error(Code::TooManyTagFiles, message));
        }
        survey.find_root(bag);
        Ok(survey)
    }

    fn count(&mut self, options: &Options) -> Result<(), Error> {
        self.members += 1;
        match options.limits.members_max {
            Some(limit) if self.members > limit => Err(Error::Limit {
                what: "members of the bag".into(),
                limit,
                advice: "raise the limit if this is expected",
            }),
            _ => Ok(()),
        }
    }

    /// Checks and tidies the path of a member; none if it must not be used.
    fn accept(
        &mut self,
        mut member: Member,
        archive: bool,
        problems: &mut Problems,
    ) -> Option<Member> {
        if archive {
            match path::check(&member.path) {
                Ok(()) | Err(Unsafe::Home) => {}
                // The top directory itself is often a member called `./`.
                Err(Unsafe::Empty) if member.kind == Kind::Directory => return None,
                Err(why) => {
                    let shown: String = member.path.chars().take(200).collect();
                    let message = format!("the member's path is unsafe: {why}");
                    problems.add(Problem::error(Code::MemberPathUnsafe, message).path(shown));
                    return None;
                }
            }
            member.path = path::tidy(&member.path).into_owned();
            if self.tops.len() < TOPS_MAX {
                let top = member.path.split('/').next().unwrap_or_default();
                if !self.tops.contains(top) {
                    self.tops.insert(top.to_owned());
                }
            }
        }
        if member.kind == Kind::Directory {
            let near = member.path.matches('/').count() < 2;
            let named = member.path.rsplit('/').next() == Some("data");
            if near && named && self.data_directories.len() < TOPS_MAX {
                self.data_directories.insert(member.path);
            }
            return None;
        }
        Some(member)
    }

    fn note_random(&mut self, member: Member) -> Result<(), Error> {
        if member.kind == Kind::File && self.is_aside(&member.path) {
            let place = Place::Locator(member.locator.clone());
            self.set_aside(Aside { path: member.path.clone(), place });
        }
        self.note(&Item::Found(Found::from_member(member)))
    }

    /// Whether a file is to be read before the others: it decides how the bag is read, or the
    /// profile constrains its tags.
    fn is_aside(&self, path: &str) -> bool {
        let is = |wanted: &String| {
            let above = path.strip_suffix(wanted.as_str());
            // The bag may be the container or a directory in it.
            above.is_some_and(|above| above.is_empty() || above.find('/') == Some(above.len() - 1))
        };
        is_aside(path) || self.wanted.iter().any(is)
    }

    fn set_aside(&mut self, aside: Aside) {
        if self.asides.len() < SET_ASIDE_MAX {
            self.asides.push(aside);
        } else {
            self.too_many = true;
        }
    }

    fn note(&mut self, item: &Item) -> Result<(), Error> {
        let Item::Found(found) = item else { return Ok(()) };
        item.encode(&mut self.body);
        self.sorter
            .push(path::key(&found.path).as_bytes(), &self.body)
            .map_err(|e| Error::io("temporary file", e))
    }

    /// Adds what a manifest or `fetch.txt` says about a path of the bag.
    pub fn expect(&mut self, item: &Item, path: &str) -> io::Result<()> {
        item.encode(&mut self.body);
        let key = path::key(&format!("{}{path}", self.root));
        self.sorter.push(key.as_bytes(), &self.body)
    }

    fn read_stream(
        &mut self,
        mut tar: TarStream,
        algorithms: Algorithms,
        mut limits: StreamLimits<'_>,
        observer: &dyn Observer,
        problems: &mut Problems,
    ) -> Result<(), Error> {
        let mut hasher = super::stream::Pipeline::new(algorithms, limits.options.workers);
        while let Some(member) = tar.next()? {
            self.count(limits.options)?;
            let mut step = |bytes: u64| {
                if observer.stopped() {
                    return Err(Error::Stopped);
                }
                observer.bytes(bytes);
                limits.check(bytes)
            };
            let member = match self.accept(member, true, problems) {
                Some(member) if member.kind == Kind::File => member,
                other => {
                    // What is not used expands as much as what is.
                    pass_over(&mut tar, &mut step)?;
                    if let Some(member) = other {
                        self.note(&Item::Found(Found::from_member(member)))?;
                    }
                    continue;
                }
            };
            let aside = self.is_aside(&member.path) && self.asides.len() < SET_ASIDE_MAX;
            let at = self.spool_bytes;
            let spool = if aside { Some(self.spool()?) } else { None };
            let digests =
                hash_member(&mut tar, &mut hasher, spool, &mut step).map_err(|e| match e {
                    Error::Io { source, .. } => {
                        Error::io(format!("archive: {}", member.path), source)
                    }
                    other => other,
                })?;
            observer.files(1);
            let size = member.size.unwrap_or_default();
            if aside {
                self.spool_bytes = at + size;
                let place = Place::Spool { at, end: at + size };
                self.set_aside(Aside { path: member.path.clone(), place });
            } else if self.is_aside(&member.path) {
                self.too_many = true;
            }
            let what = What::Digests(digests);
            let found = Found { path: member.path, utf8: member.utf8, size: Some(size), what };
            self.note(&Item::Found(found))?;
        }
        self.ending = tar.ending();
        Ok(())
    }

    fn spool(&mut self) -> Result<&mut File, Error> {
        let failed = |e| Error::io("temporary file", e);
        let file = match self.spool.take() {
            Some(file) => file,
            None => tempfile::tempfile().map_err(failed)?,
        };
        let file = self.spool.insert(file);
        file.seek(io::SeekFrom::Start(self.spool_bytes)).map_err(failed)?;
        file.flush().map_err(failed)?;
        Ok(file)
    }

    /// Decides which directory of an archive is the bag.
    fn find_root(&mut self, bag: &Bag) {
        if !bag.serialization().is_archive() {
            return;
        }
        let base_of = |name: &str| {
            let mut bases: Vec<&str> = Vec::new();
            for aside in &self.asides {
                let (base, file) = aside.path.rsplit_once('/').unwrap_or(("", &aside.path));
                if file == name || (name.is_empty() && file.starts_with("manifest-")) {
                    bases.push(base);
                }
            }
            bases
                .sort_by_key(|base| (!base.is_empty(), Some(*base) != bag.stem(), base.to_owned()));
            bases.first().map(|base| (*base).to_owned())
        };
        let base = base_of("bagit.txt").or_else(|| base_of(""));
        self.root_is_certain = base.is_some();
        let only_top = || self.tops.first().filter(|top| self.tops.len() == 1 && *top != "data");
        let base = base.or_else(|| only_top().cloned()).unwrap_or_default();
        self.root = if base.is_empty() { base } else { format!("{base}/") };
    }

    /// The tag files of the bag that were set aside, by their paths in the bag.
    pub fn tag_files(&self) -> impl Iterator<Item = (&str, &Aside)> {
        let inside = |aside: &'_ Aside| -> Option<usize> {
            let name = aside.path.strip_prefix(&self.root)?;
            (!name.contains('/')).then_some(self.root.len())
        };
        self.asides.iter().filter_map(move |aside| Some((&aside.path[inside(aside)?..], aside)))
    }

    pub fn tag_file(&self, name: &str) -> Option<Aside> {
        self.tag_files().find(|(n, _)| *n == name).map(|(_, aside)| aside.clone())
    }

    /// The tag files of which a profile says more, as far as they are there.
    pub fn wanted_files(&self) -> impl Iterator<Item = (&str, Aside)> {
        self.wanted.iter().filter_map(|name| {
            let is = |aside: &&Aside| aside.path.strip_prefix(&self.root) == Some(name);
            self.asides.iter().find(is).map(|aside| (name.as_str(), aside.clone()))
        })
    }

    pub fn has_data_directory(&self) -> bool {
        self.data_directories.contains(&format!("{}data", self.root))
    }

    /// Opens a file that was set aside.
    pub fn open<'a>(&self, bag: &'a Bag, aside: &Aside) -> io::Result<Box<dyn Read + 'a>> {
        match (&aside.place, &bag.container, &self.spool) {
            (Place::Locator(locator), Container::Random(members), _) => members.open(locator),
            (Place::Spool { at, end }, _, Some(file)) => {
                // A handle of its own, because records go on being added while it is read.
                Ok(Box::new(Spooled { file: file.try_clone()?, at: *at, end: *end }))
            }
            _ => Err(io::ErrorKind::NotFound.into()),
        }
    }
}

/// A stretch of the temporary file in which the tag files of a stream are kept.
struct Spooled {
    file: File,
    at: u64,
    end: u64,
}

impl Read for Spooled {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut section = Section { inner: &self.file, at: self.at, end: self.end };
        let read = section.read(buffer)?;
        self.at = section.at;
        Ok(read)
    }
}

/// Whether a path near the top is of a file that decides how the bag is read.
fn is_aside(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let named = matches!(name, "bagit.txt" | "bag-info.txt" | "package-info.txt" | "fetch.txt")
        || ((name.starts_with("manifest-") || name.starts_with("tagmanifest-"))
            && name.ends_with(".txt"));
    named && path.matches('/').count() < 2
}

/// Stops an archive that expands beyond what it may.
pub(crate) struct StreamLimits<'a> {
    options: &'a Options,
    stored: &'a std::sync::atomic::AtomicU64,
    taken: u64,
}

impl StreamLimits<'_> {
    fn check(&mut self, bytes: u64) -> Result<(), Error> {
        self.taken += bytes;
        self.options.limits.check(self.taken, Some(self.stored.load(Ordering::Relaxed)))
    }
}
