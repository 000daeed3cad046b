//! The floors of this crate: a module uses its own floor and those below it, never one above.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The top-level modules, from the ground up. ARCHITECTURE.md says what each floor is for.
const FLOORS: [&[&str]; 4] = [
    &["blocking", "config", "identifier", "metadata", "model", "premis", "report", "xml"],
    &["app", "delivery", "package", "registry", "stores", "transfer"],
    &["pipeline"],
    &["intake", "scheduler", "setup", "watch", "worker"],
];

#[test]
fn no_module_uses_a_floor_above_its_own() {
    let mut files = Vec::new();
    sources(&source_directory(), &mut files);
    assert!(files.len() > 100, "only {} source files were found", files.len());
    let mut upward = Vec::new();
    for file in &files {
        let below = file.strip_prefix(source_directory()).unwrap();
        let own = top_level(below);
        if own == "lib" {
            continue;
        }
        let floor = floor_of(&own).unwrap_or_else(|| panic!("{own} is on no floor; add it"));
        for used in modules_used(&from_the_root(&code(file), depth(below))) {
            if floor_of(&used).is_some_and(|of_used| of_used > floor) {
                upward.push(format!("{} uses crate::{used}", below.display()));
            }
        }
    }
    assert!(upward.is_empty(), "modules that use a floor above theirs:\n{}", upward.join("\n"));
}

#[test]
fn upward_uses_are_found() {
    let text = "use crate::{intake, model::{error, job}};\nfn f() { crate::watch::poll() }\n\
                #[cfg(test)]\nmod tests { use crate::setup; }\n";
    let found = modules_used(&without_tests(text));
    let wanted = ["intake", "model", "watch"].map(String::from);
    assert_eq!(found.into_iter().collect::<Vec<_>>(), wanted);
    assert!(floor_of("intake") > floor_of("model"));
    let climbing = from_the_root("use super::super::intake; use super::item;", 2);
    assert!(
        modules_used(&climbing).contains("intake") && !modules_used(&climbing).contains("item")
    );
    assert_eq!((depth(Path::new("model/item.rs")), depth(Path::new("model/mod.rs"))), (2, 1));
}

#[test]
fn every_module_is_on_a_floor() {
    let lib = std::fs::read_to_string(source_directory().join("lib.rs")).unwrap();
    for line in lib.lines() {
        let name = line.trim_start_matches("pub ").strip_prefix("mod ");
        if let Some(name) = name.and_then(|name| name.strip_suffix(';')) {
            assert!(floor_of(name).is_some(), "{name} is on no floor");
        }
    }
}

fn source_directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

fn sources(directory: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") && !is_test(&path) {
            files.push(path);
        }
    }
}

/// Tests may set up more than their module sees.
fn is_test(path: &Path) -> bool {
    let name = path.file_stem().unwrap().to_string_lossy();
    name == "tests" || name == "testing" || name.ends_with("_tests")
}

fn top_level(below: &Path) -> String {
    let first = below.components().next().unwrap().as_os_str().to_string_lossy().into_owned();
    first.trim_end_matches(".rs").to_string()
}

/// How many modules a file is below the root of the crate.
fn depth(below: &Path) -> usize {
    below.components().count() - usize::from(below.ends_with("mod.rs"))
}

/// The text with paths that climb to the root written from there.
fn from_the_root(text: &str, depth: usize) -> String {
    text.replace(&"super::".repeat(depth), "crate::")
}

fn floor_of(module: &str) -> Option<usize> {
    FLOORS.iter().position(|floor| floor.contains(&module))
}

/// A file's code without its tests and comments.
fn code(path: &Path) -> String {
    without_tests(&std::fs::read_to_string(path).unwrap())
}

fn without_tests(text: &str) -> String {
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    text.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
}

/// The top-level modules that a text names after `crate::`.
fn modules_used(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (at, _) in text.match_indices("crate::") {
        let rest = &text[at + "crate::".len()..];
        match rest.strip_prefix('{') {
            None => found.extend(first_name(rest)),
            Some(group) => {
                let mut depth = 0;
                let mut start = 0;
                for (i, c) in group.char_indices() {
                    match c {
                        '{' => depth += 1,
                        '}' if depth == 0 => {
                            found.extend(first_name(&group[start..i]));
                            break;
                        }
                        '}' => depth -= 1,
                        ',' if depth == 0 => {
                            found.extend(first_name(&group[start..i]));
                            start = i + 1;
                        }
                        _ => {}
                    }
                }
            }
        }
    }
    found
}

fn first_name(text: &str) -> Option<String> {
    let name: String =
        text.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
    (!name.is_empty()).then_some(name)
}
