//! Finding the object a job is about, or reserving one; comparing files with its current version.

use crate::ErrorCode;
use crate::identifier::Minter;
use crate::model::codes::ObjectState;
use crate::model::error::{Error, Result};
use crate::model::id::ObjectId;
use crate::model::identity::{Identity, check_mode};
use crate::model::item::{Mode, stem};
use db::{FromRow, Row, Statement, Tx, statement};
use queue::JobId;

/// What a deposit and its package say of an object.
#[derive(Debug, Clone)]
pub struct Asked {
    pub collection: String,
    pub identity: Identity,
    /// An identifier that a service has given the job, for a new object.
    pub minted: Option<String>,
    /// The job's lock.
    pub lock: String,
    pub mode: Mode,
    pub minted_by: MintedBy,
    pub title: Option<String>,
    /// Where the package is, if nothing but its name says which object it is.
    pub place: Option<String>,
}

#[derive(Debug, Clone)]
pub enum MintedBy {
    Us(Minter),
    Service,
    Nobody,
}

pub enum Resolved {
    Found(Found),
    /// The object has another lock: the job goes on with that one.
    Elsewhere(String),
    /// An identifier must come from a service first.
    NeedsIdentifier,
}

#[derive(Debug, Clone)]
pub struct Found {
    pub object: ObjectId,
    pub identifier: String,
    pub collection: String,
    pub lock: String,
    pub state: ObjectState,
    pub head: i64,
    pub metadata: Option<String>,
    /// Where its current version came from; see [`crate::registry::derived`].
    pub place: Option<String>,
    pub local_ids: Vec<String>,
    /// Local ids that were said and are another object's.
    pub warnings: Vec<String>,
}

impl FromRow for Found {
    fn from_row(row: &Row<'_>) -> db::Result<Found> {
        Ok(Found {
            object: row.get(0)?,
            identifier: row.get(1)?,
            collection: row.get(2)?,
            lock: row.get(3)?,
            state: row.get(4)?,
            head: row.get(5)?,
            metadata: row.get(6)?,
            place: row.get(7)?,
            local_ids: Vec::new(),
            warnings: Vec::new(),
        })
    }
}

/// Finds or reserves the object. Running again answers the same: what a job has reserved is its
/// own, so it never gets a second identifier.
pub fn resolve(tx: &mut Tx<'_>, job: JobId, asked: &Asked) -> Result<Resolved> {
    let mut found = match find(tx, asked)? {
        Some(found) => found,
        None => {
            if let Some(restored) = restored(tx, job, asked)? {
                return Ok(match restored.lock == asked.lock {
                    true => Resolved::Found(restored),
                    false => Resolved::Elsewhere(restored.lock),
                });
            }
            match reserve(tx, job, asked)? {
                Some(found) => found,
                None => return Ok(Resolved::NeedsIdentifier),
            }
        }
    };
    if found.lock != asked.lock {
        return Ok(Resolved::Elsewhere(found.lock));
    }
    check_mode(asked.mode, found.state == ObjectState::Active, &found.identifier)?;
    if found.state == ObjectState::Reserved {
        const TAKE_OVER: Statement = statement!(resolve::take_over_object);
        tx.send(&TAKE_OVER, &db::params![found.object, job])?;
    }
    add_local_ids(tx, &mut found, asked)?;
    Ok(Resolved::Found(found))
}

pub fn local_ids(tx: &mut Tx<'_>, object: ObjectId) -> Result<Vec<String>> {
    const LOCAL_IDS: Statement = statement!(resolve::local_ids_of);
    let rows: Vec<(String,)> = tx.query(&LOCAL_IDS, &db::params![object])?;
    Ok(rows.into_iter().map(|r| r.0).collect())
}

/// The object that is meant, if there is one. Changes nothing.
pub fn find(tx: &mut Tx<'_>, asked: &Asked) -> Result<Option<Found>> {
    let said = &asked.identity;
    let mut found: Option<(Found, String)> = None;
    if let Some(identifier) = &said.identifier {
        found = by_identifier(tx, identifier)?.map(|object| (object, identifier.clone()));
    }
    for local in &said.local_ids {
        let Some(object) = by_local_id(tx, &asked.collection, local)? else { continue };
        let contradicts = said.identifier.as_ref().is_some_and(|i| *i != object.identifier);
        let by = match &found {
            Some((other, by)) if other.object != object.object => Some(by.clone()),
            _ if contradicts => said.identifier.clone(),
            _ => None,
        };
        if let Some(by) = by {
            return Err(contradictory(format!(
                "local identifier `{local}` belongs to {}, and the deposit also says `{by}`; correct the one that is wrong",
                object.identifier
            )));
        }
        found = Some((object, local.clone()));
    }
    if let Some(inside) = &said.of_package {
        check_of_package(tx, inside, &said.local_ids, found.as_ref())?;
    }
    match found {
        Some((object, by)) if object.collection != asked.collection => Err(Error::permanent(
            ErrorCode::OtherCollection,
            format!(
                "`{by}` is an object of collection `{}`, and the deposit is to `{}`; deposit it there, or correct the identifier",
                object.collection, asked.collection
            ),
        )),
        other => Ok(other.map(|(object, _)| object)),
    }
}

fn contradictory(message: String) -> Error {
    Error::permanent(ErrorCode::ContradictoryIdentifiers, message)
}

/// A package that says which object it is must not be made a version of another.
fn check_of_package(
    tx: &mut Tx<'_>,
    inside: &str,
    local_ids: &[String],
    found: Option<&(Found, String)>,
) -> Result<()> {
    if let Some((object, by)) = found {
        return match object.identifier == inside {
            true => Ok(()),
            false => Err(contradictory(format!(
                "local identifier `{by}` belongs to {}, and the package says in bag-info.txt that it is {inside}; correct the one that is wrong",
                object.identifier
            ))),
        };
    }
    match by_identifier(tx, inside)? {
        None => Ok(()),
        Some(_) => Err(contradictory(format!(
            "no object has the local identifier `{}`, and the package says in bag-info.txt that it is {inside}, which is there; deposit it with --id {inside} if it is a version of that, and correct External-Identifier if it is another object",
            local_ids.first().map_or("", String::as_str)
        ))),
    }
}

fn by_identifier(tx: &mut Tx<'_>, identifier: &str) -> Result<Option<Found>> {
    const BY_IDENTIFIER: Statement = statement!(resolve::object_by_identifier);
    Ok(tx.first(&BY_IDENTIFIER, &db::params![identifier])?)
}

/// The object of a collection that has a local identifier.
pub fn by_local_id(tx: &mut Tx<'_>, collection: &str, local: &str) -> Result<Option<Found>> {
    const BY_LOCAL_ID: Statement = statement!(resolve::object_by_local_id);
    Ok(tx.first(&BY_LOCAL_ID, &db::params![collection, local])?)
}

/// Reserves a new object; `None` if its identifier has to come from a service.
fn reserve(tx: &mut Tx<'_>, job: JobId, asked: &Asked) -> Result<Option<Found>> {
    let said = &asked.identity;
    let shown = said.identifier.as_ref().or(said.local_ids.first());
    check_mode(asked.mode, false, shown.map_or("it", String::as_str))?;
    let identifier = said.identifier.as_ref().or(said.of_package.as_ref());
    match (identifier.or(asked.minted.as_ref()), &asked.minted_by) {
        (Some(identifier), _) => match insert(tx, job, asked, identifier)? {
            Some(found) => Ok(Some(found)),
            None => Err(Error::transient(
                ErrorCode::ReservedMeanwhile,
                format!(
                    "another deposit has just reserved `{identifier}`; this one comes after it"
                ),
            )),
        },
        (None, MintedBy::Us(minter)) => mint(tx, job, asked, minter).map(Some),
        (None, MintedBy::Service) => Ok(None),
        (None, MintedBy::Nobody) => Err(identifier_required(&asked.collection)),
    }
}

/// A new object of a collection whose identifiers come with the deposit, and this one has none.
pub fn identifier_required(collection: &str) -> Error {
    Error::permanent(
        ErrorCode::IdentifierRequired,
        format!(
            "collection `{collection}` wants its identifiers with the deposit; give one with --id, in the manifest, or as External-Identifier in bag-info.txt"
        ),
    )
}

/// Reserves an object with a new name. One that is taken is passed over: a registry that was
/// rebuilt from a store counts from a guess, and an identifier may have been supplied that the
/// minter comes to as well, even at this moment.
fn mint(tx: &mut Tx<'_>, job: JobId, asked: &Asked, minter: &Minter) -> Result<Found> {
    loop {
        let number: i64 = tx.next_ids("ark_numbers", 1)?[0];
        let identifier = minter.mint(u64::try_from(number).unwrap_or(0));
        if let Some(found) = insert(tx, job, asked, &identifier)? {
            return Ok(found);
        }
    }
}

/// `None` if the identifier is taken.
fn insert(tx: &mut Tx<'_>, job: JobId, asked: &Asked, identifier: &str) -> Result<Option<Found>> {
    const INSERT: Statement = statement!(resolve::insert_object);
    let object = tx.next_ids("object_ids", 1)?[0];
    let now = tx.now();
    let inserted = tx.execute(
        &INSERT,
        &db::params![object, identifier, &asked.collection, &asked.lock, job, &asked.title, now],
    )?;
    Ok((inserted > 0).then(|| Found {
        object,
        identifier: identifier.to_string(),
        collection: asked.collection.clone(),
        lock: asked.lock.clone(),
        state: ObjectState::Reserved,
        head: 0,
        metadata: None,
        place: None,
        local_ids: Vec::new(),
        warnings: Vec::new(),
    }))
}

/// The object that was restored to where the package is, if the package still has every file of it
/// unchanged. Anything else may be there by now, and is an object of its own.
fn restored(tx: &mut Tx<'_>, job: JobId, asked: &Asked) -> Result<Option<Found>> {
    const RESTORED: Statement = statement!(restores::restored_to);
    let Some(place) = asked.place.as_deref().filter(|_| asked.mode != Mode::New) else {
        return Ok(None);
    };
    let found: Option<Found> = tx.first(&RESTORED, &db::params![stem(place), &asked.collection])?;
    let Some(mut found) = found else { return Ok(None) };
    let counts = classify(tx, job, found.object, true)?;
    if counts.files_changed + counts.files_absent > 0 {
        return Ok(None);
    }
    // The name of where it was restored to is no name of the object.
    found.local_ids = local_ids(tx, found.object)?;
    Ok(Some(found))
}

/// Records the local ids. Those that decide are the object's own by now, or another deposit was
/// quicker; those beside them may be another object's, which is worth a warning.
fn add_local_ids(tx: &mut Tx<'_>, found: &mut Found, asked: &Asked) -> Result<()> {
    const ADD: Statement = statement!(objects::add_local_id);
    let said = &asked.identity;
    for local in said.local_ids.iter().chain(&said.beside) {
        tx.send(&ADD, &db::params![&found.collection, local, found.object])?;
    }
    found.local_ids = local_ids(tx, found.object)?;
    if let Some(local) = said.local_ids.iter().find(|local| !found.local_ids.contains(local)) {
        return Err(Error::transient(
            ErrorCode::ReservedMeanwhile,
            format!(
                "another deposit has just taken the local identifier `{local}`; this one comes after it"
            ),
        ));
    }
    found.warnings = taken(tx, asked, Some(found))?;
    Ok(())
}

/// Warnings of identifiers in `bag-info.txt` that belong to another object than the one that is
/// meant.
pub fn taken(tx: &mut Tx<'_>, asked: &Asked, found: Option<&Found>) -> Result<Vec<String>> {
    let mut warnings = Vec::new();
    for local in &asked.identity.beside {
        if found.is_some_and(|found| found.local_ids.contains(local)) {
            continue;
        }
        let Some(other) = by_local_id(tx, &asked.collection, local)? else { continue };
        if found.is_some_and(|found| found.object == other.object) {
            continue;
        }
        warnings.push(format!(
            "External-Identifier `{local}` of bag-info.txt is a local identifier of {} already, so it is not recorded for this object: what ranks higher decides which object it is. If the package is a version of {}, deposit it with that identifier",
            other.identifier, other.identifier
        ));
    }
    Ok(warnings)
}

/// Has a version that adds to the one before keep its empty directories, but for those that have
/// files now.
pub fn carry_directories(tx: &mut Tx<'_>, job: JobId, found: &Found) -> Result<()> {
    const CARRY: Statement = statement!(resolve::carry_directories);
    const FILLED: Statement = statement!(resolve::forget_filled_directories);
    tx.send(&CARRY, &db::params![job, found.object, found.head])?;
    tx.send(&FILLED, &db::params![job, found.object])?;
    Ok(())
}

/// How many empty directories a job has that the current version's record does not name.
pub fn new_directories(tx: &mut Tx<'_>, job: JobId, object: ObjectId, version: i64) -> Result<i64> {
    const COUNT: Statement = statement!(resolve::count_new_directories);
    let (count,): (i64,) = tx.one(&COUNT, &db::params![job, object, version])?;
    Ok(count)
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    pub files: i64,
    pub bytes: i64,
    pub files_new: i64,
    pub files_changed: i64,
    pub files_unchanged: i64,
    pub files_absent: i64,
}

/// Compares every file with the current version: new, changed, unchanged; and counts those that
/// the deposit does not have.
pub fn classify(tx: &mut Tx<'_>, job: JobId, object: ObjectId, replaces: bool) -> Result<Counts> {
    const CLASSIFY: Statement = statement!(resolve::classify_files);
    const COUNT: Statement = statement!(resolve::count_changes);
    const ABSENT: Statement = statement!(resolve::count_absent);
    tx.send(&CLASSIFY, &db::params![job, object])?;
    let (files, bytes, files_new, files_changed, files_unchanged) =
        tx.one(&COUNT, &db::params![job])?;
    let (absent,): (i64,) = tx.one(&ABSENT, &db::params![job, object])?;
    let files_absent = if replaces { absent } else { 0 };
    Ok(Counts { files, bytes, files_new, files_changed, files_unchanged, files_absent })
}
