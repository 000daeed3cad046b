//! K1: what was delivered is read again, and every member compared with the registry's digest.
//!
//! The same comparison tells how much of an unfinished archive an earlier run has written well.

use super::directory::place;
use super::{Member, tar};
use crate::model::error::{Error, Result};
use bagit::source::{Kind, Members};
use bagit::tar_blocks::{END, padding};
use digest::{Algorithm, Sha256, SingleHasher};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Mutex;

/// Members that are expected, in their order.
pub type Expected<'a> = &'a mut (dyn FnMut() -> Result<Option<Member>> + Send);

/// Hears how many bytes were read, and says whether to go on.
pub type Progress<'a> = &'a (dyn Fn(u64) -> bool + Sync);

/// Why a package is not as it should be.
#[derive(Debug)]
pub enum Fault {
    /// What is wrong with it, as the end of a sentence.
    Different(String),
    Failed(Error),
}

impl From<Error> for Fault {
    fn from(error: Error) -> Fault {
        Fault::Failed(error)
    }
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Fault {
        match error.kind() {
            io::ErrorKind::UnexpectedEof | io::ErrorKind::NotFound | io::ErrorKind::InvalidData => {
                Fault::Different(error.to_string())
            }
            _ => Fault::Failed(Error::Output(error)),
        }
    }
}

const CHUNK_BYTES: usize = 256 * 1024;

/// Reads a member's content, and compares it.
fn compare(
    member: &Member,
    content: &mut dyn Read,
    buffer: &mut [u8],
    progress: Progress<'_>,
) -> Result<(), Fault> {
    let mut hasher = SingleHasher::new(Algorithm::Sha512);
    let mut left = member.size();
    while left > 0 {
        let most = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
        let read = match content.read(&mut buffer[..most]) {
            Ok(0) => return Err(different(member, "ends too early")),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error.into()),
        };
        hasher.update(&buffer[..read]);
        left -= read as u64;
        if !progress(read as u64) {
            return Err(Error::Stopped.into());
        }
    }
    let found = hasher.finish().to_string();
    match member.sha512().is_none_or(|wanted| wanted.eq_ignore_ascii_case(&found)) {
        true => Ok(()),
        false => Err(different(member, "does not have its sha512")),
    }
}

fn different(member: &Member, what: &str) -> Fault {
    Fault::Different(format!("{} {what}", member.path))
}

/// Compares one file of a directory.
fn compare_file(
    root: &Path,
    member: &Member,
    buffer: &mut [u8],
    progress: Progress<'_>,
) -> Result<(), Fault> {
    let path = place(root, &member.path)?;
    let meta = path.symlink_metadata()?;
    if member.is_directory() {
        return match meta.is_dir() {
            true => Ok(()),
            false => Err(different(member, "is not a directory")),
        };
    }
    if !meta.is_file() || meta.len() != member.size() {
        return Err(different(member, &format!("has {} bytes", meta.len())));
    }
    compare(member, &mut File::open(path)?, buffer, progress)
}

/// Whether a directory has a member as it should be.
pub fn has_file(root: &Path, member: &Member) -> bool {
    let mut buffer = vec![0; CHUNK_BYTES];
    compare_file(root, member, &mut buffer, &|_| true).is_ok()
}

/// Compares a directory with its plan, on several threads; nothing else may lie in it.
pub fn directory(
    root: &Path,
    expected: Expected<'_>,
    threads: usize,
    progress: Progress<'_>,
) -> Result<(), Fault> {
    let expected = Mutex::new((expected, 0_u64));
    let next = || {
        let mut source = expected.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let member = (source.0)()?;
        source.1 += u64::from(member.as_ref().is_some_and(|member| !member.is_directory()));
        Ok::<_, Fault>(member)
    };
    let work = || {
        let mut buffer = vec![0; CHUNK_BYTES];
        while let Some(member) = next()? {
            compare_file(root, &member, &mut buffer, progress)?;
        }
        Ok::<_, Fault>(())
    };
    std::thread::scope(|scope| {
        let running: Vec<_> = (0..threads.max(1)).map(|_| scope.spawn(work)).collect();
        let mut result = Ok(());
        for thread in running {
            let done = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            result = result.and(done);
        }
        result
    })?;
    let files = expected.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner).1;
    let found = count_files(root)?;
    match found == files {
        true => Ok(()),
        false => Err(Fault::Different(format!("it has {found} files instead of {files}"))),
    }
}

fn count_files(root: &Path) -> io::Result<u64> {
    let mut waiting = vec![root.to_owned()];
    let mut count = 0;
    while let Some(directory) = waiting.pop() {
        for entry in std::fs::read_dir(directory)? {
            let entry = entry?;
            match entry.file_type()?.is_dir() {
                true => waiting.push(entry.path()),
                false => count += 1,
            }
        }
    }
    Ok(count)
}

/// Compares an archive or a file with what was written to it, all of it in one go: every byte of that was
/// compared with the registry before.
pub fn whole(
    path: &Path,
    (bytes, sha256): (u64, String),
    progress: Progress<'_>,
) -> Result<(u64, String), Fault> {
    let mut reader = Hashing::new(File::open(path)?);
    let mut buffer = vec![0; CHUNK_BYTES];
    loop {
        match reader.read(&mut buffer)? as u64 {
            0 => break,
            read if progress(read) => {}
            _ => return Err(Error::Stopped.into()),
        }
    }
    let found = reader.finish();
    match found == (bytes, sha256) {
        true => Ok(found),
        false => Err(Fault::Different(format!("it has {} bytes and another sha256", found.0))),
    }
}

/// Compares one file that is delivered by itself; its SHA-256.
pub fn file(
    path: &Path,
    expected: Expected<'_>,
    progress: Progress<'_>,
) -> Result<(u64, String), Fault> {
    let mut reader = Hashing::new(File::open(path)?);
    let mut buffer = vec![0; CHUNK_BYTES];
    let member = expected()?.ok_or_else(|| Fault::Different("it has no file".to_string()))?;
    compare(&member, &mut reader, &mut buffer, progress)?;
    match reader.read(&mut buffer)? {
        0 => Ok(reader.finish()),
        _ => Err(different(&member, "has more bytes than it should")),
    }
}

/// Takes the digest of everything that is read.
struct Hashing<R> {
    inner: R,
    hasher: Sha256,
    bytes: u64,
}

impl<R: Read> Hashing<R> {
    fn new(inner: R) -> Hashing<R> {
        Hashing { inner, hasher: Sha256::new(), bytes: 0 }
    }

    fn finish(self) -> (u64, String) {
        (self.bytes, digest::to_hex(&self.hasher.finish()))
    }
}

impl<R: Read> Read for Hashing<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.hasher.update(&buffer[..read]);
        self.bytes += read as u64;
        Ok(read)
    }
}

/// Reads as many bytes as are expected, and compares them.
fn same(reader: &mut dyn Read, expected: &[u8], what: &str) -> Result<(), Fault> {
    let mut found = vec![0; expected.len()];
    reader.read_exact(&mut found)?;
    match found == expected {
        true => Ok(()),
        false => Err(Fault::Different(what.to_string())),
    }
}

/// Compares a plain tar stream with its plan, block by block.
fn tar_stream(
    reader: &mut dyn Read,
    expected: Expected<'_>,
    progress: Progress<'_>,
) -> Result<(), Fault> {
    let mut buffer = vec![0; CHUNK_BYTES];
    while let Some(member) = expected()? {
        tar_member(reader, &member, &mut buffer, progress)?;
    }
    same(reader, &END, "the archive does not end where it should")?;
    match reader.read(&mut buffer)? {
        0 => Ok(()),
        _ => Err(Fault::Different("the archive goes on after its end".to_string())),
    }
}

fn tar_member(
    reader: &mut dyn Read,
    member: &Member,
    buffer: &mut [u8],
    progress: Progress<'_>,
) -> Result<(), Fault> {
    same(reader, &tar::header(member), &format!("{}: its header differs", member.path))?;
    compare(member, reader, buffer, progress)?;
    let zeros = vec![0; padding(member.size())];
    same(reader, &zeros, &format!("{}: its padding differs", member.path))
}

/// Compares a tar archive with its plan; its length and SHA-256.
pub fn tar(
    path: &Path,
    expected: Expected<'_>,
    progress: Progress<'_>,
) -> Result<(u64, String), Fault> {
    let mut reader = io::BufReader::with_capacity(CHUNK_BYTES, Hashing::new(File::open(path)?));
    tar_stream(&mut reader, expected, progress)?;
    Ok(reader.into_inner().finish())
}

/// The same for a compressed one.
pub fn tar_gz(
    path: &Path,
    expected: Expected<'_>,
    progress: Progress<'_>,
) -> Result<(u64, String), Fault> {
    let raw = io::BufReader::with_capacity(CHUNK_BYTES, Hashing::new(File::open(path)?));
    let plain = flate2::bufread::MultiGzDecoder::new(raw);
    let mut plain = io::BufReader::with_capacity(CHUNK_BYTES, plain);
    tar_stream(&mut plain, expected, progress)?;
    Ok(plain.into_inner().into_inner().into_inner().finish())
}

/// Compares a zip archive with its plan, read by its directory as other programs read it; its length
/// and SHA-256.
pub fn zip(
    path: &Path,
    expected: Expected<'_>,
    progress: Progress<'_>,
) -> Result<(u64, String), Fault> {
    let unreadable = |error: bagit::Error| Fault::Different(error.to_string());
    let archive = bagit::source::zip::ZipFile::new(File::open(path)?, "the archive");
    let mut buffer = vec![0; CHUNK_BYTES];
    let mut fault = None;
    let listed = archive.list(true, &mut |found| {
        let compared = (|| {
            let Some(member) = expected()? else {
                return Err(Fault::Different(format!("{} should not be there", found.path)));
            };
            let kind = if member.is_directory() { Kind::Directory } else { Kind::File };
            if found.path.trim_end_matches('/') != member.path || found.kind != kind {
                return Err(different(&member, &format!("is not where {} is", found.path)));
            }
            if member.is_directory() {
                return Ok(());
            }
            let mut content = archive.open(&found.locator)?;
            compare(&member, &mut content, &mut buffer, progress)?;
            match content.read(&mut [0])? {
                0 => Ok(()),
                _ => Err(different(&member, "has more bytes than it should")),
            }
        })();
        compared.map_err(|why| {
            fault = Some(why);
            bagit::Error::Stopped
        })
    });
    if let Some(fault) = fault {
        return Err(fault);
    }
    listed.map_err(unreadable)?;
    if let Some(member) = expected()? {
        return Err(different(&member, "is not there"));
    }
    let mut whole = Hashing::new(File::open(path)?);
    io::copy(&mut whole, &mut io::sink())?;
    Ok(whole.finish())
}

/// How much of an unfinished tar archive is as it should be: its first bytes, and the members in them.
pub fn tar_prefix(
    file: &File,
    expected: Expected<'_>,
    progress: Progress<'_>,
) -> Result<(u64, u64)> {
    let start = super::from_start(file).map_err(Error::Output)?;
    let mut reader = io::BufReader::with_capacity(CHUNK_BYTES, start);
    let mut buffer = vec![0; CHUNK_BYTES];
    let (mut bytes, mut members) = (0, 0);
    while let Some(member) = expected()? {
        match tar_member(&mut reader, &member, &mut buffer, progress) {
            Ok(()) => {}
            Err(Fault::Different(_)) => break,
            Err(Fault::Failed(error)) => return Err(error),
        }
        bytes += tar::header(&member).len() as u64;
        bytes += member.size() + padding(member.size()) as u64;
        members += 1;
    }
    Ok((bytes, members))
}
