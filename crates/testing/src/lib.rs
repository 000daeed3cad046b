//! What the tests of all crates share: a test that cannot run says so, and fails where everything must
//! run. `scripts/test` sets [`ALL`], and [`CORPORA`] where other people's data are at hand.
#![deny(missing_docs)]

use std::path::{Path, PathBuf};

/// The variable with which a test that cannot run fails.
pub const ALL: &str = "ACCESSION_TEST_ALL";
/// The variable with which a test fails that does not find other people's data.
pub const CORPORA: &str = "ACCESSION_TEST_CORPORA";

/// Says that something is not tested, and why.
///
/// # Panics
///
/// If [`ALL`] is set.
pub fn skip(why: &str) {
    assert!(std::env::var_os(ALL).is_none(), "not run, although {ALL} is set: {why}");
    println!("not run: {why}");
}

/// Finds a file of other people's data: in `$ACCESSION_CORPORA`, or beside the repository. Where it is
/// not found, only the cases of the crate's own are tested.
///
/// # Panics
///
/// If it is not found and [`CORPORA`] is set.
pub fn corpus(name: &str) -> Option<PathBuf> {
    let named = std::env::var_os("ACCESSION_CORPORA").map(PathBuf::from);
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpora");
    let found = named.into_iter().chain([beside]).map(|root| root.join(name)).find(|f| f.exists());
    if found.is_none() {
        assert!(
            std::env::var_os(CORPORA).is_none(),
            "{name} is not found, although {CORPORA} is set"
        );
        println!("not run: {name} is not among the corpora; set ACCESSION_CORPORA to where it is");
    }
    found
}
