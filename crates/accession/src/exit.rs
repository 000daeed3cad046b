//! What an exit status means, everywhere in `accession`.
//!
//! | status | meaning |
//! |---|---|
//! | 0 | done; the answer is yes |
//! | 1 | done; the answer is no: invalid, not found, some failed |
//! | 2 | the request is wrong: usage, bad input, a refused action; nothing changed |
//! | 3 | it could not be done: database, disk, network |
//! | 130 | interrupted |
//! | 141 | the reader of the output closed it |

use crate::cli::Global;
use crate::error_code::ErrorCode;
use std::process::ExitCode;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    Yes,
    No,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        match exit {
            Exit::Yes => ExitCode::SUCCESS,
            Exit::No => ExitCode::from(1),
        }
    }
}

/// The text of a code. Only the enums of codes make one, so that docs/errors.md has them all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Code(&'static str);

impl Code {
    pub fn as_str(self) -> &'static str {
        self.0
    }
}

impl std::fmt::Display for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.0)
    }
}

impl From<ErrorCode> for Code {
    fn from(code: ErrorCode) -> Code {
        Code(code.as_str())
    }
}

impl From<archive::ErrorCode> for Code {
    fn from(code: archive::ErrorCode) -> Code {
        Code(code.as_str())
    }
}

impl From<queue::ErrorCode> for Code {
    fn from(code: queue::ErrorCode) -> Code {
        Code(code.as_str())
    }
}

impl From<&archive::Error> for Code {
    fn from(error: &archive::Error) -> Code {
        Code(error.code())
    }
}

/// Why a command did not do what was asked: one line that says what, where and what to do next,
/// and a stable code for programs.
#[derive(Debug)]
pub struct Failure {
    pub status: u8,
    pub code: Code,
    pub message: String,
}

impl Failure {
    /// The request is wrong; nothing was changed.
    pub fn refused(code: impl Into<Code>, message: impl Into<String>) -> Failure {
        Failure { status: 2, code: code.into(), message: message.into() }
    }

    /// What was asked about is not there.
    pub fn not_found(code: impl Into<Code>, message: impl Into<String>) -> Failure {
        Failure { status: 1, code: code.into(), message: message.into() }
    }

    /// The request may be right, but something outside prevented it.
    pub fn unable(code: impl Into<Code>, message: impl Into<String>) -> Failure {
        Failure { status: 3, code: code.into(), message: message.into() }
    }

    /// Prints the failure where the caller looks for it: JSON on standard output for programs
    /// that asked for JSON, one line on standard error for people.
    pub fn report(&self, global: &Global) -> ExitCode {
        if self.code == ErrorCode::ReaderGone.into() {
            return ExitCode::from(self.status);
        }
        if global.json {
            json(self.code.as_str(), &self.message);
        }
        let red = anstyle::AnsiColor::Red.on_default().bold();
        anstream::eprintln!(
            "{red}error{red:#}: {} [{}]",
            crate::output::printable_lines(&self.message),
            self.code
        );
        ExitCode::from(self.status)
    }
}

/// What a command line that cannot be read is answered, or one that asks for help.
pub fn usage(error: &clap::Error) -> ExitCode {
    let wrong = error.use_stderr();
    if wrong && std::env::args_os().any(|arg| arg == "--json") {
        let text = error.render().to_string();
        let first = text.lines().next().unwrap_or_default();
        json(ErrorCode::Usage.as_str(), first.trim_start_matches("error: "));
    }
    // A closed pipe is the reader's choice; the exit status still tells.
    let _ = error.print();
    ExitCode::from(if wrong { 2 } else { 0 })
}

fn json(code: &str, message: &str) {
    let line = serde_json::json!({"error": {"code": code, "message": message}});
    // Likewise.
    let _ = crate::output::line(&line.to_string());
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Failure {
        if error.kind() == std::io::ErrorKind::BrokenPipe {
            // As with `… | head`: that is the reader's choice, and nothing to talk about.
            return Failure {
                status: 141,
                code: ErrorCode::ReaderGone.into(),
                message: error.to_string(),
            };
        }
        Failure::unable(archive::ErrorCode::Io, error.to_string())
    }
}
