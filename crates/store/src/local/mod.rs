//! A store in a local directory: durable by `fsync` and rename, and closed to symbolic links.

mod batch;
mod flush;
mod link;
mod put;
mod remove;
mod root;
mod temporary;
mod walk;

use crate::body::{Body, Object, clip};
use crate::error::{Error, ErrorKind, Result};
use crate::key::{check_existing_key, check_key, check_prefix, is_below};
use crate::meta::{Availability, Capabilities, ListOptions, Meta, Page, Space, Unfinished};
use crate::store::{PutOptions, SmallFile, Store};
use async_trait::async_trait;
use batch::Names;
use bytes::{Bytes, BytesMut};
use futures_util::{StreamExt, stream};
use root::{Root, os_error};
use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use walk::Walker;

/// How much is read or written at once.
const CHUNK_BYTES: usize = 1024 * 1024;

/// So many listings may be between two pages without starting the walk anew.
const WALKERS_MAX: usize = 16;

/// How a local store is opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalOptions {
    /// The directory, below the root and on the same file system, in which files are written
    /// before they get their key. It is made when needed, is not listed, and no key may lie in
    /// it. Choose one that other readers of the directory do not mind.
    pub temporaries: String,
    /// Make the root if there is none.
    pub create: bool,
    /// Write any name that the file system takes, control characters too: for a directory that is
    /// handed to a person, and whose content need not have the same keys in other stores.
    pub any_names: bool,
}

impl Default for LocalOptions {
    fn default() -> LocalOptions {
        LocalOptions { temporaries: ".store-temporaries".into(), create: false, any_names: false }
    }
}

/// Keeps bytes in files below a directory.
#[derive(Debug, Clone)]
pub struct LocalStore {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    url: String,
    path: PathBuf,
    root: Arc<Root>,
    temporaries: Arc<str>,
    any_names: bool,
    walkers: Mutex<Vec<(Position, Walker)>>,
}

/// Which listing, and where in it.
#[derive(Debug, PartialEq, Eq)]
struct Position {
    prefix: String,
    recursive: bool,
    after: String,
}

impl LocalStore {
    /// Opens a directory that exists.
    pub fn open(path: impl AsRef<Path>) -> Result<LocalStore> {
        LocalStore::open_with(path, &LocalOptions::default())
    }

    /// Opens a directory, and makes it first if there is none.
    pub fn create(path: impl AsRef<Path>) -> Result<LocalStore> {
        LocalStore::open_with(path, &LocalOptions { create: true, ..LocalOptions::default() })
    }

    pub fn open_with(path: impl AsRef<Path>, options: &LocalOptions) -> Result<LocalStore> {
        check_key(&options.temporaries)?;
        let path = path.as_ref();
        let about = path.to_string_lossy();
        if options.create {
            std::fs::create_dir_all(path).map_err(|error| Error::from_io(&*about, error))?;
        }
        let path = path.canonicalize().map_err(|error| Error::from_io(&*about, error))?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = rustix::fs::open(&path, flags, Mode::empty())
            .map_err(|errno| Error::from_io(&*about, errno.into()))?;
        let shared = Shared {
            url: format!("file://{}", path.display()),
            path,
            root: Arc::new(Root::new(fd)),
            temporaries: options.temporaries.as_str().into(),
            any_names: options.any_names,
            walkers: Mutex::default(),
        };
        Ok(LocalStore { shared: Arc::new(shared) })
    }

    /// The root directory.
    pub fn path(&self) -> &Path {
        &self.shared.path
    }

    /// Runs blocking work on a thread that may block.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Shared) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let shared = self.shared.clone();
        run(move || work(&shared)).await.map_err(|error| error.in_store(self.url()))
    }

    fn check_key(&self, key: &str) -> Result<()> {
        self.shared.check_key(key).map_err(|error| error.in_store(self.url()))
    }

    fn check_existing_key(&self, key: &str) -> Result<()> {
        self.shared.check_existing_key(key).map_err(|error| error.in_store(self.url()))
    }
}

/// Runs blocking work; a panic in it goes on here.
async fn run<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        Err(_) => Err(Error::new(ErrorKind::Transient, "", "the runtime is shutting down")),
    }
}

impl Shared {
    fn check_key(&self, key: &str) -> Result<()> {
        if !self.any_names {
            check_key(key)?;
        }
        self.check_existing_key(key)
    }

    fn check_existing_key(&self, key: &str) -> Result<()> {
        check_existing_key(key)?;
        if key == &*self.temporaries || is_below(key, &self.temporaries) {
            let detail = "this is where the store keeps its temporary files";
            return Err(Error::new(ErrorKind::InvalidKey, key, detail));
        }
        Ok(())
    }

    /// Makes everything durable that was written to this file system before.
    fn flush(&self) -> Result<()> {
        self.root.flush().map_err(|errno| os_error("", errno))
    }

    /// Opens a plain file for reading.
    fn open_file(&self, key: &str) -> Result<(File, Meta)> {
        // Without NONBLOCK, opening a pipe would wait for a writer.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK;
        let mut opened = self.root.open(key, flags);
        if matches!(opened, Err(Errno::NOENT)) {
            // A directory on the way may have been exchanged, and the old one emptied, while we
            // were in it. The new one has the file too.
            opened = self.root.open(key, flags);
        }
        let fd = opened.map_err(|errno| os_error(key, errno))?;
        let file = File::from(fd);
        let meta = meta_of(key, &file)?;
        Ok((file, meta))
    }

    fn list(&self, prefix: &str, options: &ListOptions) -> Result<Page> {
        let mut position = Position {
            prefix: prefix.to_owned(),
            recursive: options.recursive,
            after: options.after.clone().unwrap_or_default(),
        };
        let mut walker = match self.take_walker(&position) {
            Some(walker) => walker,
            None => {
                let after =
                    options.after.as_deref().map(|after| decode(prefix, after)).transpose()?;
                let (root, hidden) = (self.root.clone(), self.temporaries.clone());
                Walker::start(root, hidden, prefix, options.recursive, after.as_deref())
                    .map_err(|errno| os_error(prefix, errno))?
            }
        };
        let mut entries = Vec::new();
        while let Some(entry) = walker.step().map_err(|errno| os_error(prefix, errno))? {
            entries.push(entry);
            if entries.len() >= options.limit.max(1) {
                let next = encode(walker.position());
                position.after.clone_from(&next);
                self.keep_walker(position, walker);
                return Ok(Page { entries, next: Some(next) });
            }
        }
        Ok(Page { entries, next: None })
    }

    fn take_walker(&self, position: &Position) -> Option<Walker> {
        let mut walkers = self.walkers.lock().unwrap_or_else(PoisonError::into_inner);
        let index = walkers.iter().position(|(kept, _)| kept == position)?;
        Some(walkers.remove(index).1)
    }

    fn keep_walker(&self, position: Position, walker: Walker) {
        let mut walkers = self.walkers.lock().unwrap_or_else(PoisonError::into_inner);
        if walkers.len() == WALKERS_MAX {
            walkers.remove(0);
        }
        walkers.push((position, walker));
    }

    fn unfinished(&self) -> Result<Vec<Unfinished>> {
        let walker = Walker::start(self.root.clone(), "".into(), &self.temporaries, false, None);
        let failed = |errno| os_error(&self.temporaries, errno);
        let mut walker = walker.map_err(failed)?;
        let mut found = Vec::new();
        while let Some(entry) = walker.step().map_err(failed)? {
            let name = root::split(&entry.key).1.to_owned();
            found.push(Unfinished { key: None, id: name, begun: entry.modified });
        }
        Ok(found)
    }

    fn abort(&self, id: &str) -> Result<()> {
        if id.contains('/') || matches!(id, "" | "." | "..") {
            return Err(Error::new(ErrorKind::InvalidKey, id, "this is no unfinished put"));
        }
        let removed = self
            .root
            .open_directory(&self.temporaries)
            .and_then(|at| rustix::fs::unlinkat(&at, id, AtFlags::empty()));
        match removed {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(errno) => Err(os_error(id, errno)),
        }
    }
}

/// What the file system knows of a file. The etag changes with every put, since each makes a new
/// file.
fn meta_of(key: &str, file: &File) -> Result<Meta> {
    let stat = rustix::fs::fstat(file).map_err(|errno| os_error(key, errno))?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => {}
        FileType::Directory => return Err(Error::new(ErrorKind::NotFound, key, "a directory")),
        _ => return Err(Error::new(ErrorKind::NotPlain, key, "a special file")),
    }
    let facts = file.metadata().map_err(|error| Error::from_io(key, error))?;
    let (inode, changed) = (facts.ino(), facts.mtime_nsec());
    let etag = format!("\"{inode:x}-{:x}-{:x}-{changed:x}\"", facts.len(), facts.mtime());
    Ok(Meta { modified: walk::modified(&stat), etag: Some(etag), ..Meta::of_size(facts.len()) })
}

/// A position in a listing as text: hexadecimal, since names need not be UTF-8.
fn encode(position: &[u8]) -> String {
    use std::fmt::Write;
    position.iter().fold(String::with_capacity(position.len() * 2), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn decode(prefix: &str, text: &str) -> Result<Vec<u8>> {
    let digits: Option<Vec<u8>> =
        text.chars().map(|c| c.to_digit(16).map(|digit| digit as u8)).collect();
    match digits {
        Some(digits) if digits.len() % 2 == 0 => {
            Ok(digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect())
        }
        _ => {
            let detail = "the page to go on after is not one of this store";
            Err(Error::new(ErrorKind::Permanent, prefix, detail))
        }
    }
}

/// The bytes of a range of a file, read a chunk at a time.
fn read(url: String, key: String, file: File, range: Range<u64>) -> crate::ByteStream {
    let state = (Arc::new(file), range, BytesMut::new());
    stream::try_unfold(state, move |(file, range, mut buffer)| {
        let (url, key) = (url.clone(), key.clone());
        async move {
            if range.is_empty() {
                return Ok(None);
            }
            let reader = file.clone();
            let (start, length) = (range.start, (range.end - range.start).min(CHUNK_BYTES as u64));
            let read = move || {
                // Uses the memory of the chunk before, if that was dropped. An allocator keeps what
                // one thread allocates and another frees for longer than a large file takes.
                buffer.resize(length as usize, 0);
                fill(&reader, &key, start, &mut buffer)?;
                Ok((buffer.split().freeze(), buffer))
            };
            let (chunk, buffer) = run(read).await.map_err(|error| error.in_store(&url))?;
            let next = start + chunk.len() as u64..range.end;
            Ok(Some((chunk, (file, next, buffer))))
        }
    })
    .boxed()
}

/// A small file, if it is there.
fn read_whole(shared: &Shared, key: &str, bytes_max: usize) -> Result<Option<Bytes>> {
    let (file, meta) = match shared.open_file(key) {
        Ok(found) => found,
        Err(error) if error.is_not_found() => return Ok(None),
        Err(error) => return Err(error),
    };
    match usize::try_from(meta.size) {
        Ok(size) if size <= bytes_max => {
            let mut content = vec![0; size];
            fill(&file, key, 0, &mut content)?;
            Ok(Some(content.into()))
        }
        _ => {
            let detail =
                format!("it has {} bytes, more than the {bytes_max} allowed here", meta.size);
            Err(Error::new(ErrorKind::Permanent, key, detail))
        }
    }
}

/// Fills a buffer with what is in a file from `start` on.
fn fill(file: &File, key: &str, start: u64, buffer: &mut [u8]) -> Result<()> {
    file.read_exact_at(buffer, start).map_err(|error| match error.kind() {
        std::io::ErrorKind::UnexpectedEof => {
            Error::new(ErrorKind::Corrupt, key, "the file became shorter while it was read")
        }
        _ => Error::from_io(key, error),
    })
}

#[async_trait]
impl Store for LocalStore {
    fn url(&self) -> &str {
        &self.shared.url
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            rename: true,
            exchange: cfg!(any(target_os = "linux", target_vendor = "apple")),
            put_if_absent: true,
            free_space: true,
            batch: cfg!(target_os = "linux"),
            ..Capabilities::default()
        }
    }

    async fn put(&self, key: &str, body: Body, options: &PutOptions) -> Result<Meta> {
        self.check_key(key)?;
        let put = put::put(&self.shared, key, body, options).await;
        put.map_err(|error| error.in_store(self.url()))
    }

    async fn put_batch(&self, files: Vec<SmallFile>) -> Result<()> {
        self.blocking(move |shared| batch::put_batch(shared, files, Names::Now)).await
    }

    async fn put_batch_lazily(&self, files: Vec<SmallFile>) -> Result<()> {
        self.blocking(move |shared| batch::put_batch(shared, files, Names::Later)).await
    }

    async fn get(&self, key: &str, range: Option<Range<u64>>) -> Result<Object> {
        self.check_existing_key(key)?;
        let name = key.to_owned();
        let (file, meta) = self.blocking(move |shared| shared.open_file(&name)).await?;
        let range = clip(key, range, meta.size).map_err(|error| error.in_store(self.url()))?;
        let body = read(self.shared.url.clone(), key.to_owned(), file, range.clone());
        Ok(Object { meta, range, body })
    }

    async fn get_batch(&self, keys: Vec<String>, bytes_max: usize) -> Result<Vec<Option<Bytes>>> {
        keys.iter().try_for_each(|key| self.check_existing_key(key))?;
        self.blocking(move |shared| {
            keys.iter().map(|key| read_whole(shared, key, bytes_max)).collect()
        })
        .await
    }

    async fn head(&self, key: &str) -> Result<Meta> {
        self.check_existing_key(key)?;
        let key = key.to_owned();
        self.blocking(move |shared| shared.open_file(&key).map(|(_, meta)| meta)).await
    }

    async fn list(&self, prefix: &str, options: &ListOptions) -> Result<Page> {
        check_prefix(prefix).map_err(|error| error.in_store(self.url()))?;
        let (prefix, options) = (prefix.to_owned(), options.clone());
        self.blocking(move |shared| shared.list(&prefix, &options)).await
    }

    async fn copy(&self, from: &str, to: &str) -> Result<Meta> {
        self.check_existing_key(from)?;
        self.check_key(to)?;
        let (from, to) = (from.to_owned(), to.to_owned());
        self.blocking(move |shared| put::copy(shared, &from, &to)).await
    }

    async fn delete(&self, key: &str) -> Result<()> {
        self.check_existing_key(key)?;
        let key = key.to_owned();
        self.blocking(move |shared| remove::delete(shared, &key)).await
    }

    async fn delete_all(&self, prefix: &str) -> Result<u64> {
        check_prefix(prefix).map_err(|error| error.in_store(self.url()))?;
        let prefix = prefix.to_owned();
        self.blocking(move |shared| remove::delete_all(shared, &prefix)).await
    }

    async fn rename(&self, from: &str, to: &str) -> Result<()> {
        self.check_existing_key(from)?;
        self.check_key(to)?;
        let (from, to) = (from.to_owned(), to.to_owned());
        self.blocking(move |shared| put::rename(shared, &from, &to)).await
    }

    async fn link_all(&self, from: &str, to: &str) -> Result<u64> {
        self.check_existing_key(from)?;
        self.check_key(to)?;
        let (from, to) = (from.to_owned(), to.to_owned());
        self.blocking(move |shared| link::link_all(shared, &from, &to)).await
    }

    async fn exchange(&self, one: &str, other: &str) -> Result<()> {
        self.check_existing_key(one)?;
        self.check_existing_key(other)?;
        let (one, other) = (one.to_owned(), other.to_owned());
        self.blocking(move |shared| link::exchange(shared, &one, &other)).await
    }

    async fn forget(&self, prefix: &str) -> Result<()> {
        self.check_existing_key(prefix)?;
        let prefix = prefix.to_owned();
        self.blocking(move |shared| remove::forget(shared, &prefix)).await
    }

    async fn prune(&self, prefix: &str) -> Result<()> {
        self.check_existing_key(prefix)?;
        let prefix = prefix.to_owned();
        self.blocking(move |shared| remove::prune(shared, &prefix)).await
    }

    async fn thaw(&self, key: &str, _: &crate::Thaw) -> Result<Availability> {
        self.head(key).await.map(|meta| meta.availability)
    }

    async fn free_space(&self) -> Result<Option<Space>> {
        self.blocking(|shared| {
            let stat = rustix::fs::fstatvfs(shared.root.fd()).map_err(|e| os_error("", e))?;
            let bytes = |blocks: u64| blocks.saturating_mul(stat.f_frsize);
            Ok(Some(Space { total: bytes(stat.f_blocks), available: bytes(stat.f_bavail) }))
        })
        .await
    }

    /// All unfinished puts: a temporary file does not say which key it was for.
    async fn unfinished(&self, _: &str) -> Result<Vec<Unfinished>> {
        self.blocking(Shared::unfinished).await
    }

    async fn abort(&self, unfinished: &Unfinished) -> Result<()> {
        let id = unfinished.id.clone();
        self.blocking(move |shared| shared.abort(&id)).await
    }
}
