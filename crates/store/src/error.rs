//! What can go wrong in a store, sorted by what a caller does about it.

use std::fmt;
use std::time::Duration;

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What kind of failure it was; each kind asks for a different answer from the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// There is nothing with this key.
    NotFound,
    /// The condition of a conditional put, copy or rename did not hold; nothing was changed.
    PreconditionFailed,
    /// The store is full, or a quota is used up.
    NoSpace,
    /// The store asked to be called less often, and still did after all retries.
    Throttled,
    /// The object is in cold storage and has to be thawed before it can be read.
    Cold,
    /// The bytes are not the ones expected: a wrong digest, or too few or too many of them.
    Corrupt,
    /// The body that the caller handed over failed, or was not as long as announced.
    Body,
    /// The key cannot exist in this store: empty, too long, `..`, or a control character.
    InvalidKey,
    /// The range starts after the end of the object.
    InvalidRange,
    /// This store cannot do this; `capabilities` would have said so.
    Unsupported,
    /// The store does not let these credentials, or this user, do this.
    Denied,
    /// A symbolic link or special file stands where a file or directory is expected.
    NotPlain,
    /// The network, the server or the device failed in a way that may pass; retries were used up.
    Transient,
    /// The store does not answer, or answers everything with failures of its own: it is down.
    Unavailable,
    /// The store refused or failed in a way that trying again will not change.
    Permanent,
}

impl ErrorKind {
    /// Whether the same call may succeed later without anybody doing something about it.
    pub fn is_retryable(self) -> bool {
        matches!(self, ErrorKind::Throttled | ErrorKind::Transient | ErrorKind::Unavailable)
    }

    /// What a person can do about it, as the end of a message.
    fn advice(self) -> &'static str {
        match self {
            ErrorKind::NotFound => "check the key",
            ErrorKind::PreconditionFailed => "read it again and decide again",
            ErrorKind::NoSpace => "free some space or raise the quota, then try again",
            ErrorKind::Throttled => "try again later, with fewer requests at a time",
            ErrorKind::Cold => "thaw it first, then read it",
            ErrorKind::Corrupt => "do not use these bytes; try again, and check the store",
            ErrorKind::Body => "check the source of the bytes",
            ErrorKind::InvalidKey => "choose another key",
            ErrorKind::InvalidRange => "ask for a range within the object",
            ErrorKind::Unsupported => "use a store that can do this",
            ErrorKind::Denied => "check credentials and permissions",
            ErrorKind::NotPlain => "remove it, or replace it by a plain file or directory",
            ErrorKind::Transient => "try again later",
            ErrorKind::Unavailable => "see that it runs and can be reached, then try again",
            ErrorKind::Permanent => "see the detail",
        }
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ErrorKind::NotFound => "not found",
            ErrorKind::PreconditionFailed => "precondition failed",
            ErrorKind::NoSpace => "no space left",
            ErrorKind::Throttled => "throttled",
            ErrorKind::Cold => "in cold storage",
            ErrorKind::Corrupt => "corrupt",
            ErrorKind::Body => "bad body",
            ErrorKind::InvalidKey => "invalid key",
            ErrorKind::InvalidRange => "invalid range",
            ErrorKind::Unsupported => "not supported",
            ErrorKind::Denied => "denied",
            ErrorKind::NotPlain => "not a plain file or directory",
            ErrorKind::Transient => "temporary failure",
            ErrorKind::Unavailable => "not available",
            ErrorKind::Permanent => "failure",
        })
    }
}

type Source = Box<dyn std::error::Error + Send + Sync>;

/// A failure, with the store and key it is about.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct Error(Box<Inner>);

#[derive(Debug, thiserror::Error)]
struct Inner {
    kind: ErrorKind,
    store: String,
    key: String,
    detail: String,
    retry_after: Option<Duration>,
    #[source]
    source: Option<Source>,
}

impl fmt::Display for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.kind)?;
        match (self.store.is_empty(), self.key.is_empty()) {
            (true, true) => {}
            (true, false) => write!(f, ": {}", self.key)?,
            (false, true) => write!(f, ": {}", self.store)?,
            (false, false) => {
                write!(f, ": {}/{}", self.store.trim_end_matches('/'), self.key)?;
            }
        }
        if !self.detail.is_empty() {
            write!(f, ": {}", self.detail)?;
        }
        // What is not there may be the whole store.
        let whole = self.key.is_empty() || self.detail.contains("NoSuchBucket");
        match self.kind {
            ErrorKind::NotFound if whole => write!(f, "; check its address, and that it is there"),
            kind => write!(f, "; {}", kind.advice()),
        }
    }
}

impl Error {
    pub fn new(kind: ErrorKind, key: impl Into<String>, detail: impl Into<String>) -> Error {
        Error(Box::new(Inner {
            kind,
            store: String::new(),
            key: key.into(),
            detail: detail.into(),
            retry_after: None,
            source: None,
        }))
    }

    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The key it is about; empty when it is about the store as a whole.
    pub fn key(&self) -> &str {
        &self.0.key
    }

    /// The store it is about, as its URL.
    pub fn store(&self) -> &str {
        &self.0.store
    }

    /// What happened, without kind, place and advice.
    pub fn detail(&self) -> &str {
        &self.0.detail
    }

    /// How long the store asked to be left alone.
    pub fn retry_after(&self) -> Option<Duration> {
        self.0.retry_after
    }

    pub fn is_retryable(&self) -> bool {
        self.kind().is_retryable()
    }

    pub fn is_not_found(&self) -> bool {
        self.kind() == ErrorKind::NotFound
    }

    /// Names the store, where it is not named yet.
    pub fn in_store(mut self, url: &str) -> Error {
        if self.0.store.is_empty() {
            self.0.store = url.to_owned();
        }
        self
    }

    pub fn with_retry_after(mut self, pause: Option<Duration>) -> Error {
        self.0.retry_after = pause;
        self
    }

    pub fn with_source(mut self, source: impl Into<Source>) -> Error {
        self.0.source = Some(source.into());
        self
    }

    /// An error of the operating system about a key, sorted into our kinds.
    pub fn from_io(key: impl Into<String>, error: std::io::Error) -> Error {
        use std::io::ErrorKind as Io;
        let kind = match error.kind() {
            Io::NotFound | Io::NotADirectory => ErrorKind::NotFound,
            Io::StorageFull | Io::QuotaExceeded | Io::FileTooLarge => ErrorKind::NoSpace,
            Io::PermissionDenied | Io::ReadOnlyFilesystem => ErrorKind::Denied,
            Io::InvalidFilename => ErrorKind::InvalidKey,
            Io::AlreadyExists | Io::DirectoryNotEmpty => ErrorKind::PreconditionFailed,
            Io::IsADirectory => ErrorKind::NotPlain,
            Io::TimedOut | Io::Interrupted | Io::ConnectionReset | Io::ConnectionAborted => {
                ErrorKind::Transient
            }
            _ => ErrorKind::Permanent,
        };
        let detail = error.to_string();
        Error::new(kind, key, detail).with_source(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_says_what_where_and_what_to_do() {
        let error =
            Error::new(ErrorKind::NoSpace, "a/b", "disk full").in_store("file:///srv/objects");
        assert_eq!(
            error.to_string(),
            "no space left: file:///srv/objects/a/b: disk full; \
             free some space or raise the quota, then try again"
        );
    }

    #[test]
    fn a_full_disk_is_its_own_error() {
        let full = std::io::Error::from_raw_os_error(28);
        assert_eq!(Error::from_io("k", full).kind(), ErrorKind::NoSpace);
    }
}
