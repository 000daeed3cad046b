//! Writing a bag as a tar stream, straight from its sources.

use super::ledger::Ledger;
use super::tar_blocks::{directory_header, file_header, padding};
use super::{WriteOptions, Written};
use crate::declaration::{Declaration, Version};
use crate::error::Error;
use crate::hashing::{CHUNK_BYTES, hash_reader};
use crate::path;
use crate::source::tar_header::BLOCK_BYTES;
use std::io::{self, BufWriter, Read, Seek, Write};

/// A bag that is written as a tar stream: files first, manifests when all are known. Nothing is
/// kept but digests, so its size does not matter.
///
/// ```
/// # fn main() -> Result<(), bagit::Error> {
/// let mut bag = bagit::TarBag::new(Vec::new(), "example", Default::default())?;
/// bag.add_payload("hello.txt", 6, &mut &b"hello\n"[..])?;
/// let (tar, written) = bag.finish()?;
/// assert_eq!(written.payload.octets, 6);
/// let report = bagit::Bag::from_read_at(tar, "example.tar")?.validate(&Default::default())?;
/// assert!(report.valid, "{:?}", report.problems);
/// # Ok(())
/// # }
/// ```
pub struct TarBag<W: Write> {
    writer: W,
    base: String,
    options: WriteOptions,
    payload: Ledger,
    tag_files: Ledger,
    buffer: Vec<u8>,
    /// Microseconds since 1970.
    modified: i64,
}

impl<W: Write> TarBag<W> {
    /// Starts a bag in the directory `base` of the archive, which should be named alike.
    pub fn new(writer: W, base: &str, options: WriteOptions) -> Result<TarBag<W>, Error> {
        options.check()?;
        if base.contains('/') || path::check(base).is_err() {
            return Err(Error::Refused(format!("{base:?} cannot be the directory of a bag")));
        }
        let mut bag = TarBag {
            writer,
            base: base.to_owned(),
            payload: Ledger::new(options.algorithms, Version::V1_0),
            tag_files: Ledger::new(options.algorithms, Version::V1_0),
            options,
            buffer: vec![0; CHUNK_BYTES],
            modified: 0,
        };
        let declaration = Declaration::render(Version::V1_0);
        bag.tag_member("bagit.txt", declaration.len() as u64, &mut declaration.as_bytes())?;
        // A bag without files still has a payload directory.
        let data = directory_header(&format!("{base}/data/"), 0);
        bag.writer.write_all(&data).map_err(|e| Error::io(base, e))?;
        Ok(bag)
    }

    /// The time of modification of the members that follow, in seconds since 1970; 0 at first, so
    /// that the same input gives the same archive.
    pub fn set_mtime(&mut self, seconds: u64) {
        self.modified = i64::try_from(seconds).unwrap_or(0).saturating_mul(1_000_000);
    }

    /// Adds a payload file under its path in `data/`. The reader must give exactly `size` bytes;
    /// the digests are returned, for the caller to compare with what it knows.
    pub fn add_payload(
        &mut self,
        path: &str,
        size: u64,
        reader: &mut dyn Read,
    ) -> Result<crate::Digests, Error> {
        let path = format!("data/{path}");
        let digests = self.member(&path, size, reader)?;
        self.payload.add(&path, size, &digests).map_err(|e| Error::io("temporary file", e))?;
        Ok(digests)
    }

    /// Adds a tag file of the caller's, such as `aptrust-info.txt`.
    pub fn add_tag_file(&mut self, path: &str, bytes: &[u8]) -> Result<(), Error> {
        let is_own = matches!(path, "bagit.txt" | "bag-info.txt")
            || path.starts_with("manifest-")
            || path.starts_with("tagmanifest-");
        if path.starts_with("data/") || is_own {
            return Err(Error::Refused(format!("{path}: is not a tag file that can be added")));
        }
        self.tag_member(path, bytes.len() as u64, &mut &*bytes)
    }

    fn tag_member(&mut self, path: &str, size: u64, reader: &mut dyn Read) -> Result<(), Error> {
        let digests = self.member(path, size, reader)?;
        self.tag_files.add(path, size, &digests).map_err(|e| Error::io("temporary file", e))
    }

    fn member(
        &mut self,
        path: &str,
        size: u64,
        reader: &mut dyn Read,
    ) -> Result<crate::Digests, Error> {
        if let Err(why) = path::check(path) {
            return Err(Error::Refused(format!("{path}: the path is unsafe: {why}")));
        }
        if path::tidy(path) != path || path.ends_with('/') {
            return Err(Error::Refused(format!("{path}: the path is not in its plain form")));
        }
        let failed = |e| Error::io(path, e);
        let full = format!("{}/{path}", self.base);
        self.writer.write_all(&file_header(&full, size, self.modified)).map_err(failed)?;
        let writer = &mut self.writer;
        let mut exact = reader.take(size);
        let (copied, digests) =
            hash_reader(&mut exact, self.options.algorithms, &mut self.buffer, &mut |bytes| {
                writer.write_all(bytes)
            })
            .map_err(failed)?;
        let more = exact.into_inner().read(&mut [0]).map_err(failed)?;
        if copied != size || more != 0 {
            let message = format!("{path}: the source does not have the {size} bytes it should");
            return Err(Error::Refused(message));
        }
        self.writer.write_all(&[0; BLOCK_BYTES][..padding(size)]).map_err(failed)?;
        Ok(digests)
    }

    /// Writes the manifests and the end of the archive, and gives the writer back.
    pub fn finish(mut self) -> Result<(W, Written), Error> {
        let algorithms = self.options.algorithms;
        let oxum = self.payload.oxum;
        let empty = || Ledger::new(algorithms, Version::V1_0);
        let payload = std::mem::replace(&mut self.payload, empty());
        self.add_manifests("manifest", payload)?;
        let info = self.options.info(oxum).render();
        self.tag_member("bag-info.txt", info.len() as u64, &mut info.as_bytes())?;
        let tag_files = std::mem::replace(&mut self.tag_files, empty());
        self.add_manifests("tagmanifest", tag_files)?;
        let failed = |e| Error::io(self.base.clone(), e);
        self.writer.write_all(&[0; 2 * BLOCK_BYTES]).map_err(failed)?;
        self.writer.flush().map_err(failed)?;
        Ok((self.writer, Written { payload: oxum, algorithms: algorithms.iter().collect() }))
    }

    fn add_manifests(&mut self, prefix: &str, ledger: Ledger) -> Result<(), Error> {
        let failed = |e| Error::io("temporary file", e);
        let algorithms: Vec<_> = self.options.algorithms.iter().collect();
        let mut files = Vec::new();
        for _ in &algorithms {
            files.push(tempfile::tempfile().map_err(failed)?);
        }
        let mut outputs: Vec<Box<dyn Write + '_>> = Vec::new();
        for file in &files {
            outputs.push(Box::new(BufWriter::new(file)));
        }
        ledger.write(&mut outputs).map_err(failed)??;
        drop(outputs);
        for (algorithm, mut file) in algorithms.into_iter().zip(files) {
            let size = file.seek(io::SeekFrom::End(0)).map_err(failed)?;
            file.rewind().map_err(failed)?;
            self.tag_member(&format!("{prefix}-{algorithm}.txt"), size, &mut file)?;
        }
        Ok(())
    }
}
