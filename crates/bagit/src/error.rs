//! Why an operation on a bag could not be carried out.
//!
//! A bag that is read and found wrong is not an error: that is a [`Report`](crate::Report).

use std::io;

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system, or a caller's reader, refused.
    #[error("{what}: {source}")]
    Io { what: String, source: io::Error },
    /// The container is damaged, or uses what no reader should accept.
    #[error("{archive}: {reason}")]
    Archive { archive: String, reason: String },
    /// The bytes are in no container this crate reads.
    #[error("{0}: neither a directory nor a tar, tar.gz, tar.bz2, tar.zst or zip file")]
    UnknownContainer(String),
    /// A stream can be read once, and has been.
    #[error("{0}: the stream has been read already; open it again, or use a file")]
    StreamSpent(String),
    /// A limit that protects this machine was reached.
    #[error("{what}: more than {limit}; {advice}")]
    Limit { what: String, limit: u64, advice: &'static str },
    /// The profile is not a BagIt profile.
    #[error("profile {name}: {reason}")]
    Profile { name: String, reason: String },
    /// The request contradicts the bag or itself; nothing was changed.
    #[error("{0}")]
    Refused(String),
    /// A file of fetch.txt could not be fetched.
    #[error("{url}: {reason}")]
    Fetch { url: String, reason: String },
    /// The caller asked to stop.
    #[error("stopped before the end, as asked")]
    Stopped,
}

impl Error {
    /// Names what an I/O error is about.
    pub fn io(what: impl Into<String>, source: io::Error) -> Error {
        Error::Io { what: what.into(), source }
    }

    pub(crate) fn archive(archive: impl Into<String>, reason: impl Into<String>) -> Error {
        Error::Archive { archive: archive.into(), reason: reason.into() }
    }
}
