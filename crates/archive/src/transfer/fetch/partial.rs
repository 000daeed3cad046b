//! A file that is not whole yet, and beside it what has to be the same for the rest to fit.

use super::error::of_disk;
use super::{Expect, Progress, Sink};
use crate::ErrorCode;
use crate::{Error, Result};
use bagit::Algorithm;
use serde::{Deserialize, Serialize};
use std::io::SeekFrom;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::fs::File;
use tokio::io::{AsyncReadExt, AsyncSeekExt, AsyncWriteExt};

const READ_BYTES: usize = 256 * 1024;
/// How long a download that was just cancelled may still hold its file.
const BUSY_PATIENCE: Duration = Duration::from_secs(10);

/// What the bytes of a partial file are from, and what they are to become. Only bytes of the same
/// source for the same purpose are gone on with.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Source {
    /// The SHA-256 of the URL: it may carry a key, which is not written down once more.
    pub url_sha256: String,
    /// The size and the digest that the depositor says it has.
    pub size_expected: Option<u64>,
    pub digest_expected: Option<String>,
    pub etag: Option<String>,
    pub last_modified: Option<String>,
    /// The size that the source says it has.
    pub size: Option<u64>,
}

impl Source {
    /// What is asked for, before anything is known of it.
    pub(super) fn of(url: &str, expect: &Expect<'_>) -> Source {
        let mut hasher = bagit::Hasher::new([Algorithm::Sha256].into_iter().collect());
        hasher.update(url.as_bytes());
        let digest = hasher.finish().get(Algorithm::Sha256).map(|d| d.to_string());
        Source {
            url_sha256: digest.unwrap_or_default(),
            size_expected: expect.size,
            digest_expected: expect.digest.clone(),
            ..Source::default()
        }
    }

    /// What changes with the content: a strong ETag, else the time of the last change. A weak ETag
    /// is the same for contents that differ.
    pub(super) fn version(&self) -> Option<&str> {
        let strong = self.etag.as_deref().filter(|etag| etag.starts_with('"'));
        strong.or(self.last_modified.as_deref())
    }

    fn is_for(&self, wanted: &Source) -> bool {
        self.url_sha256 == wanted.url_sha256
            && self.size_expected == wanted.size_expected
            && self.digest_expected == wanted.digest_expected
    }
}

/// The description that lies beside a partial file.
#[derive(Debug, Serialize, Deserialize)]
struct Description {
    source: Source,
    /// Bytes that are on the disk, whatever happens to this machine.
    bytes_durable: u64,
    /// The start of the system that wrote the others: after another start they may be anything.
    boot: String,
}

/// Bytes that may be fetched again after the machine failed.
const DURABLE_EVERY: u64 = 256 << 20;

/// The partial file, locked against any other download into it.
#[derive(Debug)]
pub(super) struct Partial {
    /// Where the file goes when it is whole.
    into: PathBuf,
    path: PathBuf,
    meta_path: PathBuf,
    file: File,
    /// What is wanted.
    wanted: Source,
    /// What the bytes in the file are from.
    pub source: Option<Source>,
    /// Bytes in the file.
    pub length: u64,
    /// Bytes that were in the file and are not any more, since this was last asked.
    pub dropped: u64,
    /// Bytes of them that the sink has seen.
    fed: u64,
    durable: u64,
}

/// `NAME.meta`, where the source of a partial file is described, or `NAME.part`, which it is.
pub(super) fn beside(path: &Path, extension: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(extension);
    PathBuf::from(name)
}

impl Partial {
    /// Opens the partial file of what is wanted; what is there of anything else is given up.
    pub(super) async fn open(into: &Path, wanted: Source) -> Result<Partial> {
        let (path, meta_path) = (beside(into, ".part"), beside(into, ".meta"));
        let fail = |e: std::io::Error| of_disk(&path, &e);
        let mut options = std::fs::OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let file = lock(options.open(&path).map_err(fail)?, &path).await?;
        let there = file.metadata().map_err(fail)?.len();
        let known = std::fs::read(&meta_path).ok();
        let known = known.and_then(|text| serde_json::from_slice::<Description>(&text).ok());
        let known = known.filter(|k| k.source.is_for(&wanted) && k.source.version().is_some());
        let boot = boot();
        let good =
            |k: &Description| if k.boot == boot { there } else { there.min(k.bytes_durable) };
        let length = known.as_ref().map_or(0, good);
        let mut partial = Partial {
            into: into.to_path_buf(),
            path: path.clone(),
            meta_path,
            file: File::from_std(file),
            wanted,
            durable: known.as_ref().map_or(0, |k| k.bytes_durable),
            source: known.map(|k| k.source),
            length,
            dropped: 0,
            fed: 0,
        };
        // A run that ended between the last byte and its record fetches the file again.
        partial.dropped = remove_if_there(into)?;
        let larger = partial.source.as_ref().and_then(|s| s.size).is_some_and(|s| length > s);
        if partial.source.is_none() || larger {
            partial.length = there;
            partial.cut().await?;
        } else if length < there {
            partial.file.set_len(length).await.map_err(fail)?;
            partial.dropped += there - length;
        }
        Ok(partial)
    }

    /// Whether everything is there already.
    pub(super) fn is_whole(&self) -> bool {
        self.source.as_ref().is_some_and(|source| source.size == Some(self.length))
    }

    /// Begins at the first byte, with what is now known of the source.
    pub(super) async fn begin(
        &mut self,
        etag: Option<String>,
        last_modified: Option<String>,
        size: Option<u64>,
    ) -> Result<()> {
        self.cut().await?;
        self.source = Some(Source { etag, last_modified, size, ..self.wanted.clone() });
        self.describe().await
    }

    /// Writes down what the bytes are from, and how many of them are durable.
    async fn describe(&self) -> Result<()> {
        let Some(source) = self.source.clone() else { return Ok(()) };
        let text = Description { source, bytes_durable: self.durable, boot: boot() };
        let (text, to) = (serde_json::json!(text).to_string(), self.meta_path.clone());
        let written = tokio::task::spawn_blocking(move || {
            let new = beside(&to, ".new");
            let fail = |e: std::io::Error| of_disk(&new, &e);
            let mut file = std::fs::File::create(&new).map_err(fail)?;
            std::io::Write::write_all(&mut file, text.as_bytes()).map_err(fail)?;
            file.sync_all().map_err(fail)?;
            std::fs::rename(&new, &to).map_err(fail)?;
            sync_directory(&to)
        });
        written.await.map_err(|_| Error::Stopped)?
    }

    /// Goes on after what is there, which the sink is given if it has not seen it.
    pub(super) async fn go_on(
        &mut self,
        sink: &mut dyn Sink,
        progress: &Progress<'_>,
    ) -> Result<()> {
        let fail = |e: std::io::Error| of_disk(&self.path, &e);
        if self.fed == 0 {
            sink.begin();
        }
        self.file.seek(SeekFrom::Start(self.fed)).await.map_err(fail)?;
        let mut buffer = vec![0; READ_BYTES];
        while self.fed < self.length {
            let most =
                usize::try_from(self.length - self.fed).unwrap_or(READ_BYTES).min(READ_BYTES);
            let count = self.file.read(&mut buffer[..most]).await.map_err(fail)?;
            if count == 0 {
                return Err(Error::transient(
                    ErrorCode::WorkSpace,
                    format!("{} became shorter while it was read", self.path.display()),
                ));
            }
            sink.bytes(&buffer[..count]);
            self.fed += count as u64;
            progress(self.fed);
        }
        self.file.seek(SeekFrom::Start(self.length)).await.map_err(fail)?;
        Ok(())
    }

    pub(super) async fn append(&mut self, chunk: &[u8], sink: &mut dyn Sink) -> Result<()> {
        self.file.write_all(chunk).await.map_err(|e| of_disk(&self.path, &e))?;
        sink.bytes(chunk);
        self.length += chunk.len() as u64;
        self.fed = self.length;
        match self.length - self.durable >= DURABLE_EVERY {
            true => self.make_durable().await,
            false => Ok(()),
        }
    }

    /// Hands over what is still in memory, so that a later try finds what this one got.
    pub(super) async fn flush(&mut self) -> Result<()> {
        self.file.flush().await.map_err(|e| of_disk(&self.path, &e))?;
        // A write that failed half-way counts for what the file system has.
        let length = self.file.metadata().await.map_err(|e| of_disk(&self.path, &e))?.len();
        if length < self.length {
            return Err(Error::transient(
                ErrorCode::WorkSpace,
                format!("{} lost bytes that were written to it", self.path.display()),
            ));
        }
        Ok(())
    }

    /// Gives up bytes that no later try can go on with, because nothing says what they are from.
    pub(super) async fn keep_resumable(&mut self) -> Result<()> {
        match self.source.as_ref().is_some_and(|source| source.version().is_some()) {
            true => Ok(()),
            false => self.cut().await,
        }
    }

    /// Makes what is there durable, and notes how much that is.
    async fn make_durable(&mut self) -> Result<()> {
        self.flush().await?;
        self.file.sync_data().await.map_err(|e| of_disk(&self.path, &e))?;
        self.durable = self.length;
        self.describe().await
    }

    /// Makes the whole file durable under its name; afterwards nothing of it is partial.
    pub(super) async fn finish(mut self) -> Result<u64> {
        self.flush().await?;
        self.file.sync_all().await.map_err(|e| of_disk(&self.path, &e))?;
        std::fs::rename(&self.path, &self.into).map_err(|e| of_disk(&self.into, &e))?;
        remove_if_there(&self.meta_path)?;
        let into = self.into.clone();
        let synced = tokio::task::spawn_blocking(move || sync_directory(&into));
        synced.await.map_err(|_| Error::Stopped)??;
        Ok(self.length)
    }

    async fn cut(&mut self) -> Result<()> {
        let fail = |e: std::io::Error| of_disk(&self.path, &e);
        // The description goes first: a file without one is never gone on with.
        remove_if_there(&self.meta_path)?;
        self.file.set_len(0).await.map_err(fail)?;
        self.file.seek(SeekFrom::Start(0)).await.map_err(fail)?;
        self.dropped += self.length;
        (self.source, self.length, self.fed, self.durable) = (None, 0, 0, 0);
        Ok(())
    }
}

/// Removes a file; how many bytes it had.
fn remove_if_there(path: &Path) -> Result<u64> {
    let bytes = std::fs::symlink_metadata(path).map_or(0, |meta| meta.len());
    match std::fs::remove_file(path) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(of_disk(path, &e)),
        _ => Ok(bytes),
    }
}

fn sync_directory(of: &Path) -> Result<()> {
    let directory = of.parent().unwrap_or(of);
    std::fs::File::open(directory).and_then(|d| d.sync_all()).map_err(|e| of_disk(directory, &e))
}

/// Which start of which system this is. Another machine that sees the same work space has another.
fn boot() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .unwrap_or_default()
        .trim()
        .to_string()
}

/// Waits until no other download writes to the file: one that was cancelled may have a last write
/// under way.
async fn lock(file: std::fs::File, path: &Path) -> Result<std::fs::File> {
    let until = tokio::time::Instant::now() + BUSY_PATIENCE;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(std::fs::TryLockError::WouldBlock) if tokio::time::Instant::now() < until => {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            Err(std::fs::TryLockError::WouldBlock) => {
                return Err(Error::transient(
                    ErrorCode::DownloadBusy,
                    format!(
                        "another process is downloading into {}; wait for it or stop it",
                        path.display()
                    ),
                ));
            }
            Err(std::fs::TryLockError::Error(e)) => return Err(of_disk(path, &e)),
        }
    }
}
