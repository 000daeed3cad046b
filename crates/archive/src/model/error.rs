//! What can go wrong, said so that someone can act on it.

use crate::model::error_code::ErrorCode;
use queue::{JobError, Outcome};

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error with what a person needs: a stable code, a sentence that ends in what to do, and
/// whether trying again could help.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The database.
    #[error(transparent)]
    Queue(#[from] queue::Error),
    /// Nothing will change by trying again: the request, the package or a setting is wrong.
    #[error("{message}")]
    Permanent { code: ErrorCode, message: String, file: Option<String> },
    /// It may pass: something outside did not answer, or not well.
    #[error("{message}")]
    Transient { code: ErrorCode, message: String, target: Option<String>, file: Option<String> },
    /// Something outside is down: jobs that need it wait until it is back.
    #[error("{message}")]
    Down { code: ErrorCode, message: String, target: String },
    /// Everything that is wrong with what was deposited.
    #[error("{}", .problems.text(.what))]
    Invalid { what: String, problems: Box<crate::model::problem::Problems> },
    /// What was asked for cannot be written to where it was asked for.
    #[error("it cannot be written: {0}")]
    Output(std::io::Error),
    /// The run was told to stop.
    #[error("stopped")]
    Stopped,
}

impl Error {
    pub fn permanent(code: ErrorCode, message: impl Into<String>) -> Error {
        Error::Permanent { code, message: message.into(), file: None }
    }

    pub fn transient(code: ErrorCode, message: impl Into<String>) -> Error {
        Error::Transient { code, message: message.into(), target: None, file: None }
    }

    /// Names the outside thing that is to blame, so that its breaker can trip.
    pub fn at(mut self, outside: impl Into<String>) -> Error {
        if let Error::Transient { target, .. } = &mut self {
            *target = Some(outside.into());
        }
        self
    }

    /// What does not answer, named as its breaker is.
    pub fn down(code: ErrorCode, message: impl Into<String>, target: impl Into<String>) -> Error {
        Error::Down { code, message: message.into(), target: target.into() }
    }

    /// Names the file that it is about, so that reports can.
    pub fn about(mut self, name: impl Into<String>) -> Error {
        if let Error::Permanent { file, .. } | Error::Transient { file, .. } = &mut self {
            *file = Some(name.into());
        }
        self
    }

    /// The file it is about, or the first of them; a row where it is about a manifest.
    pub fn file(&self) -> Option<&str> {
        match self {
            Error::Permanent { file, .. } | Error::Transient { file, .. } => file.as_deref(),
            Error::Invalid { problems, .. } => problems.place(),
            Error::Queue(_) | Error::Down { .. } | Error::Output(_) | Error::Stopped => None,
        }
    }

    /// Returns the text of the code, for programs and reports. Code that decides uses [`Error::is`].
    pub fn code(&self) -> &'static str {
        match self.origin() {
            Ok(own) => own.as_str(),
            Err(of_queue) => of_queue.as_str(),
        }
    }

    /// Returns the code; `None` for an error of the queue or the database.
    pub fn own_code(&self) -> Option<ErrorCode> {
        self.origin().ok()
    }

    fn origin(&self) -> Result<ErrorCode, queue::ErrorCode> {
        match self {
            Error::Queue(error) => Err(error.code()),
            Error::Permanent { code, .. }
            | Error::Transient { code, .. }
            | Error::Down { code, .. } => Ok(*code),
            Error::Invalid { .. } => Ok(ErrorCode::Invalid),
            Error::Output(_) => Ok(ErrorCode::Io),
            Error::Stopped => Ok(ErrorCode::Stopped),
        }
    }

    /// True if the error has this code.
    pub fn is(&self, code: ErrorCode) -> bool {
        self.own_code() == Some(code)
    }

    /// True where the database cannot be reached; see [`queue::Error::is_outage`].
    pub fn is_outage(&self) -> bool {
        matches!(self, Error::Queue(error) if error.is_outage())
    }

    pub fn is_transient(&self) -> bool {
        matches!(
            self,
            Error::Queue(queue::Error::Db(_))
                | Error::Transient { .. }
                | Error::Down { .. }
                | Error::Output(_)
        )
    }
}

impl From<db::Error> for Error {
    fn from(error: db::Error) -> Error {
        Error::Queue(error.into())
    }
}

/// Rules of the archive that run within the queue's transaction speak its language.
pub fn into_queue(error: Error) -> queue::Error {
    match error {
        Error::Queue(error) => error,
        other => queue::Error::Refused(other.to_string()),
    }
}

/// How a stage that met an error ends its run. A database that does not answer is never the
/// package's fault.
impl From<Error> for Outcome {
    fn from(error: Error) -> Outcome {
        let code = error.code();
        match error {
            Error::Queue(queue::Error::LeaseLost(_)) => Outcome::Interrupted(error.to_string()),
            Error::Queue(queue::Error::Db(_)) => {
                Outcome::Transient(JobError::new(code, error.to_string()).at("database"))
            }
            Error::Queue(_) | Error::Permanent { .. } => {
                Outcome::Permanent(JobError::new(code, error.to_string()))
            }
            Error::Transient { message, target, .. } => {
                let seen = JobError::new(code, message);
                Outcome::Transient(match target {
                    Some(target) => seen.at(target),
                    None => seen,
                })
            }
            Error::Down { message, target, .. } => {
                Outcome::Transient(JobError::new(code, message).at(target).down())
            }
            Error::Invalid { ref problems, .. } => {
                let code = problems.code().unwrap_or(code).to_string();
                Outcome::Permanent(JobError::new(code, error.to_string()))
            }
            Error::Output(_) => Outcome::Transient(JobError::new(code, error.to_string())),
            Error::Stopped => Outcome::Interrupted("the run was told to stop".to_string()),
        }
    }
}
