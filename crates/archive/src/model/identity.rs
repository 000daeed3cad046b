//! Which object a deposit is about: what was said of it, in the order in which it counts.

use crate::ErrorCode;
use crate::identifier;
use crate::model::error::{Error, Result};
use crate::model::item::{Mode, stem};
use crate::model::profile::{LocalIds, Profile};

/// What is said of which object a package is: by the deposit, and by the package itself.
pub struct SaidIds<'a> {
    pub identifier: Option<&'a str>,
    pub local_ids: &'a [String],
    /// The identifiers in `bag-info.txt`, of which one may be an ARK.
    pub of_package: &'a [String],
    /// The package's name: what is left where nothing else is said.
    pub name: &'a str,
}

/// What follows from it. The highest of identifier, local ids of the deposit, identifiers of the
/// package and name decides; what ranks below is recorded beside it where that is possible.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Identity {
    /// Decides, where there is one.
    pub identifier: Option<String>,
    /// Decide where there is no identifier. All must belong to one object, or to none.
    pub local_ids: Vec<String>,
    /// Identifiers of the package that rank below what decides: recorded if they are free.
    pub beside: Vec<String>,
    /// The identifier that the package says it has, where the local ids of the deposit decide. A
    /// new object gets it; an object that has another one is contradicted.
    pub of_package: Option<String>,
    /// Nothing was said: the only local id is the package's name.
    pub derived: bool,
}

impl SaidIds<'_> {
    /// Decides what the object is found by; an error if what is said is not valid, contradicts
    /// itself, or is not what the collection takes.
    pub fn identity(&self, profile: &Profile, collection: &str) -> Result<Identity> {
        let given = self.identifier.map(identifier::normalise).transpose()?;
        let (arks, labels): (Vec<&String>, Vec<&String>) =
            self.of_package.iter().partition(|id| identifier::is_ark(id));
        let inside = arks.first().map(|ark| identifier::normalise(ark)).transpose()?;
        if let (Some(given), Some(inside)) = (&given, &inside)
            && given != inside
        {
            return Err(Error::permanent(
                ErrorCode::ContradictoryIdentifiers,
                format!(
                    "the deposit says it is {given}, and the package says it is {inside}; correct the one that is wrong"
                ),
            ));
        }
        let said = distinct(self.local_ids.iter());
        let labels: Vec<String> =
            distinct(labels.into_iter()).into_iter().filter(|l| !said.contains(l)).collect();
        check_policy(profile, collection, said.iter().chain(&labels).next())?;
        let none = Identity::default();
        Ok(match (given, inside) {
            (Some(given), _) => {
                Identity { identifier: Some(given), local_ids: said, beside: labels, ..none }
            }
            (None, inside) if !said.is_empty() => {
                Identity { local_ids: said, beside: labels, of_package: inside, ..none }
            }
            (None, Some(inside)) => Identity { identifier: Some(inside), beside: labels, ..none },
            (None, None) if !labels.is_empty() => Identity { local_ids: labels, ..none },
            (None, None) => {
                // What a later deposit of the same package can be recognised by.
                let name = stem(self.name).to_string();
                Identity { local_ids: vec![name], derived: true, ..none }
            }
        })
    }
}

/// Each once, in their order.
fn distinct<'a>(ids: impl Iterator<Item = &'a String>) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for id in ids {
        if !found.contains(id) {
            found.push(id.clone());
        }
    }
    found
}

fn check_policy(profile: &Profile, collection: &str, first: Option<&String>) -> Result<()> {
    match (profile.local_ids, first) {
        (LocalIds::Required, None) => Err(Error::permanent(
            ErrorCode::LocalIdRequired,
            format!(
                "collection `{collection}` wants a local identifier for every object; give one with --local-id, in the manifest, or as External-Identifier in bag-info.txt"
            ),
        )),
        (LocalIds::Forbidden, Some(first)) => Err(Error::permanent(
            ErrorCode::LocalIdForbidden,
            format!(
                "collection `{collection}` takes no local identifiers, and `{first}` was given; leave it out"
            ),
        )),
        _ => Ok(()),
    }
}

/// Refuses what contradicts the deposit's mode.
pub fn check_mode(mode: Mode, exists: bool, name: &str) -> Result<()> {
    match (mode, exists) {
        (Mode::New, true) => Err(Error::permanent(
            ErrorCode::ObjectExists,
            format!(
                "the deposit says that {name} is new, and it is there already; deposit it with --mode update or either"
            ),
        )),
        (Mode::Update, false) => Err(Error::permanent(
            ErrorCode::ObjectMissing,
            format!(
                "the deposit says that {name} is there already, and it is not; deposit it with --mode new or either, or correct its identifier"
            ),
        )),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ARK: &str = "ark:/99999/fk4x";

    fn identity(identifier: Option<&str>, local: &[&str], package: &[&str]) -> Result<Identity> {
        let owned = |ids: &[&str]| ids.iter().map(ToString::to_string).collect::<Vec<_>>();
        let (local_ids, of_package) = (owned(local), owned(package));
        let said = SaidIds {
            identifier,
            local_ids: &local_ids,
            of_package: &of_package,
            name: "box-17.tar.gz",
        };
        said.identity(&Profile::default(), "maps")
    }

    #[test]
    fn the_highest_that_is_said_decides_and_the_rest_stands_beside_it() {
        let none = Identity::default();
        let texts = |ids: &[&str]| ids.iter().map(ToString::to_string).collect::<Vec<_>>();
        let identifier = Some(ARK.to_string());
        for (said, expected) in [
            (
                identity(Some(ARK), &["A"], &["X"]),
                Identity {
                    identifier: identifier.clone(),
                    local_ids: texts(&["A"]),
                    beside: texts(&["X"]),
                    ..none.clone()
                },
            ),
            (
                identity(None, &["A", "B", "A"], &["X", "A", ARK]),
                Identity {
                    local_ids: texts(&["A", "B"]),
                    beside: texts(&["X"]),
                    of_package: identifier.clone(),
                    ..none.clone()
                },
            ),
            (
                identity(None, &[], &["X", ARK]),
                Identity { identifier, beside: texts(&["X"]), ..none.clone() },
            ),
            (
                identity(None, &[], &["X", "Y"]),
                Identity { local_ids: texts(&["X", "Y"]), ..none.clone() },
            ),
            (
                identity(None, &[], &[]),
                Identity { local_ids: texts(&["box-17"]), derived: true, ..none },
            ),
        ] {
            assert_eq!(said.unwrap(), expected);
        }
        let error = identity(Some("ark:/99999/other"), &[], &[ARK]).unwrap_err();
        assert_eq!(error.code(), "contradictory_identifiers");
    }
}
