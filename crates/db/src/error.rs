//! What can go wrong with a database, in classes a caller can act on.

use rusqlite::ffi::SQLITE_CONSTRAINT_TRIGGER;

/// A database error. Messages never contain a password.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The database is locked by others for too long, or too many closures wait.
    #[error(
        "the database is busy: {0}; try again, or look for a process that has been stopped while it was writing"
    )]
    Busy(String),
    /// The disk of the database is full.
    #[error("no space left for the database {0}; make room, and work goes on by itself")]
    NoSpace(String),
    /// The server cannot be reached, or went away.
    #[error(
        "the database {0} cannot be reached: {1}; check that the server runs, and host and port in its address"
    )]
    Unavailable(String, String),
    /// The file or the server refuses to open the database.
    #[error("the database {0} cannot be opened: {1}")]
    CannotOpen(String, String),
    /// The database cannot be written to.
    #[error(
        "the database {0} is read-only; check the permissions of its file and directory, or name the server that is written to"
    )]
    ReadOnly(String),
    /// A newer program wrote the database.
    #[error(
        "the database {0} has schema version {1}, and this program knows versions up to {2}; use the newer program that wrote it"
    )]
    TooNew(String, i64, i64),
    /// The file belongs to another program, or is damaged.
    #[error("{0} is not a database of this program: {1}")]
    NotOurs(String, String),
    /// The address cannot be understood.
    #[error(
        "`{0}` is not a database address: {1}; write sqlite:///path/to/file or postgres://user@host/name"
    )]
    BadAddress(String, String),
    /// The database was moved to another place, or is being moved.
    #[error("{0}")]
    Moved(String),
    /// The target of a move has rows already.
    #[error("the database {0} is not empty: {1}; name one that does not exist yet, or a new one")]
    NotEmpty(String, String),
    /// The database cannot be moved.
    #[error("the database cannot be moved: {0}")]
    NotMovable(String),
    /// Another transaction won; the engine runs the closure again.
    #[error("a concurrent transaction collided with this one: {0}")]
    Collision(String),
    /// A row of the same key is there. If a concurrent transaction added it, a second run of the closure
    /// sees it; if that does not help, the closure is wrong.
    #[error("the database has such a row already: {0}")]
    Duplicate(String),
    /// A rule of the schema refused a row.
    #[error("the database refused it: {0}")]
    Constraint(String),
    /// The answer to a COMMIT was lost, and the server has not come back.
    #[error("the outcome of a commit is unknown: {0}")]
    UnknownOutcome(String),
    /// A closure panicked; its transaction was rolled back.
    #[error("a database closure panicked: {0}")]
    Panic(String),
    /// The database was closed before the closure had an answer.
    #[error("the database is closed")]
    Closed,
    /// Any other error: the statement or database, and what went wrong.
    #[error("database error in {0}: {1}")]
    Other(String, String),
}

/// A result whose error is a database error, unless it says otherwise.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// Returns whether a later try may succeed: nothing was done.
    pub fn is_transient(&self) -> bool {
        matches!(
            self,
            Error::Busy(_) | Error::NoSpace(_) | Error::Unavailable(..) | Error::Collision(_)
        )
    }

    /// Returns whether the database cannot be reached. The start and the end of an outage are logged.
    pub fn is_outage(&self) -> bool {
        matches!(self, Error::Unavailable(..))
    }

    pub(crate) fn from_sqlite(context: &str, error: rusqlite::Error) -> Error {
        use rusqlite::ErrorCode as Code;
        let text = error.to_string();
        match error.sqlite_error_code() {
            Some(Code::DatabaseBusy | Code::DatabaseLocked) => Error::Busy(text),
            Some(Code::DiskFull) => Error::NoSpace(context.to_string()),
            Some(Code::ReadOnly) => Error::ReadOnly(context.to_string()),
            Some(Code::CannotOpen) => Error::CannotOpen(context.to_string(), text),
            Some(Code::NotADatabase | Code::DatabaseCorrupt) => {
                Error::NotOurs(context.to_string(), text)
            }
            // There are no other triggers than those of a database that was moved.
            Some(Code::ConstraintViolation)
                if error
                    .sqlite_error()
                    .is_some_and(|e| e.extended_code == SQLITE_CONSTRAINT_TRIGGER) =>
            {
                Error::Moved(text)
            }
            Some(Code::ConstraintViolation) => Error::Constraint(text),
            _ => Error::Other(context.to_string(), text),
        }
    }

    /// An error of `tokio-postgres`: a refusal by the server, a broken connection, or parameters that
    /// do not fit.
    pub(crate) fn from_postgres_client(context: &str, error: &tokio_postgres::Error) -> Error {
        if let Some(refused) = error.as_db_error() {
            return Error::from_postgres(context, refused.code().code(), refused.message());
        }
        let text = source_text(error);
        let cause = std::error::Error::source(error);
        match error.is_closed() || cause.is_some_and(|cause| cause.is::<std::io::Error>()) {
            true => Error::Unavailable(context.to_string(), text),
            false => Error::Other(context.to_string(), text),
        }
    }

    /// A refusal by PostgreSQL: its SQLSTATE, and its text.
    pub(crate) fn from_postgres(context: &str, code: &str, text: &str) -> Error {
        let text = text.to_string();
        match code {
            // Serialisation failure, deadlock, lock timeout: running the closure again sees what the
            // other transaction did.
            "40001" | "40P01" | "55P03" => Error::Collision(text),
            "23505" => Error::Duplicate(text),
            "23502" | "23503" | "23514" => Error::Constraint(text),
            "AC001" => Error::Moved(text),
            "53100" => Error::NoSpace(context.to_string()),
            "25006" => Error::ReadOnly(context.to_string()),
            // Also a session that was ended because it, or its transaction, was idle for too long.
            "57P01" | "57P02" | "57P03" | "57P05" | "25P03" | "53300" => {
                Error::Unavailable(context.to_string(), text)
            }
            code if code.starts_with("08") => Error::Unavailable(context.to_string(), text),
            "28000" | "28P01" => Error::CannotOpen(
                context.to_string(),
                format!(
                    "{text}; check the user in its address, and PGPASSWORD or the password file"
                ),
            ),
            "3D000" => Error::CannotOpen(
                context.to_string(),
                format!("{text}; make it with `createdb`, or correct the name in the address"),
            ),
            code => Error::Other(context.to_string(), format!("{text} ({code})")),
        }
    }
}

/// The error with its causes, since the outermost text alone ("error connecting") says little.
pub(crate) fn source_text(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    text
}
