//! The names of versions, and of the specification's own.

use std::fmt;
use std::str::FromStr;

/// The name of a version: `v1`, or `v0001` in objects that pad.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct VersionName {
    number: u32,
    /// How many digits a padded name has; zero for one without padding.
    width: u8,
}

impl VersionName {
    pub const FIRST: VersionName = VersionName { number: 1, width: 0 };

    /// The version of this number, without padding; `None` for zero.
    pub fn new(number: u32) -> Option<VersionName> {
        (number > 0).then_some(VersionName { number, width: 0 })
    }

    pub fn number(self) -> u32 {
        self.number
    }

    /// How many digits a padded name has; zero for one without padding.
    pub fn width(self) -> u8 {
        self.width
    }

    /// The name with another number and the same padding.
    pub fn numbered(self, number: u32) -> Option<VersionName> {
        let digits = number.checked_ilog10()? + 1;
        // A padded name starts with a zero, always.
        let fits = self.width == 0 || digits < u32::from(self.width);
        fits.then_some(VersionName { number, ..self })
    }

    /// The version after this one; `None` where the padding has no room for it.
    pub fn next(self) -> Option<VersionName> {
        self.numbered(self.number.checked_add(1)?)
    }
}

impl fmt::Display for VersionName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "v{:0width$}", self.number, width = usize::from(self.width))
    }
}

/// It is not the name of a version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no version; versions are named v1, v2, v3 and so on")]
pub struct BadVersionName(pub String);

impl FromStr for VersionName {
    type Err = BadVersionName;

    fn from_str(name: &str) -> Result<VersionName, BadVersionName> {
        let parse = || {
            let digits = name.strip_prefix('v')?;
            let plain = digits.bytes().all(|digit| digit.is_ascii_digit());
            let padded = digits.starts_with('0');
            let number = plain.then(|| digits.parse().ok()).flatten().filter(|n| *n > 0)?;
            let width = if padded { u8::try_from(digits.len()).ok()? } else { 0 };
            Some(VersionName { number, width })
        };
        parse().ok_or_else(|| BadVersionName(name.to_owned()))
    }
}

/// The version of the specification that an object or root conforms to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum Spec {
    V1_0,
    #[default]
    V1_1,
}

impl Spec {
    pub const ALL: [Spec; 2] = [Spec::V1_0, Spec::V1_1];

    pub fn as_str(self) -> &'static str {
        match self {
            Spec::V1_0 => "1.0",
            Spec::V1_1 => "1.1",
        }
    }

    /// The `type` of an inventory.
    pub fn inventory_type(self) -> String {
        format!("https://ocfl.io/{}/spec/#inventory", self.as_str())
    }

    pub(crate) fn of_inventory_type(text: &str) -> Option<Spec> {
        Spec::ALL.into_iter().find(|spec| spec.inventory_type() == text)
    }

    /// The name of an object's declaration.
    pub fn object_declaration(self) -> String {
        format!("0=ocfl_object_{}", self.as_str())
    }

    /// The name of a storage root's declaration.
    pub fn root_declaration(self) -> String {
        format!("0=ocfl_{}", self.as_str())
    }
}

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_and_write_alike() {
        for name in ["v1", "v2", "v10", "v01", "v0010", "v4294967295"] {
            assert_eq!(name.parse::<VersionName>().unwrap().to_string(), name);
        }
        for bad in ["", "v", "v0", "v00", "1", "V1", "v-1", "v+1", "v1 ", "v4294967296", "vv1"] {
            assert!(bad.parse::<VersionName>().is_err(), "{bad}");
        }
    }

    #[test]
    fn padding_is_kept_and_has_an_end() {
        let ninth: VersionName = "v09".parse().unwrap();
        assert_eq!(ninth.next(), None);
        let ninth: VersionName = "v009".parse().unwrap();
        assert_eq!(ninth.next().unwrap().to_string(), "v010");
        assert_eq!(VersionName::FIRST.next().unwrap().to_string(), "v2");
    }
}
