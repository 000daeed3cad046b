//! What the demo takes in.

use crate::error_code::ErrorCode;
use crate::exit::Failure;
use bagit::WriteOptions;
use std::path::{Path, PathBuf};

fn wrong(error: bagit::Error) -> Failure {
    Failure::unable(ErrorCode::Demo, error.to_string())
}

/// A bag that is a directory.
pub fn bag(samples: &Path, name: &str, files: &[(&str, &str)]) -> Result<PathBuf, Failure> {
    let path = samples.join(name);
    std::fs::create_dir_all(&path)?;
    for (file, text) in files {
        std::fs::write(path.join(file), text)?;
    }
    let mut options = WriteOptions::default();
    options.tags.push("Source-Organization", "The Demo Library");
    bagit::create_in_place(&path, &options, &()).map_err(wrong)?;
    Ok(path)
}

/// A tar of a bag, one file of which was damaged after its manifest was made.
pub fn torn_bag(samples: &Path) -> Result<PathBuf, Failure> {
    let path = bag(samples, "torn-page", &[("page.txt", "whole\n"), ("other.txt", "fine\n")])?;
    std::fs::write(path.join("data/page.txt"), "whxle\n")?;
    Ok(path)
}

/// Writes a payload file and brings the bag's manifests up to date.
pub fn correct(bag: &Path, file: &str, text: &str) -> Result<(), Failure> {
    std::fs::write(bag.join("data").join(file), text)?;
    bagit::update(bag, &Default::default(), &()).map_err(wrong)?;
    Ok(())
}

/// A Checkm manifest of two files that the demo's web server has.
pub fn manifest(samples: &Path, server: &str) -> Result<PathBuf, Failure> {
    let mut rows = String::new();
    for (name, text) in [("front.txt", "A wedding\n"), ("back.txt", "June 1911\n")] {
        std::fs::write(samples.join(name), text)?;
        let digest = sha256(text.as_bytes());
        rows.push_str(&format!(
            "http://{server}/{name} | sha256 | {digest} | {} | | album/{name}\n",
            text.len()
        ));
    }
    let path = samples.join("album.checkm");
    let head = "#%checkm_0.7\n#%profile | http://uc3.cdlib.org/registry/ingest/manifest/mrt-ingest-manifest\n";
    std::fs::write(&path, format!("{head}{rows}#%eof\n"))?;
    Ok(path)
}

fn sha256(bytes: &[u8]) -> String {
    let mut hasher = bagit::Hasher::new([bagit::Algorithm::Sha256].into_iter().collect());
    hasher.update(bytes);
    hasher.finish().get(bagit::Algorithm::Sha256).map(|d| d.to_string()).unwrap_or_default()
}
