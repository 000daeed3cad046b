//! Where a bag's members come from: a directory, an archive that can be read anywhere, or a
//! stream that can be read once.

pub mod directory;
pub mod open;
pub mod read_at;
pub mod tar;
pub(crate) mod tar_header;
pub(crate) mod tar_sparse;
pub mod zip;
pub(crate) mod zip_format;
pub(crate) mod zip_time;

use crate::error::Error;
use serde::Serialize;
use std::fmt;
use std::io::{self, Read};

/// What a member is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    File,
    Directory,
    Symlink,
    HardLink,
    /// A device, a pipe, a socket.
    Special,
    /// A file in a form that is not read here: encrypted, or compressed by a rare method.
    Unsupported(&'static str),
}

/// One member of a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// The path from the top of the container, with `/` between parts.
    pub path: String,
    pub kind: Kind,
    /// Not known for files of directories unless asked for, because asking costs.
    pub size: Option<u64>,
    /// Whether the name is UTF-8; if not, `path` shows bytes as `%XX`.
    pub utf8: bool,
    /// How the container finds the member again; only it knows the meaning.
    pub locator: Vec<u8>,
    /// When it was last written to, as the container says: microseconds since 1970. Members of
    /// directories have it where sizes were asked for; see also [`Members::open_dated`].
    pub modified: Option<i64>,
}

/// A member that is open, and when it was last written to.
pub type Dated<'a> = (Box<dyn Read + 'a>, Option<i64>);

/// A container whose members can be read in any order, by several threads at once.
pub trait Members: Send + Sync {
    fn serialization(&self) -> Serialization;

    /// Visits every member once.
    fn list(
        &self,
        sizes: bool,
        visit: &mut dyn FnMut(Member) -> Result<(), Error>,
    ) -> Result<(), Error>;

    /// Opens a member of kind [`Kind::File`].
    fn open<'a>(&'a self, locator: &[u8]) -> io::Result<Box<dyn Read + 'a>>;

    /// The same, with the date of the very file that is read, where it costs nothing: `None` for
    /// archives, whose lists have it.
    fn open_dated<'a>(&'a self, locator: &[u8]) -> io::Result<Dated<'a>> {
        Ok((self.open(locator)?, None))
    }

    /// The size of a member that was listed without one.
    fn size(&self, locator: &[u8]) -> io::Result<u64>;

    /// How many bytes the container has on disk, when it is an archive.
    fn stored_bytes(&self) -> Option<u64>;

    /// How the archive ends, once it was listed to its end; `None` for a container whose end is
    /// checked when it is listed.
    fn ending(&self) -> Option<Ending> {
        None
    }
}

/// How an archive ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// With its end marker, and nothing after it but the zeros that fill the last record of a tar.
    Marked,
    /// Without the whole marker, as if it was cut off between two members.
    Unmarked,
    /// With data after the marker, from this byte on; of a compressed tar, from this byte of the tar.
    /// It is not read.
    DataAfter { at: u64 },
    /// With its end marker, but with so many bytes before its first member, as in joined archives.
    /// They are not read.
    DataBefore { bytes: u64 },
}

impl Ending {
    /// Whether the file has data that belong to no member.
    pub fn leaves_data_out(self) -> bool {
        matches!(self, Ending::DataAfter { .. } | Ending::DataBefore { .. })
    }

    /// What is wrong with the end, and what to do; `None` if nothing is.
    pub fn fault(self) -> Option<String> {
        match self {
            Ending::Marked => None,
            Ending::Unmarked => Some(
                "the tar archive has no end marker, so members may be missing at its end; compare it with its source, and pack it again if it was cut off"
                    .to_owned(),
            ),
            Ending::DataAfter { at } => Some(format!(
                "the archive has data after its end marker, from byte {at} on, which is not read; if archives were joined, pack their members in one"
            )),
            Ending::DataBefore { bytes } => Some(format!(
                "the archive has {bytes} bytes before its first member, which are not read; if archives were joined, pack their members in one"
            )),
        }
    }
}

/// How a bag is serialized (RFC 8493 §4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Serialization {
    #[serde(rename = "directory")]
    Directory,
    #[serde(rename = "tar")]
    Tar,
    #[serde(rename = "tar.gz")]
    TarGz,
    #[serde(rename = "tar.bz2")]
    TarBz2,
    #[serde(rename = "tar.zst")]
    TarZst,
    #[serde(rename = "zip")]
    Zip,
}

impl Serialization {
    pub fn is_archive(self) -> bool {
        self != Serialization::Directory
    }

    /// The media types by which profiles name it.
    pub fn media_types(self) -> &'static [&'static str] {
        match self {
            Serialization::Directory => &[],
            Serialization::Tar => &["application/tar", "application/x-tar"],
            Serialization::TarGz => &[
                "application/gzip",
                "application/x-gzip",
                "application/tar+gzip",
                "application/x-tar+gzip",
                "application/x-gtar-compressed",
                "application/x-compressed-tar",
                "application/x-tgz",
            ],
            Serialization::TarBz2 => &[
                "application/x-bzip2",
                "application/bzip2",
                "application/x-bzip",
                "application/tar+bz2",
                "application/x-tar+bzip2",
                "application/x-bzip-compressed-tar",
                "application/x-bzip2-compressed-tar",
            ],
            Serialization::TarZst => &[
                "application/zstd",
                "application/x-zstd",
                "application/tar+zstd",
                "application/x-zstd-compressed-tar",
            ],
            Serialization::Zip => &["application/zip", "application/x-zip-compressed"],
        }
    }

    /// Recognises an archive by its first bytes; 512 are enough.
    pub fn sniff(start: &[u8]) -> Option<Serialization> {
        match start {
            [0x1f, 0x8b, ..] => Some(Serialization::TarGz),
            [b'B', b'Z', b'h', ..] => Some(Serialization::TarBz2),
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Some(Serialization::TarZst),
            [b'P', b'K', 3, 4, ..] | [b'P', b'K', 5, 6, ..] => Some(Serialization::Zip),
            _ if tar_header::looks_like_tar(start) => Some(Serialization::Tar),
            _ => None,
        }
    }
}

impl fmt::Display for Serialization {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Serialization::Directory => "directory",
            Serialization::Tar => "tar",
            Serialization::TarGz => "tar.gz",
            Serialization::TarBz2 => "tar.bz2",
            Serialization::TarZst => "tar.zst",
            Serialization::Zip => "zip",
        })
    }
}
