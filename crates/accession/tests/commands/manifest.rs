//! `accession manifest`, as people and scripts use it.

use crate::answers;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn accession(dir: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_accession"));
    let output = command.args(args).current_dir(dir).output().unwrap();
    answers::hold(args, &String::from_utf8_lossy(&output.stdout));
    output
}

fn status(output: &Output) -> i32 {
    output.status.code().unwrap()
}

fn out(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn err(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

const GOOD: &str = "#%checkm_0.7
#%profile | http://uc3.cdlib.org/registry/ingest/manifest/mrt-ingest-manifest
http://example.org/a | md5 | d41d8cd98f00b204e9800998ecf8427e | 5 | | a%7cb
#%eof
";

fn bad(rows: usize) -> String {
    let row = "http://example.org/a | md5 | d41d | 5 | | a\u{1b}[31m\n";
    GOOD.replace("#%eof\n", &format!("{}#%eof\n", row.repeat(rows)))
}

#[test]
fn check_answers_by_exit_status_table_and_json() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("good.checkm"), GOOD).unwrap();
    fs::write(dir.path().join("bad.checkm"), bad(150)).unwrap();
    let good = accession(dir.path(), &["manifest", "check", "good.checkm"]);
    assert_eq!(status(&good), 0);
    assert_eq!(
        out(&good),
        "good.checkm: valid: profile object, 1 row, 5 B, 0 errors, 0 warnings\n"
    );
    let both = accession(dir.path(), &["manifest", "check", "bad.checkm", "good.checkm"]);
    assert_eq!(status(&both), 1);
    assert!(out(&both).contains("50 more errors of code digest-length are not shown"));
    assert!(!out(&both).contains('\u{1b}'), "names from outside cannot colour the terminal");
    let json = accession(dir.path(), &["--json", "manifest", "check", "bad.checkm"]);
    let report: Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(report["valid"], false);
    assert_eq!(report["rows"], 151);
    assert_eq!(report["problems"][0]["line"], 4);
    assert_eq!(report["not_shown"], 50 + 50 + 49);
    let missing = accession(dir.path(), &["manifest", "check", "none.checkm"]);
    assert_eq!((status(&missing), out(&missing).as_str()), (3, ""));
    assert!(err(&missing).contains("cannot read none.checkm"));
    let wrong = accession(dir.path(), &["manifest", "check", "--profile", "zine", "good.checkm"]);
    assert_eq!(status(&wrong), 2);
    let other =
        accession(dir.path(), &["manifest", "check", "--profile", "container", "good.checkm"]);
    assert_eq!(status(&other), 1);
    assert!(out(&other).contains("profile-mismatch"));
}

#[test]
fn included_manifests_are_read_when_asked() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, rows: &str| {
        fs::write(dir.path().join(name), format!("#%checkm_0.7\n{rows}#%eof\n")).unwrap();
    };
    write("first.checkm", "a.txt\n@second.checkm\n");
    write("second.checkm", "b.txt | md5 | 12\n");
    let alone = accession(dir.path(), &["manifest", "check", "first.checkm"]);
    assert_eq!(status(&alone), 0);
    assert!(out(&alone).contains("include-unread"));
    let all = accession(dir.path(), &["manifest", "check", "--follow", "first.checkm"]);
    assert_eq!(status(&all), 1);
    assert!(!out(&all).contains("include-unread"));
    assert!(out(&all).contains("first.checkm: valid") && out(&all).contains("second.checkm: inv"));
    let none = accession(dir.path(), &["manifest", "check", "--follow", "none.checkm"]);
    assert_eq!(status(&none), 3);
    let stream = accession(dir.path(), &["manifest", "check", "--follow", "-"]);
    assert_eq!(status(&stream), 2);
}

#[test]
fn the_schema_and_the_codes_are_published() {
    let dir = tempfile::tempdir().unwrap();
    let schema = accession(dir.path(), &["manifest", "check", "--schema"]);
    let schema: Value = serde_json::from_slice(&schema.stdout).unwrap();
    assert_eq!(schema["properties"]["format"]["const"], checkm::FORMAT);
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/manifests.md");
    let page = fs::read_to_string(page).unwrap();
    let codes = out(&accession(dir.path(), &["manifest", "check", "--codes"]));
    for code in checkm::Code::ALL {
        let meaning = code.meaning().replace('|', "\\|");
        let row = format!("| `{code}` | {} | {meaning} |", code.severity());
        assert!(page.contains(&row), "docs/manifests.md does not have {row}");
        assert!(codes.contains(code.as_str()));
    }
}

#[test]
fn convert_there_and_back_is_the_same() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("good.checkm"), GOOD).unwrap();
    let there = accession(dir.path(), &["manifest", "convert", "good.checkm", "-o", "good.json"]);
    assert_eq!(status(&there), 0, "{}", err(&there));
    let json = fs::read(dir.path().join("good.json")).unwrap();
    let json: Value = serde_json::from_slice(&json).unwrap();
    assert_eq!(json["rows"][0]["name"], "a|b");
    let back = accession(dir.path(), &["manifest", "convert", "good.json"]);
    let row = "http://example.org/a | md5 | d41d8cd98f00b204e9800998ecf8427e | 5 |  | a%7cb";
    let text = out(&back);
    assert_eq!(text.lines().filter(|line| !line.starts_with('#')).collect::<Vec<_>>(), [row]);
    assert_eq!(status(&accession(dir.path(), &["--json", "manifest", "convert", "good.json"])), 2);
}

#[test]
fn an_invalid_manifest_is_not_converted() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("bad.checkm"), bad(1)).unwrap();
    fs::write(dir.path().join("kept.json"), "before").unwrap();
    let refused = accession(dir.path(), &["manifest", "convert", "bad.checkm", "-o", "kept.json"]);
    assert_eq!(status(&refused), 1);
    assert!(out(&refused).contains("digest-length"));
    assert_eq!(fs::read_to_string(dir.path().join("kept.json")).unwrap(), "before");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2, "nothing is left lying about");
    fs::write(dir.path().join("good.checkm"), GOOD).unwrap();
    let convert = ["manifest", "convert", "good.checkm", "--profile", "container", "-o", "x"];
    let lossy = accession(dir.path(), &convert);
    assert_eq!(status(&lossy), 1);
    assert!(err(&lossy).contains("no column for source"), "{}", err(&lossy));
    let dropped = accession(dir.path(), &[&convert[..], &["--drop"]].concat());
    assert_eq!(status(&dropped), 0, "{}", err(&dropped));
}

#[test]
fn make_lists_a_directory_and_checks_out() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("d")).unwrap();
    fs::write(dir.path().join("d/one two.txt"), "abc").unwrap();
    let refused = accession(dir.path(), &["manifest", "make", "d", "--profile", "object"]);
    assert_eq!((status(&refused), out(&refused).as_str()), (2, ""));
    let make = |output| {
        let base = ["manifest", "make", "d", "--profile", "object", "--base-url"];
        let rest = ["https://example.org/d", "--algorithm", "sha1", "--json", "-o", output];
        accession(dir.path(), &[&base[..], &rest[..]].concat())
    };
    let made = make("d/m.checkm");
    assert_eq!(status(&made), 0, "{}", err(&made));
    let summary: Value = serde_json::from_slice(&made.stdout).unwrap();
    assert_eq!((&summary["rows"], &summary["bytes"]), (&1.into(), &3.into()));
    let first = fs::read_to_string(dir.path().join("d/m.checkm")).unwrap();
    assert_eq!(status(&make("d/m.checkm")), 0);
    let second = fs::read_to_string(dir.path().join("d/m.checkm")).unwrap();
    assert_eq!(first, second, "a manifest does not list itself");
    let start = "https://example.org/d/one%20two.txt | sha1 | a9993e364706816aba3e25717850c26c9cd0d89d | 3 | ";
    assert!(first.contains(start), "{first}");
    assert_eq!(status(&accession(dir.path(), &["manifest", "check", "--strict", "d/m.checkm"])), 0);
    fs::create_dir(dir.path().join("d/empty")).unwrap();
    assert_eq!(status(&make("m.json")), 1);
    assert!(!dir.path().join("m.json").exists());
    let skip = ["manifest", "make", "d", "--profile", "container", "--skip"];
    let skipped = accession(dir.path(), &skip);
    assert_eq!(status(&skipped), 0);
    assert!(err(&skipped).contains("skipped: d/empty"));
}
