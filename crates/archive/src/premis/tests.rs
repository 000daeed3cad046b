use super::*;
use crate::Error;
use queue::JobId;
use std::path::{Path, PathBuf};
use std::process::Command;

const HARD_NAMES: [&str; 8] = [
    "data/a.tif",
    "data/with space & <angle>.txt",
    "data/\u{1}control\u{1b}\n\r\t.bin",
    "data/ünï 名.txt",
    "data/%41 100%.txt",
    "data/\u{ffff}\u{85}",
    "data/]]>'\"",
    "data/#?{}|",
];

fn object() -> Object {
    Object {
        identifier: "ark:/99999/fk4sccxvj".into(),
        local_ids: vec!["box-17".into(), "<b&17>".into()],
        collection: Some("maps".into()),
        title: Some("Maps of the \"coast\"".into()),
    }
}

fn files(count: usize) -> impl Iterator<Item = FileRecord> {
    (0..count).map(|n| FileRecord {
        version: 1,
        also_in: if n % 2 == 0 { vec![2] } else { vec![] },
        path: HARD_NAMES.get(n).map_or_else(|| format!("data/{n}"), |name| (*name).to_owned()),
        size: i64::MAX - n as i64,
        digests: vec![
            ("sha512".into(), "00ff".into()),
            ("MD5".into(), "aa".into()),
            ("blake2b".into(), "bb".into()),
        ],
        puid: (n % 3 > 0).then(|| "fmt/353".to_owned()),
        format_name: (n % 3 > 0).then(|| "Tagged Image File Format".to_owned()),
        format_version: (n % 3 > 1).then(|| "6".to_owned()),
        basis: Some("byte match at 0, 4".into()),
        warnings: vec!["extension mismatch\u{2}".into()],
        candidates: if n % 3 == 0 { vec!["fmt/1 <A> 1.0".into()] } else { vec![] },
        copies: vec![Location {
            store: "main".into(),
            key: "a/b\u{7}".into(),
            is_object: n % 2 == 1,
        }],
    })
}

fn events() -> Vec<Event> {
    let mut events: Vec<Event> = EventType::ALL
        .into_iter()
        .map(|kind| Event {
            id: event_id("here", JobId::new(7), kind, None),
            kind,
            at: 1_700_000_000_000_250,
            detail: Some("job 7 <\u{0}>".into()),
            outcome: Outcome::Success,
            outcome_note: None,
            agents: Role::ALL
                .map(|role| LinkedAgent {
                    id: if role == Role::Program { "accession" } else { "ada & co" }.into(),
                    role,
                })
                .to_vec(),
            object: object().identifier,
            version: Some(1),
            file: None,
        })
        .collect();
    events[0].version = None;
    events[0].outcome = Outcome::Failure;
    events[0].outcome_note = Some("two\nlines & \u{b}".into());
    for name in HARD_NAMES {
        let id = event_id("here", JobId::new(7), EventType::FixityCheck, Some(name));
        events.push(Event {
            id,
            kind: EventType::FixityCheck,
            file: Some(name.into()),
            outcome: Outcome::Warning,
            detail: None,
            agents: Vec::new(),
            ..events[1].clone()
        });
    }
    events
}

fn agents() -> [Agent; 2] {
    [
        Agent {
            id: "accession".into(),
            name: "Accession".into(),
            kind: AgentType::Software,
            version: Some("0.1.0".into()),
            note: None,
        },
        Agent {
            id: "ada & co".into(),
            name: "Ada <ada@example.org>".into(),
            kind: AgentType::Person,
            version: None,
            note: Some("depositor".into()),
        },
    ]
}

fn written(format: Format, file_count: usize) -> String {
    let versions =
        [1, 2].map(|number| Version { number, created_at: 0, note: Some("first".into()) });
    let mut out = Vec::new();
    let (object, files) = (object(), files(file_count).map(Ok));
    write(
        format,
        &object,
        versions.map(Ok),
        files,
        events().into_iter().map(Ok),
        agents().map(Ok),
        &mut out,
    )
    .unwrap();
    String::from_utf8(out).unwrap()
}

/// The official schema, unpacked; `None` says that it is not here.
fn schema(directory: &Path) -> Option<PathBuf> {
    let archive = testing::corpus("premis-schema.tar.gz")?;
    let unpacked =
        Command::new("tar").arg("xzf").arg(archive).arg("-C").arg(directory).status().ok()?;
    let found = directory.join("premis-v3-0.xsd");
    (unpacked.success() && found.exists()).then_some(found)
}

#[test]
fn the_xml_is_valid_to_the_official_schema() {
    let directory = tempfile::tempdir().unwrap();
    let document = directory.path().join("premis.xml");
    std::fs::write(&document, written(Format::Xml, 12)).unwrap();
    let Some(schema) = schema(directory.path()) else { return };
    let xmllint = |document: &Path| {
        Command::new("xmllint")
            .args(["--noout", "--nonet", "--schema"])
            .arg(&schema)
            .arg(document)
            .output()
    };
    let Ok(output) = xmllint(&document) else {
        testing::skip("xmllint is not installed");
        return;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    // The check can fail: without its identifier an event is not valid.
    let broken = written(Format::Xml, 1).replacen("<eventType ", "<eventKind ", 1).replacen(
        "</eventType>",
        "</eventKind>",
        1,
    );
    std::fs::write(&document, broken).unwrap();
    assert!(!xmllint(&document).unwrap().status.success());
}

#[test]
fn names_in_xml_can_be_taken_back() {
    let xml = written(Format::Xml, HARD_NAMES.len());
    assert!(xml.contains("<originalName>data/%01control%1B%0A%0D%09.bin</originalName>"));
    assert!(xml.contains("<originalName>data/%2541 100%.txt</originalName>"));
    assert!(xml.contains("ark:/99999/fk4sccxvj#v1/data/%01control%1B%0A%0D%09.bin"));
    assert!(xml.contains("<eventOutcomeDetailNote>two\nlines &amp; \u{fffd}<"));
    assert!(xml.contains("eventType/for\">format identification<"));
    assert!(xml.contains("<eventType>identifier assignment<"));
}

fn read(xml: &str) -> crate::Result<Vec<Record>> {
    let mut records = Vec::new();
    read_xml(xml.as_bytes(), |record| {
        records.push(record);
        Ok(())
    })?;
    Ok(records)
}

/// What XML cannot have is lost from texts, not from names.
#[test]
fn what_is_written_is_read_again() {
    let records = read(&written(Format::Xml, 12)).unwrap();
    let clean = |text: &str| text.replace(['\u{0}', '\u{2}', '\u{b}'], "\u{fffd}");
    let mut expected = vec![Record::Object(Object { title: None, ..object() })];
    expected.extend([1, 2].map(|number| Record::Version(Version { number, ..Version::default() })));
    expected.extend(files(12).map(|mut file| {
        file.digests[1].0 = "md5".into();
        file.warnings = vec![clean(&file.warnings[0])];
        Record::File(file)
    }));
    expected.extend(events().into_iter().map(|mut event| {
        event.detail = event.detail.as_deref().map(clean);
        event.outcome_note = event.outcome_note.as_deref().map(clean);
        Record::Event(event)
    }));
    expected.extend(agents().map(Record::Agent));
    assert_eq!(records.len(), expected.len());
    for (read, written) in records.iter().zip(&expected) {
        assert_eq!(read, written);
    }
}

#[test]
fn what_others_wrote_or_broke_is_refused() {
    let whole = written(Format::Xml, 3);
    let huge = whole.replacen("box-17", &"x".repeat(9 << 20), 1);
    let bad = [
        String::new(),
        "<premis/>".replace("premis", "mets"),
        "<!DOCTYPE x [<!ENTITY a 'b'>]><premis>&a;</premis>".to_owned(),
        format!("{}{}", "<premis>", "<a>".repeat(100)),
        whole.replacen("ingestion", "ingestation", 1),
        whole.replacen("<size>", "<size>x", 1),
        whole.replacen("2023-11-14T", "yesterday", 1),
        whole.replacen("xsi:type=\"file\"", "xsi:type=\"bitstream\"", 1),
        whole.replacen("#v1", "", 1),
        huge,
        whole[..whole.len() - 20].to_owned(),
        format!("{whole}<premis></premis>"),
    ];
    for (nth, document) in bad.iter().enumerate() {
        let error = read(document).unwrap_err();
        assert_eq!(error.code(), "premis.xml", "{nth}");
    }
    // Wherever it is cut, it is not taken for whole.
    for end in (0..whole.len() - 3).step_by(97).filter(|end| whole.is_char_boundary(*end)) {
        assert!(read(&whole[..end]).is_err(), "{end}");
    }
    // An error of whoever takes the records ends the reading.
    let stopped = read_xml(whole.as_bytes(), |_| Err(Error::Stopped));
    assert_eq!(stopped.unwrap_err().code(), "stopped");
}

#[test]
fn the_json_ld_says_the_same() {
    let document: serde_json::Value =
        serde_json::from_str(&written(Format::JsonLd, HARD_NAMES.len())).unwrap();
    let graph = document["@graph"].as_array().unwrap();
    let of = |kind: &str| {
        graph
            .iter()
            .filter(|node| node["@type"] == kind || node["@type"][0] == kind)
            .collect::<Vec<_>>()
    };
    let names: Vec<&str> =
        of("premis:File").iter().filter_map(|f| f["premis:originalName"].as_str()).collect();
    assert_eq!(names, HARD_NAMES);
    assert_eq!(of("premis:Event").len(), events().len());
    assert_eq!(of("premis:Representation").len(), 2);
    assert_eq!(of("premis:IntellectualEntity")[0]["@id"], "ark:/99999/fk4sccxvj");
    // Whatever an event was used on is in the graph, and so is whoever did it.
    let ids: std::collections::HashSet<&str> =
        graph.iter().filter_map(|node| node["@id"].as_str()).collect();
    for event in of("premis:Event") {
        assert!(ids.contains(event["prov:used"].as_str().unwrap()), "{event}");
        let agents = event["prov:wasAssociatedWith"].as_array().into_iter().flatten();
        agents.for_each(|agent| assert!(ids.contains(agent.as_str().unwrap()), "{event}"));
    }
    // Every prefix in use is declared.
    for node in graph {
        for key in node.as_object().unwrap().keys().filter(|key| !key.starts_with('@')) {
            let prefix = key.split(':').next().unwrap();
            assert!(document["@context"].get(prefix).is_some(), "{key}");
        }
    }
}

#[test]
fn records_have_their_order() {
    let object = object();
    for format in [Format::Xml, Format::JsonLd] {
        let mut writer = Writer::new(format, &object, Vec::new()).unwrap();
        writer.event(&events()[0]).unwrap();
        assert!(writer.file(&files(1).next().unwrap()).is_err());
    }
    // An error of a source or of the output ends the writing.
    let fails = [Err(io::Error::other("lost")), files(1).next().map(Ok).unwrap()];
    assert!(write(Format::Xml, &object, [], fails, [], [], io::sink()).is_err());
}

#[test]
fn kinds_and_outcomes_are_read_again() {
    for kind in EventType::ALL {
        assert_eq!(kind.as_str().parse::<EventType>().unwrap(), kind);
        let json = serde_json::to_string(&kind).unwrap();
        assert_eq!(serde_json::from_str::<EventType>(&json).unwrap(), kind);
    }
    assert!("ingest".parse::<EventType>().is_err());
    assert_eq!("warning".parse(), Ok(Outcome::Warning));
    let event = events().pop().unwrap();
    let json = serde_json::to_string(&event).unwrap();
    assert_eq!(serde_json::from_str::<Event>(&json).unwrap(), event);
}

/// Writes the sample for other programs to look at: `ACCESSION_PREMIS_OUT=DIR cargo test …`.
#[test]
fn samples_are_written_on_request() {
    if let Some(directory) = std::env::var_os("ACCESSION_PREMIS_OUT") {
        let directory = PathBuf::from(directory);
        std::fs::write(directory.join("premis.xml"), written(Format::Xml, 9)).unwrap();
        std::fs::write(directory.join("premis.jsonld"), written(Format::JsonLd, 9)).unwrap();
    }
}
