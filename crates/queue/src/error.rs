//! Why the queue refused something: what, where, and what to do next, with a stable code.

use crate::error_code::ErrorCode;
use crate::id::WorkerId;
use db::Error as DbError;

/// An error of the queue. Its code says which kind it is.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An error of the database.
    #[error(transparent)]
    Db(#[from] DbError),
    /// Something named does not exist.
    #[error("there is no {what} `{name}`; {hint}")]
    Unknown {
        /// The kind of thing.
        what: Entity,
        /// The name that was given.
        name: String,
        /// What to do instead.
        hint: String,
    },
    /// A value that cannot be accepted.
    #[error("{0}")]
    BadInput(String),
    /// A right request at the wrong time or in the wrong state.
    #[error("{0}")]
    Refused(String),
    /// The worker's lease is gone; its jobs belong to other workers now (I4).
    #[error("worker {0} has lost its lease; it must register again")]
    LeaseLost(WorkerId),
}

/// The kind of something that has a name or a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entity {
    /// A job.
    Job,
    /// A batch.
    Batch,
    /// A queue, as people call a pipeline.
    Queue,
    /// A pipeline, by its id.
    Pipeline,
    /// A stage of a pipeline.
    Stage,
    /// A setting of a pipeline or stage.
    Setting,
}

impl std::fmt::Display for Entity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Entity::Job => "job",
            Entity::Batch => "batch",
            Entity::Queue => "queue",
            Entity::Pipeline => "pipeline",
            Entity::Stage => "stage",
            Entity::Setting => "setting",
        })
    }
}

/// The result of the queue's functions.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// Returns the code of the error.
    pub fn code(&self) -> ErrorCode {
        match self {
            Error::Db(error) => database_code(error),
            Error::Unknown { .. } => ErrorCode::Unknown,
            Error::BadInput(_) => ErrorCode::BadInput,
            Error::Refused(_) => ErrorCode::Refused,
            Error::LeaseLost(_) => ErrorCode::LeaseLost,
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

    pub(crate) fn unknown(what: Entity, name: impl ToString, hint: impl Into<String>) -> Error {
        Error::Unknown { what, name: name.to_string(), hint: hint.into() }
    }
}

fn database_code(error: &DbError) -> ErrorCode {
    match error {
        DbError::Busy(_) => ErrorCode::DatabaseBusy,
        DbError::NoSpace(_) => ErrorCode::DatabaseFull,
        DbError::Unavailable(..) => ErrorCode::DatabaseUnavailable,
        DbError::ReadOnly(_) => ErrorCode::DatabaseReadOnly,
        DbError::TooNew(..) => ErrorCode::DatabaseTooNew,
        DbError::NotOurs(..) => ErrorCode::DatabaseNotOurs,
        DbError::BadAddress(..) => ErrorCode::DatabaseAddress,
        DbError::CannotOpen(..) => ErrorCode::DatabaseCannotOpen,
        DbError::Moved(_) => ErrorCode::DatabaseMoved,
        DbError::NotEmpty(..) => ErrorCode::DatabaseNotEmpty,
        DbError::NotMovable(_) => ErrorCode::DatabaseNotMovable,
        _ => ErrorCode::Database,
    }
}
