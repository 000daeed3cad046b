//! The content of a copy: what the registry says of every file of every version, what the inventory
//! says, what the store lists, and what the bytes are.

use super::super::view::{self, FileView};
use super::bytes::{self, Wanted};
use super::{CopyCheck, Counts, Finding, Seen};
use crate::model::error::Result;
use crate::stores::content::{Fault, Referred};
use crate::stores::store_error;
use db::{Statement, statement};
use ocfl::{ContentSet, Listing, Object, Sealed, VersionName};
use std::collections::HashSet;

/// Files that are looked at together.
const PAGE: i64 = 1000;

/// Looks at all content of a copy, page by page, in the order of the registry.
pub(super) async fn look_at(
    check: &CopyCheck<'_>,
    kept: &Object,
    listing: &Listing,
    seen: &mut Seen,
    progress: &mut (dyn FnMut(Counts) + Send),
) -> Result<()> {
    let mut pass = Pass { check, kept, listing, done: ContentSet::default(), in_head: 0 };
    let mut after = (String::new(), 0);
    loop {
        let page = pass.page(&after).await?;
        let Some(last) = page.last().map(|f| (f.path.clone(), f.since)) else { break };
        let wanted = pass.compare_with_registry(page, seen);
        pass.compare_content(wanted, seen).await?;
        progress(seen.counts);
        after = last;
    }
    pass.beside_registry(seen).await?;
    // Content that no file of the registry has: records, and what else every version carries.
    let rest: Vec<Wanted> = pass.rest();
    for portion in rest.chunks(usize::try_from(PAGE).unwrap_or(1)) {
        pass.compare_content(portion.to_vec(), seen).await?;
        progress(seen.counts);
    }
    Ok(())
}

struct Pass<'a> {
    check: &'a CopyCheck<'a>,
    kept: &'a Object,
    listing: &'a Listing,
    /// Content that was looked at, for whichever file.
    done: ContentSet,
    /// Files of the current version that registry and inventory both have.
    in_head: usize,
}

impl Pass<'_> {
    async fn page(&self, after: &(String, i64)) -> Result<Vec<FileView>> {
        const FILES: Statement = statement!(objects::list_all_files);
        let (id, (path, since)) = (self.check.object.id, after.clone());
        let read = move |tx: &mut db::Tx<'_>| {
            Ok::<_, crate::Error>(tx.query(&FILES, &db::params![id, &path, since, PAGE])?)
        };
        self.check.app.db.read(read).await
    }

    /// Compares files with the inventory, in the first and the last version that has them; gives
    /// the content that is theirs and was not wanted before.
    fn compare_with_registry(&mut self, page: Vec<FileView>, seen: &mut Seen) -> Vec<Wanted> {
        let head = self.check.copy.version;
        let mut wanted = Vec::new();
        for file in page.into_iter().filter(|file| file.since <= head) {
            let last = file.until.unwrap_or(head).min(head);
            let mut versions = vec![file.since];
            versions.extend((last != file.since).then_some(last));
            let mut agrees = true;
            for version in versions {
                match self.in_version(&file, version) {
                    None => self.in_head += usize::from(version == head),
                    Some(finding) => {
                        // The inventory may have it with another digest.
                        self.in_head += usize::from(version == head && finding.kind == "different");
                        seen.findings.push(finding);
                        agrees = false;
                        break;
                    }
                }
            }
            if !agrees {
                continue;
            }
            let sealed = Sealed::Object(self.kept);
            let Some(content) = sealed.find(&file.sha512) else { continue };
            if self.done.insert(&content) {
                let listed = sealed.size(&self.listing.sizes, &content);
                let since = Some(file.since);
                let file = Referred::of_view(file, content.key);
                wanted.push(Wanted { file, since, listed, sized: true });
            }
        }
        wanted
    }

    /// How the inventory's version differs from the registry in this file.
    fn in_version(&self, file: &FileView, version: i64) -> Option<Finding> {
        let inventory = self.kept.inventory();
        let number = u32::try_from(version).unwrap_or(0);
        let there = inventory.version(number).and_then(|v| inventory.find(v, &file.path));
        let (kind, message) = match there.map(|there| there.digest) {
            Some(digest) if digest.eq_ignore_ascii_case(&file.sha512) => return None,
            Some(digest) => (
                "different",
                format!(
                    "the store says of version {version} that its sha512 is {digest}, and the registry {}",
                    file.sha512
                ),
            ),
            None => {
                ("missing", format!("the store's inventory does not name it in version {version}"))
            }
        };
        Some(self.check.finding(kind, Some(&file.path), message))
    }

    /// Files of the current version that the registry does not know.
    async fn beside_registry(&self, seen: &mut Seen) -> Result<()> {
        let inventory = self.kept.inventory();
        let failed = |e| store_error(&self.check.place.name, e);
        let version = self.kept.version(None).map_err(failed)?;
        let deposited = || inventory.files(version).filter(|f| !f.path.starts_with("accession/"));
        if deposited().count() <= self.in_head {
            return Ok(());
        }
        let known = self.known_paths().await?;
        let mut extra: Vec<&str> =
            deposited().map(|file| file.path).filter(|path| !known.contains(*path)).collect();
        extra.sort_unstable();
        let message = "the registry does not know it";
        let finding = |path: &&str| self.check.finding("extra", Some(path), message.to_string());
        seen.findings.extend(extra.iter().map(finding));
        Ok(())
    }

    async fn known_paths(&self) -> Result<HashSet<String>> {
        let (id, version) = (self.check.object.id, self.check.copy.version);
        let (mut known, mut after) = (HashSet::new(), String::new());
        loop {
            let from = after.clone();
            let page: Vec<FileView> =
                self.check.app.db.read(move |tx| view::files(tx, id, version, &from, PAGE)).await?;
            let Some(last) = page.last() else { return Ok(known) };
            after = last.path.clone();
            known.extend(page.into_iter().map(|file| file.path));
        }
    }

    fn rest(&self) -> Vec<Wanted> {
        let cut = self.kept.path().len() + 1;
        let wanted = |(content, digest): (ocfl::SealedContent, String)| {
            let listed = Sealed::Object(self.kept).size(&self.listing.sizes, &content);
            let path = content.key.get(cut..).unwrap_or_default().to_string();
            let version = path.split('/').next().and_then(|name| name.parse::<VersionName>().ok());
            let file = Referred {
                path,
                size: listed.unwrap_or(0),
                sha512: digest,
                sha256: None,
                key: content.key,
            };
            let since = version.map(|name| i64::from(name.number()));
            Wanted { file, since, listed, sized: false }
        };
        self.kept.contents_beside(&self.done).map(wanted).collect()
    }

    async fn compare_content(&self, wanted: Vec<Wanted>, seen: &mut Seen) -> Result<()> {
        let check = self.check;
        let faulty = bytes::compare(check.place, check.depth, wanted, &mut seen.counts).await?;
        for (Wanted { file, since, .. }, fault) in faulty {
            let kind = if fault == Fault::Missing { "missing" } else { "damaged" };
            let message = format!("{} {fault}", file.key);
            let finding = check.finding(kind, Some(&file.path), message);
            seen.findings.push(Finding { since, ..finding });
        }
        Ok(())
    }
}
