//! Bringing the manifests of a bag up to date with its files.

use super::Written;
use super::in_place::write_tag_manifests;
use super::ledger::Ledger;
use super::tag_files::{hash_directory, sync_directory, write_file, write_manifests};
use crate::Observer;
use crate::declaration::Version;
use crate::error::Error;
use crate::problem::Problems;
use crate::source::open::Bag;
use crate::validate::Options;
use crate::validate::survey::Survey;
use crate::validate::tags::TagFiles;
use digest::Algorithms;
use std::path::Path;

/// What is brought up to date.
#[derive(Debug, Clone)]
pub struct UpdateOptions {
    /// Algorithms of the manifests afterwards; by default those that the bag has.
    pub algorithms: Option<Algorithms>,
    /// Leaves the payload manifests as they are: only tag files were edited.
    pub tags_only: bool,
    pub workers: usize,
}

impl Default for UpdateOptions {
    fn default() -> UpdateOptions {
        let workers = std::thread::available_parallelism().map_or(1, usize::from);
        UpdateOptions { algorithms: None, tags_only: false, workers }
    }
}

/// Writes manifests, Payload-Oxum and tag manifests anew from the files as they are now. This
/// makes whatever is there the truth: validate first, if that is not what is wanted.
pub fn update(
    directory: &Path,
    options: &UpdateOptions,
    observer: &dyn Observer,
) -> Result<Written, Error> {
    let bag = Bag::directory(directory);
    let read = Options::default();
    let survey = Survey::take(&bag, &read, Algorithms::NONE, observer, &mut Problems::new(0))?;
    let tags = TagFiles::read(&bag, &survey, &mut Problems::new(0))?;
    let refused = |reason: &str| Error::Refused(format!("{}: {reason}", directory.display()));
    let version = tags
        .declaration
        .version
        .filter(|v| v.is_known())
        .ok_or_else(|| refused("not a bag of a known version; see bagit.txt"))?;
    if !tags.encoding().is_utf8() {
        return Err(refused("its tag files are not in UTF-8; only such bags are updated"));
    }
    let existing = tags.payload_algorithms();
    let algorithms = options.algorithms.unwrap_or(existing);
    if algorithms.is_empty() {
        return Err(refused("it has no payload manifest; name an algorithm"));
    }
    if !options.tags_only {
        refuse_pending(&bag, directory)?;
    }
    let payload = match options.tags_only {
        true => tags.info.as_ref().and_then(|i| i.oxum()?.ok()).map(|(oxum, _)| oxum),
        false => Some(update_payload(directory, &tags, algorithms, version, options, observer)?),
    };
    let of_tags: Algorithms = match options.algorithms {
        Some(algorithms) if !options.tags_only => algorithms,
        _ => tags.tag_algorithms_or(existing),
    };
    remove_others(directory, &tags, true, of_tags)?;
    write_tag_manifests(directory, of_tags, options.workers)?;
    sync_directory(directory)?;
    let payload = payload.unwrap_or(crate::info::Oxum { octets: 0, files: 0 });
    Ok(Written { payload, algorithms: algorithms.iter().collect() })
}

/// The checksums of files that are still to be fetched are in the manifests and nowhere else, so
/// manifests are not written anew without them.
fn refuse_pending(bag: &Bag, directory: &Path) -> Result<(), Error> {
    bag.fetch_list(&mut |line| match directory.join(&line.path).symlink_metadata() {
        Ok(_) => Ok(()),
        Err(_) => Err(Error::Refused(format!(
            "{}: {} is still to be fetched, and its checksums would be lost; fetch it first, or remove it from fetch.txt",
            directory.display(),
            line.path
        ))),
    })
}

fn update_payload(
    directory: &Path,
    tags: &TagFiles,
    algorithms: Algorithms,
    version: Version,
    options: &UpdateOptions,
    observer: &dyn Observer,
) -> Result<crate::info::Oxum, Error> {
    let data = directory.join("data");
    let ledger = Ledger::new(algorithms, version);
    let all = |_: &str| true;
    let ledger =
        hash_directory(&data, "data/", &all, ledger, algorithms, options.workers, observer)?;
    let payload = ledger.oxum;
    write_manifests(directory, "manifest", algorithms, ledger)?;
    remove_others(directory, tags, false, algorithms)?;
    let mut info = tags.info.clone().unwrap_or_default();
    info.set("Payload-Oxum", payload.to_string());
    let name = if tags.info_name.is_empty() { "bag-info.txt" } else { tags.info_name };
    write_file(directory, name, info.render().as_bytes())?;
    Ok(payload)
}

/// Removes manifests that were not written: of other algorithms, or of the same under another
/// spelling of its name.
fn remove_others(
    directory: &Path,
    tags: &TagFiles,
    is_tag: bool,
    kept: Algorithms,
) -> Result<(), Error> {
    let prefix = if is_tag { "tagmanifest" } else { "manifest" };
    for manifest in tags.manifests.iter().filter(|m| m.is_tag == is_tag) {
        let written = format!("{prefix}-{}.txt", manifest.algorithm);
        if kept.contains(manifest.algorithm) && manifest.name == written {
            continue;
        }
        let path = directory.join(&manifest.name);
        std::fs::remove_file(&path).map_err(|e| Error::io(path.display().to_string(), e))?;
    }
    Ok(())
}
