use super::*;

fn sample() -> BatchReport {
    let head = Head {
        batch: 12,
        label: "maps.checkm".into(),
        collection: Some("maps".into()),
        submitter: "ada@example.org".into(),
        version: 2,
        state: "failed".into(),
        submitted: 5,
        succeeded: 2,
        failed: 1,
        cancelled: 2,
        superseded: 1,
        unchanged: 1,
        bytes: 1_572_864,
        created_at: 1_700_000_000_000_000,
        finished_at: 1_700_000_061_000_000,
        formats: vec![FormatCount {
            puid: "fmt/353".into(),
            name: "TIFF <raw>".into(),
            files: 3,
            bytes: 1_572_000,
        }],
        objects_total: 4,
        failures_total: 1,
        changed_total: 1,
        ..Head::default()
    };
    let object = ObjectLine {
        job: 101,
        subject: "box-17".into(),
        identifier: "ark:/99999/fk4sccxvj".into(),
        local_ids: vec!["b17".into(), "=1+1".into()],
        version: 2,
        state: "new version".into(),
        files_new: 1,
        files_changed: 2,
        files_unchanged: 0,
        files_removed: 0,
        bytes: 1_572_864,
        stores: vec!["main".into(), "s3-west".into()],
        warnings: vec!["[metadata] dc.xml <1>: it is not XML".into(), "[x] and\nmore".into()],
        notes: vec!["replaces failed job 9 of batch 3: the content is different".into()],
    };
    let unchanged = ObjectLine {
        job: 102,
        subject: "box \"18\"".into(),
        identifier: "ark:/99999/fk454k8cw".into(),
        version: 1,
        state: "unchanged".into(),
        files_unchanged: 3,
        stores: vec!["main".into()],
        ..ObjectLine::default()
    };
    let cancelled = ObjectLine {
        job: 104,
        subject: "box-20".into(),
        state: "cancelled".into(),
        notes: vec!["cancelled by ann: =not wanted".into()],
        ..ObjectLine::default()
    };
    let superseded = ObjectLine {
        job: 105,
        subject: "box-21".into(),
        state: "superseded".into(),
        notes: vec!["superseded by job 120 of batch 13: the content is the same".into()],
        ..ObjectLine::default()
    };
    let failure = FailureLine {
        job: 103,
        subject: "box-19\u{1b}[2J".into(),
        stage: "validating".into(),
        code: "bag.payload-digest".into(),
        message: "data/<1>.tif is not what manifest-sha256.txt says, \"changed\"\nsend it again"
            .into(),
        file: Some("data/<1>.tif".into()),
        class: "permanent".into(),
    };
    let change = ChangeLine {
        job: 101,
        subject: "box-17".into(),
        before: "failed".into(),
        after: "new version".into(),
    };
    BatchReport {
        head,
        changed: vec![change],
        failures: vec![failure],
        objects: vec![object, unchanged, cancelled, superseded],
    }
}

fn rendered(format: Format, report: &BatchReport) -> String {
    let mut out = Vec::new();
    render(format, report, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// `ACCESSION_GOLDEN` names a directory that the renderings are written to, to be looked at and kept.
fn golden(name: &str, text: &str) {
    if let Some(directory) = std::env::var_os("ACCESSION_GOLDEN") {
        std::fs::write(std::path::Path::new(&directory).join(name), text).unwrap();
    }
}

#[test]
fn text() {
    let text = rendered(Format::Text, &sample());
    golden("report.txt", &text);
    assert_eq!(text, include_str!("golden/report.txt"));
}

#[test]
fn csv() {
    let csv = rendered(Format::Csv, &sample());
    golden("report.csv", &csv.replace("\r\n", "\n"));
    assert_eq!(csv.replace("\r\n", "\n"), include_str!("golden/report.csv"));
}

#[test]
fn html() {
    let html = rendered(Format::Html, &sample());
    golden("report.html", &html);
    assert_eq!(html, include_str!("golden/report.html"));
    assert!(!html.contains("<1>") && !html.contains('\u{1b}') && !html.contains("<script"));
}

#[test]
fn mail() {
    let report = sample();
    golden("mail.txt", &mail_text(&report));
    assert_eq!(mail_text(&report), include_str!("golden/mail.txt"));
    assert_eq!(
        mail_subject(&report.head),
        "FAILED: Batch 12 failed: 1 object preserved, 1 unchanged, 1 failed, 1 cancelled, 1 superseded (maps) (update)"
    );
}

#[test]
fn json_is_read_back_as_it_was() {
    let report = sample();
    let json = rendered(Format::Json, &report);
    assert_eq!(serde_json::from_str::<BatchReport>(&json).unwrap(), report);
    assert!(json.contains("\"created_at\":\"2023-11-14T22:13:20.000000Z\""), "{json}");
    // In one piece or line by line, it is the same document.
    let whole: serde_json::Value = serde_json::to_value(&report).unwrap();
    assert_eq!(serde_json::from_str::<serde_json::Value>(&json).unwrap(), whole);
}

#[test]
fn an_empty_report_is_whole() {
    let report = BatchReport {
        head: Head {
            batch: 1,
            state: "failed".into(),
            error: Some("no rows\nin it".into()),
            ..Head::default()
        },
        ..BatchReport::default()
    };
    assert_eq!(
        serde_json::from_str::<BatchReport>(&rendered(Format::Json, &report)).unwrap(),
        report
    );
    assert!(rendered(Format::Html, &report).ends_with("</html>\n"));
    assert_eq!(rendered(Format::Csv, &report).lines().count(), 1);
    let text = rendered(Format::Text, &report);
    assert!(
        text.contains("nothing was preserved") && text.contains("no rows\n              in it"),
        "{text}"
    );
}

#[test]
fn lists_have_their_order_and_say_that_they_are_cut() {
    let mut report = sample();
    let mut writer = Writer::new(Format::Json, &report.head, Vec::new()).unwrap();
    writer.object(&report.objects[0]).unwrap();
    assert!(writer.failure(&report.failures[0]).is_err());
    report.head.objects_total = 5_000_000;
    let command = "4 of 5000000 are listed. All of them: accession batches report 12 --format csv";
    assert!(rendered(Format::Text, &report).contains(command));
    assert!(rendered(Format::Html, &report).contains(command));
}

/// Hostile lengths in every field, and a list of any length.
#[test]
fn mail_stays_small() {
    let mut report = sample();
    let long = "𝔸\n\u{202e}é".repeat(3000);
    report.head.label.clone_from(&long);
    report.head.collection = Some(long.clone());
    report.head.submitter.clone_from(&long);
    report.head.error = Some(long.clone());
    report.head.formats =
        vec![FormatCount { puid: long.clone(), name: long.clone(), files: 1, bytes: 1 }; 500];
    let failure = FailureLine {
        subject: long.clone(),
        stage: long.clone(),
        code: long.clone(),
        message: long.clone(),
        file: Some(long.clone()),
        class: long.clone(),
        job: i64::MAX,
    };
    report.failures = vec![failure; 30];
    let object = ObjectLine {
        subject: long.clone(),
        warnings: vec![long.clone(); 30],
        ..ObjectLine::default()
    };
    report.objects = vec![object; 30];
    report.head.failures_total = 1_000_000;
    report.changed =
        vec![ChangeLine { job: 1, subject: long.clone(), before: long.clone(), after: long }; 30];
    let mail = mail_text(&report);
    assert!(mail.len() < MAIL_BYTES_MAX, "{}", mail.len());
    assert!(mail.contains("15 of 1000000 are listed"));
    assert!(mail.contains("accession batches report 12 --format csv"));
    assert!(mail_subject(&report.head).len() < 1000);
    assert!(!mail_subject(&report.head).contains('\n'));
}

/// Run with `ACCESSION_BLESS=1` to write the golden files anew, and read the difference.
#[test]
fn golden_files_are_written_on_request() {
    if std::env::var_os("ACCESSION_BLESS").is_none() {
        return;
    }
    let directory = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/report/golden");
    let report = sample();
    let files = [
        ("report.txt", rendered(Format::Text, &report)),
        ("report.csv", rendered(Format::Csv, &report).replace("\r\n", "\n")),
        ("report.html", rendered(Format::Html, &report)),
        ("mail.txt", mail_text(&report)),
    ];
    for (name, content) in files {
        std::fs::write(directory.join(name), content).unwrap();
    }
}
