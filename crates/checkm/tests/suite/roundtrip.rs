//! What is written is read back the same, in either format and every profile.

use checkm::{Column, Format, Header, Options, Profile, Reader, Report, Row, WriteError, Writer};
use proptest::prelude::*;
use std::borrow::Cow;

type Text = Cow<'static, str>;

fn read(bytes: &[u8]) -> (Vec<Row<'static>>, Report, Option<Header>) {
    let mut reader = Reader::new(bytes, &Options::default()).unwrap();
    let mut rows = Vec::new();
    while let Some(row) = reader.next_row().unwrap() {
        rows.push(row);
    }
    let header = reader.header().cloned();
    (rows, reader.finish().unwrap(), header)
}

fn write(format: Format, header: Header, rows: &[Row<'_>]) -> Result<Vec<u8>, WriteError> {
    let mut writer = Writer::new(Vec::new(), format, header)?;
    for row in rows {
        writer.write(row)?;
    }
    writer.finish()
}

fn text() -> impl Strategy<Value = Text> {
    "[ -~äß名é;|%#@]{1,20}".prop_map(Cow::Owned)
}

fn name() -> impl Strategy<Value = Text> {
    let part = "[ -.0-~äß名é|%#@]{1,12}".prop_filter("a part", |p| p != "." && p != "..");
    prop::collection::vec(part, 1..4)
        .prop_map(|parts| Cow::Owned(parts.join("/")))
        // The specification's own way to write such names takes the ./ off in reading.
        .prop_filter("a safe name", |n: &Text| !n.contains('\\') && !n.contains("://"))
        .prop_filter("no drive", |n: &Text| n.as_bytes().get(1) != Some(&b':'))
}

fn url() -> impl Strategy<Value = Text> {
    "https?://[a-z]{1,8}(\\.org)?(:80)?/[a-zA-Z0-9%]{0,0}[a-zA-Z0-9/._~-]{1,20}(\\?[a-z=&]{1,8})?"
        .prop_map(Cow::Owned)
}

fn digest() -> impl Strategy<Value = (Option<Text>, Option<Text>)> {
    let of = |name: &'static str, digits: usize| {
        proptest::string::string_regex(&format!("[0-9a-f]{{{digits}}}"))
            .unwrap()
            .prop_map(move |d| (Some(Cow::Borrowed(name)), Some(Cow::Owned(d))))
    };
    prop_oneof![Just((None, None)), of("md5", 32), of("sha256", 64), of("sha512", 128)]
}

fn some<T: std::fmt::Debug + Clone>(
    s: impl Strategy<Value = T>,
) -> impl Strategy<Value = Option<T>> {
    prop::option::of(s)
}

/// A row that is good in this profile.
fn row(profile: Profile) -> impl Strategy<Value = Row<'static>> {
    let source = match profile {
        Profile::Container => Just(None).boxed(),
        Profile::General => prop_oneof![url(), name()].prop_map(Some).boxed(),
        _ => url().prop_map(Some).boxed(),
    };
    let named = name().prop_map(move |name| match profile {
        Profile::ContainerBatch => Some(Cow::Owned(format!("{name}.zip"))),
        Profile::ManifestBatch => Some(Cow::Owned(format!("{name}.checkm"))),
        _ => Some(name),
    });
    let modified = prop_oneof!["[12][0-9]{3}-0[1-9]-[12][0-8]", "20[0-9]{2}0[1-9]0[1-9]"];
    let ids = prop::collection::hash_set("[a-zA-Z0-9|%:/ ]{0,5}[a-z]", 0..4);
    let size = some(0..=i64::MAX as u64);
    let about =
        (some("ark:/[0-9]{5}/[a-z0-9]{1,8}"), ids, some(text()), some(text()), some(text()));
    (source, digest(), size, some(modified), named, some("[a-z]{1,5}/[a-z]{1,5}"), about).prop_map(
        move |(source, (algorithm, digest), size, modified, name, mime_type, about)| {
            let (primary_id, ids, creator, title, date) = about;
            let has = |column| profile.columns().contains(&column);
            let mut row = Row { source, algorithm, digest, size, name, ..Row::default() };
            row.modified = modified.map(Cow::Owned);
            row.mime_type = mime_type.map(Cow::Owned).filter(|_| has(Column::MimeType));
            if has(Column::Title) {
                row.primary_id = primary_id.map(Cow::Owned);
                row.local_ids = ids
                    .into_iter()
                    .map(|id| Cow::Owned(id.trim().to_string()))
                    .collect::<std::collections::BTreeSet<_>>()
                    .into_iter()
                    .collect();
                (row.creator, row.title, row.date) = (creator, title, date);
            }
            row
        },
    )
}

fn rows() -> impl Strategy<Value = (Profile, Vec<Row<'static>>)> {
    prop::sample::select(&Profile::ALL[..])
        .prop_flat_map(|p| (Just(p), prop::collection::vec(row(p), 1..5)))
}

fn without_places(rows: Vec<Row<'static>>) -> Vec<Row<'static>> {
    rows.into_iter().map(|row| Row { place: Default::default(), ..row }).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn rows_survive_json((profile, rows) in rows()) {
        let bytes = write(Format::Json, Header::new(profile), &rows).unwrap();
        let (back, report, header) = read(&bytes);
        prop_assert!(report.errors() == report.count(checkm::Code::NameDuplicate), "{:?}", report.problems());
        prop_assert_eq!(header, Some(Header::new(profile)));
        prop_assert_eq!(without_places(back), rows);
    }

    #[test]
    fn rows_survive_checkm_or_are_refused((profile, rows) in rows()) {
        let bytes = match write(Format::Checkm, Header::new(profile), &rows) {
            Ok(bytes) => bytes,
            // Merritt's two escapes cannot say everything; what they can say must come back.
            Err(WriteError::Unrepresentable { .. }) => {
                prop_assert!(profile.is_merritt());
                return Ok(());
            }
            Err(error) => return Err(TestCaseError::fail(error.to_string())),
        };
        let (back, report, _) = read(&bytes);
        prop_assert!(report.errors() == report.count(checkm::Code::NameDuplicate),
            "{:?}\n{}", report.problems(), String::from_utf8_lossy(&bytes));
        prop_assert_eq!(without_places(back), rows.clone());
        // Through JSON and back it is the same file, byte for byte.
        let json = write(Format::Json, Header::new(profile), &rows).unwrap();
        let again = write(Format::Checkm, Header::new(profile), &read(&json).0).unwrap();
        prop_assert_eq!(again, bytes);
    }

    #[test]
    fn anything_that_is_read_can_be_written_and_read_again(
        lines in prop::collection::vec("[ -~äß|%@#]{0,40}", 0..8)
    ) {
        let text = format!("#%checkm_0.7\n{}\n#%eof\n", lines.join("\n"));
        let (rows, _, header) = read(text.as_bytes());
        let header = header.unwrap_or(Header::new(Profile::General));
        let bytes = match write(Format::Checkm, header.clone(), &rows) {
            Ok(bytes) => bytes,
            Err(error) => return Err(TestCaseError::fail(format!("{error}\n{text}"))),
        };
        prop_assert_eq!(without_places(read(&bytes).0), without_places(rows.clone()));
        let json = write(Format::Json, header, &rows).unwrap();
        prop_assert_eq!(without_places(read(&json).0), without_places(rows), "{}", String::from_utf8_lossy(&json));
    }
}

#[test]
fn columns_and_prefixes_of_their_own_survive_both_formats() {
    let text = "#%checkm_0.7\n#%profile | http://example.org/mine\n#%prefix | ex: | http://example.org/terms#\n\
                #%fields | source | algorithm | ex:shelf | nfo:fileName\n\
                a | | A-7 | b\nc | | | d\n#%eof\n";
    let (rows, report, header) = read(text.as_bytes());
    let header = header.unwrap();
    assert_eq!(report.errors(), 1, "{:?}", report.problems());
    // The third is called otherwise than a digest, but general Checkm fixes its first six.
    assert_eq!(header.columns[2], Column::Digest);
    assert_eq!(rows.len(), 1, "a digest without an algorithm");
    let text =
        text.replace("ex:shelf | nfo:fileName", "digest | size | modified | name | ex:shelf");
    let text = text.replace("a | | A-7 | b", "a | | | | | b | A-7");
    let (rows, _, header) = read(text.as_bytes());
    let header = header.unwrap();
    assert_eq!(rows[0].extra, [("ex:shelf".into(), "A-7".into())]);
    for format in [Format::Checkm, Format::Json] {
        let bytes = write(format, header.clone(), &rows).unwrap();
        let (back, report, again) = read(&bytes);
        assert_eq!(report.errors(), 0, "{:?}", report.problems());
        assert_eq!(without_places(back), without_places(rows.clone()));
        let again = again.unwrap();
        assert_eq!(again.columns, header.columns);
        assert_eq!(again.profile_uri, header.profile_uri);
        assert!(header.prefixes.iter().all(|p| again.prefixes.contains(p)));
    }
}

#[test]
fn what_a_profile_cannot_hold_is_refused_or_dropped() {
    let row = Row {
        source: Some("http://h/a".into()),
        name: Some("a".into()),
        mime_type: Some("text/plain".into()),
        ..Row::default()
    };
    let refused =
        write(Format::Checkm, Header::new(Profile::SingleFileBatch), std::slice::from_ref(&row));
    assert!(matches!(refused, Err(WriteError::NoColumn { .. })));
    let mut writer = Writer::new(Vec::new(), Format::Checkm, Header::new(Profile::SingleFileBatch))
        .unwrap()
        .dropping();
    writer.write(&row).unwrap();
    let (rows, report, _) = read(&writer.finish().unwrap());
    assert!(report.problems().is_empty(), "{:?}", report.problems());
    assert_eq!(rows[0].mime_type, None);
    let required = write(Format::Json, Header::new(Profile::Object), &[Row::default()]);
    assert!(matches!(required, Err(WriteError::Required { .. })));
    let bad = Row { name: Some("../a".into()), ..row };
    let invalid = write(Format::Json, Header::new(Profile::Object), &[bad]);
    assert!(matches!(invalid, Err(WriteError::Invalid { code: checkm::Code::NameEscape, .. })));
}

#[test]
fn a_header_cannot_smuggle_in_lines() {
    for text in ["a|b", "a\n#%eof", " a", ""] {
        let mut columns = Header::new(Profile::Object);
        columns.columns.push(Column::Extra(text.to_string()));
        let mut profile = Header::new(Profile::General);
        profile.profile_uri = Some(text.to_string());
        let mut prefix = Header::new(Profile::Object);
        prefix.prefixes.push((text.to_string(), "http://x#".to_string()));
        for header in [columns, profile, prefix] {
            let refused = write(Format::Checkm, header, &[]);
            assert!(matches!(refused, Err(WriteError::Unrepresentable { .. })), "{text:?}");
        }
    }
}
