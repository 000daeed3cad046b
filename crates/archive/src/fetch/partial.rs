//! A file that is not whole yet, and beside it what has to be the same for the rest to fit.

use super::error::of_disk;
use super::{Progress, Sink};
use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::io::SeekFrom;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::fs::File;
use tokio::io::{AsyncReadExt, AsyncSeekExt, AsyncWriteExt};

const READ_BYTES: usize = 256 * 1024;
/// How long a download that was just cancelled may still hold its file.
const BUSY_PATIENCE: Duration = Duration::from_secs(10);

/// What is known of the source. Kept beside the partial file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Source {
    pub url: String,
    /// Changes with the content: a strong ETag, else the time of the last change.
    pub version: Option<String>,
    pub size: Option<u64>,
}

/// The partial file, locked against any other download into it.
#[derive(Debug)]
pub(super) struct Partial {
    path: PathBuf,
    meta_path: PathBuf,
    file: File,
    /// What the bytes in the file are from.
    pub source: Option<Source>,
    /// Bytes in the file.
    pub length: u64,
    /// Bytes of them that the sink has seen.
    fed: u64,
}

/// `NAME.meta`, where the source of a partial file is described.
pub(super) fn meta_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".meta");
    PathBuf::from(name)
}

impl Partial {
    /// Opens the partial file of a URL; what is there from another URL is given up.
    pub(super) async fn open(path: &Path, url: &str) -> Result<Partial> {
        let fail = |e: std::io::Error| of_disk(path, &e);
        let mut options = std::fs::OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let file = lock(options.open(path).map_err(fail)?, path).await?;
        let length = file.metadata().map_err(fail)?.len();
        let meta_path = meta_path(path);
        let source = std::fs::read(&meta_path).ok();
        let source = source.and_then(|text| serde_json::from_slice::<Source>(&text).ok());
        let source = source.filter(|s| s.url == url && s.version.is_some());
        let file = File::from_std(file);
        let mut partial =
            Partial { path: path.to_path_buf(), meta_path, file, source, length, fed: 0 };
        let larger = partial.source.as_ref().and_then(|s| s.size).is_some_and(|s| length > s);
        if partial.source.is_none() || larger {
            partial.cut().await?;
        }
        Ok(partial)
    }

    /// Whether everything is there already.
    pub(super) fn is_whole(&self) -> bool {
        self.source.as_ref().is_some_and(|source| source.size == Some(self.length))
    }

    /// Begins at the first byte, with what is now known of the source.
    pub(super) async fn begin(&mut self, source: Source) -> Result<()> {
        self.cut().await?;
        let text = serde_json::json!(source).to_string();
        tokio::fs::write(&self.meta_path, text).await.map_err(|e| of_disk(&self.meta_path, &e))?;
        self.source = Some(source);
        Ok(())
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
                    "work_space",
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
        Ok(())
    }

    /// Hands over what is still in memory, so that a later try finds what this one got.
    pub(super) async fn flush(&mut self) -> Result<()> {
        self.file.flush().await.map_err(|e| of_disk(&self.path, &e))?;
        // A write that failed half-way counts for what the file system has.
        let length = self.file.metadata().await.map_err(|e| of_disk(&self.path, &e))?.len();
        if length < self.length {
            return Err(Error::transient(
                "work_space",
                format!("{} lost bytes that were written to it", self.path.display()),
            ));
        }
        Ok(())
    }

    /// Makes the whole file durable; afterwards nothing of it is partial.
    pub(super) async fn finish(mut self) -> Result<u64> {
        self.flush().await?;
        self.file.sync_all().await.map_err(|e| of_disk(&self.path, &e))?;
        match std::fs::remove_file(&self.meta_path) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(of_disk(&self.meta_path, &e)),
            _ => Ok(self.length),
        }
    }

    async fn cut(&mut self) -> Result<()> {
        let fail = |e: std::io::Error| of_disk(&self.path, &e);
        // The description goes first: a file without one is never gone on with.
        match std::fs::remove_file(&self.meta_path) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(fail(e)),
            _ => {}
        }
        self.file.set_len(0).await.map_err(fail)?;
        self.file.seek(SeekFrom::Start(0)).await.map_err(fail)?;
        (self.source, self.length, self.fed) = (None, 0, 0);
        Ok(())
    }
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
                    "download_busy",
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
