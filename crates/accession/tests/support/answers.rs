//! What the binary prints with `--json`, beside the schema of the command in docs/schemas.
//!
//! Every test program that reads JSON calls [`hold`], so that the schemas are compared with what commands
//! print in all the situations that the tests make, and not in one.
//!
//! `ACCESSION_BLESS=1` widens the schemas by what is printed; look at the difference before it is kept.

// Each test program uses its part.
#![allow(dead_code, clippy::unwrap_used)]

use super::schema::{problems, widen};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

pub fn schemas() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schemas")
}

/// `queue list` is `docs/schemas/queue.list.json`.
pub fn file(command: &str) -> PathBuf {
    schemas().join(format!("{}.json", command.replace(' ', ".")))
}

/// The commands that have a schema.
pub fn described() -> Vec<String> {
    let files = std::fs::read_dir(schemas()).unwrap();
    let names = files.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let names = names.filter_map(|name| Some(name.strip_suffix(".json")?.replace('.', " ")));
    names.filter(|name| name != "error").collect()
}

/// The command of a command line: the first words that are one, and of these the longest.
pub fn command_of<'k>(args: &[&str], known: &'k [String]) -> Option<&'k String> {
    let begins = |at: usize, name: &str| {
        let words: Vec<&str> = name.split(' ').collect();
        args[at..].starts_with(&words)
    };
    (0..args.len())
        .find_map(|at| known.iter().filter(|name| begins(at, name)).max_by_key(|name| name.len()))
}

/// Compares what a command printed with its schema.
///
/// # Panics
/// If it does not fit. Output that has a form of its own is passed over.
pub fn hold(args: &[&str], stdout: &str) {
    let has_own_form = |arg: &&str| matches!(*arg, "--csv" | "--format" | "--help");
    if !args.contains(&"--json") || args.iter().any(has_own_form) {
        return;
    }
    let known = described();
    let Some(command) = command_of(args, &known) else { return };
    let wrong: Vec<String> = values(stdout).iter().flat_map(|value| fits(command, value)).collect();
    assert!(wrong.is_empty(), "{args:?} does not fit its schema:\n{}", wrong.join("\n"));
}

/// What was printed: one document, or one on each line. What is left of a process that was killed is no
/// answer.
pub fn values(stdout: &str) -> Vec<Value> {
    match serde_json::from_str(stdout) {
        Ok(whole) => vec![whole],
        Err(_) => stdout.lines().filter_map(|line| serde_json::from_str(line).ok()).collect(),
    }
}

/// What of a value does not fit the schema of its command, or of errors.
pub fn fits(command: &str, value: &Value) -> Vec<String> {
    let is_error =
        value.as_object().is_some_and(|map| map.len() == 1) && value["error"]["code"].is_string();
    let command = if is_error { "error" } else { command };
    if std::env::var_os("ACCESSION_BLESS").is_some() {
        bless(command, value);
    }
    let Ok(text) = std::fs::read_to_string(file(command)) else {
        return vec![format!("`{command}` has no schema in docs/schemas")];
    };
    let schema: Value = serde_json::from_str(&text).unwrap();
    let found = problems(&schema, value);
    found.into_iter().map(|problem| format!("`{command}`: {problem}")).collect()
}

/// Tests run side by side, in several processes.
fn bless(command: &str, value: &Value) {
    let lock = std::fs::File::open(schemas()).unwrap();
    lock.lock().unwrap();
    let mut schema = std::fs::read_to_string(file(command)).map_or_else(
        |_| {
            json!({
                "$schema": "https://json-schema.org/draft/2020-12/schema",
                "title": format!("accession {command} --json"),
            })
        },
        |text| serde_json::from_str(&text).unwrap(),
    );
    widen(&mut schema, value);
    // Others read it meanwhile.
    let new = file(command).with_extension("new");
    std::fs::write(&new, serde_json::to_string_pretty(&schema).unwrap() + "\n").unwrap();
    std::fs::rename(new, file(command)).unwrap();
}
