//! What the compiler cannot see: which code may know the engine, and which may name the tables.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_path_buf()
}

/// The files under a directory with one of the extensions.
fn files(directory: &Path, extensions: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path, extensions));
        } else if path.extension().is_some_and(|e| extensions.iter().any(|known| e == *known)) {
            found.push(path);
        }
    }
    found
}

/// The lines of a file that are part of the program: no comments, nothing after the unit tests begin.
fn program(path: &Path) -> Vec<(usize, String)> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines()
        .take_while(|line| line.trim() != "#[cfg(test)]")
        .enumerate()
        .map(|(number, line)| (number + 1, line.trim().to_lowercase()))
        .filter(|(_, line)| !line.starts_with("//") && !line.starts_with("--"))
        .collect()
}

/// All tables that the migrations made, under their names of today and of before, and the view `jobs`.
fn tables() -> BTreeSet<String> {
    let migrations = crates().join("queue/src/migrations");
    let mut tables = BTreeSet::from(["jobs".to_string()]);
    for path in files(&migrations, &["sql"]) {
        for (_, line) in program(&path) {
            if let Some(rest) = line.strip_prefix("create table ") {
                tables.extend(rest.split_whitespace().next().map(str::to_string));
            }
            if let Some((_, name)) = line.split_once(" rename to ") {
                tables.insert(name.trim_end_matches(';').to_string());
            }
        }
    }
    tables
}

/// The tables that a line of SQL names.
fn named<'t>(line: &str, tables: &'t BTreeSet<String>) -> Vec<&'t String> {
    let words: Vec<&str> = line
        .split(|c: char| !(c.is_alphanumeric() || c == '_'))
        .filter(|word| !word.is_empty())
        .collect();
    let names_one =
        |pair: &&[&str]| matches!(pair[0], "from" | "join" | "into" | "update" | "table");
    words.windows(2).filter(names_one).filter_map(|pair| tables.get(pair[1])).collect()
}

#[test]
fn rules_views_and_runtime_do_not_ask_for_the_engine() {
    let source = crates().join("queue/src");
    for part in ["rules", "view", "runtime"] {
        for path in files(&source.join(part), &["rs"]) {
            for (number, line) in program(&path) {
                let asks = line.contains(".engine()") || line.contains("engine::sqlite");
                assert!(!asks, "{}:{number}: {line}", path.display());
            }
        }
    }
}

#[test]
fn other_crates_read_views_and_call_functions() {
    let tables = tables();
    assert!(tables.contains("leases") && tables.contains("waiting"), "{tables:?}");
    assert_eq!(named("select 1 from leases l join batches", &tables), ["leases", "batches"]);
    let mut wrong = Vec::new();
    for source in ["archive/src", "accession/src"] {
        for path in files(&crates().join(source), &["rs", "sql"]) {
            // Released migrations stay as they are; the bench makes up rows to measure with.
            let excepted = ["archive/src/migrations", "accession/src/cmd/bench"];
            if excepted.iter().any(|e| path.starts_with(crates().join(e))) {
                continue;
            }
            for (number, line) in program(&path) {
                for table in named(&line, &tables) {
                    wrong.push(format!("{}:{number} names {table}", path.display()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "read a view of docs/queue.md instead:\n{}", wrong.join("\n"));
}

/// The statements of a `.sql` file: name, and the engine if it is for one of them.
fn statements(path: &Path) -> Vec<(String, String)> {
    let text = std::fs::read_to_string(path).unwrap();
    let marks = text.lines().filter_map(|line| line.strip_prefix("-- name: "));
    marks
        .map(|mark| match mark.split_once(' ') {
            Some((name, engine)) => (name.to_string(), engine.to_string()),
            None => (mark.to_string(), String::new()),
        })
        .collect()
}

#[test]
fn every_statement_is_named_once_and_used() {
    for name in ["queue", "archive"] {
        let source = crates().join(name).join("src");
        let code: String = files(&source, &["rs"])
            .iter()
            .map(|path| std::fs::read_to_string(path).unwrap())
            .collect();
        for path in files(&source.join("sql"), &["sql"]) {
            let file = path.file_stem().unwrap().to_string_lossy().into_owned();
            let mut known = BTreeSet::new();
            for (statement, engine) in statements(&path) {
                let shown = format!("{statement} in {}", path.display());
                assert!(["", "(sqlite)", "(postgres)"].contains(&engine.as_str()), "{shown}");
                assert!(code.contains(&format!("statement!({file}::{statement})")), "{shown}");
                assert!(known.insert((statement, engine)), "{shown} is there twice");
            }
        }
    }
}

#[test]
fn statements_of_one_engine_are_used_below_the_seam() {
    let source = crates().join("queue/src");
    for path in files(&source.join("sql"), &["sql"]) {
        let file = path.file_stem().unwrap().to_string_lossy().into_owned();
        let all: BTreeSet<_> = statements(&path).into_iter().collect();
        for (name, engine) in all.iter().filter(|(_, engine)| !engine.is_empty()) {
            let other = if engine == "(sqlite)" { "(postgres)" } else { "(sqlite)" };
            if all.contains(&(name.clone(), other.to_string())) {
                continue;
            }
            let user = format!("engine/{}.rs", engine.trim_matches(['(', ')']));
            for rust in files(&source, &["rs"]) {
                let uses = std::fs::read_to_string(&rust)
                    .unwrap()
                    .contains(&format!("statement!({file}::{name})"));
                assert!(!uses || rust.ends_with(&user), "{name} {engine} in {}", rust.display());
            }
        }
    }
}
