//! What a deposit is: found out from what is there, unless the depositor says so.

use crate::error::Result;
use crate::package::unpack::{self, is_called_archive, sniff};
use crate::package::{Owner, unreadable};
use bagit::beneath::Opened;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::path::Path;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Deposited {
    File,
    Directory,
    Container,
    /// Of one object, or of many: its profile says.
    Manifest,
}

impl Deposited {
    pub fn name(self) -> &'static str {
        match self {
            Deposited::File => "file",
            Deposited::Directory => "directory",
            Deposited::Container => "container",
            Deposited::Manifest => "manifest",
        }
    }
}

/// Looks at what is at a path, which was resolved when it was received.
pub fn of_path(path: &Path) -> Result<Deposited> {
    let file = match Owner::Depositor.open(path)? {
        Opened::Folder(_) => return Ok(Deposited::Directory),
        Opened::File(file) => file,
    };
    if is_manifest(&file, path)? {
        return Ok(Deposited::Manifest);
    }
    Ok(match sniff(&file, path)? {
        Some(_) => Deposited::Container,
        None => Deposited::File,
    })
}

/// A manifest says so in its first line; one whose name says so is taken for one too, so that
/// what is wrong with it is told.
fn is_manifest(file: &File, path: &Path) -> Result<bool> {
    let start = unpack::start(file, 1024).map_err(|e| unreadable(path, &e))?;
    let text = String::from_utf8_lossy(&start);
    let text = text.trim_start_matches('\u{feff}').trim_start();
    let json = text.starts_with('{') && text.contains("checkm-json/");
    let named = path.extension().is_some_and(|e| e.eq_ignore_ascii_case("checkm"));
    Ok(named || json || text.to_ascii_lowercase().starts_with("#%checkm"))
}

/// A URL tells by the end of its name only.
pub fn of_url(name: &str) -> Deposited {
    if name.to_ascii_lowercase().ends_with(".checkm") {
        Deposited::Manifest
    } else if is_called_archive(name) {
        Deposited::Container
    } else {
        Deposited::File
    }
}
