//! What can stop reading or writing. What is wrong *with* a manifest is in its report instead.

use std::io;

/// Reading could not go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The source failed.
    #[error("the manifest could not be read: {0}")]
    Read(#[source] io::Error),
    /// The temporary file in which duplicates are sought failed.
    #[error(
        "no temporary file could be used to look for duplicates: {0}; free some space, or set another temporary directory"
    )]
    Temporary(#[source] io::Error),
}

/// A manifest could not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The destination failed.
    #[error("the manifest could not be written: {0}")]
    Write(#[from] io::Error),
    /// Reading what was to be written failed.
    #[error(transparent)]
    Read(#[from] Error),
    /// The format has no way to say this value.
    #[error("row {row}: {column} {value:?} cannot be written: {why}")]
    Unrepresentable {
        /// The row, counting from one.
        row: u64,
        /// The column.
        column: String,
        /// The beginning of the value.
        value: String,
        /// Why not.
        why: &'static str,
    },
    /// The profile has no column for this value.
    #[error(
        "row {row}: the profile {profile} has no column for {column}; choose another profile, or drop such values"
    )]
    NoColumn {
        /// The row, counting from one.
        row: u64,
        /// The column.
        column: String,
        /// The profile being written.
        profile: crate::Profile,
    },
    /// The row would be rejected when the manifest is read.
    #[error("row {row}: {message} [{code}]")]
    Invalid {
        /// The row, counting from one.
        row: u64,
        /// What is wrong with it.
        code: crate::Code,
        /// The same, for a person.
        message: String,
    },
    /// The profile requires a value that the row does not have.
    #[error("row {row}: the profile {profile} requires {column}, which the row does not have")]
    Required {
        /// The row, counting from one.
        row: u64,
        /// The column.
        column: String,
        /// The profile being written.
        profile: crate::Profile,
    },
}
