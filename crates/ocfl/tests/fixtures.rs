//! The OCFL community's fixtures: every case gets the codes that its name asks for.

mod support;

use ocfl::{Validation, validate_object};
use std::collections::BTreeSet;
use std::sync::Arc;
use store::Store;

/// Cases that only content can tell: without reading it, they look fine.
const NEED_FIXITY: [&str; 3] = [
    "E092_algorithm_change_incorrect_digest",
    "E092_content_file_digest_mismatch",
    "E093_fixity_digest_mismatch",
];

async fn run_all(store: Arc<dyn Store>, cases: &[(String, String)], fixity: bool) {
    let validation = Validation { fixity, ..Validation::default() };
    let mut wrong = Vec::new();
    for (path, name) in cases {
        let findings =
            validate_object(store.clone(), path, &validation).await.expect("it can be read");
        let found: BTreeSet<&str> = findings.counts().keys().map(|code| code.as_str()).collect();
        let named: BTreeSet<&str> = support::named_codes(name).into_iter().collect();
        if !fixity && NEED_FIXITY.contains(&name.as_str()) {
            if !findings.is_valid() {
                wrong.push(format!("{path}: found {found:?} without reading content"));
            }
            continue;
        }
        // A valid object has exactly the warnings of its name; an invalid one has at least the
        // errors of its name, as one fault often breaks several rules.
        let expected = if path.contains("/bad-objects/") {
            named.is_subset(&found) && !findings.is_valid()
        } else {
            named == found
        };
        if !expected {
            wrong.push(format!("{path}: found {found:?}"));
            wrong.extend(findings.iter().map(|finding| format!("    {finding}")));
        }
    }
    assert!(wrong.is_empty(), "{} lines:\n{}", wrong.len(), wrong.join("\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn all_cases_in_a_local_directory() {
    let Some(fixtures) = support::fixtures() else {
        println!("skipped: the OCFL fixtures are not there");
        return;
    };
    let cases = support::cases(fixtures.path());
    assert_eq!(cases.len(), 156);
    let store = support::local(fixtures.path());
    run_all(store.clone(), &cases, true).await;
    run_all(store, &cases, false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn all_cases_on_s3() {
    let Some(fixtures) = support::fixtures() else {
        println!("skipped: the OCFL fixtures are not there");
        return;
    };
    let cases = support::cases(fixtures.path());
    // The server keeps objects as files: the bucket is the directory that was unpacked.
    let server = support::s3::Server::start(fixtures.path()).await;
    let store = server.store("ocfl-fixtures", "").await;
    let cases: Vec<(String, String)> = cases
        .into_iter()
        .map(|(path, name)| (path.trim_start_matches("ocfl-fixtures/").to_owned(), name))
        .collect();
    assert_eq!(cases.len(), 156);
    run_all(store.clone(), &cases, true).await;
    run_all(store, &cases, false).await;
}
