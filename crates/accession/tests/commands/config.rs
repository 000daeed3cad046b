//! The configuration, collections and the doctor, by the binary as people run it.

use crate::answers;
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

fn accession(data: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_accession"));
    for name in ["ACCESSION_CONFIG", "ACCESSION_DATABASE"] {
        command.env_remove(name);
    }
    let output = command.arg("--data").arg(data).args(args).output().unwrap();
    answers::hold(args, &String::from_utf8_lossy(&output.stdout));
    output
}

fn json(data: &Path, args: &[&str]) -> Value {
    let output = accession(data, &[&["--json"], args].concat());
    let text = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{args:?}: {e}: {output:?}"))
}

fn error(data: &Path, args: &[&str], status: i32) -> String {
    let output = accession(data, args);
    assert_eq!(output.status.code(), Some(status), "{args:?}: {output:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn private_dir() -> tempfile::TempDir {
    // For its owner alone, as a data directory should be.
    let dir = tempfile::tempdir().unwrap();
    std::fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o700)).unwrap();
    dir
}

#[test]
fn config_show_says_where_each_value_came_from() {
    let dir = private_dir();
    let file = dir.path().join("accession.toml");
    std::fs::write(
        &file,
        "[fetch]\ntries = 3\n[collections.c]\ncallback = {url = 'https://x/', secret = 'hush'}\n",
    )
    .unwrap();
    let shown = json(dir.path(), &["config", "show", "--set", "fetch.connections=7"]);
    let values = shown["values"].as_array().unwrap();
    let of = |key: &str| values.iter().find(|v| v["key"] == key).unwrap_or_else(|| panic!("{key}"));
    assert_eq!(of("fetch.tries")["value"], 3);
    assert_eq!(of("fetch.tries")["origin"]["line"], 2);
    assert_eq!(of("fetch.connections")["origin"]["from"], "flag");
    assert_eq!(of("upload.bytes_max")["origin"]["from"], "default");
    assert!(!shown.to_string().contains("hush"));
    let table = accession(dir.path(), &["config", "show", "fetch", "--changed"]);
    let table = String::from_utf8_lossy(&table.stdout).into_owned();
    assert_eq!(table.lines().count(), 2, "{table}");
    assert!(table.contains("accession.toml:2"), "{table}");
    let said = error(dir.path(), &["config", "show", "--set", "fetch.trials=7"], 2);
    assert!(said.contains("unknown field `trials`"), "{said}");
}

#[test]
fn collections_are_made_changed_and_frozen() {
    let dir = private_dir();
    std::fs::write(dir.path().join("accession.toml"), "[collections.fixed]\n").unwrap();
    let run = |args: &[&str]| {
        let output = accession(dir.path(), &[&["collection"], args].concat());
        assert!(output.status.success(), "{args:?}: {output:?}");
    };
    run(&["create", "maps", "owner=Map department"]);
    run(&["set", "maps", "fixity_days=30", "local_ids=required"]);
    let shown = json(dir.path(), &["collection", "show", "maps"]);
    assert_eq!(shown["owner"], "Map department");
    assert_eq!(shown["fixity_days"], 30);
    assert_eq!(shown["held"], false);
    run(&["freeze", "maps", "--reason", "moving house"]);
    assert_eq!(json(dir.path(), &["collection", "show", "maps"])["held"], true);
    run(&["thaw", "maps"]);
    let listed = json(dir.path(), &["collection", "list"])["collections"].clone();
    let names: Vec<&str> =
        listed.as_array().unwrap().iter().map(|c| c["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["default", "fixed", "maps"]);
    assert_eq!(listed[2]["stores"], serde_json::json!(["main"]));
    assert_eq!(listed[2]["held"], false);
    for (args, part) in [
        (vec!["create", "maps"], "exists"),
        (vec!["create", "no good"], "cannot be a name"),
        (vec!["set", "nowhere", "owner=x"], "there is no collection nowhere"),
        (vec!["set", "fixed", "owner=x"], "configuration file"),
        (vec!["set", "maps", "owner=y", "fixity_days=0"], "between 1 and 3650"),
        (vec!["set", "maps", "stores=[\"far\"]"], "`far`, which is not configured"),
        (vec!["freeze", "nowhere"], "there is no collection"),
        (vec!["thaw", "maps"], "not held"),
    ] {
        let said = error(dir.path(), &[&["collection"], &args[..]].concat(), 2);
        assert!(said.contains(part), "{args:?}: {said}");
    }
    let shown = json(dir.path(), &["collection", "show", "maps"]);
    assert_eq!(shown["owner"], "Map department", "all settings are changed or none");
}

#[test]
fn the_doctor_finds_what_is_wrong_and_says_what_to_do() {
    let dir = private_dir();
    let room = ["--set", "work_space.admit_percent=95", "--set", "work_space.stop_percent=99"];
    let well = json(dir.path(), &[&["doctor"], &room[..]].concat());
    assert_eq!(well["problems"], 0, "{well}");
    let found = |report: &Value, what: &str| {
        let all = report["findings"].as_array().unwrap();
        all.iter().find(|f| f["what"] == what).unwrap_or_else(|| panic!("{what}: {report}")).clone()
    };
    for what in
        ["database", "clock", "store main", "work space main", "signatures", "data directory"]
    {
        assert_eq!(found(&well, what)["state"], "ok", "{what}");
    }
    assert_eq!(found(&well, "identifiers")["state"], "warning");
    std::fs::write(dir.path().join("blocked"), "a file").unwrap();
    std::fs::write(dir.path().join("password"), "hush\n").unwrap();
    let open = PermissionsExt::from_mode(0o644);
    std::fs::set_permissions(dir.path().join("password"), open).unwrap();
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let text = format!(
        "[stores.main]\nurl = 'blocked'\n[work_space]\npath = 'blocked'\n[[watch]]\npath = 'nowhere'\ncollection = 'default'\n
         [mail]\nhost = '127.0.0.1'\nport = {closed}\nsecurity = 'none'\nfrom = 'a@example.org'\nuser = 'u'\npassword_file = 'password'\ntimeout_seconds = 2\n"
    );
    std::fs::write(dir.path().join("accession.toml"), text).unwrap();
    let output = accession(dir.path(), &["--json", "doctor"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let ill: Value = serde_json::from_slice(&output.stdout).unwrap();
    for what in ["store main", "work space main", "watch 0", "mail"] {
        let finding = found(&ill, what);
        assert_eq!(finding["state"], "problem", "{what}");
        assert!(finding["fix"].as_str().is_some_and(|fix| !fix.is_empty()));
    }
    assert_eq!(found(&ill, "secret")["state"], "warning");
    assert!(!ill.to_string().contains("hush"));
}

/// What works on any machine, however full its disk is.
const ROOM: [&str; 4] =
    ["--set", "work_space.admit_percent=95", "--set", "work_space.stop_percent=99"];

#[test]
fn objects_of_a_store_that_is_no_longer_configured_are_not_lost_silently() {
    let dir = private_dir();
    let configure = |text: &str| std::fs::write(dir.path().join("accession.toml"), text).unwrap();
    std::fs::create_dir(dir.path().join("letters")).unwrap();
    std::fs::write(dir.path().join("letters/a.txt"), "Dear Ann").unwrap();
    let letters = dir.path().join("letters").display().to_string();
    let ingest = [&["ingest", &letters][..], &ROOM].concat();
    assert!(accession(dir.path(), &ingest).status.success());
    // The store that is there by itself is replaced by what is configured.
    configure("[stores.other]\nurl = 'other'\n");
    let line = "add `[stores.main] url = \"stores/main\"`";
    for command in [&["objects", "list"][..], &ingest, &["status"]] {
        let said = error(dir.path(), command, 2);
        assert!(said.contains(line) && said.contains("[store_not_configured]"), "{said}");
    }
    let output = accession(dir.path(), &["--json", "doctor"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.contains("[stores.main] url"), "{said}");
    // As it says.
    configure("[stores.other]\nurl = 'other'\n[stores.main]\nurl = 'stores/main'\n");
    assert!(accession(dir.path(), &["objects", "list"]).status.success());
    let doctor = json(dir.path(), &["doctor"]);
    let of = |what: &str| {
        let findings = doctor["findings"].as_array().unwrap().iter();
        findings.filter(|f| f["what"] == what).map(|f| f["found"].to_string()).collect::<String>()
    };
    assert!(of("store other").contains("no object is in it"), "{doctor}");
    assert!(!of("store main").contains("no object"), "{doctor}");
}

#[test]
fn a_store_that_has_only_second_copies_may_be_missing_and_is_told() {
    let dir = private_dir();
    let configure = |text: &str| std::fs::write(dir.path().join("accession.toml"), text).unwrap();
    configure("[stores.other]\nurl = 'other'\n[stores.main]\nurl = 'stores/main'\n");
    std::fs::write(dir.path().join("letter.txt"), "Dear Ann").unwrap();
    let letter = dir.path().join("letter.txt").display().to_string();
    let ingest = [&["ingest", &letter][..], &ROOM].concat();
    let done = accession(dir.path(), &ingest);
    assert!(done.status.success(), "{done:?}");
    configure("[stores.other]\nurl = 'other'\n");
    let listed = accession(dir.path(), &["objects", "list"]);
    assert!(listed.status.success(), "{listed:?}");
    let doctor = json(dir.path(), &[&["doctor"], &ROOM[..]].concat());
    let stores = doctor["findings"].as_array().unwrap().iter().find(|f| f["what"] == "stores");
    let stores = stores.unwrap_or_else(|| panic!("{doctor}"));
    assert_eq!(stores["state"], "warning", "{doctor}");
    assert!(stores["found"].as_str().unwrap().contains("copies in main, not configured"));
    assert!(stores["fix"].as_str().unwrap().contains("[stores.main] url = \"stores/main\""));
}

#[test]
fn the_doctor_warns_of_what_has_no_effect() {
    let dir = private_dir();
    let text = "[stores.main]\nurl = 'stores/main'\n[stores.unused]\nurl = 'unused'\n
        [collections.default]\nstores = ['main']\n
        [collections.maps]\nstores = ['main']\nnotify = [{address = 'maps@example.org'}]\n";
    std::fs::write(dir.path().join("accession.toml"), text).unwrap();
    let report = |dir: &Path| json(dir, &[&["doctor"], &ROOM[..]].concat());
    let found = |report: &Value, what: &str, part: &str| {
        let all = report["findings"].as_array().unwrap().iter();
        all.filter(|f| f["what"] == what && f["state"] == "warning")
            .any(|f| f["found"].as_str().unwrap().contains(part))
    };
    let doctor = report(dir.path());
    assert_eq!(doctor["problems"], 0, "{doctor}");
    assert!(found(&doctor, "notify", "maps should tell people by mail"), "{doctor}");
    assert!(found(&doctor, "store unused", "no collection keeps anything in it"), "{doctor}");
    assert!(!found(&doctor, "store main", ""), "{doctor}");
    assert!(found(&doctor, "identifiers", "99999"), "{doctor}");
    // Also of collections that were made by a command.
    std::fs::write(dir.path().join("accession.toml"), "").unwrap();
    let notify = r#"notify=[{address = "m@example.org"}]"#;
    let made = accession(dir.path(), &["collection", "create", "posters", notify]);
    assert!(made.status.success(), "{made:?}");
    let doctor = report(dir.path());
    assert!(found(&doctor, "notify", "posters"), "{doctor}");
}
