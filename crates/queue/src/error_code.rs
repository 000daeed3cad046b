//! The codes of errors: stable words for programs, with what each means and what to do about it.
//!
//! `docs/errors.md` is made from these, one section for each crate that has an enum of codes; a test of
//! `accession` keeps it current.

/// Defines an enum of error codes. Each has its stable text, its meaning, and what to do.
///
/// ```
/// queue::error_codes! {
///     /// Errors of a letter box.
///     pub enum LetterCode {
///         /// The box takes no more letters.
///         Full = "box_full", "Empty the box.";
///     }
/// }
/// assert_eq!(LetterCode::Full.as_str(), "box_full");
/// assert_eq!(LetterCode::Full.meaning(), "The box takes no more letters.");
/// assert_eq!(LetterCode::Full.remedy(), "Empty the box.");
/// assert_eq!(LetterCode::ALL.len(), 1);
/// ```
#[macro_export]
macro_rules! error_codes {
    (
        $(#[$doc:meta])*
        pub enum $name:ident {
            $(#[doc = $meaning:literal] $variant:ident = $text:literal, $remedy:literal;)+
        }
    ) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name {
            $(#[doc = $meaning] $variant),+
        }

        impl $name {
            /// All codes, in the order in which they are documented.
            pub const ALL: &'static [$name] = &[$($name::$variant),+];

            /// Returns the stable text of the code.
            pub const fn as_str(self) -> &'static str {
                match self { $($name::$variant => $text),+ }
            }

            /// Returns what the code means.
            pub fn meaning(self) -> &'static str {
                match self { $($name::$variant => $meaning),+ }.trim()
            }

            /// Returns what to do about an error with the code.
            pub const fn remedy(self) -> &'static str {
                match self { $($name::$variant => $remedy),+ }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl From<$name> for String {
            fn from(code: $name) -> String {
                code.as_str().to_string()
            }
        }
    };
}

error_codes! {
    /// The codes of the queue: of refused calls, and of job errors that the queue itself records.
    pub enum ErrorCode {
        /// The database did not let a transaction begin in time.
        DatabaseBusy = "database_busy", "Try again. If it lasts, look for a process that was stopped while it was writing.";
        /// The database has no space left.
        DatabaseFull = "database_full", "Make room on the disk of the database. Work goes on by itself.";
        /// The database server cannot be reached.
        DatabaseUnavailable = "database_unavailable", "Check that the server runs, and the host and port in its address. Work goes on by itself.";
        /// The database cannot be written to.
        DatabaseReadOnly = "database_read_only", "Check the permissions of the file and its directory, or name the server that takes writes.";
        /// A newer program wrote the schema of the database.
        DatabaseTooNew = "database_too_new", "Use the newer program.";
        /// The file or server has a database of another program, or a damaged one.
        DatabaseNotOurs = "database_not_ours", "Correct the address. If the file is damaged, restore a backup.";
        /// The address of the database is malformed.
        DatabaseAddress = "database_address", "Write sqlite:///path/to/file or postgres://user@host/name.";
        /// The database is there and cannot be opened.
        DatabaseCannotOpen = "database_cannot_open", "Check user, password and permissions, or create the database.";
        /// The database was moved to another place.
        DatabaseMoved = "database_moved", "Use the address that the message names, or reopen the database with `accession db reopen`.";
        /// The target of a move is not empty.
        DatabaseNotEmpty = "database_not_empty", "Name a database that does not exist yet, or a new one.";
        /// The database cannot be moved in its present state.
        DatabaseNotMovable = "database_not_movable", "Do what the message says, and move it again.";
        /// Another error of the database.
        Database = "database", "Read the message. If it is not about the database's own state, report it as a bug.";
        /// Something that was named does not exist.
        Unknown = "unknown", "Correct the name. The message lists names that exist, or the command that lists them.";
        /// A value cannot be accepted.
        BadInput = "bad_input", "Correct the value that the message names.";
        /// The request is well formed, and the present state does not permit it.
        Refused = "refused", "Read the message: it names the state and the way out of it.";
        /// The lease of a worker ran out, and its jobs may belong to other workers.
        LeaseLost = "lease_lost", "Nothing: the worker registers again. If it happens often, check the worker's clock and load.";
        /// A run took longer than `timeout_seconds` of its stage and was stopped.
        Timeout = "timeout", "Raise the timeout, or find out what makes the run slow. The job is tried again.";
        /// The code of a stage panicked.
        Panic = "panic", "Report it as a bug. Requeue the job when the bug is fixed.";
        /// Runs of a job were cut short more often than `max_interruptions` permits.
        InterruptedTooOften = "interrupted_too_often", "Find out whether the job kills its workers, then requeue it.";
        /// A stage named a next stage that the job may not go to.
        BadNextStage = "bad_next_stage", "Report it as a bug of the stage.";
        /// A stage left a state that is larger than `state_bytes_max`.
        StateTooLarge = "state_too_large", "Keep large data in a file and name the file in the state, then requeue the job.";
        /// The results of a run could not be recorded.
        RecordFailed = "record_failed", "Read the message, remove the cause, then requeue the job.";
    }
}
