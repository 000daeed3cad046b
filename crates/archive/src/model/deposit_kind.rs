//! What was deposited.

use serde::{Deserialize, Serialize};

/// What a deposit is, and what one object of it is made from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DepositKind {
    /// One file, kept as it is.
    File,
    /// A directory, a bag or not.
    Directory,
    /// A tar or zip archive, a bag or not.
    Container,
    /// A manifest: of the files of one object, or of many objects. For an object it is the first.
    #[serde(alias = "object-manifest")]
    Manifest,
}

impl DepositKind {
    /// Every kind.
    pub const ALL: [DepositKind; 4] =
        [DepositKind::File, DepositKind::Directory, DepositKind::Container, DepositKind::Manifest];

    /// The kind as commands and reports name it.
    pub fn name(self) -> &'static str {
        match self {
            DepositKind::File => "file",
            DepositKind::Directory => "directory",
            DepositKind::Container => "container",
            DepositKind::Manifest => "manifest",
        }
    }

    /// The kind of this name.
    pub fn from_name(name: &str) -> Option<DepositKind> {
        DepositKind::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_of_earlier_versions_are_understood() {
        let kind: DepositKind = serde_json::from_str(r#""object-manifest""#).unwrap();
        assert_eq!(kind, DepositKind::Manifest);
        for kind in DepositKind::ALL {
            let text = serde_json::to_string(&kind).unwrap();
            assert_eq!(text, format!("{:?}", kind.name()));
            assert_eq!(DepositKind::from_name(kind.name()), Some(kind));
        }
    }
}
