use super::*;

fn said(who: &str, titles: &[&str]) -> Metadata {
    let mut metadata = Metadata { who: Some(who.into()), ..Metadata::default() };
    for title in titles {
        metadata.add_dc("title", title).unwrap();
    }
    metadata
}

#[test]
fn the_first_that_says_a_field_decides_it() {
    let options = Metadata { what: Some("from options".into()), ..said("A", &[]) };
    let lower = Metadata {
        what: Some("from the file".into()),
        when: Some("1999".into()),
        ..said("B", &["one", "two"])
    };
    let merged = options.or(lower);
    assert_eq!(merged.who.as_deref(), Some("A"));
    assert_eq!(merged.what.as_deref(), Some("from options"));
    assert_eq!(merged.when.as_deref(), Some("1999"));
    assert_eq!(merged.dublin_core["title"], ["one", "two"]);
    // An element is taken whole from one place, never mixed of two.
    assert_eq!(said("A", &["mine"]).or(said("B", &["theirs"])).dublin_core["title"], ["mine"]);
}

/// What an object has, and what a deposit says of it afterwards.
#[test]
fn what_is_not_said_stays_and_what_is_said_to_be_none_goes() {
    let had = Metadata {
        what: Some("T".into()),
        when: Some("1900".into()),
        ..said("A", &["one", "two"])
    };
    assert_eq!(Metadata::default().or(had.clone()).settled(), had);
    let mut now = Metadata { what: Some(" ".into()), ..said("B", &[]) };
    now.say_dc("dc:title", "").unwrap();
    now.say_dc("subject", "").unwrap();
    now.say_dc("subject", "maps").unwrap();
    // Removals survive being written down, as an option of a deposit is.
    let now: Metadata = serde_json::from_value(serde_json::json!(now.checked().unwrap())).unwrap();
    let settled = now.or(had).settled();
    assert_eq!(settled.who.as_deref(), Some("B"));
    assert_eq!((settled.what, settled.when.as_deref()), (None, Some("1900")));
    assert_eq!(settled.dublin_core.keys().collect::<Vec<_>>(), ["subject"]);
}

#[test]
fn names_of_elements_are_checked() {
    assert_eq!(dc_element("DC.Title"), Some("title"));
    assert_eq!(dc_element("dcterms:creator"), Some("creator"));
    assert_eq!(dc_element("titel"), None);
    let error = Metadata::default().add_dc("titel", "x").unwrap_err();
    assert_eq!(error.code(), "metadata.dc-element");
    assert!(error.to_string().contains("title"), "{error}");
}

#[test]
fn kernel_and_dublin_core_fill_each_other() {
    let mut dc = Metadata::default();
    for (name, value) in [("creator", "A"), ("creator", "B"), ("title", "T"), ("date", "1900")] {
        dc.add_dc(name, value).unwrap();
    }
    let both = dc.clone().with_kernel_of_dc();
    assert_eq!(both.who.as_deref(), Some("A; B"));
    assert_eq!(both.what.as_deref(), Some("T"));
    assert_eq!(both.where_, None);
    let erc = Metadata { what: Some("T".into()), ..Metadata::default() }.with_dc_of_kernel();
    assert_eq!(erc.dublin_core["title"], ["T"]);
    assert!(!erc.dublin_core.contains_key("creator"));
}

#[test]
fn json_has_the_names_people_use_and_is_checked() {
    let json = r#"{"who":" A ","where":"ark:/1/x","dublin_core":{"DC.Title":["T","T",""]}}"#;
    let metadata: Metadata = serde_json::from_str(json).unwrap();
    let checked = metadata.checked().unwrap();
    assert_eq!(checked.who.as_deref(), Some("A"));
    assert_eq!(checked.dublin_core["title"], ["T"]);
    let again = serde_json::to_string(&checked).unwrap();
    assert_eq!(again, r#"{"who":"A","where":"ark:/1/x","dublin_core":{"title":["T"]}}"#);
    assert!(serde_json::from_str::<Metadata>(r#"{"whom":"x"}"#).is_err());
}

#[test]
fn everything_is_bounded() {
    let long = "x".repeat(VALUE_BYTES_MAX + 1);
    let error = said(&long, &[]).checked().unwrap_err();
    assert_eq!(error.code(), "metadata.too-large");
    let mut many = Metadata::default();
    for n in 0..VALUES_MAX {
        many.add_dc("subject", &n.to_string()).unwrap();
    }
    assert!(many.add_dc("subject", "one more").is_err());
    assert_eq!(
        parse_erc(&vec![b'a'; FILE_BYTES_MAX + 1]).unwrap_err().code(),
        "metadata.too-large"
    );
    assert_eq!(parse_dc(b"title: \xff").unwrap_err().code(), "metadata.encoding");
}

/// What is written is read again as it was, through both forms, whatever it says.
#[test]
fn what_is_written_is_read_again() {
    let hard = [
        "plain",
        "a: b",
        "# no comment",
        "50%",
        "a%20b",
        "%sp",
        "%%",
        "%0A",
        "x | y",
        "\u{feff}mark",
        "line one\nline two\n\n  indented",
        "tab\tin",
        "<dc:title>&amp;",
        "]]>",
        "erc:",
        "名前 é",
        "(:unkn) unknown",
        "\"quoted\"",
        "ends in %",
        "%{ block %}",
        "a;b",
        "%_",
        "- dash",
    ];
    for value in hard {
        let mut metadata = Metadata {
            who: Some(value.into()),
            what: Some("a title".into()),
            when: Some(value.into()),
            where_: None,
            ..Metadata::default()
        };
        let erc = parse_erc(write_erc(&metadata).as_bytes()).unwrap();
        assert_eq!(erc, metadata, "{value:?} in {}", write_erc(&metadata));
        for element in DC_ELEMENTS {
            metadata.add_dc(element, value).unwrap();
            metadata.add_dc(element, "second").unwrap();
        }
        let xml = write_dc_xml(&metadata);
        let read = parse_dc_xml(xml.as_bytes()).unwrap();
        assert_eq!(read.dublin_core, metadata.dublin_core, "{value:?} in {xml}");
        let json = serde_json::to_vec(&metadata.dublin_core).unwrap();
        assert_eq!(parse_dc_json(&json).unwrap().dublin_core, metadata.dublin_core);
    }
}

/// Broken and cut-off input is an answer or an error, and quickly.
#[test]
fn hostile_input_is_survived() {
    let seeds: [&[u8]; 5] = [
        b"erc:\nwho: A %sp B\n  continued\nwhat: %{ x\n%}\n",
        b"<oai_dc:dc xmlns:dc='http://purl.org/dc/elements/1.1/'><dc:title>a&amp;b<![CDATA[x]]></dc:title></oai_dc:dc>",
        b"{\"title\":[\"a\",{\"b\":1}],\"dc:date\":2}",
        b"title: a\ncreator: b\n c\n",
        b"erc: a | b | c | d\n",
    ];
    let mut state: u64 = 0x9e37_79b9;
    let mut next = |below: usize| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    for round in 0..20_000 {
        let mut bytes = seeds[round % seeds.len()].to_vec();
        for _ in 0..1 + next(4) {
            let at = next(bytes.len());
            match next(4) {
                0 => bytes[at] = next(256) as u8,
                1 => bytes.truncate(at + 1),
                2 => bytes.insert(at, b"<&%:|{\n\0"[next(8)]),
                _ => bytes.extend_from_within(at..),
            }
        }
        let parsed = [parse_erc(&bytes), parse_dc(&bytes), parse_dc_xml(&bytes)];
        for metadata in parsed.into_iter().flatten() {
            let xml = write_dc_xml(&metadata);
            assert_eq!(parse_dc_xml(xml.as_bytes()).unwrap().dublin_core, metadata.dublin_core);
            let erc = parse_erc(write_erc(&metadata).as_bytes()).unwrap();
            assert_eq!(erc.who, metadata.who, "{:?}", String::from_utf8_lossy(&bytes));
        }
    }
}
