//! `docs/errors.md` says what every error code means. Run with `ACCESSION_BLESS=1` to rewrite it.

use queue::ErrorCode;
use std::collections::BTreeSet;
use std::path::Path;

/// The section of a crate: all that is between its marks.
fn section(title: &str, rows: &[(&str, &str, &str)]) -> String {
    let mut text =
        format!("<!-- begin {title} -->\n| code | meaning | what to do |\n|---|---|---|\n");
    for (code, meaning, remedy) in rows {
        text.push_str(&format!("| `{code}` | {meaning} | {remedy} |\n"));
    }
    text + &format!("<!-- end {title} -->")
}

#[test]
fn the_page_of_error_codes_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/errors.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let rows: Vec<_> =
        ErrorCode::ALL.iter().map(|c| (c.as_str(), c.meaning(), c.remedy())).collect();
    let codes: BTreeSet<&str> = rows.iter().map(|row| row.0).collect();
    assert_eq!(codes.len(), rows.len(), "each code is one error's");
    let wanted = section("queue", &rows);
    let begin = page.find("<!-- begin queue -->").expect("the page has a section for the queue");
    let mark = "<!-- end queue -->";
    let end = page.find(mark).expect("the section ends") + mark.len();
    if std::env::var_os("ACCESSION_BLESS").is_some() {
        std::fs::write(&path, format!("{}{wanted}{}", &page[..begin], &page[end..])).unwrap();
        return;
    }
    assert!(
        page[begin..end] == wanted,
        "docs/errors.md is stale; run `ACCESSION_BLESS=1 cargo test -p queue --test conformance error_page`"
    );
}
