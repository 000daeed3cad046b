//! Packages as bags: BagIt 1.0, with the tag files that the object was deposited with.
//!
//! A bag that is whole says of itself what it said before: its `bag-info.txt` is the original one,
//! byte for byte, so that depositing it again changes nothing. Where a tag would be wrong, because
//! only some of the files are in the bag, it is recomputed, and what it was is kept as `Original-…`.
//! Manifests are written from the registry's digests, which every file is compared with on its way.

use super::plan::{Naming, Plan, Selection, Totals};
use super::{Content, MadeFile, Making, Member};
use crate::model::error::{Error, Result};
use crate::model::event::agent;
use crate::registry::view::{self, FileView};
use crate::stores::copies::{Copies, StoredFile};
use crate::stores::reading::ReadError;
use bagit::info::{Oxum, TAG_BYTES_MAX, Tags};
use bagit::text::{Encoding, Lines};
use bagit::{Algorithm, Algorithms, Declaration, Digests, Version};
use futures_util::TryStreamExt;
use std::collections::BTreeSet;
use std::io::Write;
use std::sync::Arc;

/// Where the tags of a deposited bag are in the object.
const INFO: &str = "tags/bag-info.txt";

/// What a bag is made of.
pub struct BagSpec<'a> {
    pub copies: &'a Copies,
    pub selection: Selection,
    /// The directory of the bag in its container, with a slash at its end, or nothing.
    pub base: String,
    /// Tag files that are added, with their paths in the bag.
    pub added: Vec<(String, MadeFile)>,
    /// `YYYY-MM-DD`, where the bag has to say a day of its own.
    pub date: String,
    /// Only some of the files are wanted, so that the bag is not the one that was deposited.
    pub is_part: bool,
}

/// What is read of the registry before anything is written.
#[derive(Default)]
struct Survey {
    totals: Totals,
    oxum: (u64, u64),
    payload: Option<Algorithms>,
    tags: Option<Algorithms>,
    has_info: bool,
}

/// The plan of a bag.
pub async fn plan(spec: BagSpec<'_>) -> Result<Plan> {
    let survey = Survey::take(&spec.selection).await?;
    let sha512: Algorithms = [Algorithm::Sha512].into_iter().collect();
    let payload = survey.payload.unwrap_or(sha512);
    // Made tag files have every digest; those that were deposited have what was taken of them then.
    let tags = survey.tags.map_or(payload, |tags| intersection(tags, payload));
    let declaration = Declaration::render(Version::V1_0);
    let declaration = Making::of(declaration.as_bytes(), tags).map_err(Error::Output)?;
    let info = info(&spec, &survey, tags).await?;
    let mut selection = spec.selection.clone();
    if info.is_some() {
        let mut without = BTreeSet::clone(&selection.without);
        without.insert(INFO.to_string());
        selection.without = Arc::new(without);
    }
    let manifests = manifests(&selection, payload, tags).await?;
    let base = &spec.base;
    let member = |path: &str, file: MadeFile| Member {
        path: format!("{base}{path}"),
        modified: None,
        content: Content::Made(file),
    };
    let mut made: Vec<(String, MadeFile)> = manifests;
    made.extend(info.map(|file| ("bag-info.txt".to_string(), file)));
    made.extend(spec.added);
    let tag_manifests = tag_manifests(&selection, &declaration, &made, tags).await?;
    let tail = made.into_iter().chain(tag_manifests).map(|(path, file)| member(&path, file));
    let mut plan = Plan::files(selection, Naming::Bag(spec.base.clone())).await?;
    plan.head.insert(0, member("bagit.txt", declaration));
    plan.tail = tail.collect();
    Ok(plan)
}

impl Survey {
    async fn take(selection: &Selection) -> Result<Survey> {
        let mut survey = Survey::default();
        let mut files = selection.files();
        while let Some(file) = files.try_next().await? {
            let size = u64::try_from(file.size).unwrap_or(0);
            survey.totals.files += 1;
            survey.totals.bytes += size;
            let has = algorithms(&file);
            let all = match file.path.starts_with("data/") {
                true => {
                    survey.oxum.0 += size;
                    survey.oxum.1 += 1;
                    &mut survey.payload
                }
                false => {
                    survey.has_info |= file.path == INFO;
                    &mut survey.tags
                }
            };
            *all = Some(all.map_or(has, |all| intersection(all, has)));
        }
        Ok(survey)
    }
}

/// The algorithms of which the registry has a file's digest.
fn algorithms(file: &FileView) -> Algorithms {
    let said = file.digests.as_ref().and_then(serde_json::Value::as_object);
    let named = said.into_iter().flatten().filter_map(|(name, _)| name.parse::<Algorithm>().ok());
    named.chain([Algorithm::Sha512]).collect()
}

fn intersection(one: Algorithms, other: Algorithms) -> Algorithms {
    one.iter().filter(|algorithm| other.contains(*algorithm)).collect()
}

fn digest_of(file: &FileView, algorithm: Algorithm) -> Option<&str> {
    match algorithm {
        Algorithm::Sha512 => Some(&file.sha512),
        other => file.digests.as_ref()?.get(other.name())?.as_str(),
    }
}

/// A `bag-info.txt` in place of the original one; `None` if that is right as it is, or if there is
/// none and the bag needs none.
async fn info(
    spec: &BagSpec<'_>,
    survey: &Survey,
    algorithms: Algorithms,
) -> Result<Option<MadeFile>> {
    let oxum = Oxum { octets: survey.oxum.0, files: survey.oxum.1 };
    let original = match survey.has_info {
        true => original_info(spec).await?,
        // What says nothing of itself can be deposited again as what it was.
        false if !spec.is_part && spec.added.is_empty() => return Ok(None),
        false => None,
    };
    let is_right = original.as_ref().is_some_and(|(tags, is_utf8)| {
        *is_utf8 && tags.oxum().is_none_or(|said| said.is_ok_and(|(said, _)| said == oxum))
    });
    if is_right && !spec.is_part {
        return Ok(None);
    }
    let mut tags = original.map(|(tags, _)| tags).unwrap_or_default();
    let identifier = &spec.copies.object.identifier;
    if tags.values("External-Identifier").all(|said| said != identifier) {
        tags.push("External-Identifier", identifier);
    }
    for (label, value) in [
        ("Payload-Oxum", oxum.to_string()),
        ("Bagging-Date", spec.date.clone()),
        ("Bag-Software-Agent", agent()),
    ] {
        recompute(&mut tags, label, value);
    }
    if tags.values("Bag-Size").next().is_some() {
        recompute(&mut tags, "Bag-Size", format!("{} B", survey.totals.bytes));
    }
    Ok(Some(Making::of(tags.render().as_bytes(), algorithms).map_err(Error::Output)?))
}

/// Sets a tag, and keeps what it said before.
fn recompute(tags: &mut Tags, label: &str, value: String) {
    let before: Vec<String> = tags.values(label).map(str::to_string).collect();
    for said in before.into_iter().filter(|said| *said != value) {
        tags.push(format!("Original-{label}"), said);
    }
    tags.set(label, value);
}

/// The tags that were deposited, and whether they are UTF-8; `None` if they are too large to be
/// changed, or no store has them.
async fn original_info(spec: &BagSpec<'_>) -> Result<Option<(Tags, bool)>> {
    let (object, version) = (spec.selection.object, spec.selection.version);
    let found = spec.selection.app.db.read(move |tx| view::file(tx, object, version, INFO)).await?;
    let Some(file) = found.map(|file| StoredFile::of_view(&file)) else { return Ok(None) };
    if file.size > TAG_BYTES_MAX as u64 {
        return Ok(None);
    }
    let bytes = match spec.copies.read_whole(&file).await {
        Ok(bytes) => bytes,
        // It is found missing again when the files are read, and said then.
        Err(ReadError::Damaged(_)) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let utf8 = std::str::from_utf8(&bytes).map(str::to_string);
    let is_utf8 = utf8.is_ok();
    // Any other encoding is read as Latin-1, in which every byte is a character.
    let text = utf8.unwrap_or_else(|_| bytes.iter().map(|byte| char::from(*byte)).collect());
    let mut lines = Lines::new(text.as_bytes(), Encoding::UTF_8);
    let tags = Tags::read(&mut lines, &mut |_, _| ()).map_err(Error::Output)?;
    Ok(Some((tags, is_utf8)))
}

/// The payload manifests.
async fn manifests(
    selection: &Selection,
    algorithms: Algorithms,
    of_tags: Algorithms,
) -> Result<Vec<(String, MadeFile)>> {
    let mut files = selection.files();
    let mut making = begin(algorithms, of_tags);
    while let Some(file) = files.try_next().await? {
        if !file.path.starts_with("data/") {
            continue;
        }
        for (algorithm, manifest) in &mut making {
            let digest = digest_of(&file, *algorithm).unwrap_or_default();
            line(manifest, digest, &file.path)?;
        }
    }
    finish("manifest", making)
}

/// The tag manifests, in the order of paths.
async fn tag_manifests(
    selection: &Selection,
    declaration: &MadeFile,
    made: &[(String, MadeFile)],
    algorithms: Algorithms,
) -> Result<Vec<(String, MadeFile)>> {
    let mut making = begin(algorithms, Algorithms::NONE);
    let mut made: Vec<(&str, &Digests)> =
        made.iter().map(|(path, file)| (path.as_str(), &file.digests)).collect();
    made.push(("bagit.txt", &declaration.digests));
    made.sort_unstable_by_key(|(path, _)| *path);
    let mut made = made.into_iter().peekable();
    let mut files = selection.files();
    loop {
        let file = files.try_next().await?;
        let path = file.as_ref().map(|file| file.path.strip_prefix("tags/"));
        let Some(path) = path.map_or(Some(None), |tag| tag.map(Some)) else { continue };
        while let Some((own, digests)) =
            made.next_if(|(own, _)| path.is_none_or(|path| *own < path))
        {
            for (algorithm, manifest) in &mut making {
                line(manifest, &digests.hex(*algorithm).unwrap_or_default(), own)?;
            }
        }
        let (Some(file), Some(path)) = (&file, path) else { break };
        for (algorithm, manifest) in &mut making {
            line(manifest, digest_of(file, *algorithm).unwrap_or_default(), path)?;
        }
    }
    finish("tagmanifest", making)
}

fn begin(algorithms: Algorithms, digests: Algorithms) -> Vec<(Algorithm, Making)> {
    algorithms.iter().map(|algorithm| (algorithm, Making::new(digests))).collect()
}

fn line(manifest: &mut Making, digest: &str, path: &str) -> Result<()> {
    let path = bagit::path::percent_encode(path);
    writeln!(manifest, "{digest}  {path}").map_err(Error::Output)
}

fn finish(prefix: &str, making: Vec<(Algorithm, Making)>) -> Result<Vec<(String, MadeFile)>> {
    let named = making.into_iter().map(|(algorithm, manifest)| {
        let file = manifest.finish().map_err(Error::Output)?;
        Ok((format!("{prefix}-{algorithm}.txt"), file))
    });
    named.collect()
}
