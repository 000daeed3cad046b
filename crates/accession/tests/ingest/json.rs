//! What programs read: every command's `--json` output, beside its schema in docs/schemas.
//!
//! `ACCESSION_BLESS=1 cargo test -p accession --test ingest json::` writes the schemas anew from what the
//! commands print; look at the difference before it is kept.

use crate::support::packages::{bag, directory};
use crate::support::schema::{Inference, problems};
use crate::support::world::{World, database_of_its_own};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Commands in an order in which each has something to say. `@` is the test's directory.
const SCRIPT: &str = r#"
queue create letters
queue add letters a b c d e f
queue set letters max_attempts=1
queue budget gpu 2
queue list letters --limit 2
jobs list
queue show 1
jobs show 1
queue why 1
jobs why 1
queue stats
queue hold 1
jobs hold 2
queue release 1
jobs release 2
queue pause letters
queue unpause letters
jobs pause letters
jobs unpause letters
queue cancel 2
jobs cancel 3
queue stuck --over 0s
jobs stuck --over 0s
queue work letters --until-empty --exec false
queue failed
jobs failed
queue review
jobs review
queue show 1
queue requeue 1
jobs requeue 4
queue retry letters
jobs retry letters
queue add letters --batch Two g h
queue batches
queue batches 1
queue workers
queue prune
queue empty letters --yes
queue delete letters --yes
bag create @/made
bag validate @/bag
bag info @/bag
bag manifest @/bag
bag fetch @/bag
bag validate @/torn
ingest @/box --local-id box-17
ingest @/torn
deposit @/later @/held
deposit @/box --check
batches hold 5
batches release 5
batches hold 5
status
batches cancel 5
work --until-empty
jobs discard 12
status
objects list
objects show box-17
objects files box-17
objects events box-17
objects versions box-17
batches list
batches show 2
batches show 3
batches report 3
batches report-again 3
batches delete 3 --yes
collection create maps owner=Maps
collection set maps fixity_days=30
collection show maps
collection list
collection hold maps
collection release maps
watch status
config show
doctor
check
check --content
registry rebuild --from s1
export premis box-17
manifest make @/box --output @/m.checkm
manifest check @/m.checkm
manifest check --codes
manifest convert @/m.checkm --output @/m.json
identify @/box/a.txt
formats list
formats show fmt/18
formats use essential-2
ocfl init @/root
ocfl ls @/data/stores/s1
ocfl log @/data/stores/s1 $ARK
ocfl show @/data/stores/s1 $ARK
ocfl diff @/data/stores/s1 $ARK
ocfl export @/data/stores/s1 $ARK @/exported
ocfl validate @/data/stores/s1
ocfl sweep @/data/stores/s1 --dry-run
ocfl purge @/data/stores/s1 $ARK --yes
store check @/data/stores/s1
db info
db backup @/backup.db
db restore @/backup.db --database sqlite://@/restored.db
db reopen
db migrate --to $POSTGRES
jobs show 999
"#;

/// Commands that are not run here, and why.
const NOT_RUN: &[(&str, &str)] = &[
    ("bench", "it measures for minutes; its answers are for people who compare"),
    ("completions", "it prints a program for a shell"),
    ("demo", "it ingests examples, and prints what the commands it runs print"),
    ("formats install", "it needs a signature file of PRONOM"),
    ("man", "it writes manual pages"),
    ("ocfl cat", "it prints a file's content"),
    ("queue watch", "it does not end; a line is `at`, `stats` as of `queue stats`, and `workers`"),
    ("registry dump", "it prints lines to compare, of no object"),
];

fn schemas() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schemas")
}

/// The commands that have no commands of their own, as the help lists them.
fn commands(world: &World, above: &[&str]) -> Vec<String> {
    let help = world.done(&[above, &["--help"]].concat());
    let listed = help.lines().skip_while(|line| line.trim() != "Commands:").skip(1);
    let names: Vec<&str> = listed
        .take_while(|line| !line.trim().is_empty())
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .collect();
    if names.is_empty() {
        return vec![above.join(" ")];
    }
    names.into_iter().flat_map(|name| commands(world, &[above, &[name]].concat())).collect()
}

/// What each command printed, by the command.
fn printed(world: &World, known: &[String]) -> BTreeMap<String, Vec<Value>> {
    let directory_of = |name: &str| world.path(name);
    directory(&directory_of("box"), &[("a.txt", "one"), ("b/c.txt", "two")]);
    directory(&directory_of("later"), &[("x.txt", "x")]);
    directory(&directory_of("held"), &[("y.txt", "y")]);
    directory(&directory_of("made"), &[("z.txt", "z")]);
    bag(&directory_of("bag"), &[("a.txt", "one")]);
    bag(&directory_of("torn"), &[("a.txt", "one")]);
    std::fs::write(world.path("torn/data/a.txt"), "two").unwrap();
    let root = world.dir.path().display().to_string();
    let mut found: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    let (mut ark, postgres) = (String::new(), database_of_its_own());
    for line in SCRIPT.lines().filter(|line| !line.is_empty()) {
        let line = match (line.contains("$POSTGRES"), &postgres) {
            (true, None) => continue,
            (true, Some(url)) => line.replace("$POSTGRES", url),
            _ => line.replace('@', &root).replace("$ARK", &ark),
        };
        let args: Vec<&str> = line.split(' ').collect();
        let ended = world.run(&[&args[..], &["--json", "-q"]].concat());
        let is_one = |name: &&String| args.iter().zip(name.split(' ')).all(|(a, b)| *a == b);
        let name = known.iter().filter(is_one).max_by_key(|name| name.len());
        let name = name.unwrap_or_else(|| panic!("no command: {line}"));
        let values: Vec<Value> = match serde_json::from_str(&ended.stdout) {
            Ok(whole) => vec![whole],
            Err(_) => ended
                .stdout
                .lines()
                .map(|l| serde_json::from_str(l).unwrap_or_else(|e| panic!("{line}: {e}: {l}")))
                .collect(),
        };
        assert!(!values.is_empty(), "{line} printed nothing: {}", ended.stderr);
        for value in values {
            assert!(value.is_object(), "{line} printed no object: {value}");
            if let Some(ark_of) = value["objects"][0]["identifier"].as_str() {
                ark = ark_of.to_string();
            }
            let is_error = value.get("error").is_some_and(|error| error["code"].is_string())
                && value.as_object().is_some_and(|map| map.len() == 1);
            let name = if is_error { "error" } else { name };
            found.entry(name.to_string()).or_default().push(value);
        }
    }
    found
}

#[test]
fn every_output_of_every_command_fits_its_schema() {
    let world = World::local(1);
    let known = commands(&world, &[]);
    assert!(known.len() > 90, "{known:?}");
    let printed = printed(&world, &known);
    if std::env::var_os("ACCESSION_BLESS").is_some() {
        let mut inference = Inference::default();
        printed.values().flatten().for_each(|value| inference.learn(value));
        std::fs::create_dir_all(schemas()).unwrap();
        for (name, values) in &printed {
            let schema = inference.schema(&format!("accession {name} --json"), values);
            let text = serde_json::to_string_pretty(&schema).unwrap() + "\n";
            std::fs::write(file(name), text).unwrap();
        }
    }
    let mut wrong = Vec::new();
    for (name, values) in &printed {
        let Ok(text) = std::fs::read_to_string(file(name)) else {
            wrong.push(format!("`{name}` has no schema in docs/schemas"));
            continue;
        };
        let schema: Value = serde_json::from_str(&text).unwrap();
        for value in values {
            let found = problems(&schema, value);
            wrong.extend(found.into_iter().map(|problem| format!("`{name}`: {problem}")));
        }
    }
    let has_postgres = std::env::var_os("ACCESSION_TEST_POSTGRES").is_some();
    let skipped = |name: &String| {
        (!has_postgres && name == "db migrate")
            || NOT_RUN.iter().any(|(other, _)| name.starts_with(other))
    };
    for name in known.iter().filter(|name| !printed.contains_key(*name) && !skipped(name)) {
        wrong
            .push(format!("`{name}` is not run: add it to SCRIPT, and its schema to docs/schemas"));
    }
    let files: BTreeSet<String> = std::fs::read_dir(schemas())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    for name in files {
        let command = name.trim_end_matches(".json").replace('.', " ");
        if command != "error" && !known.contains(&command) {
            wrong.push(format!("docs/schemas/{name} is of no command"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// `queue list` is `docs/schemas/queue.list.json`.
fn file(name: &str) -> PathBuf {
    schemas().join(format!("{}.json", name.replace(' ', ".")))
}
