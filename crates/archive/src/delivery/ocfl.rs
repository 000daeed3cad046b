//! Packages as OCFL objects: everything that a store has of an object, valid to other tools.

use super::plan::{Naming, Plan, Selection, Totals};
use super::{Content, Making, Member};
use crate::ErrorCode;
use crate::model::error::{Error, Result};
use crate::stores::copies::{Copies, StoredFile};
use crate::stores::object_error;
use bagit::Algorithms;
use futures_util::TryStreamExt;
use ocfl::{Algorithm, Validation};
use std::collections::HashMap;
use std::io::Write;
use std::sync::Arc;
use store::{Kind, list_all};

/// The plan of an object as the first store has it whose structure is valid. Its content may come from
/// any store.
pub async fn plan(copies: &Copies, selection: Selection) -> Result<Plan> {
    let mut troubles = Vec::new();
    for (place, object) in copies.opened(&mut troubles).await? {
        let (store, key) = (place.root.store().clone(), object.path().to_string());
        if object.inventory().algorithm() != Algorithm::Sha512 {
            troubles.push(format!("store {}: its inventory has no sha512", place.name));
            continue;
        }
        let validation = Validation { fixity: false, ..Validation::default() };
        let report = ocfl::validate_object(store.clone(), &key, &validation).await;
        let report = report.map_err(|error| object_error(&place.name, error))?;
        if let Some(error) = report.errors().next() {
            troubles.push(format!("store {}: {error}", place.name));
            continue;
        }
        let digests: HashMap<&str, String> = object.inventory().contents().collect();
        let mut members = Vec::new();
        let mut totals = Totals::default();
        let failed = |error: store::Error| object_error(&place.name, error.into());
        let mut entries = list_all(store.clone(), &key, true);
        while let Some(entry) = entries.try_next().await.map_err(failed)? {
            let Some(path) = entry.key.get(key.len() + 1..) else { continue };
            if entry.kind != Kind::File {
                continue;
            }
            totals.files += 1;
            totals.bytes += entry.size;
            let content = match digests.get(path) {
                Some(digest) => Content::Stored(StoredFile {
                    path: logical(path).to_string(),
                    size: entry.size,
                    sha512: digest.to_ascii_lowercase(),
                    sha256: None,
                    since: version_of(path),
                }),
                None => {
                    // Inventories, declarations and logs: small, and valid as far as was looked.
                    let mut body = store.get(&entry.key, None).await.map_err(failed)?.body;
                    let mut making = Making::new(Algorithms::NONE);
                    while let Some(bytes) = body.try_next().await.map_err(failed)? {
                        making.write_all(&bytes).map_err(Error::Output)?;
                    }
                    Content::Made(making.finish().map_err(Error::Output)?)
                }
            };
            members.push(Member { path: path.to_string(), modified: None, content });
        }
        return Ok(Plan {
            selection,
            naming: Naming::Whole,
            head: Vec::new(),
            tail: Vec::new(),
            totals,
            listed: Some(Arc::new(members)),
        });
    }
    Err(Error::permanent(
        ErrorCode::NoIntactCopy,
        format!(
            "no store has an intact OCFL object of {}: {}; restore it as a directory or a bag, which have what is left of it",
            copies.object.identifier,
            troubles.join("; ")
        ),
    ))
}

/// The path of a content file in the version that brought it.
fn logical(path: &str) -> &str {
    path.splitn(3, '/').nth(2).unwrap_or(path)
}

fn version_of(path: &str) -> i64 {
    let name = path.split('/').next().unwrap_or_default();
    name.trim_start_matches('v').parse().unwrap_or(1)
}
