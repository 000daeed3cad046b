//! A look before a deposit is accepted: would it take files from an object that only its name leads
//! to? Names and sizes are compared here, and the content of what is read in a moment. What differs in
//! other content only shows later, in *resolving*, which compares all digests.

use crate::app::App;
use crate::blocking::blocking;
use crate::model::codes::ObjectState;
use crate::model::deposit_kind::DepositKind;
use crate::model::error::Result;
use crate::model::item::{Mode, Source, Update, stem};
use crate::model::place::{is_same_place, place_of};
use crate::model::problem::Problems;
use crate::model::profile::Profile;
use crate::package::bounds::Bounds;
use crate::package::kind::package_at;
use crate::package::survey::Survey;
use crate::package::validate;
use crate::package::{Form, Owner, Package, reading_failed};
use crate::registry::deposit::Options;
use crate::registry::derived::Meeting;
use crate::registry::resolve::{self, Found};
use crate::registry::view::{self, FileView};
use bagit::Serialization;
use bagit::source::{Kind as MemberKind, Members};
use db::{Db, Tx};
use ocfl::Algorithm;
use std::collections::HashMap;
use std::io::Read;
use std::sync::Arc;

/// What `found`, which [`candidate`] has found, and a package would do to each other; `None` if the
/// package takes nothing from it, and where that cannot be seen before it is read.
pub async fn look(
    app: &Arc<App>,
    found: &Found,
    source: &Source,
    kind: DepositKind,
    options: &Options,
) -> Result<Option<Meeting>> {
    if kind == DepositKind::Manifest {
        return Ok(None);
    }
    let (name, place) = (source.file_name(), place_of(source));
    let Some(path) = source.path() else { return Ok(None) };
    let profile = app.profile(&found.collection).await?;
    let bounds = Bounds::of(&app.settings, &profile);
    let named = name.clone();
    let listed = blocking(move || {
        // What is wrong with a package is found, and said, when it is validated.
        let package = package_at(Owner::Depositor, &path, kind, &named);
        Ok(package.and_then(|package| list(&package, bounds)).ok().flatten())
    });
    let Some(listed) = listed.await? else { return Ok(None) };
    let (mut to_read, mut left) = (Vec::new(), READ_BYTES_MAX);
    let same = |file: &FileView| {
        let (size, locator) = listed.files.get(&file.path)?;
        if *size == Some(file.size) && file.size <= left {
            left -= file.size;
            to_read.push((locator.clone(), file.sha512.clone()));
        }
        Some(*size == Some(file.size))
    };
    let replaces = replaces(options, &profile);
    let mut leaving = count_leaving(&app.db, found, replaces, same).await?;
    if leaving == 0 {
        let members = listed.members;
        leaving = blocking(move || Ok(count_different(&*members, &to_read))).await?;
    }
    let meeting = Meeting::of(found, stem(&name), &place, leaving);
    Ok((!meeting.is_safe(options.mode)).then_some(meeting))
}

/// Whether files that a deposit does not have leave the new version.
pub fn replaces(options: &Options, profile: &Profile) -> bool {
    options.update.unwrap_or(profile.update_mode) == Update::Replace
}

/// An object that a package may be taken for because of its name, though it is from elsewhere.
pub fn candidate(
    tx: &mut Tx<'_>,
    collection: &str,
    name: &str,
    place: &str,
    options: &Options,
) -> Result<Option<Found>> {
    let said = options.identifier.is_some() || !options.local_ids.is_empty();
    if said || options.mode != Mode::Either {
        return Ok(None);
    }
    let found = resolve::by_local_id(tx, collection, stem(name))?;
    Ok(found.filter(|found| {
        let same = found.place.as_deref().is_some_and(|from| is_same_place(from, place));
        found.state == ObjectState::Active && !same
    }))
}

/// How many files of an object's current version a package would change, and if it replaces them
/// all, remove. `same` says of a file whether the package has the same; `None` if it has none.
pub async fn count_leaving(
    db: &Db,
    found: &Found,
    replaces: bool,
    mut same: impl FnMut(&FileView) -> Option<bool>,
) -> Result<i64> {
    let (mut after, mut leaving) = (String::new(), 0);
    loop {
        let (object, head, from) = (found.object, found.head, after.clone());
        let page = db.read(move |tx| view::files(tx, object, head, &from, 1000)).await?;
        let Some(last) = page.last() else { return Ok(leaving) };
        after = last.path.clone();
        let leaves = page.iter().filter(|file| !same(file).unwrap_or(!replaces)).count();
        leaving += i64::try_from(leaves).unwrap_or(i64::MAX);
    }
}

/// So many bytes of a package are read before it is accepted.
const READ_BYTES_MAX: i64 = 64 * 1024 * 1024;

/// A package's files, by their path in the object: size and locator.
struct Listed {
    members: Arc<dyn Members>,
    files: HashMap<String, (Option<i64>, Vec<u8>)>,
}

/// How many members have another digest than this. One that cannot be read is *validating*'s matter.
fn count_different(members: &dyn Members, wanted: &[(Vec<u8>, String)]) -> i64 {
    let different = |(locator, sha512): &&(Vec<u8>, String)| {
        let mut content = Vec::new();
        let read = members.open(locator).and_then(|mut member| member.read_to_end(&mut content));
        read.is_ok() && !Algorithm::Sha512.hex(&content).eq_ignore_ascii_case(sha512)
    };
    i64::try_from(wanted.iter().filter(different).count()).unwrap_or(i64::MAX)
}

/// What the object would have; `None` where only reading the package tells, and for a bag that says
/// which object it is.
fn list(package: &Package, bounds: Bounds) -> Result<Option<Listed>> {
    let compressed = match package.form {
        Form::Tar => package.sniff()? != Some(Serialization::Tar),
        _ => false,
    };
    if compressed {
        return Ok(None);
    }
    let members = package.open()?;
    let stored = package.stored_bytes()?;
    let mut problems = Problems::default();
    let survey = Survey::take(package, &*members, bounds, stored, &mut problems)?;
    if problems.has_errors() || validate::says_what_it_is(&survey, &*members)? {
        return Ok(None);
    }
    let mut files = HashMap::new();
    let listed = members.list(true, &mut |member| {
        if member.kind == MemberKind::File
            && let Some(path) = survey.path_of(&member)
        {
            let size = member.size.and_then(|size| i64::try_from(size).ok());
            files.insert(path, (size, member.locator));
        }
        Ok(())
    });
    listed.map_err(reading_failed)?;
    Ok(Some(Listed { members, files }))
}
