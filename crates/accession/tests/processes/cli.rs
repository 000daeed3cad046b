//! The binary, as a person or a script uses it.

use crate::answers;
use serde_json::Value;
use std::process::{Command, Output, Stdio};

#[derive(Clone)]
pub struct Accession {
    pub database: String,
}

impl Accession {
    pub fn new(database: &str) -> Accession {
        Accession { database: database.to_string() }
    }

    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_accession"));
        command
            .args(args)
            .env("ACCESSION_DATABASE", &self.database)
            .env_remove("ACCESSION_DATA")
            .stdin(Stdio::null());
        command
    }

    pub fn output(&self, args: &[&str]) -> Output {
        let output = self.command(args).output().unwrap();
        answers::hold(args, &String::from_utf8_lossy(&output.stdout));
        output
    }

    /// Runs a command that must succeed, and reads its JSON.
    pub fn json(&self, args: &[&str]) -> Value {
        let output = self.output(&[args, &["--json"]].concat());
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(
            output.status.success(),
            "{args:?}: {text}{}",
            String::from_utf8_lossy(&output.stderr)
        );
        serde_json::from_str(&text).unwrap()
    }

    /// Runs a command that must be refused; its exit status and what it says.
    pub fn refused(&self, args: &[&str]) -> (i32, String) {
        let output = self.output(args);
        assert!(!output.status.success(), "{args:?} was not refused");
        (output.status.code().unwrap_or(-1), String::from_utf8_lossy(&output.stderr).into_owned())
    }
}
