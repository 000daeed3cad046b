//! A deposit looked at and not deposited: everything that would be wrong with it.

use super::early;
use crate::ErrorCode;
use crate::app::App;
use crate::blocking::blocking;
use crate::model::codes::ObjectState;
use crate::model::deposit_kind::DepositKind;
use crate::model::error::{Error, Result};
use crate::model::identity::{Identity, SaidIds, check_mode};
use crate::model::item::{Source, stem};
use crate::model::place::place_of;
use crate::model::problem::Problems;
use crate::model::profile::{Identifiers, PayloadKind, Per, Profile};
use crate::package::bounds::Bounds;
use crate::package::kind;
use crate::package::kind::{check_kind, package_at, resolved};
use crate::package::manifest::{self, Common, Rows};
use crate::package::pass::{How, Progress};
use crate::package::payload;
use crate::package::reading::{ReadBefore, ReadOutcome, Reader};
use crate::package::unpack::{self, unpack};
use crate::package::validate;
use crate::package::{Form, Owner, Package, unreadable};
use crate::pipeline::batch::expanding;
use crate::pipeline::ingest::checks::{self, Listed};
use crate::pipeline::ingest::estimating::{self, Wanted, compare_size, names_nothing};
use crate::pipeline::ingest::provisioning::Space;
use crate::registry::deposit::Options;
use crate::registry::derived::{self, Meeting};
use crate::registry::resolve::{self, Asked, Found, MintedBy};
use crate::registry::view::FileView;
use bagit::{Algorithm, Serialization};
use serde::Serialize;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What was found.
#[derive(Debug, Clone, Serialize)]
pub struct Verdict {
    pub source: String,
    pub kind: String,
    pub objects: u64,
    pub files: u64,
    pub bytes: u64,
    pub problems: Problems,
}

/// Looks at what would be deposited. Packages by URL are asked for and not fetched.
pub async fn check(
    app: &Arc<App>,
    collection: &str,
    source: &Source,
    options: &Options,
) -> Result<Verdict> {
    let profile = app.profile(collection).await?;
    let (path, allowed) = match source {
        Source::Path(_) => (resolved(source)?.path(), None),
        Source::Url(url) => {
            app.fetcher.local_file(url)?.map(|file| (file.path, file.fingerprint)).unzip()
        }
    };
    let kind = match (&path, options.kind) {
        (_, Some(kind)) => kind,
        (Some(path), None) => kind::of_path(path)?,
        (None, None) => kind::of_url(&source.file_name()),
    };
    let mut verdict = Verdict {
        source: source.to_string(),
        kind: kind.name().to_string(),
        objects: 1,
        files: 0,
        bytes: 0,
        problems: Problems::default(),
    };
    match (path, source, kind) {
        (Some(path), _, DepositKind::Manifest) => {
            let place = place_of(&resolved(source).unwrap_or_else(|_| source.clone()));
            let manifest = Manifest { path, name: source.file_name(), place, collection };
            check_manifest(app, &profile, manifest, options, &mut verdict).await?;
        }
        (Some(path), _, _) => {
            let name = source.file_name();
            let place = place_of(&resolved(source).unwrap_or_else(|_| source.clone()));
            let looked = Looked { path, allowed, name, place, kind, collection };
            check_package(app, &profile, looked, options, &mut verdict).await?;
        }
        (None, Source::Url(url), _) => {
            let name = source.file_name();
            // What the rows of a manifest are shows when it is read.
            if kind != DepositKind::Manifest
                && let Err(error) = check_kind(&profile, collection, kind, false)
            {
                found(&mut verdict.problems, &name, error)?;
            }
            match app.fetcher.head(url).await {
                Ok(head) => verdict.bytes = head.size.unwrap_or(0),
                Err(error) if error.is_transient() => return Err(error),
                Err(error) => found(&mut verdict.problems, &name, error)?,
            }
        }
        (None, Source::Path(_), _) => {}
    }
    Ok(verdict)
}

/// An error about the package is a finding; one about this machine is not.
fn found(problems: &mut Problems, name: &str, error: Error) -> Result<()> {
    match error {
        Error::Permanent { code, message, file } => {
            problems.error(code, file.as_deref().unwrap_or(name), message);
            Ok(())
        }
        Error::Invalid { problems: more, .. } => {
            problems.take(*more);
            Ok(())
        }
        other => Err(other),
    }
}

/// A package to look at.
struct Looked<'a> {
    path: PathBuf,
    /// The fingerprint of the one file that a URL may lead to.
    allowed: Option<String>,
    name: String,
    /// Where it is, as objects remember it.
    place: String,
    kind: DepositKind,
    collection: &'a str,
}

async fn check_package(
    app: &Arc<App>,
    profile: &Profile,
    looked: Looked<'_>,
    options: &Options,
    verdict: &mut Verdict,
) -> Result<()> {
    let Looked { path, allowed, name, place, kind, collection } = looked;
    if let Err(error) = check_kind(profile, collection, kind, false) {
        return found(&mut verdict.problems, &name, error);
    }
    let settings = &app.settings;
    let bounds = Bounds::of(settings, profile);
    let how = How {
        algorithms: [Algorithm::Sha512].into_iter().collect(),
        identifier: app.identifier.clone(),
        threads: settings.threads,
    };
    let (named, claimed) = (name.clone(), options.claimed.clone());
    let bag_profile = validate::bag_profile(profile)?;
    let (of, its, at, said) =
        (collection.to_string(), name.clone(), place.clone(), options.clone());
    let candidate: Result<Option<Found>> =
        app.db.read(move |tx| early::candidate(tx, &of, &its, &at, &said)).await;
    let candidate = candidate?;
    let compares = candidate.is_some();
    let per_file = profile.checks.iter().any(|check| check.per == Per::File);
    let work = settings.work_space.clone();
    let checked = blocking(move || {
        let original = package_at(Owner::Depositor, &path, kind, &named)?;
        let original = match &allowed {
            Some(allowed) => original.that_is(allowed)?,
            None => original,
        };
        if let (Some(_), Some(stored)) = (compressed(&original)?, original.stored_bytes()?) {
            let needed = stored.saturating_mul(estimating::GROWTH.unsigned_abs());
            if let Some(why) = Space::of(&work)?.never_has(needed, &work.name) {
                return Err(Error::permanent(ErrorCode::WorkSpaceTooSmall, why));
            }
        }
        let (package, kept) = plain(&original, bounds)?;
        let serialization = match original.form {
            Form::Tar | Form::Zip => original.sniff()?,
            Form::File | Form::Directory => None,
        };
        let progress: Progress = Arc::new(|_| true);
        let reader = Reader {
            package: package.clone(),
            serialization,
            how,
            bounds,
            claimed,
            original,
            profile: bag_profile,
            progress,
            expect: Arc::new(|_| ()),
            source: Arc::default(),
        };
        let mut digests = HashMap::new();
        let mut files = Vec::new();
        let read = reader.run(ReadBefore::default(), &mut |reading| {
            if compares && let Some(digest) = reading.digests.get(Algorithm::Sha512) {
                digests.insert(reading.task.path.clone(), digest.to_string());
            }
            if per_file {
                files.push(Listed { path: reading.task.path, locator: reading.task.locator });
            }
            true
        });
        match read? {
            ReadOutcome::Checked(checked) => Ok((checked, digests, package, files, kept)),
            // Nothing was read before.
            ReadOutcome::Stale => Err(Error::Stopped),
        }
    })
    .await;
    match checked {
        Ok((checked, digests, package, files, _kept)) => {
            verdict.files = checked.files;
            verdict.bytes = checked.bytes;
            verdict.problems = checked.problems;
            let wants_bag = profile.bag_profile.is_some();
            if wants_bag && !checked.survey.is_bag {
                verdict.problems.error(
                    ErrorCode::NotABag,
                    &name,
                    format!("{name} is no bag, and the collection's bag profile asks for one"),
                );
            }
            if checked.survey.is_bag && !profile.payload_kinds.contains(&PayloadKind::Bag) {
                verdict.problems.error(
                    ErrorCode::PayloadKind,
                    &name,
                    format!("{name} is a bag, and the collection takes none"),
                );
            }
            let said = SaidIds {
                identifier: options.identifier.as_deref(),
                local_ids: &options.local_ids,
                of_package: &checked.local_ids,
                name: &name,
            };
            let checked = async {
                let identity = said.identity(profile, collection)?;
                let derived = identity.derived;
                let problems = &mut verdict.problems;
                check_identity(app, profile, collection, identity, options, problems).await?;
                let Some(met) = candidate.filter(|_| derived) else { return Ok(()) };
                let same = |file: &FileView| digests.get(&file.path).map(|d| *d == file.sha512);
                let replaces = early::replaces(options, profile);
                let leaving = early::count_leaving(&app.db, &met, replaces, same).await?;
                let meeting = Meeting::of(&met, stem(&name), &place, leaving);
                derived::check(&meeting, options.mode, profile, false)
            };
            let checked = checked.await;
            if let Err(error) = checked {
                found(&mut verdict.problems, &name, error)?;
            }
            // As in an ingest, programs see only what nothing else is wrong with.
            if verdict.problems.has_errors() || profile.checks.is_empty() {
                return Ok(());
            }
            let directory = tempfile::tempdir()
                .map_err(|e| unpack::unwritable(Path::new("the temporary directory"), e))?;
            let problems = &mut verdict.problems;
            checks::before_deposit(profile, &package, &files, directory.path(), problems).await
        }
        Err(error) => found(&mut verdict.problems, &name, error),
    }
}

/// What resolving would say of which object it is.
async fn check_identity(
    app: &Arc<App>,
    profile: &Profile,
    collection: &str,
    identity: Identity,
    options: &Options,
    problems: &mut Problems,
) -> Result<()> {
    let shown = identity.identifier.as_ref().or(identity.local_ids.first()).cloned();
    let names_itself = identity.identifier.is_some() || identity.of_package.is_some();
    let asked = Asked {
        collection: collection.to_string(),
        identity,
        minted: None,
        lock: String::new(),
        mode: options.mode,
        minted_by: MintedBy::Nobody,
        title: None,
        place: None,
    };
    let looked: Result<(Option<Found>, Vec<String>)> = app
        .db
        .read(move |tx| {
            let found = resolve::find(tx, &asked)?;
            let taken = resolve::taken(tx, &asked, found.as_ref())?;
            Ok((found, taken))
        })
        .await;
    let (found, taken) = looked?;
    for warning in taken {
        problems.warning(ErrorCode::LocalIdTaken, "bag-info.txt", warning);
    }
    let is_there = found.as_ref().is_some_and(|found| found.state == ObjectState::Active);
    check_mode(options.mode, is_there, shown.as_deref().unwrap_or("it"))?;
    if found.is_none() && !names_itself && profile.identifiers == Identifiers::Supplied {
        return Err(resolve::identifier_required(collection));
    }
    Ok(())
}

/// How a tar is compressed.
fn compressed(original: &Package) -> Result<Option<Serialization>> {
    Ok(match original.form {
        Form::Tar => original.sniff()?.filter(|s| *s != Serialization::Tar),
        _ => None,
    })
}

/// A compressed tar is unpacked beside nothing of anyone's, and removed again.
fn plain(original: &Package, bounds: Bounds) -> Result<(Package, Option<tempfile::TempDir>)> {
    let Some(serialization) = compressed(original)? else { return Ok((original.clone(), None)) };
    let directory = tempfile::tempdir()
        .map_err(|e| unpack::unwritable(Path::new("the temporary directory"), e))?;
    let to = directory.path().join("package.tar");
    unpack(original, serialization, &to, bounds, |_| Ok(()))?;
    Ok((Package::at(Owner::Archive, Form::Tar, &to, &original.name)?, Some(directory)))
}

/// A manifest to look at.
struct Manifest<'a> {
    path: PathBuf,
    name: String,
    /// Where it is, as objects remember it.
    place: String,
    collection: &'a str,
}

/// An object that a manifest is about.
struct SaidObject {
    /// The manifest, and its line where the object has one.
    shown: String,
    identity: Identity,
    name: String,
    place: String,
}

/// What resolving would say of an object of a manifest, as far as that is known before its files
/// are fetched.
async fn check_said(
    app: &Arc<App>,
    profile: &Profile,
    collection: &str,
    said: SaidObject,
    options: &Options,
    problems: &mut Problems,
) -> Result<()> {
    let SaidObject { shown, identity, name, place } = said;
    let derived = identity.derived;
    let checked = check_identity(app, profile, collection, identity, options, problems).await;
    if let Err(error) = checked {
        let message = format!("{shown}: {error}");
        return match error {
            Error::Permanent { code, .. } => {
                problems.error(code, &shown, message);
                Ok(())
            }
            other => Err(other),
        };
    }
    let (of, its, mode) = (collection.to_string(), name.clone(), options.mode);
    let found: Result<Option<Found>> = app
        .db
        .read(move |tx| {
            let options = Options { mode, ..Options::default() };
            early::candidate(tx, &of, &its, &place, &options)
        })
        .await;
    if let (true, Some(met)) = (derived, found?) {
        let from = met.place.map(|from| format!(" from {from}")).unwrap_or_default();
        let message = format!(
            "{shown}: `{}` is the name of {}{from} already; if its files are others it fails with derived_identity, so give it an identifier, or say --mode update",
            stem(&name),
            met.identifier
        );
        problems.warning(ErrorCode::DerivedIdentity, &shown, message);
    }
    Ok(())
}

async fn check_manifest(
    app: &Arc<App>,
    profile: &Profile,
    manifest: Manifest<'_>,
    options: &Options,
    verdict: &mut Verdict,
) -> Result<()> {
    let Manifest { path, name, place, collection } = manifest;
    let (shown, of_collection, its) = (name.clone(), collection.to_string(), options.clone());
    let its_profile = profile.clone();
    let read = blocking(move || {
        let size = std::fs::metadata(&path).map_err(|e| unreadable(&path, &e))?.len();
        payload::check_size(&shown, size)?;
        payload::check_digest(Owner::Depositor, &path, &shown, its.claimed.as_ref())?;
        let mut reader = expanding::open(&path, &shown)?;
        let mut rows = Vec::new();
        let mut each = None;
        let mut problems = Problems::default();
        let mut said_objects = Vec::new();
        let identity = |said: SaidIds<'_>| said.identity(&its_profile, &of_collection);
        while let Some(row) = reader.next_row().map_err(|e| expanding::broken(&shown, &e))? {
            let profile = reader.header().map(|h| h.profile);
            each.get_or_insert(profile.map_or(Rows::OneObject, manifest::rows_of));
            if let Some(url) = row.source.clone().filter(|_| !row.is_directory()) {
                let file = row.file_name().unwrap_or_default().to_string();
                let (size, line) = (row.size, row.place.line);
                let url = url.into_owned();
                rows.push((file, Wanted { url, claimed: None, size, line }));
            }
            let Some(Rows::Each(kind)) = each else { continue };
            let Some(item) = manifest::item_of(&row, kind, &Common::default()) else { continue };
            let identifier = item.identifier.as_deref();
            let (local_ids, name) = (&item.local_ids, &item.name);
            let said = SaidIds { identifier, local_ids, of_package: &[], name };
            let shown = format!("{shown} line {}", row.place.line);
            match identity(said) {
                Ok(identity) => {
                    let (place, name) = (item.place(), item.name);
                    said_objects.push(SaidObject { shown, identity, name, place });
                }
                Err(error) => match error.own_code() {
                    Some(code) => problems.error(code, &shown, format!("{shown}: {error}")),
                    None => return Err(error),
                },
            }
        }
        let kind = match each {
            Some(Rows::Each(kind)) => kind,
            _ => {
                let identifier = its.identifier.as_deref();
                let (local_ids, name) = (&its.local_ids, shown.clone());
                let said = SaidIds { identifier, local_ids, of_package: &[], name: &name };
                let identity = identity(said)?;
                said_objects.push(SaidObject { shown: shown.clone(), identity, name, place });
                DepositKind::Manifest
            }
        };
        check_kind(&its_profile, &of_collection, kind, kind == DepositKind::Manifest)?;
        let report = reader.finish().map_err(|e| expanding::broken(&shown, &e))?;
        manifest::take_report(&shown, &report, &mut problems);
        if rows.is_empty() && !problems.has_errors() {
            names_nothing(&shown, &mut problems);
        }
        Ok((rows, said_objects, each, report.rows(), report.content_bytes(), problems))
    })
    .await;
    match read {
        Ok((rows, said_objects, each, count, bytes, problems)) => {
            verdict.objects = if each == Some(Rows::OneObject) { 1 } else { count };
            (verdict.files, verdict.bytes, verdict.problems) = (count, bytes, problems);
            for said in said_objects {
                check_said(app, profile, collection, said, options, &mut verdict.problems).await?;
            }
            let (files, mut bytes) = (rows.len() as u64, 0_u64);
            for (file, wanted) in rows {
                let (url, line) = (&wanted.url, wanted.line);
                let problems = &mut verdict.problems;
                match app.fetcher.head(url).await {
                    Ok(head) => {
                        compare_size(&name, &file, &wanted, head.size, problems);
                        bytes = bytes.saturating_add(head.size.or(wanted.size).unwrap_or(0));
                    }
                    Err(error) => {
                        let message = format!("line {line} of {name}: {error}");
                        match error.is_transient() {
                            true => problems.warning(ErrorCode::UrlUnreachable, url, message),
                            false => problems.error(ErrorCode::UrlNotThere, url, message),
                        }
                    }
                }
            }
            if each == Some(Rows::OneObject) {
                let bounds = Bounds::of(&app.settings, profile);
                bounds.check_listed(&name, files, bytes, &mut verdict.problems);
            }
            Ok(())
        }
        Err(error) => found(&mut verdict.problems, &name, error),
    }
}
