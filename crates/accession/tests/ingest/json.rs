//! What programs read: every command's `--json` output, beside its schema in docs/schemas.
//!
//! All other tests that read JSON compare it with the schemas too ([`answers::hold`]). `ACCESSION_BLESS=1`
//! widens the schemas by what is printed; look at the difference before it is kept.

use crate::support::answers;
use crate::support::packages::{bag, directory};
use crate::support::schema::{problems, unsaid, widen};
use crate::support::world::{World, database_of_its_own, finish};
use serde_json::{Value, json};
use std::collections::BTreeSet;

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
queue watch --times 1
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
restore box-17 --to @/restored.tar
restore box-17 --to @/restored --dry-run
restore box-17 --to @/restored --enqueue
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
formats install @/DROID_SignatureFile_V7.xml
formats list
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
demo --directory @/demo
man @/man
jobs show 999
db migrate --to $POSTGRES
"#;

/// A set of signatures of one format.
const SIGNATURES: &str = r#"<FFSignatureFile DateCreated="2026-01-01T00:00:00" Version="7">
<InternalSignatureCollection><InternalSignature ID="1"><ByteSequence Reference="BOFoffset">
<SubSequence Position="1" SubSeqMinOffset="0" SubSeqMaxOffset="0"><Sequence>48454C4C4F</Sequence></SubSequence>
</ByteSequence></InternalSignature></InternalSignatureCollection>
<FileFormatCollection><FileFormat ID="1" Name="Greeting" PUID="test/1" MIMEType="text/x-greeting">
<InternalSignatureID>1</InternalSignatureID><Extension>hi</Extension></FileFormat></FileFormatCollection></FFSignatureFile>"#;

/// Commands that are not run here, and why.
const NOT_RUN: &[(&str, &str)] = &[
    ("bench bag", "it measures; its answers are for people who compare"),
    ("bench identify", "it measures; its answers are for people who compare"),
    ("bench ingest", "it measures; its answers are for people who compare"),
    ("bench manifest", "it measures; its answers are for people who compare"),
    ("bench ocfl", "it measures; its answers are for people who compare"),
    ("bench queue", "it measures; its answers are for people who compare"),
    ("bench s3", "it measures; its answers are for people who compare"),
    ("completions", "it prints a program for a shell"),
    ("objects cat", "it prints a file's content"),
    ("ocfl cat", "it prints a file's content"),
    ("registry dump", "it prints lines to compare, of no object"),
];

/// The commands that have no commands of their own, as the help lists them.
fn commands(world: &World, above: &[&str]) -> Vec<String> {
    let help = world.done(&[above, &["--help"]].concat());
    // The commands of `accession` itself are in groups.
    let headings = ["Commands:", "Deposit:", "Look:", "Operate:", "Standards:", "Tools:"];
    let mut names = Vec::new();
    let mut listed = false;
    for line in help.lines() {
        listed = headings.contains(&line) || (listed && !line.trim().is_empty());
        if listed && line.starts_with("  ") && !line.starts_with("   ") {
            names.extend(line.split_whitespace().next().filter(|name| *name != "help"));
        }
    }
    if names.is_empty() {
        return vec![above.join(" ")];
    }
    names.into_iter().flat_map(|name| commands(world, &[above, &[name]].concat())).collect()
}

/// Runs the script; what did not fit, and the commands that answered.
fn answered(world: &World, known: &[String]) -> (Vec<String>, BTreeSet<String>) {
    let directory_of = |name: &str| world.path(name);
    directory(&directory_of("box"), &[("a.txt", "one"), ("b/c.txt", "two")]);
    directory(&directory_of("later"), &[("x.txt", "x")]);
    directory(&directory_of("held"), &[("y.txt", "y")]);
    directory(&directory_of("made"), &[("z.txt", "z")]);
    bag(&directory_of("bag"), &[("a.txt", "one")]);
    bag(&directory_of("torn"), &[("a.txt", "one")]);
    std::fs::write(world.path("torn/data/a.txt"), "two").unwrap();
    std::fs::write(world.path("DROID_SignatureFile_V7.xml"), SIGNATURES).unwrap();
    let root = world.dir.path().display().to_string();
    let (mut wrong, mut answered) = (Vec::new(), BTreeSet::new());
    let (mut ark, postgres) = (String::new(), database_of_its_own());
    for line in SCRIPT.lines().filter(|line| !line.is_empty()) {
        let line = match (line.contains("$POSTGRES"), &postgres) {
            (true, None) => continue,
            (true, Some(url)) => line.replace("$POSTGRES", url),
            _ => line.replace('@', &root).replace("$ARK", &ark),
        };
        let args: Vec<&str> = line.split(' ').collect();
        let ended = finish(world.command(&[&args[..], &["--json", "-q"]].concat()), &line);
        let name = answers::command_of(&args, known);
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
            if value["error"]["code"].is_null() {
                answered.insert(name.clone());
            } else {
                assert!(line.ends_with("999"), "{line}: {value}");
            }
            wrong.extend(answers::fits(name, &value));
        }
    }
    (wrong, answered)
}

#[test]
fn every_output_of_every_command_fits_its_schema() {
    let world = World::local(1);
    let known = commands(&world, &[]);
    assert!(known.len() > 90, "{known:?}");
    let (mut wrong, answered) = answered(&world, &known);
    let has_postgres = std::env::var_os("ACCESSION_TEST_POSTGRES").is_some();
    let skipped = |name: &String| {
        (!has_postgres && name == "db migrate") || NOT_RUN.iter().any(|(other, _)| name == other)
    };
    for name in known.iter().filter(|name| !answered.contains(*name) && !skipped(name)) {
        wrong.push(format!("`{name}` has no answer here: add it to SCRIPT, and its schema"));
    }
    for name in answers::described() {
        if !known.contains(&name) {
            wrong.push(format!("docs/schemas has `{name}`, which is no command"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Every list that is cut says where its next page begins, and the pages together are the list.
#[test]
fn lists_have_pages() {
    let world = World::local(1);
    world.done(&["queue", "create", "letters", "max_attempts=1"]);
    for label in ["One", "Two", "Three"] {
        world.done(&["queue", "add", "letters", "--batch", label, &format!("{label}.txt")]);
    }
    world.run(&["queue", "work", "letters", "--until-empty", "--exec", "false"]);
    let lists = [
        (["jobs", "list"], "jobs"),
        (["jobs", "failed"], "jobs"),
        (["jobs", "review"], "jobs"),
        (["queue", "list"], "jobs"),
        (["queue", "failed"], "jobs"),
        (["queue", "review"], "jobs"),
        (["batches", "list"], "batches"),
        (["queue", "batches"], "batches"),
    ];
    for (command, name) in lists {
        let page = |options: &[&str]| world.json(&[&command[..], options].concat()).remove(0);
        let whole = page(&[]);
        assert_eq!((whole[name].as_array().unwrap().len(), &whole["next"]), (3, &Value::Null));
        let first = page(&["--limit", "2"]);
        let rest = page(&["--limit", "2", "--before", &first["next"].to_string()]);
        assert_eq!(rest["next"], Value::Null, "{command:?}");
        let pages = [first, rest].map(|page| page[name].as_array().unwrap().clone());
        assert_eq!(Value::from(pages.concat()), whole[name], "{command:?}");
        let told = world.run(&[&command[..], &["--limit", "2"]].concat()).stderr;
        assert!(told.contains("there may be more: --before"), "{command:?}: {told}");
    }
}

/// A schema that leaves open what is in a list, or what a member is when there is one, describes nothing.
#[test]
fn schemas_say_what_is_in_every_list_and_member() {
    let mut found = Vec::new();
    for command in answers::described() {
        let text = std::fs::read_to_string(answers::file(&command)).unwrap();
        found.extend(unsaid(&serde_json::from_str(&text).unwrap(), &format!("`{command}` $")));
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn values_that_do_not_fit_are_found() {
    let job = |job: Value| json!({"jobs": [job], "next": null});
    let example = job(json!({"id": 1, "added_at": "2026-11-18T10:00:00Z", "why": null}));
    let mut schema = json!({});
    widen(&mut schema, &example);
    assert_eq!(problems(&schema, &example), Vec::<String>::new());
    for (wrong, part) in [
        (json!([]), "$ is array, not object"),
        (json!({"jobs": []}), "$.next is missing"),
        (job(json!({"id": "1"})), "jobs[0].id is string"),
        (job(json!({"id": 1, "added_at": "today"})), "added_at is no time"),
        (job(json!({"id": 1, "added_at": 5})), "added_at is integer"),
        (json!({"jobs": [], "next": null, "more": 1}), "$.more is not in the schema"),
    ] {
        let found = problems(&schema, &wrong);
        assert!(found.iter().any(|problem| problem.contains(part)), "{wrong}: {found:?}");
        let mut wider = schema.clone();
        widen(&mut wider, &wrong);
        for fits in [&example, &wrong] {
            assert_eq!(problems(&wider, fits), Vec::<String>::new(), "{wider:#}");
        }
    }
    assert_eq!(
        unsaid(&schema, "$"),
        ["$.jobs[].why may be anything, or only null", "$.next may be anything, or only null"]
    );
    assert_eq!(unsaid(&json!({"type": "array"}), "$"), ["$ is a list of unknown items"]);
}
