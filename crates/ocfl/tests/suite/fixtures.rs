//! The OCFL community's fixtures: every case gets the codes that its name asks for.

use crate::support;
use ocfl::{Spec, Validation, validate_object};
use std::collections::BTreeSet;
use std::sync::Arc;
use store::Store;

/// Cases that only content can tell: without reading it, they look fine.
const NEED_FIXITY: [&str; 3] = [
    "E092_algorithm_change_incorrect_digest",
    "E092_content_file_digest_mismatch",
    "E093_fixity_digest_mismatch",
];

/// A case: the store it is in, its path there, its kind and its name.
type Case = (Arc<dyn Store>, String, String, String);

async fn run_all(cases: &[Case], fixity: bool) {
    let validation = Validation { fixity, ..Validation::default() };
    let mut wrong = Vec::new();
    for (store, path, kind, name) in cases {
        let findings =
            validate_object(store.clone(), path, &validation).await.expect("it can be read");
        let found: BTreeSet<&str> = findings.counts().keys().map(|code| code.as_str()).collect();
        let named: BTreeSet<&str> = support::named_codes(name).into_iter().collect();
        let spec = if kind.contains("/1.0/") { Spec::V1_0 } else { Spec::V1_1 };
        let foreign = findings.counts().keys().filter(|code| !code.is_of(spec));
        wrong.extend(foreign.map(|code| format!("{kind}: {code} is no code of {spec}")));
        if !fixity && NEED_FIXITY.contains(&name.as_str()) {
            if !findings.is_valid() {
                wrong.push(format!("{kind}: found {found:?} without reading content"));
            }
            continue;
        }
        // A valid object has exactly the warnings of its name; an invalid one has at least the
        // errors of its name, as one fault often breaks several rules.
        let expected = if kind.contains("/bad-objects/") {
            named.is_subset(&found) && !findings.is_valid()
        } else {
            named == found
        };
        if !expected {
            wrong.push(format!("{kind}: found {found:?}"));
            wrong.extend(findings.iter().map(|finding| format!("    {finding}")));
        }
    }
    assert!(wrong.is_empty(), "{} lines:\n{}", wrong.len(), wrong.join("\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn all_cases_in_a_local_directory() {
    let Some(fixtures) = support::fixtures() else { return };
    let store = support::local(fixtures.path());
    let cases: Vec<Case> = support::cases(fixtures.path())
        .into_iter()
        .map(|(path, name)| (store.clone(), path.clone(), path, name))
        .collect();
    assert_eq!(cases.len(), 156);
    run_all(&cases, true).await;
    run_all(&cases, false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn all_cases_on_s3() {
    let Some(fixtures) = support::fixtures() else { return };
    // The server keeps objects as files. Each case is a bucket of its own, because this server
    // looks through a whole bucket to list a prefix of it.
    let served = support::scratch();
    let server = support::s3::Server::start(served.path()).await;
    let mut cases: Vec<Case> = Vec::new();
    for (number, (path, name)) in support::cases(fixtures.path()).into_iter().enumerate() {
        let bucket = format!("case{number}");
        std::fs::create_dir_all(served.path().join(&bucket).join("root")).expect("a bucket");
        let object = served.path().join(&bucket).join("root/object");
        std::fs::rename(fixtures.path().join(&path), object).expect("the case");
        cases.push((server.store(&bucket, "root").await, "object".to_owned(), path, name));
    }
    assert_eq!(cases.len(), 156);
    run_all(&cases, true).await;
    run_all(&cases, false).await;
}
