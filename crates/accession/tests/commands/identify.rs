//! `accession identify` and `accession formats` as people and programs meet them.

use crate::answers;
use serde_json::Value;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const SIGNATURES: &str = r#"<FFSignatureFile DateCreated="2026-01-01T00:00:00" Version="7">
<InternalSignatureCollection><InternalSignature ID="1"><ByteSequence Reference="BOFoffset">
<SubSequence Position="1" SubSeqMinOffset="0" SubSeqMaxOffset="0"><Sequence>48454C4C4F</Sequence></SubSequence>
</ByteSequence></InternalSignature></InternalSignatureCollection>
<FileFormatCollection><FileFormat ID="1" Name="Greeting" PUID="test/1" MIMEType="text/x-greeting">
<InternalSignatureID>1</InternalSignatureID><Extension>hi</Extension></FileFormat></FileFormatCollection></FFSignatureFile>"#;

/// A directory of its own for each test, with a file to identify, one unknown, and one misnamed.
fn place(name: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    if dir.exists() {
        std::fs::remove_dir_all(&dir).unwrap();
    }
    std::fs::create_dir_all(dir.join("files/below")).unwrap();
    std::fs::write(dir.join("files/a.gif"), b"GIF89a...;").unwrap();
    std::fs::write(dir.join("files/below/b.jpg"), b"GIF87a...;").unwrap();
    std::fs::write(dir.join("files/c.what"), b"nothing that anybody knows").unwrap();
    dir
}

fn accession(dir: &Path, args: &[&str]) -> Output {
    let output = Command::new(env!("CARGO_BIN_EXE_accession"))
        .current_dir(dir)
        .env("ACCESSION_DATA", dir.join("data"))
        .args(args)
        .output()
        .unwrap();
    answers::hold(args, &String::from_utf8_lossy(&output.stdout));
    output
}

fn text(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[test]
fn json_has_one_object_a_line_and_the_exit_status_tells() {
    let dir = place("json");
    let output = accession(&dir, &["--json", "identify", "-r", "files"]);
    assert_eq!(output.status.code(), Some(1), "one file is unknown");
    let lines: Vec<Value> =
        text(&output).lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    let paths: Vec<&str> = lines.iter().map(|l| l["path"].as_str().unwrap()).collect();
    assert_eq!(paths, ["files/a.gif", "files/below/b.jpg", "files/c.what"]);
    assert_eq!(lines[0]["matches"][0]["puid"], "fmt/4");
    assert_eq!(lines[0]["matches"][0]["basis"]["method"], "signature");
    assert_eq!(lines[0]["signatures"], "essential-2");
    assert_eq!(lines[1]["warnings"][0]["code"], "extension_mismatch");
    assert_eq!(lines[2]["warnings"][0]["code"], "unknown");
    let known = accession(&dir, &["identify", "files/a.gif"]);
    assert_eq!(known.status.code(), Some(0));
    assert!(text(&known).contains("fmt/4"));
}

#[test]
fn formats_name_the_formats_that_they_are_preferred_to() {
    let dir = place("preferred");
    let shown = text(&accession(&dir, &["--json", "formats", "show", "fmt/412"]));
    let shown: Value = serde_json::from_str(&shown).unwrap();
    let lesser = shown["formats"][0]["priority_over"].as_array().unwrap();
    assert!(lesser.contains(&"fmt/189".into()), "{shown}");
}

#[test]
fn csv_and_siegfried_are_what_their_readers_expect() {
    let dir = place("siegfried");
    let csv = text(&accession(&dir, &["identify", "--csv", "files/a.gif"]));
    let row = "files/a.gif,10,fmt/4,Graphics Interchange Format,89a,image/gif,signature,\"byte match at [[0 6] [9 1]]\",,,essential-2";
    assert_eq!(
        csv.lines().nth(1),
        Some(row.replace("\"byte", "byte").replace("]]\"", "]]").as_str())
    );
    let output = accession(&dir, &["identify", "-r", "--format", "siegfried", "files"]);
    let whole: Value = serde_json::from_str(&text(&output)).unwrap();
    let files = whole["files"].as_array().unwrap();
    assert_eq!(files.len(), 3);
    assert_eq!(files[0]["matches"][0]["basis"], "extension match gif; byte match at [[0 6] [9 1]]");
    assert_eq!(files[1]["matches"][0]["warning"], "extension mismatch");
    assert_eq!(files[2]["matches"][0]["id"], "UNKNOWN");
}

#[test]
fn wrong_requests_are_refused() {
    let dir = place("refused");
    for args in [
        &["identify", "files"][..],
        &["identify", "absent"],
        &["identify", "--set", "v9", "files/a.gif"],
    ] {
        let output = accession(&dir, args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(text(&output).is_empty(), "{args:?}");
    }
}

#[test]
fn standard_input_is_identified_as_it_comes() {
    let dir = place("stdin");
    let mut child = Command::new(env!("CARGO_BIN_EXE_accession"))
        .env("ACCESSION_DATA", dir.join("data"))
        .args(["--json", "identify", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"GIF89a...;").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    let found: Value = serde_json::from_str(text(&output).trim()).unwrap();
    assert_eq!(found["matches"][0]["puid"], "fmt/4");
}

#[test]
fn signatures_are_installed_used_and_put_back() {
    let dir = place("formats");
    std::fs::write(dir.join("DROID_SignatureFile_V7.xml"), SIGNATURES).unwrap();
    std::fs::write(dir.join("files/greeting.hi"), b"HELLO you").unwrap();
    let output = accession(&dir, &["formats", "install", "DROID_SignatureFile_V7.xml"]);
    assert_eq!(output.status.code(), Some(0));
    assert!(text(&output).contains("Open Government Licence"), "{}", text(&output));
    let sets: Value =
        serde_json::from_str(&text(&accession(&dir, &["--json", "formats", "list"]))).unwrap();
    assert_eq!(
        (&sets["sets"][0]["in_use"], &sets["sets"][1]["in_use"]),
        (&Value::Bool(false), &Value::Bool(true))
    );
    let found: Value =
        serde_json::from_str(&text(&accession(&dir, &["--json", "identify", "files/greeting.hi"])))
            .unwrap();
    assert_eq!(
        (&found["matches"][0]["puid"], &found["signatures"]),
        (&"test/1".into(), &"v7".into())
    );
    assert_eq!(accession(&dir, &["formats", "show", "test/1"]).status.code(), Some(0));
    assert_eq!(accession(&dir, &["formats", "show", "fmt/9999"]).status.code(), Some(1));
    assert_eq!(accession(&dir, &["formats", "use", "essential-2"]).status.code(), Some(0));
    assert_eq!(accession(&dir, &["identify", "files/greeting.hi"]).status.code(), Some(1));
    assert_eq!(accession(&dir, &["formats", "install", "files/a.gif"]).status.code(), Some(2));
}
