//! What a restore delivers, in which form and where to.

use crate::ErrorCode;
use crate::model::error::{Error, Result};
use crate::model::item::Source;
use crate::model::text::shown_url;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::{Path, PathBuf};

/// How the files of an object are arranged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Arrangement {
    /// The files by themselves, as their depositor knew them.
    Files,
    /// A BagIt bag.
    Bag,
    /// The OCFL object as it is stored, with all its versions.
    Ocfl,
}

/// What the files are put into.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Container {
    #[serde(rename = "directory")]
    Directory,
    #[serde(rename = "tar")]
    Tar,
    #[serde(rename = "tar.gz")]
    TarGz,
    #[serde(rename = "zip")]
    Zip,
    /// One file, by itself.
    #[serde(rename = "file")]
    File,
}

impl Container {
    /// How names of such containers end.
    pub fn extension(self) -> &'static str {
        match self {
            Container::Directory | Container::File => "",
            Container::Tar => ".tar",
            Container::TarGz => ".tar.gz",
            Container::Zip => ".zip",
        }
    }

    /// The container that a name asks for.
    pub fn of_name(name: &str) -> Option<Container> {
        let name = name.to_ascii_lowercase();
        let of = |ending: &str| name.ends_with(ending) && name.len() > ending.len();
        match () {
            () if of(".tar.gz") || of(".tgz") => Some(Container::TarGz),
            () if of(".tar") => Some(Container::Tar),
            () if of(".zip") => Some(Container::Zip),
            () => None,
        }
    }

    /// Whether a container is one file.
    pub fn is_archive(self) -> bool {
        matches!(self, Container::Tar | Container::TarGz | Container::Zip)
    }
}

impl fmt::Display for Container {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Container::Directory => "directory",
            Container::Tar => "tar",
            Container::TarGz => "tar.gz",
            Container::Zip => "zip",
            Container::File => "file",
        })
    }
}

/// What `--as` names: an arrangement, a container, or both.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WantedForm {
    pub arrangement: Option<Arrangement>,
    pub container: Option<Container>,
}

impl WantedForm {
    pub const NAMES: &'static str = "directory, tar, tar.gz, zip, bag or ocfl";

    pub fn parse(text: &str) -> Option<WantedForm> {
        let arrangement = match text {
            "bag" => Some(Arrangement::Bag),
            "ocfl" => Some(Arrangement::Ocfl),
            _ => None,
        };
        let container = match text {
            "directory" => Some(Container::Directory),
            "tar" => Some(Container::Tar),
            "tar.gz" | "tgz" => Some(Container::TarGz),
            "zip" => Some(Container::Zip),
            _ => None,
        };
        (arrangement.is_some() || container.is_some())
            .then_some(WantedForm { arrangement, container })
    }
}

/// The exact place that a package is delivered to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Destination {
    /// A whole path of this machine; percent-encoded where it is not printable UTF-8.
    Path(String),
    /// A key in the place that an S3 URL names.
    S3 { url: String, key: String },
    /// Nowhere: a drill, which does everything but deliver.
    Nowhere,
}

impl Destination {
    pub fn of_path(path: &Path) -> Result<Destination> {
        let path = std::path::absolute(path).map_err(|error| {
            Error::permanent(
                ErrorCode::BadPath,
                format!("{} cannot be a path: {error}", path.display()),
            )
        })?;
        // A slash at the end makes no other place of it: what is there is recognised when it is deposited.
        let path: PathBuf = path.components().collect();
        match Source::from_path(&path)? {
            Source::Path(encoded) => Ok(Destination::Path(encoded)),
            Source::Url(_) => Err(Error::permanent(ErrorCode::BadPath, "a path is expected")),
        }
    }

    pub fn path(&self) -> Option<PathBuf> {
        match self {
            Destination::Path(encoded) => Source::Path(encoded.clone()).path(),
            Destination::S3 { .. } | Destination::Nowhere => None,
        }
    }

    /// What breakers know it by.
    pub fn target(&self) -> String {
        match self {
            Destination::Path(_) | Destination::Nowhere => format!("destination {self}"),
            Destination::S3 { url, .. } => format!("destination {}", shown_url(url)),
        }
    }
}

/// As it may be shown: without what can be a key.
impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Destination::Path(path) => f.write_str(path),
            Destination::Nowhere => f.write_str("nowhere"),
            Destination::S3 { url, key } => {
                let place = url.split(['?', '#']).next().unwrap_or(url);
                write!(f, "{}/{key}", shown_url(place).trim_end_matches('/'))
            }
        }
    }
}

/// What one job delivers: the payload of the job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// The object's identifier.
    pub object: String,
    pub version: i64,
    /// Patterns of the files that are wanted; none for all of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
    pub arrangement: Arrangement,
    pub container: Container,
    pub to: Destination,
    /// Adds PREMIS, ERC and Dublin Core to a bag.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub metadata: bool,
    /// How long what was delivered stays there; for ever if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept_days: Option<u32>,
    /// Who asked for it.
    pub by: String,
    /// When, in seconds since 1970: what a package says of the day it was made.
    pub asked_at: i64,
}

impl Order {
    pub fn parse(payload: Option<&[u8]>) -> Result<Order> {
        serde_json::from_slice(payload.unwrap_or_default()).map_err(|error| {
            Error::permanent(
                ErrorCode::BadPayload,
                format!("the job does not say what to restore: {error}; restore the object again"),
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_words_say_the_form() {
        assert_eq!(Container::of_name("a/b.TAR.GZ"), Some(Container::TarGz));
        assert_eq!(Container::of_name("x.zip"), Some(Container::Zip));
        assert_eq!(Container::of_name(".tar"), None);
        assert_eq!(Container::of_name("out"), None);
        let bag = WantedForm::parse("bag").unwrap();
        assert_eq!((bag.arrangement, bag.container), (Some(Arrangement::Bag), None));
        assert_eq!(WantedForm::parse("rar"), None);
    }

    #[test]
    fn secrets_of_a_destination_are_not_shown() {
        let url = "s3://bucket/out?endpoint=http://x&secret=y".to_string();
        let to = Destination::S3 { url, key: "a.tar".to_string() };
        assert_eq!(to.to_string(), "s3://bucket/out/a.tar");
    }
}
