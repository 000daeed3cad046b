//! The official test data, when it is there.

#![allow(dead_code)] // Each test uses its own part of this.

use flate2::read::GzDecoder;
use pronom::SignatureSet;
use std::collections::BTreeMap;
use std::io::Read;

/// Files of an archive by name.
pub type Files = BTreeMap<String, Vec<u8>>;

/// Unpacks an archive of the corpora into memory, or says that it is not there.
pub fn corpus(name: &str) -> Option<Files> {
    let file = std::fs::File::open(testing::corpus(name)?).expect("a file that can be read");
    let mut files = Files::new();
    let mut archive = tar::Archive::new(GzDecoder::new(file));
    for entry in archive.entries().expect("a tar") {
        let mut entry = entry.expect("an entry");
        if entry.header().entry_type().is_file() {
            let name = entry.path().expect("a name").to_string_lossy().into_owned();
            let mut bytes = Vec::new();
            entry.read_to_end(&mut bytes).expect("its bytes");
            files.insert(name, bytes);
        }
    }
    Some(files)
}

fn ending<'f>(files: &'f Files, part: &str) -> &'f [u8] {
    files.iter().find(|(name, _)| name.contains(part)).map(|(_, bytes)| bytes).expect("the file")
}

/// The official signature files, as bytes.
pub fn official_files() -> Option<(Vec<u8>, Vec<u8>)> {
    let files = corpus("pronom-signatures.tar.gz")?;
    let signatures = ending(&files, "DROID_SignatureFile").to_vec();
    Some((signatures, ending(&files, "container-signature").to_vec()))
}

/// The official signatures.
pub fn official() -> Option<SignatureSet> {
    let (signatures, containers) = official_files()?;
    Some(SignatureSet::from_official(&signatures, Some(&containers)).expect("usable"))
}

/// A skeleton: its name, the PUID its name gives, and its bytes.
pub struct Skeleton {
    pub name: String,
    pub puid: String,
    pub bytes: Vec<u8>,
}

/// All skeletons.
pub fn skeletons() -> Option<Vec<Skeleton>> {
    let files = corpus("pronom-skeletons.tar.gz")?;
    let skeleton = |(path, bytes): (String, Vec<u8>)| {
        let name = path.rsplit('/').next()?.to_owned();
        let (puid, _) = name.split_once("-signature-id-")?;
        let (kind, number) = puid.rsplit_once('-')?;
        let puid = format!("{kind}/{number}");
        Some(Skeleton { name, puid, bytes })
    };
    Some(files.into_iter().filter_map(skeleton).collect())
}

/// A list of deviations: file names, each with what follows it on its line.
pub fn deviations(which: &str) -> Option<BTreeMap<String, String>> {
    let files = corpus("pronom-skeletons.tar.gz")?;
    let text = String::from_utf8_lossy(ending(&files, which)).into_owned();
    let lines =
        text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("//"));
    let split = |line: &str| {
        let mut words = line.split_whitespace();
        (words.next().unwrap_or_default().to_owned(), words.next().unwrap_or_default().to_owned())
    };
    Some(lines.map(split).collect())
}
