//! What can go wrong, each with where it did and what to do.

use crate::code::Finding;
use crate::layout::LayoutError;
use crate::version::VersionName;

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why something could not be done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error(transparent)]
    Store(#[from] store::Error),
    #[error("{place}: {source}; check the disk or the connection, then try again")]
    Io { place: String, source: std::io::Error },
    #[error("{place}: {what} exceeds the limit of {limit}; raise the limit if this is meant")]
    Limit { place: String, what: String, limit: u64 },
    #[error("{place} breaks a rule: {finding}; validate the object to see all that is wrong")]
    Invalid { place: String, finding: Box<Finding> },
    #[error(
        "{0} is no OCFL storage root: it has no declaration such as 0=ocfl_1.1; check the place or make one with init"
    )]
    NotARoot(String),
    #[error("{0} is not empty; a storage root is made where nothing is")]
    NotEmpty(String),
    #[error("{root} declares OCFL {version}, which is not known here; use a newer release")]
    UnknownSpec { root: String, version: String },
    #[error("{root} does not say which layout it has; give the object's path instead of its id")]
    NoLayout { root: String },
    #[error(transparent)]
    Layout(#[from] LayoutError),
    #[error("there is no object {0:?}; list the root to see what is there")]
    NoSuchObject(String),
    #[error("{id:?} has no version {version}; its versions are v1 to {head}")]
    NoSuchVersion { id: String, version: VersionName, head: VersionName },
    #[error("{version} of {id:?} has no file {path:?}; show the version to see its files")]
    NoSuchFile { id: String, version: VersionName, path: String },
    #[error(
        "{path} holds the object {found:?}, not {wanted:?}; two identifiers share one place in this layout"
    )]
    WrongObject { path: String, wanted: String, found: String },
    #[error("{0:?} cannot be a path in an object: {1}")]
    BadPath(String, &'static str),
    #[error("{0:?} cannot be an identifier: it is empty or too long")]
    BadId(String),
    #[error("{path:?} has the digest {found}, not {wanted} as announced; check its source")]
    WrongDigest { path: String, wanted: String, found: String },
    #[error("the object at {path} has no content of this digest")]
    NoSuchContent { path: String },
    #[error("{id:?} has no unsealed version")]
    NothingUnsealed { id: String },
    #[error("{id:?} has an unfinished write; seal it, take it up, or discard it")]
    UnfinishedWrite { id: String },
    #[error("{0} is no note about an unfinished write; if nobody needs it, remove it")]
    BadNote(String),
    #[error("{0:?} cannot be the name of a log: use letters, digits, and . _ - within")]
    BadLogName(String),
    #[error("{id:?} has changed meanwhile: {why}; read it again and decide again")]
    Conflict { id: String, why: String },
    #[error("{id:?} cannot have a version after {head}: its version numbers are padded and full")]
    VersionsFull { id: String, head: VersionName },
}
