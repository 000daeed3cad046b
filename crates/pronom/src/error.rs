//! What can go wrong, with where it went wrong and what to do.

use std::path::PathBuf;
use thiserror::Error;

/// Why signatures could not be read, kept or fetched, or a source could not be identified.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The bytes of the object could not be read.
    #[error("cannot read the object at byte {offset}: {source}")]
    Read { offset: u64, source: std::io::Error },
    /// A file or directory of ours could not be used.
    #[error("cannot use {}: {source}; check that it exists and may be read and written", path.display())]
    File { path: PathBuf, source: std::io::Error },
    /// A signature file is not XML, or not what a signature file contains.
    #[error(
        "not a usable signature file, at byte {offset}: {message}; take it from The National Archives again"
    )]
    SignatureFile { offset: u64, message: String },
    /// A byte pattern is not written as PRONOM writes them.
    #[error("bad pattern `{pattern}`: {message}")]
    Pattern { pattern: String, message: String },
    /// A compiled file was made by another version of this crate, or is damaged.
    #[error("compiled signatures are unusable: {0}; compile them again from the official files")]
    Compiled(String),
    /// The file is neither a DROID nor a container signature file.
    #[error("{} is not an official signature file; expected DROID_SignatureFile_V….xml or container-signature-….xml", .0.display())]
    UnknownFile(PathBuf),
    /// A set of signatures that is not installed was named.
    #[error("there is no set of signatures `{name}`; installed: {installed}")]
    NoSuchSet { name: String, installed: String },
    /// A container signature file was given before there was a DROID signature file to go with it.
    #[error(
        "a container signature file needs a DROID signature file to go with it; install both together"
    )]
    ContainerAlone,
    /// The newest files could not be found or fetched.
    #[error(
        "cannot fetch {url}: {message}; download the files with a browser and install them by name"
    )]
    Fetch { url: String, message: String },
}

/// The result of anything here that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;
