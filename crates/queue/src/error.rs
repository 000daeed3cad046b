//! Why the queue refused something: what, where, and what to do next, with a stable code.

use db::Error as DbError;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Db(#[from] DbError),
    /// Something named does not exist.
    #[error("there is no {what} `{name}`; {hint}")]
    Unknown { what: &'static str, name: String, hint: String },
    /// A value that cannot be accepted.
    #[error("{0}")]
    BadInput(String),
    /// A right request at the wrong time or in the wrong state.
    #[error("{0}")]
    Refused(String),
    /// The worker's lease is gone; whatever it held belongs to others now (I4).
    #[error("worker {0} has lost its lease; it must register again")]
    LeaseLost(i64),
}

pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    pub fn code(&self) -> &'static str {
        match self {
            Error::Db(DbError::Busy(_)) => "database_busy",
            Error::Db(DbError::NoSpace(_)) => "database_full",
            Error::Db(DbError::Unavailable(..)) => "database_unavailable",
            Error::Db(DbError::ReadOnly(_)) => "database_read_only",
            Error::Db(DbError::TooNew(..)) => "database_too_new",
            Error::Db(DbError::NotOurs(..)) => "database_not_ours",
            Error::Db(DbError::BadAddress(..)) => "database_address",
            Error::Db(DbError::CannotOpen(..)) => "database_cannot_open",
            Error::Db(DbError::Moved(_)) => "database_moved",
            Error::Db(DbError::NotEmpty(..)) => "database_not_empty",
            Error::Db(DbError::NotMovable(_)) => "database_not_movable",
            Error::Db(_) => "database",
            Error::Unknown { .. } => "unknown",
            Error::BadInput(_) => "bad_input",
            Error::Refused(_) => "refused",
            Error::LeaseLost(_) => "lease_lost",
        }
    }

    /// True if the same call may succeed later without any change by the caller.
    pub fn is_transient(&self) -> bool {
        matches!(self, Error::Db(error) if error.is_transient())
    }

    /// True where the database cannot be reached, which needs no word of its own: the database
    /// layer says so once, and once that it is back.
    pub fn is_outage(&self) -> bool {
        matches!(self, Error::Db(error) if error.is_outage())
    }

    pub(crate) fn unknown(
        what: &'static str,
        name: impl ToString,
        hint: impl Into<String>,
    ) -> Error {
        Error::Unknown { what, name: name.to_string(), hint: hint.into() }
    }
}
