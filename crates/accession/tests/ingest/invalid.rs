//! Two hundred packages that are wrong, each in its own way: the right code, the right file, and
//! nothing else touched.

use crate::support::packages::{archive, bag, directory, raw_tar};
use crate::support::world::World;
use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

type Harm = fn(&Path);

fn append(path: &Path, text: &str) {
    fs::OpenOptions::new().append(true).open(path).unwrap().write_all(text.as_bytes()).unwrap();
}

fn edit(path: &Path, change: impl Fn(String) -> String) {
    fs::write(path, change(fs::read_to_string(path).unwrap())).unwrap();
}

const MANIFEST: &str = "manifest-sha512.txt";
const TAGS: &str = "tagmanifest-sha512.txt";

/// The tag manifest would complain about every other change first; without it the code is the one
/// that is meant.
fn untagged(bag: &Path) {
    fs::remove_file(bag.join(TAGS)).unwrap();
}

/// What is done to a good bag, and the code that must come of it.
const BAGS: &[(&str, Harm)] = &[
    ("bag_digest_mismatch", |b| fs::write(b.join("data/a.txt"), "other").unwrap()),
    ("bag_payload_file_missing", |b| fs::remove_file(b.join("data/a.txt")).unwrap()),
    ("bag_payload_file_unlisted", |b| fs::write(b.join("data/extra.txt"), "extra").unwrap()),
    ("bag_tag_file_missing", |b| fs::remove_file(b.join("bag-info.txt")).unwrap()),
    ("bag_payload_manifest_missing", |b| {
        untagged(b);
        fs::remove_file(b.join(MANIFEST)).unwrap();
    }),
    ("bag_bagit_txt_malformed", |b| {
        untagged(b);
        fs::write(b.join("bagit.txt"), "BagIt-Version: 1.0\nnothing\nmore\n").unwrap();
    }),
    ("bag_version_unsupported", |b| {
        untagged(b);
        edit(&b.join("bagit.txt"), |t| t.replace("1.0", "9.9"));
    }),
    ("bag_encoding_unknown", |b| {
        untagged(b);
        edit(&b.join("bagit.txt"), |t| t.replace("UTF-8", "KLINGON-7"));
    }),
    ("bag_manifest_line_malformed", |b| {
        untagged(b);
        append(&b.join(MANIFEST), "this is no line of a manifest\n");
    }),
    ("bag_manifest_path_unsafe", |b| {
        untagged(b);
        append(&b.join(MANIFEST), &format!("{}  data/../../etc/passwd\n", "0".repeat(128)));
    }),
    ("bag_manifest_path_outside_payload", |b| {
        untagged(b);
        append(&b.join(MANIFEST), &format!("{}  bagit.txt\n", "0".repeat(128)));
    }),
    ("bag_manifest_conflict", |b| {
        untagged(b);
        append(&b.join(MANIFEST), &format!("{}  data/a.txt\n", "0".repeat(128)));
    }),
    ("bag_manifest_incomplete", |b| {
        untagged(b);
        fs::write(b.join("manifest-md5.txt"), "f97c5d29941bfb1b2fdab0874906ab82  data/a.txt\n")
            .unwrap();
    }),
    ("bag_oxum_mismatch", |b| {
        untagged(b);
        edit(&b.join("bag-info.txt"), |t| replace_line(&t, "Payload-Oxum", "Payload-Oxum: 1.1"));
    }),
    ("bag_oxum_malformed", |b| {
        untagged(b);
        edit(&b.join("bag-info.txt"), |t| replace_line(&t, "Payload-Oxum", "Payload-Oxum: many"));
    }),
    ("bag_info_line_malformed", |b| {
        untagged(b);
        edit(&b.join("bag-info.txt"), |t| format!("{t}no colon here\n"));
    }),
    ("bag_tag_file_encoding", |b| {
        untagged(b);
        fs::write(b.join("bag-info.txt"), b"Contact-Name: \xff\xfe\n").unwrap();
    }),
    ("bag_line_too_long", |b| {
        untagged(b);
        append(&b.join("bag-info.txt"), &format!("X: {}\n", "x".repeat(70_000)));
    }),
    ("bag_fetch_line_malformed", |b| {
        untagged(b);
        fs::write(b.join("fetch.txt"), "nonsense\n").unwrap();
    }),
    ("bag_fetch_path_unsafe", |b| {
        untagged(b);
        fs::write(b.join("fetch.txt"), "http://a.example/x 1 data/../../x\n").unwrap();
    }),
    ("bag_fetch_unlisted", |b| {
        untagged(b);
        fs::write(b.join("fetch.txt"), "http://a.example/x 1 data/nowhere.txt\n").unwrap();
    }),
    ("bag_fetch_pending", |b| {
        untagged(b);
        fs::remove_file(b.join("data/a.txt")).unwrap();
        fs::write(b.join("fetch.txt"), "http://a.example/x 3 data/a.txt\n").unwrap();
    }),
    ("bag_tagmanifest_lists_tagmanifest", |b| {
        append(&b.join(TAGS), &format!("{}  {TAGS}\n", "0".repeat(128)));
    }),
    ("bag_special_file", |b| {
        std::os::unix::fs::symlink("/etc/passwd", b.join("data/link")).unwrap()
    }),
];

fn replace_line(text: &str, start: &str, line: &str) -> String {
    text.lines()
        .map(|l| if l.starts_with(start) { line } else { l })
        .fold(String::new(), |t, l| t + l + "\n")
}

/// Rows and whole texts of manifests, and the code that must come of each.
const ROWS: &[(&str, &str)] = &[
    ("manifest_url_scheme", "ftp://a.example/1 | | | | | 1.txt"),
    ("manifest_url_syntax", "http://[ | | | | | 1.txt"),
    ("manifest_algorithm_unknown", "http://a.example/1 | sha9 | abcd | | | 1.txt"),
    (
        "manifest_algorithm_missing",
        "http://a.example/1 | | d41d8cd98f00b204e9800998ecf8427e | | | 1.txt",
    ),
    ("manifest_digest_missing", "http://a.example/1 | md5 | | | | 1.txt"),
    (
        "manifest_digest_syntax",
        "http://a.example/1 | md5 | zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz | | | 1.txt",
    ),
    ("manifest_digest_length", "http://a.example/1 | md5 | d41d8cd9 | | | 1.txt"),
    ("manifest_size_syntax", "http://a.example/1 | | | 12 KB | | 1.txt"),
    ("manifest_size_range", "http://a.example/1 | | | 99999999999999999999999 | | 1.txt"),
    ("manifest_date_syntax", "http://a.example/1 | | | | yesterday | 1.txt"),
    ("manifest_date_impossible", "http://a.example/1 | | | | 2026-02-30T00:00:00Z | 1.txt"),
    ("manifest_name_escape", "http://a.example/1 | | | | | ../1.txt"),
    ("manifest_name_absolute", "http://a.example/1 | | | | | /etc/passwd"),
    ("manifest_name_syntax", "http://a.example/1 | | | | | a//b"),
    (
        "manifest_name_duplicate",
        "http://a.example/1 | | | | | 1.txt\nhttp://a.example/2 | | | | | 1.txt",
    ),
    ("manifest_columns_too_many", "http://a.example/1 | | | | | 1.txt | a/b | c | d | e"),
    ("manifest_value_missing", " | | | | | 1.txt"),
    ("manifest_control_character", "http://a.example/1 | | | | | a\u{7}b"),
];

const TEXTS: &[(&str, &str)] = &[
    (
        "manifest_eof_missing",
        "#%checkm_0.7\n#%profile | P/mrt-ingest-manifest\nhttp://a.example/1 | | | | | 1\n",
    ),
    (
        "manifest_eof_trailing",
        "#%checkm_0.7\n#%profile | P/mrt-ingest-manifest\nhttp://a.example/1 | | | | | 1\n#%eof\nhttp://a.example/2 | | | | | 2\n",
    ),
    ("manifest_no_rows", "#%checkm_0.7\n#%profile | P/mrt-ingest-manifest\n#%eof\n"),
    (
        "manifest_not_container",
        "#%checkm_0.7\n#%profile | P/mrt-container-batch-manifest\nhttp://a.example/1.txt | | | | | 1.txt\n#%eof\n",
    ),
    (
        "manifest_not_manifest",
        "#%checkm_0.7\n#%profile | P/mrt-batch-manifest\nhttp://a.example/1.txt | | | | | 1.txt\n#%eof\n",
    ),
    (
        "manifest_identifier_syntax",
        "#%checkm_0.7\n#%profile | P/mrt-single-file-batch-manifest\nhttp://a.example/1.txt | | | | | 1.txt | doi:10/x\n#%eof\n",
    ),
    ("manifest_empty", ""),
    ("manifest_json_syntax", "{\"format\": \"checkm-json/1\", \"rows\": [}"),
    (
        "manifest_json_member",
        "{\"format\": \"checkm-json/1\", \"profile\": \"object\", \"rows\": [{\"source\": \"http://a.example/1\", \"nome\": \"1\"}]}",
    ),
    (
        "manifest_json_type",
        "{\"format\": \"checkm-json/1\", \"profile\": \"object\", \"rows\": [{\"source\": 7}]}",
    ),
];

/// What no tool would write into a tar.
const TARS: &[(&str, &[(&str, u8, &str, &str)])] = &[
    ("unsafe_path", &[("../escape.txt", b'0', "", "x")]),
    ("unsafe_path", &[("/etc/cron.d/x", b'0', "", "x")]),
    ("not_a_file", &[("a.txt", b'0', "", "x"), ("link", b'2', "/etc/passwd", "")]),
    ("not_a_file", &[("a.txt", b'0', "", "x"), ("hard", b'1', "a.txt", "")]),
    ("not_a_file", &[("a.txt", b'0', "", "x"), ("device", b'3', "", "")]),
    ("not_a_file", &[("a.txt", b'0', "", "x"), ("pipe", b'6', "", "")]),
    ("duplicate_path", &[("a.txt", b'0', "", "x"), ("a.txt", b'0', "", "y")]),
    ("empty_package", &[("d/", b'5', "", "")]),
    (
        "bag_member_path_unsafe",
        &[
            ("bag/bagit.txt", b'0', "", "BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n"),
            ("bag/../../x", b'0', "", "x"),
        ],
    ),
];

struct Case {
    path: PathBuf,
    code: &'static str,
    options: &'static [&'static str],
}

fn cases(world: &World) -> Vec<Case> {
    let mut cases = Vec::new();
    let mut add = |path: PathBuf, code, options| cases.push(Case { path, code, options });
    for (number, (code, harm)) in BAGS.iter().enumerate() {
        for form in ["", "tar", "tar.gz", "zip"] {
            let path = world.path(&format!("bad-{number}-{}", form.replace('.', "-")));
            bag(&path, &[("a.txt", "one"), ("b/c.txt", "two")]);
            harm(&path);
            // Links do not survive being zipped by Python.
            match (form, *code) {
                ("zip", "bag_special_file") => continue,
                ("", _) => add(path, *code, &[]),
                _ => add(archive(&path, form), *code, &[]),
            }
        }
    }
    let head = "#%checkm_0.7\n#%profile | http://uc3.cdlib.org/registry/ingest/manifest/mrt-ingest-manifest\n";
    for (number, (code, row)) in ROWS.iter().enumerate() {
        for place in 0..5 {
            // The bad row among good ones: its line must be told.
            let good = |n: usize| format!("http://a.example/g{n} | | | | | good-{n}.txt\n");
            let rows: String = (0..place).map(good).collect();
            let path = world.path(&format!("row-{number}-{place}.checkm"));
            fs::write(&path, format!("{head}{rows}{row}\n{}#%eof\n", good(9))).unwrap();
            add(path, *code, &[]);
        }
    }
    for (number, (code, text)) in TEXTS.iter().enumerate() {
        let path = world.path(&format!("text-{number}.checkm"));
        fs::write(&path, text.replace(" P/", " http://uc3.cdlib.org/registry/ingest/manifest/"))
            .unwrap();
        add(path, *code, &[]);
    }
    for (number, (code, members)) in TARS.iter().enumerate() {
        add(raw_tar(&world.path(&format!("raw-{number}.tar")), members), *code, &[]);
    }
    let file = |name: &str, content: &[u8]| {
        let path = world.path(name);
        fs::write(&path, content).unwrap();
        path
    };
    add(file("cut.tar.gz", &[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 1, 2, 3]), "package_damaged", &[]);
    add(file("cut.zip", b"PK\x03\x04 and then nothing"), "package_damaged", &[]);
    add(
        file("plain.txt", b"hello"),
        "digest_mismatch",
        &["--digest", "md5:d41d8cd98f00b204e9800998ecf8427e"],
    );
    add(file("claimed.txt", b"hello"), "unknown_container", &["--kind", "container"]);
    add(file("new.txt", b"hello"), "object_missing", &["--mode", "update"]);
    add(world.path("hollow"), "empty_package", &[]);
    cases
}

#[test]
fn two_hundred_wrong_packages_each_get_their_code_and_touch_nothing() {
    let world = World::local(1);
    let good = directory(&world.path("good"), &[("a.txt", "good")]);
    world.ingest(&good, &[]);
    fs::create_dir_all(world.path("hollow")).unwrap();
    let cases = cases(&world);
    assert!(cases.len() >= 200, "{}", cases.len());
    let mut wrong = Vec::new();
    for case in &cases {
        let mut args = vec!["deposit", case.path.to_str().unwrap(), "--check"];
        args.extend(case.options);
        let verdict = world.json(&args).remove(0);
        let codes = verdict["problems"]["listed"].as_array().cloned().unwrap_or_default();
        if !codes.iter().any(|problem| problem["code"] == case.code && problem["is_error"] == true)
        {
            wrong.push(format!(
                "{}: wanted {}, --check: {verdict}",
                case.path.display(),
                case.code
            ));
        }
    }
    let mut batches: HashMap<i64, &Case> = HashMap::new();
    let plain: Vec<&Case> = cases.iter().filter(|c| c.options.is_empty()).collect();
    for portion in plain.chunks(50) {
        let mut args = vec!["deposit"];
        args.extend(portion.iter().map(|c| c.path.to_str().unwrap()));
        let receipts = world.json(&args)[0]["deposits"].as_array().unwrap().clone();
        for (receipt, case) in receipts.iter().zip(portion) {
            batches.insert(receipt["id"].as_i64().unwrap(), case);
        }
    }
    for case in cases.iter().filter(|c| !c.options.is_empty()) {
        batches.insert(world.deposit(&case.path, case.options), case);
    }
    world.work();
    let mut codes: BTreeSet<&str> = BTreeSet::new();
    for (batch, case) in &batches {
        let report = world.batch(*batch);
        let failure = report["failures"][0]["message"].as_str();
        let text = failure.or(report["error"].as_str()).unwrap_or_default().to_string();
        let code = report["failures"][0]["code"].as_str().unwrap_or_default();
        let told = code == case.code || text.contains(&format!("[{}]", case.code));
        if report["state"] != "failed" || !told {
            wrong.push(format!("{}: wanted {}, got {code} {text}", case.path.display(), case.code));
        }
        codes.insert(case.code);
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), batches.len(), wrong.join("\n"));
    assert!(codes.len() >= 60, "{}: {codes:?}", codes.len());
    let listed = world.json(&["objects", "list"]).remove(0);
    assert_eq!(listed["objects"].as_array().unwrap().len(), 1, "only the good one");
}
