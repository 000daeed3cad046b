//! Changing a profile by dotted name: `accession collection set C callback.url=https://…`.

use super::Profile;
use crate::ErrorCode;
use crate::config::{place, readings};
use crate::{Error, Result};

impl Profile {
    /// Sets `key` to what `text` says: a TOML value (`true`, `90`, `["main", "cold"]`,
    /// `{address = "a@b"}`) or plain text. No text at all takes the setting back to its default.
    /// Parts of lists are named by their place: `notify.0.address`; the place after the last one
    /// adds to the list.
    pub fn set(&mut self, key: &str, text: &str) -> Result<()> {
        let mut last = None;
        for value in readings(text) {
            let mut whole = serde_json::json!(self);
            place(&mut whole, key, value).map_err(refused)?;
            match serde_json::from_value::<Profile>(whole) {
                Ok(changed) => {
                    if let Some(problem) = changed.problems().into_iter().next() {
                        return Err(refused(format!("{} {}", problem.key, problem.message)));
                    }
                    *self = changed;
                    return Ok(());
                }
                Err(error) => last = last.or(Some(error)),
            }
        }
        let why = last.map(|e| e.to_string()).unwrap_or_default();
        Err(refused(format!("{key} cannot be `{text}`: {why}")))
    }
}

fn refused(message: String) -> Error {
    let advice = "docs/configuration.md lists what a profile can say";
    Error::permanent(ErrorCode::ProfileValue, format!("{message}; {advice}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(profile: &mut Profile, assignment: &str) -> Result<()> {
        let (key, text) = assignment.split_once('=').unwrap();
        profile.set(key, text)
    }

    #[test]
    fn values_are_set_by_name_and_taken_back() {
        let mut profile = Profile::default();
        for assignment in [
            "owner=The Library",
            "description=1984",
            "fixity_days=30",
            "stores=[\"main\", \"cold\"]",
            "remove_packages=true",
            "bytes_max=5 GiB",
            "callback={url = \"https://x/\", secret = \"s\"}",
            "callback.url=https://y/",
            "notify.0={address = \"a@b.org\"}",
            "notify.1={address = \"c@d.org\", formats = [\"csv\"]}",
            "notify.0=",
            "local_ids=required",
        ] {
            set(&mut profile, assignment).unwrap_or_else(|e| panic!("{assignment}: {e}"));
        }
        assert_eq!(profile.owner, "The Library");
        assert_eq!(profile.description, "1984");
        assert_eq!(profile.stores, ["main", "cold"]);
        assert_eq!(profile.bytes_max, Some(5 << 30));
        assert_eq!(profile.callback.as_ref().unwrap().url, "https://y/");
        assert_eq!(profile.notify.len(), 1);
        assert_eq!(profile.notify[0].address, "c@d.org");
        set(&mut profile, "fixity_days=").unwrap();
        set(&mut profile, "callback=").unwrap();
        assert_eq!(profile.fixity_days, 90);
        assert_eq!(profile.callback, None);
    }

    #[test]
    fn what_is_wrong_changes_nothing_and_says_why() {
        let mut profile = Profile::default();
        for (assignment, said) in [
            ("colour=blue", "unknown field `colour`"),
            ("fixity_days=0", "between 1 and 3650"),
            ("fixity_days=soon", "fixity_days cannot be `soon`"),
            ("local_ids=maybe", "unknown variant `maybe`"),
            ("notify.3.address=a@b", "not a place in a list of 0"),
            ("colour=", "no setting colour"),
            ("callback.url=https://x/", "secret"),
        ] {
            let error = set(&mut profile, assignment).unwrap_err().to_string();
            assert!(error.contains(said), "{assignment}: {error}");
        }
        assert_eq!(profile, Profile::default());
    }
}
