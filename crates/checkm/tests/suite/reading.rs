//! What a depositor or an archivist sees when a Checkm manifest is read.

use checkm::{Code, Format, Options, Profile, Reader, Report, Row, Severity};

const MD5: &str = "d41d8cd98f00b204e9800998ecf8427e";

/// A manifest of this profile with these rows, as Merritt's own tools write it.
fn manifest(profile: Profile, rows: &[&str]) -> String {
    let uri = profile.uri().unwrap();
    let fields: Vec<_> = profile.columns().iter().map(|c| c.field()).collect();
    format!(
        "#%checkm_0.7\n#%profile | {uri}\n\
         #%prefix | mrt: | http://merritt.cdlib.org/terms#\n\
         #%prefix | nfo: | http://www.semanticdesktop.org/ontologies/2007/03/22/nfo#\n\
         #%fields | {}\n{}\n#%eof\n",
        fields.join(" | "),
        rows.join("\n")
    )
}

fn read(text: impl AsRef<[u8]>) -> (Vec<Row<'static>>, Report) {
    read_with(text, &Options::default())
}

fn read_with(text: impl AsRef<[u8]>, options: &Options) -> (Vec<Row<'static>>, Report) {
    let mut reader = Reader::new(text.as_ref(), options).unwrap();
    let mut rows = Vec::new();
    while let Some(row) = reader.next_row().unwrap() {
        rows.push(row);
    }
    (rows, reader.finish().unwrap())
}

fn found(text: impl AsRef<[u8]>) -> Vec<(u64, &'static str)> {
    read(text).1.problems().iter().map(|p| (p.line, p.code.as_str())).collect()
}

/// What is wrong with one row, which is line 6.
fn row_codes(profile: Profile, row: &str) -> Vec<&'static str> {
    found(manifest(profile, &[row])).into_iter().map(|(_, code)| code).collect()
}

#[test]
fn a_good_object_manifest_gives_its_rows() {
    let row = format!(
        "http://h/a%7cb | SHA-256 | {} | 12 | 2024-02-29T12:00:00Z | dir/a%7Cb%20c%41 | text/plain",
        "AB".repeat(32)
    );
    let (rows, report) = read(manifest(Profile::Object, &[&row]));
    assert_eq!(report.problems(), Vec::<&checkm::Problem>::new());
    let row = &rows[0];
    assert_eq!(row.source.as_deref(), Some("http://h/a%7cb"), "a URL is not decoded");
    assert_eq!(row.algorithm.as_deref(), Some("sha256"));
    assert_eq!(row.digest.as_deref(), Some("ab".repeat(32).as_str()));
    assert_eq!(row.size, Some(12));
    assert_eq!(row.name.as_deref(), Some("dir/a|b c%41"), "two escapes and no more");
    assert_eq!(row.mime_type.as_deref(), Some("text/plain"));
    assert_eq!((row.place.line, row.place.row), (6, 1));
    assert_eq!((report.rows(), report.content_bytes(), report.content_unknown()), (1, 12, 0));
}

#[test]
fn every_profile_reads_its_own_columns() {
    let batch = "http://h/x.zip | md5 | d41d8cd98f00b204e9800998ecf8427e | 1 | | x.zip | ark:/12345/abc | id1; id2 | Me | A | 1999";
    for profile in [Profile::ContainerBatch, Profile::SingleFileBatch] {
        let (rows, report) = read(manifest(profile, &[batch]));
        assert_eq!(report.errors(), 0, "{profile}: {:?}", report.problems());
        assert_eq!(rows[0].primary_id.as_deref(), Some("ark:/12345/abc"));
        assert_eq!(rows[0].local_ids, ["id1", "id2"]);
        assert_eq!(rows[0].date.as_deref(), Some("1999"));
    }
    let (rows, report) =
        read(manifest(Profile::ManifestBatch, &["@http://h/a.checkm | | | | | a.checkm"]));
    assert!(report.is_valid() && rows[0].include);
    let inside = format!("dir/f.txt | md5 | {MD5} | 0 | 20240101 | text/plain");
    let (rows, report) = read(manifest(Profile::Container, &[&inside]));
    assert!(report.problems().is_empty(), "{:?}", report.problems());
    assert_eq!((rows[0].source.as_deref(), rows[0].name.as_deref()), (None, Some("dir/f.txt")));
}

#[test]
fn without_fields_the_profile_decides_and_with_them_they_do() {
    let uri = Profile::Object.uri().unwrap();
    let plain = format!("#%checkm_0.7\n#%profile | {uri}\nhttp://h/a | | | | | a\n#%eof\n");
    assert_eq!(found(&plain), []);
    for symbol in ["fields", "columns", "FIELDS"] {
        let own = format!(
            "#%checkm_0.7\n#%profile | {uri}\n#%prefix | nfo: | http://x\n#%{symbol} | nfo:fileName | nfo:fileUrl\na | http://h/a\n#%eof\n"
        );
        let (rows, report) = read(own);
        assert!(report.is_valid(), "{:?}", report.problems());
        assert_eq!(report.count(Code::FieldsDiffer), 1, "Merritt would read it otherwise");
        assert_eq!(rows[0].name.as_deref(), Some("a"));
        assert_eq!(rows[0].source.as_deref(), Some("http://h/a"));
    }
}

#[test]
fn old_ways_to_write_the_header_are_understood() {
    let text = "#%checkm_0.7\n#%profile http://uc3.cdlib.org/registry/mrt/mrt-object-manifest\n\
                #%prefix | nfo:<http://www.semanticdesktop.org/ontologies/2007/03/22/nfo#>\n\
                #%columns nfo:fileName nfo:hashAlgorithm\nx\n#%EOF of it\n";
    let (rows, report) = read(text);
    assert!(report.is_valid(), "{:?}", report.problems());
    assert_eq!(report.count(Code::HeaderSyntax), 2);
    assert_eq!(rows[0].name.as_deref(), Some("x"));
}

#[test]
fn every_bad_row_is_reported_by_its_line_at_once() {
    let text = manifest(
        Profile::Object,
        &[
            "http://h/1 | | | | | good",
            "ftp://h/2 | | | | | two",
            "http://h/3 | md5 | 123 | | | three",
            "http://h/4 | | | minus | | four",
            "",
            "http://h/5 | | | | tomorrow | five",
            "http://h/6 | | | | | ../six",
            "http://h/7 | | | | | good",
            "http://h/8 | | | | | GOOD",
            "http://h/9 | | | | | nine | text/plain | x",
        ],
    );
    assert_eq!(
        found(text),
        [
            (7, "url-scheme"),
            (8, "digest-length"),
            (9, "size-syntax"),
            (11, "date-syntax"),
            (12, "name-escape"),
            (13, "name-duplicate"),
            (14, "name-collision"),
            (15, "columns-too-many"),
        ]
    );
}

#[test]
fn values_are_judged_one_by_one() {
    let object = |row: &str| row_codes(Profile::Object, row);
    for (row, codes) in [
        (" | md5 | d41d8cd98f00b204e9800998ecf8427e | | | a", vec!["value-missing"]),
        ("http://h/a b | | | | | a", vec!["url-syntax"]),
        ("http://u:p@h/a | | | | | a", vec!["url-userinfo"]),
        ("h/a | | | | | a", vec!["url-scheme"]),
        ("http://h/a | rot13 | abc | | | a", vec!["algorithm-unknown"]),
        ("http://h/a | crc32 | 00000000 | | | a", vec!["algorithm-weak"]),
        ("http://h/a | | abc | | | a", vec!["algorithm-missing"]),
        ("http://h/a | md5 | | | | a", vec!["digest-missing"]),
        ("http://h/a | md5 | z41d8cd98f00b204e9800998ecf8427e | | | a", vec!["digest-syntax"]),
        ("http://h/a | | | 99999999999999999999 | | a", vec!["size-range"]),
        ("http://h/a | | | 9223372036854775808 | | a", vec!["size-range"]),
        ("http://h/a | | | +1 | | a", vec!["size-syntax"]),
        ("http://h/a | | | | 2023-02-29 | a", vec!["date-impossible"]),
        ("http://h/a | | | | | /etc/passwd", vec!["name-absolute"]),
        ("http://h/a | | | | | a//b", vec!["name-syntax"]),
        ("http://h/a | | | | | a\\b", vec!["name-backslash"]),
        ("http://h/a | | | | | a\rb", vec!["control-character"]),
        ("http://h/a | | | | | %20a", vec!["name-space"]),
        ("http://h/a | | | | | a | gif", vec!["mime-syntax"]),
        ("http://h/a/b", vec!["name-missing"]),
        ("http://h/..", vec!["name-missing", "name-escape"]),
        ("http://h", vec!["value-missing"]),
        ("@http://h/a | | | | | a", vec!["include-unexpected"]),
        ("http://h/a | | | | | a | | | ", vec![]),
    ] {
        let mut has = object(row);
        has.sort_unstable();
        let mut wanted = codes.clone();
        wanted.sort_unstable();
        assert_eq!(has, wanted, "{row}");
    }
    let long = format!("http://h/a | | | | | {}", "n".repeat(300));
    assert_eq!(object(&long), ["name-too-long"]);
}

#[test]
fn batches_have_rules_of_their_own() {
    let row = |rest: &str| format!("http://h/a | | | | | {rest}");
    for (profile, rest, codes) in [
        (Profile::ContainerBatch, "a.txt", vec!["not-container"]),
        (Profile::ContainerBatch, "a.TAR.GZ", vec![]),
        (Profile::ManifestBatch, "a.zip", vec!["not-manifest"]),
        (Profile::SingleFileBatch, "a.zip", vec!["looks-container"]),
        (Profile::SingleFileBatch, "a | doi:10.1/2", vec!["identifier-syntax"]),
        (Profile::SingleFileBatch, "a | ark:12345/x", vec!["identifier-form"]),
        (Profile::SingleFileBatch, "a | | x; y ;x;", vec!["local-id-repeated"]),
    ] {
        assert_eq!(row_codes(profile, &row(rest)), codes, "{rest}");
    }
    let twice = manifest(
        Profile::SingleFileBatch,
        &["http://h/a | | | | | a | ark:/1/x | i", "http://h/b | | | | | b | ark:/1/x | j;i"],
    );
    assert_eq!(found(twice), [(7, "identifier-duplicate"), (7, "identifier-duplicate")]);
}

#[test]
fn crlf_and_byte_order_marks_do_not_hurt() {
    let text = manifest(Profile::Object, &["http://h/a | | | | | a | text/plain"]);
    let crlf = text.replace('\n', "\r\n");
    let (rows, report) = read(&crlf);
    assert!(report.problems().is_empty(), "{:?}", report.problems());
    assert_eq!(rows[0].mime_type.as_deref(), Some("text/plain"));
    assert_eq!(found(format!("\u{feff}{crlf}")), [(1, "bom")]);
    let utf16: Vec<u8> = "\u{feff}#%checkm".encode_utf16().flat_map(u16::to_le_bytes).collect();
    assert_eq!(found(utf16), [(1, "encoding")]);
    let mut latin = text.into_bytes();
    latin.splice(latin.len() - 6..latin.len() - 6, *b"http://h/b | | | | | \xfc\n");
    assert_eq!(found(latin), [(7, "utf-8")]);
}

#[test]
fn the_end_must_be_there_and_be_the_end() {
    let text = manifest(Profile::Object, &["http://h/a | | | | | a"]);
    assert_eq!(found(text.trim_end_matches("#%eof\n")), [(6, "eof-missing")]);
    assert_eq!(found(format!("{text}\n")), [], "blank lines after it are nothing");
    assert_eq!(found(format!("{text}http://h/b | | | | | b\n")), [(8, "eof-trailing")]);
    assert_eq!(found(manifest(Profile::Object, &["# nothing"])), [(7, "no-rows")]);
    assert_eq!(found(""), [(0, "empty")]);
    assert_eq!(
        found(" \n\t\n"),
        [(1, "version-missing"), (0, "empty")].into_iter().rev().collect::<Vec<_>>()
    );
}

#[test]
fn headers_that_contradict_are_reported() {
    let uri = Profile::Object.uri().unwrap();
    let text = format!(
        "#%checkm_0.6\n#%profile | {uri}\n#%profile | http://elsewhere/\n\
         #%fields | nfo:fileUrl | nfo:fileUrl | dc:thing\n#%feilds | x\nhttp://h/a\n#%fields | y\n#%eof\n"
    );
    let mut codes: Vec<_> = found(text).into_iter().map(|f| f.1).collect();
    codes.sort_unstable();
    assert_eq!(
        codes,
        [
            "field-repeated",
            "field-unknown",
            "fields-differ",
            "header-late",
            "header-repeated",
            "header-unknown",
            "name-missing",
            "prefix-unknown",
            "prefix-unknown",
            "prefix-unknown",
            "version-unknown",
        ]
    );
    let options = Options { profile: Some(Profile::ManifestBatch), ..Options::default() };
    let (_, report) = read_with(manifest(Profile::Object, &["http://h/a | | | | | a"]), &options);
    assert_eq!(report.count(Code::ProfileMismatch), 1);
}

#[test]
fn general_checkm_is_as_open_as_its_specification() {
    let text = format!(
        "#%checkm_0.7\n# A comment\n\nbook/Chapter 9.xml |   md5   | {MD5}|366|20100611\n\
         book/Chapter 9.xml | sha1 | {} | 366\nicons/ | dir\n@more.checkm\n\
         http://example.org/i/x.png |||||images/%23x%7cy.png | seven | eight\n./#odd\n-\n#%eof\n",
        "ab".repeat(20)
    );
    let (rows, report) = read(text);
    let codes: Vec<_> = report.problems().iter().map(|p| (p.line, p.code)).collect();
    assert_eq!(codes, [(7, Code::IncludeUnread)]);
    assert_eq!(rows.len(), 7);
    assert!(rows[2].is_directory() && rows[3].include);
    assert_eq!(rows[4].name.as_deref(), Some("images/#x|y.png"));
    assert_eq!(rows[4].extra, [("7".into(), "seven".into()), ("8".into(), "eight".into())]);
    assert_eq!(rows[5].source.as_deref(), Some("#odd"));
    assert_eq!(found("#%checkm_0.7\n../../etc/passwd\n#%eof"), [(2, "name-escape")]);
    let (_, report) = read(format!("#%checkm_0.7\na|md5|{MD5}\na|md5|{MD5}\n"));
    assert_eq!(report.count(Code::NameDuplicate), 1, "the same file and algorithm twice");
    let eof = report.problems().into_iter().find(|p| p.code == Code::EofMissing).unwrap();
    assert_eq!(eof.severity, Severity::Warning, "#%eof is optional in general Checkm");
}

#[test]
fn a_line_that_never_ends_is_an_error_and_no_burden() {
    let long = "x".repeat(1 << 20);
    let text = manifest(Profile::Object, &[&long, "http://h/a | | | | | a"]);
    let (rows, report) = read(text);
    assert_eq!((rows.len(), report.rows(), report.count(Code::LineTooLong)), (1, 2, 1));
}

#[test]
fn a_million_bad_rows_are_counted_and_a_hundred_shown() {
    let head = manifest(Profile::Object, &[]).replace("#%eof\n", "");
    let bad = "gopher://h/a | md5 | 12 | -1 | never | ../x\n";
    let body = bad.repeat(1_000_000);
    let options = Options { format: Some(Format::Checkm), ..Options::default() };
    let report = checkm::check(format!("{head}{body}#%eof\n").as_bytes(), &options).unwrap();
    assert_eq!(report.rows(), 1_000_000);
    for count in report.counts() {
        let all = if count.code == Code::NameDuplicate { 999_999 } else { 1_000_000 };
        assert_eq!((count.count, count.shown), (all, 100), "{}", count.code);
    }
    assert_eq!(report.counts().len(), 6);
    assert_eq!(report.errors(), 5_999_999);
    assert_eq!(report.not_shown(), 5_999_999 - 600);
    assert_eq!(report.problems()[0].line, 7);
}

#[test]
fn a_source_or_a_temporary_directory_that_fails_is_an_error() {
    struct Failing;
    impl std::io::Read for Failing {
        fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
            Err(std::io::Error::other("the tape broke"))
        }
    }
    let head = manifest(Profile::Object, &["http://h/a | | | | | a"]);
    let broken = std::io::BufReader::new(std::io::Read::chain(head.as_bytes(), Failing));
    let error = checkm::check(broken, &Options::default()).unwrap_err();
    assert!(matches!(error, checkm::Error::Read(_)) && error.to_string().contains("tape"));
    let options = Options {
        memory_bytes_max: 0,
        temporary_directory: Some("/nonexistent/directory".into()),
        ..Options::default()
    };
    let rows: Vec<_> = (0..100).map(|n| format!("http://h/{n} | | | | | {n}")).collect();
    let rows: Vec<_> = rows.iter().map(String::as_str).collect();
    let error = checkm::check(manifest(Profile::Object, &rows).as_bytes(), &options).unwrap_err();
    assert!(matches!(error, checkm::Error::Temporary(_)), "{error}");
}
