//! The JSON manifest and its schema.

use checkm::{Code, Options, Profile, Reader, Row, SCHEMA};
use serde_json::{Value, json};

fn found(text: &str) -> Vec<(u64, u64, &'static str)> {
    let report = checkm::check(text.as_bytes(), &Options::default()).unwrap();
    report.problems().iter().map(|p| (p.line, p.row, p.code.as_str())).collect()
}

fn rows(text: &str) -> Vec<Row<'static>> {
    let mut reader = Reader::new(text.as_bytes(), &Options::default()).unwrap();
    std::iter::from_fn(|| reader.next_row().unwrap()).collect()
}

#[test]
fn a_good_manifest_however_it_is_laid_out() {
    let document = json!({
        "$schema": "urn:checkm-json:1",
        "format": "checkm-json/1",
        "profile": "single-file-batch",
        "rows": [
            {"source": "http://h/a", "name": "a \"quoted\" | ü", "local_ids": ["x", "y;z"], "size": 3},
            {"source": "http://h/b", "name": "b", "primary_id": "ark:/1/b", "title": "B"},
        ],
    });
    for text in [document.to_string(), serde_json::to_string_pretty(&document).unwrap()] {
        assert_eq!(found(&text), []);
        let rows = rows(&text);
        assert_eq!(rows[0].name.as_deref(), Some("a \"quoted\" | ü"));
        assert_eq!(rows[0].local_ids, ["x", "y;z"]);
        assert_eq!(rows[1].title.as_deref(), Some("B"));
        let mut reader = Reader::new(text.as_bytes(), &Options::default()).unwrap();
        reader.next_row().unwrap();
        assert_eq!(reader.header().unwrap().profile, Profile::SingleFileBatch);
    }
}

#[test]
fn every_bad_row_is_reported_and_the_others_are_read() {
    let text = r#"{"format":"checkm-json/1","profile":"object","rows":[
{"source":"http://h/1","name":"good"},
{"source":"http://h/2","name":7},
{"source":"http://h/3","name":"three","size":-1},
{"source":"http://h/4","name":"four","colour":"red"},
{"source":"http://h/5","name":"five",},
"six",
{"source":"http://h/7","name":"good"}, {"source":"http://h/8","name":"../x"},
{"source":"http://h/9","name":"nine","name":"neun"},
{"source":"http://h/10","name":"ten","title":"none"},
{"source":"http://h/11","name":""},
{"source":"http://h/12","name":"last"}
]}"#;
    let mut has = found(text);
    has.sort_unstable();
    assert_eq!(
        has,
        [
            (3, 2, "json-type"),
            (3, 2, "name-missing"),
            (4, 3, "json-type"),
            (5, 4, "json-member"),
            (6, 5, "json-syntax"),
            (7, 6, "json-type"),
            (8, 7, "name-duplicate"),
            (8, 8, "name-escape"),
            (9, 9, "json-member"),
            (10, 10, "json-member"),
            (11, 11, "json-type"),
            (11, 11, "name-missing"),
        ]
    );
    let names: Vec<_> = rows(text).iter().map(|r| r.name.clone().unwrap().into_owned()).collect();
    assert_eq!(names, ["good", "good", "last"]);
}

#[test]
fn broken_documents_are_clear_errors() {
    let head = r#"{"format":"checkm-json/1","profile":"object","rows":["#;
    let row = r#"{"source":"http://h/a","name":"a"}"#;
    for (text, code) in [
        (format!("{head}{row}"), "json-syntax"),
        (format!("{head}{row},"), "json-syntax"),
        (format!("{head}{row}]"), "json-syntax"),
        (format!("{head}{row} {row}]}}"), "json-syntax"),
        (format!("{head}{row}]}} x"), "json-syntax"),
        (format!("{head}]}}"), "no-rows"),
        (format!("{head}{row}],\"profile\":\"add\"}}"), "json-member"),
        (format!("{{\"rows\":[{row}],\"format\":\"checkm-json/1\"}}"), "json-order"),
        (format!("{{\"rows\":[{row}]}}"), "json-format"),
        ("{\"format\":\"checkm-json/2\",\"rows\":[]}".to_string(), "json-format"),
        ("{}".to_string(), "json-format"),
        ("[]".to_string(), "json-format"),
        ("{\"format\":1,\"rows\":3}".to_string(), "json-format"),
        (format!("{{\"format\":\"checkm-json/1\",\"rows\":{{}}, {row}"), "json-type"),
        (format!("{head}{}", "[".repeat(100_000)), "json-syntax"),
        (format!("{head}{}{}]}}", "[".repeat(1000), "]".repeat(1000)), "json-type"),
        (format!("{head}{{\"name\":{}{}}}]}}", "[".repeat(1000), "]".repeat(1000)), "json-syntax"),
        (format!("{head}{{\"name\":\"{}\"}}]}}", "x".repeat(1 << 20)), "line-too-long"),
    ] {
        let codes: Vec<_> = found(&text).into_iter().map(|f| f.2).collect();
        assert!(codes.contains(&code), "{}: {codes:?}", &text[..text.len().min(120)]);
    }
}

#[test]
fn the_schema_and_the_reader_agree() {
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    assert!(jsonschema::meta::is_valid(&schema));
    let validator = jsonschema::validator_for(&schema).unwrap();
    let of = |row: Value| json!({"format": "checkm-json/1", "profile": "object", "rows": [row]});
    let good = json!({"source": "http://h/a", "algorithm": "md5", "digest": "00".repeat(16),
        "size": 0, "modified": "2024", "name": "a", "mime_type": "a/b"});
    assert!(validator.is_valid(&of(good.clone())));
    assert_eq!(found(&of(good.clone()).to_string()), []);
    // Whatever the schema rejects, the reader rejects.
    for (member, value) in [
        ("source", json!(null)),
        ("source", json!("")),
        ("digest", json!(7)),
        ("size", json!("7")),
        ("size", json!(-1)),
        ("size", json!(1.5)),
        ("size", json!(9223372036854775808_u64)),
        ("modified", json!("soon")),
        ("name", json!("a\nb")),
        ("name", json!(["a"])),
        ("mime_type", json!({})),
        ("include", json!("yes")),
        ("colour", json!("red")),
        ("local_ids", json!("x")),
        ("local_ids", json!([""])),
        ("extra", json!({"x": 1})),
        ("primary_id", json!("doi:1")),
    ] {
        let mut row = good.clone();
        row[member] = value.clone();
        let document = of(row);
        assert!(!validator.is_valid(&document), "the schema takes {member} {value}");
        let report = checkm::check(document.to_string().as_bytes(), &Options::default()).unwrap();
        assert!(!report.is_valid(), "the reader takes {member} {value}");
    }
    let mut row = good;
    row.as_object_mut().unwrap().remove("algorithm");
    let document = of(row);
    assert!(!validator.is_valid(&document));
    let report = checkm::check(document.to_string().as_bytes(), &Options::default()).unwrap();
    assert_eq!(report.count(Code::AlgorithmMissing), 1);
    for key in ["format", "rows"] {
        let mut document = of(json!({"source": "http://h/a"}));
        document.as_object_mut().unwrap().remove(key);
        assert!(!validator.is_valid(&document));
        assert!(
            !checkm::check(document.to_string().as_bytes(), &Options::default())
                .unwrap()
                .is_valid()
        );
    }
}

#[test]
fn extra_values_belong_to_declared_columns() {
    let manifest = |extra: &str| {
        format!(
            r#"{{"format":"checkm-json/1","columns":["source","algorithm","digest","size","modified","name","x:shelf"],"prefixes":{{"x":"http://x#"}},"rows":[{{"source":"a","extra":{extra}}}]}}"#
        )
    };
    assert_eq!(found(&manifest(r#"{"x:shelf":"7"}"#)), []);
    for (extra, code) in [
        (r#"{"x:box":"7"}"#, "json-member"),
        (r#"{"source":"7"}"#, "json-member"),
        (r#"{"7":"7"}"#, "json-member"),
        (r#"{"x:shelf":"7","x:shelf":"8"}"#, "json-member"),
        (r#"{"x:shelf":""}"#, "json-type"),
        (r#"{"x:shelf":7}"#, "json-type"),
        (r#"{"x:shelf":"a\nb"}"#, "control-character"),
    ] {
        assert_eq!(found(&manifest(extra)), [(1, 1, code)], "{extra}");
    }
}
