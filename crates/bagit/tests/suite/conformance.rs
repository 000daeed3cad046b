//! The Library of Congress conformance suite: every case must have the outcome its place says.

use bagit::{Bag, Options, Severity};
use std::path::{Path, PathBuf};

fn unpack(file: &Path, into: &Path) {
    let reader = flate2::read::GzDecoder::new(std::fs::File::open(file).unwrap());
    tar::Archive::new(reader).unpack(into).unwrap();
}

/// The cases of a suite: version, expectation, directory.
fn cases(root: &Path) -> Vec<(String, PathBuf)> {
    let list = |path: &Path| -> Vec<PathBuf> {
        let mut all: Vec<_> = std::fs::read_dir(path)
            .map(|entries| entries.map(|e| e.unwrap().path()).filter(|p| p.is_dir()).collect())
            .unwrap_or_default();
        all.sort();
        all
    };
    let mut cases = Vec::new();
    for version in list(&root.join("bagit-conformance")) {
        for expectation in list(&version) {
            let name = expectation.file_name().unwrap().to_string_lossy().into_owned();
            if name != "windows-only" {
                cases.extend(list(&expectation).into_iter().map(|case| (name.clone(), case)));
            }
        }
    }
    cases
}

#[test]
fn every_case_has_the_outcome_that_the_suite_says() {
    let Some(file) = testing::corpus("bagit-conformance.tar.gz") else { return };
    let directory = tempfile::tempdir().unwrap();
    unpack(&file, directory.path());
    let cases = cases(directory.path());
    let mut wrong = Vec::new();
    for (expectation, case) in &cases {
        let report = Bag::open(case).unwrap().validate(&Options::default()).unwrap();
        let warned = report.problems.iter().any(|p| p.severity == Severity::Warning);
        let right = match expectation.as_str() {
            "valid" => report.valid,
            "warning" => report.valid && warned,
            "invalid" | "linux-only" => !report.valid,
            other => panic!("unknown expectation {other}"),
        };
        if !right {
            let problems: Vec<_> = report.problems.iter().map(ToString::to_string).collect();
            wrong.push(format!("{expectation} {}: {problems:#?}", case.display()));
        }
    }
    println!("{} of {} cases", cases.len() - wrong.len(), cases.len());
    assert_eq!(cases.len(), 54);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
