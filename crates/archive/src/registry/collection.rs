//! Collections: who deposits what. A collection is a row with its profile; those that the
//! configuration names are brought in when a process starts.

use crate::ErrorCode;
use crate::model::error::{Error, Result};
use crate::model::profile::Profile;
use db::{Micros, Statement, Tx, statement};

/// A collection as it is kept.
#[derive(Debug, Clone)]
pub struct Collection {
    pub name: String,
    pub profile: Profile,
    pub created_at: Micros,
    pub created_by: String,
    pub updated_at: Micros,
}

pub fn find(tx: &mut Tx<'_>, name: &str) -> Result<Option<Profile>> {
    const FIND: Statement = statement!(collection::find_collection);
    let found: Option<(String,)> = tx.first(&FIND, &db::params![name])?;
    found.map(|(profile,)| Profile::from_json(&profile)).transpose()
}

/// The profile of a collection that must be there.
pub fn profile(tx: &mut Tx<'_>, name: &str) -> Result<Profile> {
    find(tx, name)?.ok_or_else(|| {
        Error::permanent(
            ErrorCode::UnknownCollection,
            format!(
                "there is no collection `{name}`; make it with `accession collection create {name}`"
            ),
        )
    })
}

pub fn list(tx: &mut Tx<'_>) -> Result<Vec<Collection>> {
    const LIST: Statement = statement!(collection::list_collections);
    let rows: Vec<(String, String, Micros, String, Micros)> = tx.query(&LIST, &[])?;
    rows.into_iter()
        .map(|(name, profile, created_at, created_by, updated_at)| {
            let profile = Profile::from_json(&profile)?;
            Ok(Collection { name, profile, created_at, created_by, updated_at })
        })
        .collect()
}

/// Makes a collection, or gives one another profile. True if anything changed.
pub fn put(tx: &mut Tx<'_>, name: &str, profile: &Profile, who: &str) -> Result<bool> {
    const PUT: Statement = statement!(collection::put_collection);
    let now = tx.now();
    Ok(tx.execute(&PUT, &db::params![name, &profile.to_json(), now, who])? > 0)
}
