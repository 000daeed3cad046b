//! Opening a bag, whatever it is kept in.

use super::directory::Directory;
use super::read_at::ReadAt;
use super::tar::{StreamTape, TarFile, TarReader};
use super::zip::ZipFile;
use super::{Members, Serialization};
use crate::beneath::{self, Opened};
use crate::error::Error;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Windows of zstd beyond 2^27 bytes are refused: they are memory that the archive demands.
const ZSTD_WINDOW_LOG_MAX: u32 = 27;

/// A bag in its container. Opening looks at the container only; the bag may still be anything.
pub struct Bag {
    name: String,
    stem: Option<String>,
    pub(crate) container: Container,
}

pub(crate) enum Container {
    Random(Box<dyn Members>),
    Stream { serialization: Serialization, opener: Opener },
}

pub(crate) enum Opener {
    File(Arc<File>),
    Once(Mutex<Option<Box<dyn Read + Send>>>),
}

pub(crate) type TarStream = TarReader<StreamTape<Box<dyn Read + Send>>>;

impl Bag {
    /// Opens a directory or an archive; the first bytes tell which.
    pub fn open(path: impl AsRef<Path>) -> Result<Bag, Error> {
        let path = path.as_ref();
        let name = path.display().to_string();
        let failed = |e| Error::io(&name, e);
        // The path is the caller's own, so a link in its place is meant.
        let meant = path.canonicalize().map_err(failed)?;
        let file = match beneath::open_in_place(&meant).map_err(failed)? {
            Opened::File(file) => file,
            Opened::Folder(folder) => {
                let container = Container::Random(Box::new(Directory::opened(folder, path)));
                return Ok(Bag { name, stem: None, container });
            }
        };
        let mut start = Vec::new();
        (&file).take(512).read_to_end(&mut start).map_err(failed)?;
        let stem = path.file_name().and_then(|f| stem(&f.to_string_lossy()));
        let container = match Serialization::sniff(&start) {
            Some(Serialization::Tar) => Container::Random(Box::new(TarFile::new(file, &name))),
            Some(Serialization::Zip) => Container::Random(Box::new(ZipFile::new(file, &name))),
            Some(serialization) => {
                Container::Stream { serialization, opener: Opener::File(Arc::new(file)) }
            }
            None => return Err(Error::UnknownContainer(name)),
        };
        Ok(Bag { name, stem, container })
    }

    /// Opens a directory.
    pub fn directory(path: impl Into<PathBuf>) -> Bag {
        let path = path.into();
        let name = path.display().to_string();
        Bag { name, stem: None, container: Container::Random(Box::new(Directory::new(path))) }
    }

    /// Opens an archive that can be read anywhere: a file, memory, a range of an object in a
    /// store. Compressed tar files are read from start to end.
    pub fn from_read_at<R: ReadAt + 'static>(
        inner: R,
        name: impl Into<String>,
    ) -> Result<Bag, Error> {
        let name = name.into();
        let mut start = vec![0; 512.min(inner.size().map_err(|e| Error::io(&name, e))? as usize)];
        inner.read_exact_at(&mut start, 0).map_err(|e| Error::io(&name, e))?;
        let container = match Serialization::sniff(&start) {
            Some(Serialization::Tar) => Container::Random(Box::new(TarFile::new(inner, &name))),
            Some(Serialization::Zip) => Container::Random(Box::new(ZipFile::new(inner, &name))),
            Some(_) => return Bag::from_reader(Forward { inner, at: 0 }, name),
            None => return Err(Error::UnknownContainer(name)),
        };
        Ok(Bag { stem: stem(&name), name, container })
    }

    /// Opens an archive that arrives as a stream: tar in any compression is read as it comes; zip
    /// has its directory at the end, so it is first copied to a temporary file.
    pub fn from_reader(
        reader: impl Read + Send + 'static,
        name: impl Into<String>,
    ) -> Result<Bag, Error> {
        let name = name.into();
        let mut reader = reader;
        let mut start = Vec::new();
        (&mut reader).take(512).read_to_end(&mut start).map_err(|e| Error::io(&name, e))?;
        let serialization =
            Serialization::sniff(&start).ok_or_else(|| Error::UnknownContainer(name.clone()))?;
        let mut whole = io::Cursor::new(start).chain(reader);
        let container = if serialization == Serialization::Zip {
            let mut file = tempfile::tempfile().map_err(|e| Error::io("temporary file", e))?;
            io::copy(&mut whole, &mut file).map_err(|e| Error::io(&name, e))?;
            Container::Random(Box::new(ZipFile::new(file, &name)))
        } else {
            Container::Stream {
                serialization,
                opener: Opener::Once(Mutex::new(Some(Box::new(whole)))),
            }
        };
        Ok(Bag { stem: stem(&name), name, container })
    }

    /// Opens a bag whose members a caller provides.
    pub fn from_members(members: impl Members + 'static, name: impl Into<String>) -> Bag {
        Bag { name: name.into(), stem: None, container: Container::Random(Box::new(members)) }
    }

    /// What the bag is called in messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The archive's name without extensions, which the bag's directory should have.
    pub(crate) fn stem(&self) -> Option<&str> {
        self.stem.as_deref()
    }

    pub fn serialization(&self) -> Serialization {
        match &self.container {
            Container::Random(members) => members.serialization(),
            Container::Stream { serialization, .. } => *serialization,
        }
    }

    /// Whether the bytes can be read more than once.
    pub fn can_reread(&self) -> bool {
        !matches!(&self.container, Container::Stream { opener: Opener::Once(_), .. })
    }
}

/// A name without the extension of an archive; none if it has no such extension.
fn stem(name: &str) -> Option<String> {
    let name = name.rsplit(['/', '\\']).next().unwrap_or(name);
    let known =
        [".tar.gz", ".tar.bz2", ".tar.zst", ".tgz", ".tbz2", ".tbz", ".tzst", ".tar", ".zip"];
    let lower = name.to_ascii_lowercase();
    let extension = known.iter().find(|extension| lower.ends_with(*extension))?;
    Some(name[..name.len() - extension.len()].to_owned())
}

/// Reads forward through what can be read anywhere.
struct Forward<R> {
    inner: R,
    at: u64,
}

impl<R: ReadAt> Read for Forward<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read_at(buffer, self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}

/// Counts the bytes that were taken from an archive, to see how much it expands.
pub(crate) struct Counted<R> {
    inner: R,
    count: Arc<std::sync::atomic::AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.count.fetch_add(read as u64, std::sync::atomic::Ordering::Relaxed);
        Ok(read)
    }
}

/// Starts reading a stream, and gives the counter of its stored bytes.
pub(crate) fn start_stream(
    name: &str,
    serialization: Serialization,
    opener: &Opener,
) -> Result<(TarStream, Arc<std::sync::atomic::AtomicU64>), Error> {
    let failed = |e| Error::io(name, e);
    let raw: Box<dyn Read + Send> = match opener {
        Opener::File(file) => Box::new(Forward { inner: Arc::clone(file), at: 0 }),
        Opener::Once(reader) => reader
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
            .ok_or_else(|| Error::StreamSpent(name.to_owned()))?,
    };
    let count = Arc::default();
    let raw = Counted { inner: raw, count: Arc::clone(&count) };
    let plain = decompress(raw, serialization).map_err(failed)?;
    let plain: Box<dyn Read + Send> = Box::new(BufReader::with_capacity(64 * 1024, plain));
    Ok((TarReader::new(StreamTape(plain), name), count))
}

/// The plain tar in a compressed one; anything else is passed on as it is. How far it may expand
/// is for the caller to watch.
pub fn decompress(
    raw: impl Read + Send + 'static,
    serialization: Serialization,
) -> io::Result<Box<dyn Read + Send>> {
    let raw = BufReader::with_capacity(256 * 1024, raw);
    Ok(match serialization {
        Serialization::TarGz => Box::new(flate2::bufread::MultiGzDecoder::new(raw)),
        Serialization::TarBz2 => Box::new(bzip2::bufread::MultiBzDecoder::new(raw)),
        Serialization::TarZst => {
            let mut decoder = zstd::stream::read::Decoder::with_buffer(raw)?;
            decoder.window_log_max(ZSTD_WINDOW_LOG_MAX)?;
            Box::new(decoder)
        }
        Serialization::Directory | Serialization::Tar | Serialization::Zip => Box::new(raw),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extensions_of_archives_go() {
        assert_eq!(stem("/a/b/bag.v1.tar.gz").as_deref(), Some("bag.v1"));
        assert_eq!(stem("BAG.ZIP").as_deref(), Some("BAG"));
        assert_eq!(stem("standard input"), None);
    }
}
