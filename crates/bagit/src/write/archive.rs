//! Making a bag of a directory as a tar archive, without a copy of its files.

use super::tag_files::refuse_unfit;
use super::{TarBag, WriteOptions, Written};
use crate::Observer;
use crate::error::Error;
use crate::source::directory::Directory;
use crate::source::{Kind, Members};
use crate::spill::{MEMORY_BYTES, Record, Sorter};
use std::io::Write;
use std::path::Path;

/// Writes a directory as a bag in the form of a tar archive. Files go in the order of their
/// paths, whatever the order in which the file system lists them; the writer is given back.
pub fn create_tar<W: Write>(
    source: &Path,
    writer: W,
    base: &str,
    options: WriteOptions,
    observer: &dyn Observer,
) -> Result<(W, Written), Error> {
    let members = Directory::new(source);
    let spilled = |e| Error::io("temporary file", e);
    let mut sorter = Sorter::new(MEMORY_BYTES);
    members.list(true, &mut |member| {
        refuse_unfit(&member)?;
        if member.kind == Kind::Directory {
            return Ok(());
        }
        let size = member.size.unwrap_or_default();
        sorter.push(member.path.as_bytes(), &size.to_le_bytes()).map_err(spilled)
    })?;
    let mut sorted = sorter.sorted().map_err(spilled)?;
    let mut bag = TarBag::new(writer, base, options)?;
    let mut record = Record::default();
    while sorted.next(&mut record).map_err(spilled)? {
        if observer.stopped() {
            return Err(Error::Stopped);
        }
        // A path that is UTF-8 is also how a directory finds the file again.
        let path = String::from_utf8_lossy(&record.key);
        let size = record.body.as_slice().try_into().map_or(0, u64::from_le_bytes);
        let about = |e| Error::io(format!("{}/{path}", source.display()), e);
        let mut reader = members.open(&record.key).map_err(about)?;
        bag.add_payload(&path, size, &mut reader)?;
        observer.bytes(size);
        observer.files(1);
    }
    bag.finish()
}
