//! The state of a job, to a program and back: the program gets it as text in `ACCESSION_STATE`, and
//! writes a new one to the file that `ACCESSION_STATE_OUT` names.

use crate::error_code::ErrorCode;
use queue::{Handover, JobError, JobState, Outcome};
use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;

/// No file is read further: the queue's own limit is far below it.
const BYTES_MAX: u64 = 1024 * 1024;

/// What one run is given, and where it may leave something.
pub struct Handed {
    pub state: String,
    directory: tempfile::TempDir,
}

impl Handed {
    /// A directory of the run's own, which only this user can look into.
    pub fn new(state: JobState) -> io::Result<Handed> {
        let directory = tempfile::Builder::new().prefix("accession-state-").tempdir()?;
        Ok(Handed { state: serde_json::Value::Object(state).to_string(), directory })
    }

    pub fn out(&self) -> PathBuf {
        self.directory.path().join("state.json")
    }

    /// What the program left; a success without a file leaves the state as it is.
    pub fn outcome(&self) -> Outcome {
        let refused = |code, why: String| {
            let why = format!(
                "the program wrote a state that cannot be kept: {why}; write one JSON object to the file that ACCESSION_STATE_OUT names, or nothing"
            );
            Outcome::Permanent(JobError::new(code, why))
        };
        let bad = |why| refused(ErrorCode::BadState.as_str(), why);
        let mut text = Vec::new();
        let read =
            File::open(self.out()).and_then(|file| file.take(BYTES_MAX + 1).read_to_end(&mut text));
        match read {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Outcome::success(),
            Err(error) => return bad(error.to_string()),
            Ok(_) if text.len() as u64 > BYTES_MAX => {
                let why = format!(
                    "it has more than {BYTES_MAX} bytes; keep large data in a file and name it in the state"
                );
                return refused(queue::ErrorCode::StateTooLarge.as_str(), why);
            }
            Ok(_) if text.trim_ascii().is_empty() => return Outcome::success(),
            Ok(_) => {}
        }
        match serde_json::from_slice::<JobState>(&text) {
            Ok(state) => Outcome::Success(Handover::with_state(state)),
            Err(error) => bad(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_program_leaves_an_object_or_nothing() {
        let left = |text: Option<&str>| {
            let handed = Handed::new(JobState::new()).unwrap();
            assert_eq!(handed.state, "{}");
            if let Some(text) = text {
                std::fs::write(handed.out(), text).unwrap();
            }
            handed.outcome()
        };
        assert_eq!(left(None), Outcome::success());
        assert_eq!(left(Some(" \n")), Outcome::success());
        let state = JobState::from_iter([("pages".to_string(), 3.into())]);
        assert_eq!(left(Some("{\"pages\": 3}\n")), Outcome::Success(Handover::with_state(state)));
        let large = format!("{{\"pages\": \"{}\"}}", "1".repeat(BYTES_MAX as usize));
        assert!(matches!(left(Some(&large)), Outcome::Permanent(e) if e.code == "state_too_large"));
        for wrong in ["[1]", "{\"pages\": 3", "3"] {
            assert!(matches!(left(Some(wrong)), Outcome::Permanent(e) if e.code == "bad_state"));
        }
    }
}
