//! Objects that are found by the name of their package alone: the deposit gives no identifier.
//!
//! A name is a weak reason to replace anything: two boxes may each have a folder `scans`. So an
//! object remembers the place from which its current version came. A deposit from the same place is
//! its next version. One from another place is too, if it has every file of the current version
//! unchanged. Otherwise somebody has to say which object is meant.

use crate::ErrorCode;
use crate::model::error::{Error, Result};
use crate::model::item::Mode;
use crate::model::place::is_same_place;
use crate::model::profile::{LocalIds, Profile};
use crate::registry::ingest::Summary;
use crate::registry::resolve::Found;
use db::{Statement, Tx, statement};
use queue::BatchId;

/// The object that a package's name leads to, and what the package would do to it.
#[derive(Debug, Clone)]
pub struct Meeting {
    pub collection: String,
    /// The package's name, by which the object was found.
    pub name: String,
    pub identifier: String,
    pub version: i64,
    /// Where the current version came from, if that is known.
    pub from: Option<String>,
    /// Where the package is.
    pub place: String,
    /// Files of the current version that the package would change or remove.
    pub leaving: i64,
}

impl Meeting {
    pub fn of(found: &Found, name: &str, place: &str, leaving: i64) -> Meeting {
        Meeting {
            collection: found.collection.clone(),
            name: name.to_string(),
            identifier: found.identifier.clone(),
            version: found.head,
            from: found.place.clone(),
            place: place.to_string(),
            leaving,
        }
    }

    /// Whether a deposit may change the object though the deposit does not name it.
    pub fn is_safe(&self, mode: Mode) -> bool {
        let same = self.from.as_deref().is_some_and(|from| is_same_place(from, &self.place));
        mode != Mode::Either || self.leaving == 0 || same
    }

    /// What the object and the package are, and why nothing is done.
    pub fn what(&self) -> String {
        let from = self.from.as_ref().map(|from| format!(", from {from}")).unwrap_or_default();
        let files = crate::model::text::plural(self.leaving.unsigned_abs(), "file");
        format!(
            "`{}` is the name of an object of collection `{}` already ({}, version {}{from}), and {} would change or remove {files} of it",
            self.name, self.collection, self.identifier, self.version, self.place
        )
    }

    /// The refusal, with the two commands that say which object is meant.
    pub fn refusal(&self, command: &str, profile: &Profile, is_row: bool) -> Error {
        let advice = match is_row {
            true => self.advice_for_row(),
            false => self.advice(command, profile),
        };
        let message = format!(
            "{}. Only the name says that it is that object, so nothing was replaced. {advice}",
            self.what()
        );
        Error::permanent(ErrorCode::DerivedIdentity, message)
    }

    fn advice(&self, command: &str, profile: &Profile) -> String {
        let what = match self.place.starts_with("s3://") {
            true => "FILE".to_string(),
            false => shell_word(&self.place),
        };
        let first = match self.place.starts_with("s3://") {
            true => "Download the package as FILE. ",
            false => "",
        };
        let command = format!("accession {command} {what} --collection {}", self.collection);
        let (update, new) = match profile.local_ids {
            LocalIds::Forbidden => {
                (format!("`{command} --mode update`"), "deposit it under another name".to_string())
            }
            _ => (
                format!("`{command} --mode update --local-id {}`", shell_word(&self.name)),
                format!("`{command} --local-id OTHER`"),
            ),
        };
        format!(
            "{first}If it is a new version of that object: {update}. If it is another object: {new}"
        )
    }

    fn advice_for_row(&self) -> String {
        format!(
            "If it is a new version of that object, give its row `{}` as local identifier; if it is another object, give it another one; and deposit the manifest again",
            self.name
        )
    }
}

/// Objects that a batch made and that are known by the name of their package: name, identifier.
pub fn new_objects(tx: &mut Tx<'_>, batch: BatchId, limit: i64) -> Result<Vec<(String, String)>> {
    const SUMMARIES: Statement = statement!(ingest::first_summaries);
    let rows: Vec<(String,)> = tx.query(&SUMMARIES, &db::params![batch, limit])?;
    let summaries = rows.iter().filter_map(|(text,)| serde_json::from_str::<Summary>(text).ok());
    Ok(summaries.filter_map(|s| Some((s.derived?, s.identifier))).collect())
}

/// A word as a shell reads it back.
pub fn shell_word(text: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./:@%+=,".contains(c);
    match !text.is_empty() && text.chars().all(plain) {
        true => text.to_string(),
        false => format!("'{}'", text.replace('\'', "'\\''")),
    }
}

/// Refuses a deposit that would take files from an object which only its name leads to.
pub fn check(meeting: &Meeting, mode: Mode, profile: &Profile, is_row: bool) -> Result<()> {
    match meeting.is_safe(mode) {
        true => Ok(()),
        false => Err(meeting.refusal("deposit", profile, is_row)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meeting(from: Option<&str>, leaving: i64) -> Meeting {
        Meeting {
            collection: "maps".into(),
            name: "scans".into(),
            identifier: "ark:/99999/fk4x".into(),
            version: 2,
            from: from.map(str::to_string),
            place: "/b/it's/scans".into(),
            leaving,
        }
    }

    #[test]
    fn a_name_alone_takes_nothing_from_an_object_that_came_from_elsewhere() {
        let here = Some("/b/it's/scans");
        let elsewhere = Some("/a/scans");
        for (from, leaving, mode, safe) in [
            (here, 5, Mode::Either, true),
            (Some("/b/it's/scans.tar.gz"), 5, Mode::Either, true),
            (elsewhere, 5, Mode::Either, false),
            (elsewhere, 0, Mode::Either, true),
            (None, 1, Mode::Either, false),
            (elsewhere, 5, Mode::Update, true),
        ] {
            let met = meeting(from, leaving);
            let checked = check(&met, mode, &Profile::default(), false);
            assert_eq!(checked.is_ok(), safe, "{from:?} {leaving} {mode:?}");
        }
        let refused = check(&meeting(elsewhere, 1), Mode::Either, &Profile::default(), false);
        let error = refused.unwrap_err();
        assert_eq!(error.code(), "derived_identity");
        let text = error.to_string();
        for said in [
            "from /a/scans",
            "1 file of it",
            "`accession deposit '/b/it'\\''s/scans' --collection maps --mode update --local-id scans`",
            "--local-id OTHER`",
        ] {
            assert!(text.contains(said), "{said}: {text}");
        }
    }
}
