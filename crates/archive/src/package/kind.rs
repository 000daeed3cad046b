//! What a deposit is: found out from what is there, unless the depositor says so.

use crate::ErrorCode;
use crate::model::deposit_kind::DepositKind;
use crate::model::error::{Error, Result};
use crate::model::item::Source;
use crate::model::profile::{PayloadKind, Profile};
use crate::package::unpack::{self, is_called_archive, sniff};
use crate::package::{Form, Owner, Package, unreadable};
use bagit::Serialization;
use bagit::beneath::Opened;
use std::fs::File;
use std::path::Path;

/// The source as it is kept with its receipt: a path without links. From then on no link is
/// followed on it, see [`Owner::Depositor`].
pub fn resolved(source: &Source) -> Result<Source> {
    let Some(path) = source.path() else { return Ok(source.clone()) };
    let real = path.canonicalize().map_err(|e| unreadable(&path, &e))?;
    Source::from_path(&real)
}

/// Looks at what is at a path, which was resolved when it was received.
pub fn of_path(path: &Path) -> Result<DepositKind> {
    let file = match Owner::Depositor.open(path)? {
        Opened::Folder(_) => return Ok(DepositKind::Directory),
        Opened::File(file) => file,
    };
    if is_manifest(&file, path)? {
        return Ok(DepositKind::Manifest);
    }
    Ok(match sniff(&file, path)? {
        Some(_) => DepositKind::Container,
        None => DepositKind::File,
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
pub fn of_url(name: &str) -> DepositKind {
    if name.to_ascii_lowercase().ends_with(".checkm") {
        DepositKind::Manifest
    } else if is_called_archive(name) {
        DepositKind::Container
    } else {
        DepositKind::File
    }
}

/// What is at a path, as a package.
pub fn package_at(owner: Owner, path: &Path, kind: DepositKind, name: &str) -> Result<Package> {
    let form = match kind {
        DepositKind::File => Form::File,
        DepositKind::Directory => Form::Directory,
        DepositKind::Container => match sniff(&owner.open_file(path)?, path)? {
            Some(Serialization::Zip) => Form::Zip,
            Some(_) => Form::Tar,
            None => {
                return Err(Error::permanent(
                    ErrorCode::UnknownContainer,
                    format!(
                        "{name} is no tar, tar.gz, tar.bz2, tar.zst or zip archive; deposit it as a file, or pack it again"
                    ),
                ));
            }
        },
        DepositKind::Manifest => Form::Directory,
    };
    Package::at(owner, form, path, name)
}

/// Refuses a kind of package that the collection does not take.
pub fn check_kind(
    profile: &Profile,
    collection: &str,
    kind: DepositKind,
    fetched: bool,
) -> Result<()> {
    let kind = match kind {
        _ if fetched => PayloadKind::Manifest,
        DepositKind::File => PayloadKind::File,
        DepositKind::Directory => PayloadKind::Directory,
        DepositKind::Container | DepositKind::Manifest => PayloadKind::Container,
    };
    let taken = &profile.payload_kinds;
    // Whether a directory or container is a bag shows only when it is read.
    let may_be_bag = matches!(kind, PayloadKind::Directory | PayloadKind::Container)
        && taken.contains(&PayloadKind::Bag);
    if taken.contains(&kind) || may_be_bag {
        return Ok(());
    }
    Err(Error::permanent(
        ErrorCode::PayloadKind,
        format!(
            "collection `{collection}` does not take this kind of deposit ({kind:?}); it takes {taken:?}"
        ),
    ))
}
