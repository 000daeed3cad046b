use super::*;
use queue::{BatchId, JobId};

fn sample() -> BatchReport {
    let head = Head {
        batch: BatchId::new(12),
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
        objects_total: 2,
        failures_total: 1,
        cancellations_total: 2,
        changed_total: 1,
        ..Head::default()
    };
    let object = ObjectLine {
        job: JobId::new(101),
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
        job: JobId::new(102),
        subject: "box \"18\"".into(),
        identifier: "ark:/99999/fk454k8cw".into(),
        version: 1,
        state: "unchanged".into(),
        files_unchanged: 3,
        stores: vec!["main".into()],
        ..ObjectLine::default()
    };
    let cancelled = CancelLine {
        job: Some(JobId::new(104)),
        subject: "box-20".into(),
        state: "cancelled".into(),
        by: "bert".into(),
        reason: "deposited by <mistake>".into(),
    };
    let superseded = CancelLine {
        job: Some(JobId::new(105)),
        subject: "box-21".into(),
        state: SUPERSEDED.into(),
        reason: "superseded by job 120 of batch 13: the content is different".into(),
        ..CancelLine::default()
    };
    let failure = FailureLine {
        job: JobId::new(103),
        subject: "box-19\u{1b}[2J".into(),
        stage: "validating".into(),
        code: "bag.payload-digest".into(),
        message: "box-19: 2 problems\n[bag.payload-digest] data/<1>.tif is not what manifest-sha256.txt says, \"changed\"; send it again\n[bag.unlisted] data/2.tif is not listed; see `accession bag validate`"
            .into(),
        file: Some("data/<1>.tif".into()),
        class: REQUEUE.into(),
    };
    let change = ChangeLine {
        job: JobId::new(101),
        subject: "box-17".into(),
        before: "failed".into(),
        after: "preserved".into(),
    };
    BatchReport {
        head,
        failures: vec![failure],
        cancellations: vec![cancelled, superseded],
        changed: vec![change],
        unfinished: Vec::new(),
        objects: vec![object, unchanged],
    }
}

/// A manifest that could not be read: there are no jobs, and the problems are all there is.
fn broken() -> BatchReport {
    let error = "the manifest maps.checkm: 2 problems\n[checkm.digest] line 3: `xyz` is no digest; correct it\n[checkm.eof] the last line is not #%eof; the file may be cut";
    let head = Head {
        batch: BatchId::new(13),
        label: "maps.checkm".into(),
        submitter: "ada@example.org".into(),
        version: 1,
        state: "failed".into(),
        error: Some(error.into()),
        problems: problems(error),
        ..Head::default()
    };
    BatchReport { head, ..BatchReport::default() }
}

/// A batch that somebody holds before any of its rows became a job.
fn held() -> BatchReport {
    let row = |n: i64| UnfinishedLine {
        job: (n < 2).then_some(JobId::new(n)),
        subject: format!("box-{n}"),
        state: if n < 2 { "running" } else { "not begun" }.into(),
        stage: if n < 2 { "storing".into() } else { String::new() },
    };
    let head = Head {
        batch: BatchId::new(14),
        state: "processing".into(),
        held: true,
        submitted: 2,
        unfinished_total: 2,
        waits: Some("the batch is held by bert since noon: no reason given; `accession batches release 14` lets it go on".into()),
        ..Head::default()
    };
    BatchReport { head, unfinished: vec![row(1), row(2)], ..BatchReport::default() }
}

fn rendered(format: Format, report: &BatchReport) -> String {
    let mut out = Vec::new();
    render(format, report, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn golden(name: &str) -> String {
    let directory = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/report/golden");
    std::fs::read_to_string(directory.join(name)).unwrap()
}

/// The page without its style, which has words of its own.
fn body(html: &str) -> &str {
    &html[html.find("<body>").unwrap()..]
}

fn attached(whole: bool) -> [Attached; 1] {
    [Attached { name: "batch-12-report-2.csv".into(), whole }]
}

#[test]
fn text() {
    assert_eq!(rendered(Format::Text, &sample()), golden("report.txt"));
}

#[test]
fn csv() {
    let csv = rendered(Format::Csv, &sample());
    assert_eq!(csv.replace("\r\n", "\n"), golden("report.csv"));
}

#[test]
fn html() {
    let html = rendered(Format::Html, &sample());
    assert_eq!(html, golden("report.html"));
    assert!(!html.contains("<1>") && !html.contains('\u{1b}') && !html.contains("<script"));
    let (wrong, kept) = (html.find("box-19").unwrap(), html.find("box-17").unwrap());
    assert!(wrong < kept, "failures come first");
    assert!(html.contains("<li>[bag.unlisted] data/2.tif is not listed"), "problems are a list");
}

#[test]
fn mail() {
    let report = sample();
    assert_eq!(mail_text(&report, &attached(true)), golden("mail.txt"));
    assert_eq!(
        mail_subject(&report.head),
        "FAILED: 2 of 5 objects preserved (1 unchanged), 1 failed, 1 cancelled, 1 superseded: maps.checkm (maps, batch 12, update)"
    );
}

#[test]
fn ok_is_said_only_of_batches_of_which_everything_is_preserved() {
    let head = |state: &str, succeeded: i64, cancelled: i64| Head {
        batch: BatchId::new(7),
        label: "box\r\nBcc: eve@example.com".into(),
        state: state.into(),
        submitted: 6,
        succeeded,
        cancelled,
        failed: 6 - succeeded - cancelled,
        ..Head::default()
    };
    let cases = [
        (
            head("completed", 6, 0),
            "OK: 6 of 6 objects preserved: box\\u{d} Bcc: eve@example.com (batch 7)",
        ),
        (
            head("completed", 4, 2),
            "INCOMPLETE: 4 of 6 objects preserved, 2 cancelled: box\\u{d} Bcc: eve@example.com (batch 7)",
        ),
        (
            head("failed", 4, 0),
            "FAILED: 4 of 6 objects preserved, 2 failed: box\\u{d} Bcc: eve@example.com (batch 7)",
        ),
        (
            head("failed", 0, 6),
            "FAILED: 0 of 6 objects preserved, 6 cancelled: box\\u{d} Bcc: eve@example.com (batch 7)",
        ),
    ];
    for (head, subject) in cases {
        assert_eq!(mail_subject(&head), subject);
        let html = rendered(Format::Html, &BatchReport { head, ..BatchReport::default() });
        assert_eq!(html.contains(">OK<"), subject.starts_with("OK"), "{subject}");
    }
    let same = Head { superseded: 2, superseded_same: 2, ..head("completed", 4, 2) };
    assert!(mail_subject(&same).starts_with("OK: 4 of 6 objects preserved, 2 superseded"));
    let empty = Head { state: "completed".into(), ..Head::default() };
    assert!(!mail_subject(&empty).starts_with("OK"), "nothing was submitted");
}

#[test]
fn problems_of_a_broken_manifest_are_a_list_everywhere() {
    let report = broken();
    let csv = rendered(Format::Csv, &report);
    let rows: Vec<&str> = csv.lines().collect();
    assert_eq!(
        rows[1..],
        [
            ",maps.checkm,failed,,,,,,,,,,,checkm.digest,,,line 3: `xyz` is no digest; correct it,"
                .replace(
                    "line 3: `xyz` is no digest; correct it",
                    "\"line 3: `xyz` is no digest; correct it\""
                ),
            ",maps.checkm,failed,,,,,,,,,,,checkm.eof,,,\"the last line is not #%eof; the file may be cut\","
                .into(),
        ]
    );
    let items = ["[checkm.digest] line 3", "[checkm.eof] the last line"];
    let (html, text) = (rendered(Format::Html, &report), rendered(Format::Text, &report));
    let mail = mail_text(&report, &[]);
    for item in items {
        assert!(html.contains(&format!("<li>{item}")), "{html}");
        assert!(text.contains(&format!("\n    {item}")), "{text}");
        assert!(mail.contains(&format!("\n  - {item}")), "{mail}");
    }
    assert_eq!(
        mail_subject(&report.head),
        "FAILED: nothing was preserved, 2 problems in what was submitted: maps.checkm (batch 13)"
    );
}

#[test]
fn rows_that_are_not_finished_are_listed() {
    let report = held();
    let csv = rendered(Format::Csv, &report);
    let rows: Vec<&str> = csv.lines().collect();
    assert_eq!(
        rows[1..],
        ["1,box-1,running,,,,,,,,,,storing,,,,,", ",box-2,not begun,,,,,,,,,,,,,,,"]
    );
    assert!(rendered(Format::Text, &report).contains("box-2: not begun"));
    let html = rendered(Format::Html, &report);
    assert!(html.contains("box-2</td>") && html.contains("held (processing)"), "{html}");
}

/// A depositor has no account at the archive.
#[test]
fn mails_name_no_command() {
    for report in [sample(), broken(), held()] {
        let mut report = report;
        report.head.failures_total += 1000;
        let mail = mail_text(&report, &attached(false));
        assert!(!mail.contains("accession "), "{mail}");
        assert!(mail.contains("ask the archive for the full report"), "{mail}");
        report.head.reader = Reader::Depositor;
        for format in [Format::Html, Format::Csv, Format::Text] {
            let file = rendered(format, &report);
            assert!(!file.contains("`accession ") && !file.contains("accession batches"), "{file}");
        }
    }
    assert!(rendered(Format::Text, &sample()).contains("`accession bag validate`"));
}

#[test]
fn preserved_objects_are_named_in_the_mail() {
    let mut report = sample();
    report.objects = (0..200)
        .map(|n| ObjectLine {
            subject: format!("box-{n}"),
            identifier: format!("ark:/99999/fk4{n}"),
            state: "new version".into(),
            version: 1,
            ..ObjectLine::default()
        })
        .collect();
    report.head.objects_total = 100_000;
    let mail = mail_text(&report, &attached(false));
    assert!(mail.contains("\n  box-49: ark:/99999/fk449, new version v1, 0 B\n"), "{mail}");
    assert!(!mail.contains("box-50:") && mail.contains("50 of 100000 are listed"), "{mail}");
    assert!(mail.contains("More of the report is attached: batch-12-report-2.csv"), "{mail}");
}

#[test]
fn json_is_read_back_as_it_was() {
    for report in [sample(), broken(), held()] {
        let json = rendered(Format::Json, &report);
        assert_eq!(serde_json::from_str::<BatchReport>(&json).unwrap(), report);
        // In one piece or line by line, it is the same document.
        let whole: serde_json::Value = serde_json::to_value(&report).unwrap();
        assert_eq!(serde_json::from_str::<serde_json::Value>(&json).unwrap(), whole);
    }
    let json = rendered(Format::Json, &sample());
    assert!(json.contains("\"created_at\":\"2023-11-14T22:13:20.000000Z\""), "{json}");
}

#[test]
fn an_empty_report_is_whole() {
    let head = Head {
        batch: BatchId::new(1),
        state: "failed".into(),
        error: Some("it is empty; submit it again with something in it".into()),
        ..Head::default()
    };
    let report = BatchReport { head, ..BatchReport::default() };
    assert_eq!(
        serde_json::from_str::<BatchReport>(&rendered(Format::Json, &report)).unwrap(),
        report
    );
    let html = rendered(Format::Html, &report);
    assert!(html.ends_with("</html>\n") && html.contains("it is empty"), "{html}");
    assert!(!body(&html).contains("<table"), "no list has anything in it");
    assert_eq!(rendered(Format::Csv, &report).lines().count(), 2, "the reason is a row");
    for told in [rendered(Format::Text, &report), mail_text(&report, &[])] {
        assert!(told.contains("nothing was preserved") && told.contains("it is empty"), "{told}");
    }
}

#[test]
fn lists_have_their_order_and_say_that_they_are_cut() {
    let mut report = sample();
    let mut writer = Writer::new(Format::Json, &report.head, Vec::new()).unwrap();
    writer.object(&report.objects[0]).unwrap();
    assert!(writer.failure(&report.failures[0]).is_err());
    report.head.objects_total = 5_000_000;
    let command = "2 of 5000000 are listed. All of them: accession batches report 12 --format csv";
    assert!(rendered(Format::Text, &report).contains(command));
    assert!(rendered(Format::Html, &report).contains(command));
    report.head.cancellations_total = 9;
    report.cancellations.clear();
    let command = "0 of 9 are listed. All of them: accession batches report 12 --format csv";
    assert!(
        rendered(Format::Text, &report).contains(&format!("CANCELLED AND SUPERSEDED\n  {command}"))
    );
    assert!(rendered(Format::Html, &report).contains(command));
}

/// A browser gets a page that it can show; tables and programs get everything.
#[test]
fn a_hundred_thousand_objects() {
    let mut head = sample().head;
    (head.objects_total, head.submitted, head.succeeded) = (100_000, 100_000, 100_000);
    let written = |format: Format| {
        let mut writer = Writer::new(format, &head, Vec::new()).unwrap();
        for job in (0..100_000).map(JobId::new) {
            writer.object(&ObjectLine { job, ..sample().objects.remove(0) }).unwrap();
        }
        String::from_utf8(writer.finish().unwrap()).unwrap()
    };
    let html = written(Format::Html);
    assert!(html.len() < 1 << 20, "{}", html.len());
    let command =
        "1000 of 100000 are listed. All of them: accession batches report 12 --format csv";
    assert!(html.contains(command) && html.ends_with("</html>\n"));
    assert_eq!(written(Format::Csv).matches("box-17").count(), 100_000);
    assert_eq!(
        serde_json::from_str::<BatchReport>(&written(Format::Json)).unwrap().objects.len(),
        100_000
    );
}

/// What an attacker may choose: names, labels, messages. None of it is markup, a formula, a header
/// or a control sequence.
#[test]
fn hostile_text_does_nothing() {
    let evil = "=cmd|'/C calc'!A0<script>alert(1)</script>\"'&\u{1b}[31m\u{202e}\r\nBcc: eve@example.com\r\n\r\n";
    let mut report = sample();
    report.head.label = evil.into();
    report.head.collection = Some(evil.into());
    report.head.submitter = evil.into();
    report.head.error = Some(evil.into());
    report.head.problems = vec![ProblemLine { code: evil.into(), message: evil.into() }];
    report.head.formats[0].name = evil.into();
    report.failures[0].subject = evil.into();
    report.failures[0].file = Some(evil.into());
    report.failures[0].code = evil.into();
    report.failures[0].message = evil.into();
    report.failures[0].class = evil.into();
    report.cancellations[0] = CancelLine {
        job: None,
        state: "cancelled".into(),
        subject: evil.into(),
        by: evil.into(),
        reason: evil.into(),
    };
    report.changed[0].after = evil.into();
    report.unfinished = vec![UnfinishedLine {
        subject: evil.into(),
        state: evil.into(),
        stage: evil.into(),
        job: None,
    }];
    let object = &mut report.objects[0];
    object.subject = evil.into();
    object.identifier = evil.into();
    object.local_ids = vec![evil.into()];
    object.stores = vec![evil.into()];
    object.warnings = vec![evil.into()];
    let html = rendered(Format::Html, &report);
    assert!(!html.contains("<script") && !html.contains("\"'&\\u"), "{html}");
    assert!(html.matches("&lt;script&gt;").count() > 15, "{html}");
    let csv = rendered(Format::Csv, &report);
    // A record ends with CR LF; a line end within a cell has no CR.
    let formula = |at: usize| csv[..at].ends_with([',', '"']) || csv[..at].ends_with("\r\n");
    assert!(csv.match_indices("=cmd").all(|(at, _)| !formula(at)), "{csv}");
    let subject = mail_subject(&report.head);
    assert!(!subject.contains(char::is_control), "{subject}");
    let mail = mail_text(&report, &[]);
    assert!(!mail.contains("\nBcc"), "{mail}");
    for shown in [html, csv.replace("\r\n", "\n"), rendered(Format::Text, &report), mail, subject] {
        let hidden = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
        assert!(!shown.contains(hidden), "{shown}");
    }
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
    report.head.problems = vec![ProblemLine { code: long.clone(), message: long.clone() }; 100];
    report.head.formats =
        vec![FormatCount { puid: long.clone(), name: long.clone(), files: 1, bytes: 1 }; 500];
    let failure = FailureLine {
        subject: long.clone(),
        stage: long.clone(),
        code: long.clone(),
        message: long.clone(),
        file: Some(long.clone()),
        class: long.clone(),
        job: JobId::new(i64::MAX),
    };
    report.failures = vec![failure; 30];
    let object = ObjectLine {
        subject: long.clone(),
        identifier: long.clone(),
        local_ids: vec![long.clone(); 30],
        warnings: vec![long.clone(); 30],
        ..ObjectLine::default()
    };
    report.objects = vec![object; 60];
    report.head.failures_total = 1_000_000;
    report.cancellations = vec![
        CancelLine {
            job: None,
            state: "cancelled".into(),
            subject: long.clone(),
            by: long.clone(),
            reason: long.clone()
        };
        30
    ];
    report.changed = vec![
        ChangeLine {
            job: JobId::new(1),
            subject: long.clone(),
            before: long.clone(),
            after: long
        };
        30
    ];
    let mail = mail_text(&report, &attached(false));
    assert!(mail.len() < MAIL_BYTES_MAX, "{}", mail.len());
    assert!(mail.contains("15 of 1000000 are listed"));
    let subject = mail_subject(&report.head);
    assert!(subject.starts_with("FAILED: 2 of 5") && subject.len() < 300, "{subject}");
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
        ("mail.txt", mail_text(&report, &attached(true))),
    ];
    for (name, content) in files {
        std::fs::write(directory.join(name), content).unwrap();
    }
}
