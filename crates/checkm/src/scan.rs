//! Making a manifest of the files in a directory: walked in a fixed order, hashed in parallel.

use crate::date;
use crate::profile::Profile;
use crate::row::Row;
use crate::url;
use digest::{Algorithm, SingleHasher};
use std::borrow::Cow;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};

/// How a directory is made into rows.
#[derive(Debug, Clone)]
pub struct Scan {
    /// The profile the rows are for.
    pub profile: Profile,
    /// The digest of every file.
    pub algorithm: Algorithm,
    /// The URL under which the directory's files can be fetched; most profiles need one.
    pub base_url: Option<String>,
    /// Whether rows say when files were last modified.
    pub has_times: bool,
    /// Files to leave out: the manifest itself, when it is written into the directory.
    pub except: Vec<PathBuf>,
    /// How many files are hashed at once.
    pub threads: usize,
}

/// Why a directory could not be made into a manifest.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScanError {
    /// A file or directory could not be read.
    #[error("{}: {error}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        error: io::Error,
    },
    /// Manifests are UTF-8, and this name is not.
    #[error("{}: the name is not UTF-8, so no manifest can have it; rename the file", .0.display())]
    NotUtf8(PathBuf),
    /// It is neither a file nor a directory.
    #[error("{}: it is {kind}, which a manifest cannot list; remove it, or skip such entries", path.display())]
    NotFile {
        /// Which.
        path: PathBuf,
        /// What it is instead.
        kind: &'static str,
    },
    /// The profile lists URLs, and there is no base to make them from.
    #[error("the profile {0} lists URLs; give the base URL of the directory")]
    NoBaseUrl(Profile),
    /// The base is not a URL to which names can be added.
    #[error("{url:?} is not a base URL: {why}")]
    BadBaseUrl {
        /// The base.
        url: String,
        /// Why not.
        why: String,
    },
}

/// What a scan finds, in order.
#[derive(Debug)]
pub enum Scanned {
    /// A file, or in general Checkm an empty directory.
    Row(Box<Row<'static>>),
    /// Something that no manifest can list. Scanning goes on.
    Skipped(ScanError),
}

/// A path that waits for its digest, and where the digest is to go.
struct Task {
    found: Found,
    answer: SyncSender<Result<Scanned, ScanError>>,
}

/// So many files are looked up ahead of the one that is waited for.
const AHEAD_MAX: usize = 256;

impl Scan {
    /// Whether the settings go together, before anything is read.
    pub fn check(&self) -> Result<(), ScanError> {
        let needs_url = self.profile.is_merritt() && self.profile != Profile::Container;
        let Some(base) = &self.base_url else {
            return if needs_url { Err(ScanError::NoBaseUrl(self.profile)) } else { Ok(()) };
        };
        let bad = |why: &str| ScanError::BadBaseUrl { url: base.clone(), why: why.to_string() };
        if base.contains(['?', '#']) {
            return Err(bad("names cannot be put after a ? or #"));
        }
        let is_web = url::scheme(base)
            .is_some_and(|s| s.eq_ignore_ascii_case("http") || s.eq_ignore_ascii_case("https"));
        if needs_url && !is_web {
            return Err(bad("it must begin with http:// or https://"));
        }
        url::check(base).map(drop).map_err(|why| bad(&why))
    }

    /// Shows `visit` every file below `root`, in the order of names, directory by directory.
    pub fn run<E: From<ScanError>>(
        &self,
        root: &Path,
        mut visit: impl FnMut(Scanned) -> Result<(), E>,
    ) -> Result<(), E> {
        self.check()?;
        let (task_in, task_out) = sync_channel::<Task>(AHEAD_MAX);
        let (order_in, order_out) = sync_channel(AHEAD_MAX);
        let task_out = Mutex::new(task_out);
        std::thread::scope(|scope| {
            for _ in 0..self.threads.max(1) {
                scope.spawn(|| self.hash_all(&task_out));
            }
            scope.spawn(move || self.walk(root, &task_in, &order_in));
            // The digests are waited for in the order of the walk, whoever is ready first.
            let result = order_out.iter().try_for_each(|answer: Receiver<_>| {
                // Every task is answered; a worker that panicked has taken its answer with it.
                let scanned = answer.recv().map_err(|_| ScanError::Read {
                    path: root.to_path_buf(),
                    error: io::Error::other("a thread that computes digests ended"),
                })??;
                visit(scanned)
            });
            // Letting go of the order stops the walk, and with it the workers.
            drop(order_out);
            result
        })
    }

    fn walk(
        &self,
        root: &Path,
        tasks: &SyncSender<Task>,
        order: &SyncSender<Receiver<Result<Scanned, ScanError>>>,
    ) {
        let mut walk = Walk { root: root.to_path_buf(), levels: Vec::new() };
        walk.push(PathBuf::new());
        while let Some(found) = walk.next() {
            let (answer_in, answer_out) = sync_channel(1);
            let is_sent = match found {
                Ok(found) if self.is_excepted(&found.path) => continue,
                Ok(found) => tasks.send(Task { found, answer: answer_in }).is_ok(),
                // There is room for one answer, and this is it.
                Err(error) => answer_in.send(Err(error)).is_ok(),
            };
            if !is_sent || order.send(answer_out).is_err() {
                return;
            }
        }
    }

    fn is_excepted(&self, path: &Path) -> bool {
        // The same file may be named in many ways, so that names alone do not decide.
        let is_same = |other: &Path| match (path.canonicalize(), other.canonicalize()) {
            (Ok(path), Ok(other)) => path == other,
            _ => path == other,
        };
        self.except.iter().any(|other| other.file_name() == path.file_name() && is_same(other))
    }

    fn hash_all(&self, tasks: &Mutex<Receiver<Task>>) {
        loop {
            let task = tasks.lock().unwrap_or_else(PoisonError::into_inner).recv();
            let Ok(Task { found, answer }) = task else { return };
            let scanned = self.describe(&found);
            // Nobody waits for it when the scan has been given up.
            let _ = answer.send(scanned);
        }
    }

    fn describe(&self, found: &Found) -> Result<Scanned, ScanError> {
        let skipped = |error| Ok(Scanned::Skipped(error));
        let Some(name) = found.name() else {
            return skipped(ScanError::NotUtf8(found.path.clone()));
        };
        if let Kind::Other(kind) = found.kind {
            return skipped(ScanError::NotFile { path: found.path.clone(), kind });
        }
        let mut row = Row::default();
        if found.kind == Kind::EmptyDirectory {
            row.source = Some(format!("{name}/").into());
            row.algorithm = Some("dir".into());
            // Only general Checkm has a way to say it.
            return Ok(if self.profile == Profile::General {
                Scanned::Row(Box::new(row))
            } else {
                Scanned::Skipped(ScanError::NotFile {
                    path: found.path.clone(),
                    kind: "an empty directory",
                })
            });
        }
        let read = |error| ScanError::Read { path: found.path.clone(), error };
        let mut file = File::open(&found.path).map_err(read)?;
        let (digest, size) = hash_file(self.algorithm, &mut file).map_err(read)?;
        let modified = file.metadata().and_then(|meta| meta.modified()).map_err(read)?;
        row.algorithm = Some(self.algorithm.name().into());
        row.digest = Some(digest.into());
        row.size = Some(size);
        row.modified = date::format(modified).filter(|_| self.has_times).map(Cow::Owned);
        match (&self.base_url, self.profile) {
            (_, Profile::Container) => row.name = Some(name.into()),
            (Some(base), _) => {
                row.source = Some(join(base, &name).into());
                row.name = Some(name.into());
            }
            (None, _) => row.source = Some(name.into()),
        }
        Ok(Scanned::Row(Box::new(row)))
    }
}

fn join(base: &str, name: &str) -> String {
    let mut url = format!("{}/", base.trim_end_matches('/'));
    for byte in name.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                url.push(byte as char);
            }
            _ => url.push_str(&format!("%{byte:02X}")),
        }
    }
    url
}

/// The digest of a file; none when the algorithm is not one that is computed here.
pub(crate) fn digest_of(path: &Path, algorithm: &str) -> io::Result<Option<String>> {
    match Algorithm::ALL.into_iter().find(|known| known.name() == algorithm) {
        Some(known) => hash_file(known, &mut File::open(path)?).map(|(digest, _)| Some(digest)),
        None => Ok(None),
    }
}

fn hash_file(algorithm: Algorithm, file: &mut File) -> io::Result<(String, u64)> {
    let mut hasher = SingleHasher::new(algorithm);
    let mut buffer = vec![0; 128 << 10];
    let mut size = 0;
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Ok((hasher.finish().to_string(), size)),
            Ok(count) => {
                hasher.update(&buffer[..count]);
                size += count as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    File,
    EmptyDirectory,
    Other(&'static str),
}

#[derive(Debug)]
struct Found {
    path: PathBuf,
    relative: PathBuf,
    kind: Kind,
}

impl Found {
    /// The path below the root with `/` between its parts.
    fn name(&self) -> Option<String> {
        let parts: Option<Vec<_>> =
            self.relative.components().map(|part| part.as_os_str().to_str()).collect();
        parts.map(|parts| parts.join("/"))
    }
}

/// A walk through directories that holds one directory's names for each level.
struct Walk {
    root: PathBuf,
    levels: Vec<Level>,
}

struct Level {
    relative: PathBuf,
    /// Sorted from last to first, to be taken from the end; or why they cannot be had.
    names: Result<Vec<OsString>, Option<io::Error>>,
}

impl Walk {
    fn push(&mut self, relative: PathBuf) -> bool {
        let names = list(&self.root.join(&relative)).map_err(Some);
        let is_empty = names.as_ref().is_ok_and(Vec::is_empty);
        self.levels.push(Level { relative, names });
        is_empty
    }

    fn next(&mut self) -> Option<Result<Found, ScanError>> {
        loop {
            let level = self.levels.last_mut()?;
            let name = match &mut level.names {
                Ok(names) => names.pop(),
                Err(error) => {
                    let error = error.take();
                    let path = self.root.join(&level.relative);
                    self.levels.pop();
                    return error.map(|error| Err(ScanError::Read { path, error }));
                }
            };
            let Some(name) = name else {
                self.levels.pop();
                continue;
            };
            let relative = level.relative.join(name);
            let path = self.root.join(&relative);
            let kind = match fs::symlink_metadata(&path) {
                Ok(meta) if meta.is_file() => Kind::File,
                Ok(meta) if meta.is_dir() => {
                    if !self.push(relative.clone()) {
                        continue;
                    }
                    Kind::EmptyDirectory
                }
                Ok(meta) if meta.is_symlink() => Kind::Other("a symbolic link"),
                Ok(_) => Kind::Other("a device, socket or pipe"),
                Err(error) => return Some(Err(ScanError::Read { path, error })),
            };
            return Some(Ok(Found { path, relative, kind }));
        }
    }
}

fn list(directory: &Path) -> io::Result<Vec<OsString>> {
    let mut names: Vec<_> =
        fs::read_dir(directory)?.map(|e| e.map(|e| e.file_name())).collect::<io::Result<_>>()?;
    names.sort_unstable_by(|a, b| b.cmp(a));
    Ok(names)
}
