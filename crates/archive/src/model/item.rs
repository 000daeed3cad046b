//! What a deposit is of, and what an ingest job is to bring in.

use crate::ErrorCode;
use crate::metadata::Metadata;
use crate::model::deposit_kind::DepositKind;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// Where the bytes are.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// A file or directory; percent-encoded where it is not printable UTF-8.
    Path(String),
    Url(String),
}

impl Source {
    pub fn from_path(path: &Path) -> crate::Result<Source> {
        Ok(Source::Path(queue::subject::encode(path.as_os_str().as_bytes())?))
    }

    /// Whether a server has to be asked for it; `file:` URLs name files of this machine.
    pub fn is_remote(&self) -> bool {
        let is_file =
            |url: &str| url.get(..5).is_some_and(|scheme| scheme.eq_ignore_ascii_case("file:"));
        matches!(self, Source::Url(url) if !is_file(url))
    }

    /// `https://…` is a URL, everything else a path; `file:` URLs stay URLs, because only those
    /// below configured roots may be followed.
    pub fn parse(text: &OsString) -> crate::Result<Source> {
        let lower = text.to_string_lossy().to_ascii_lowercase();
        if ["http://", "https://", "file:"].iter().any(|scheme| lower.starts_with(scheme)) {
            let url = text.to_str().ok_or_else(|| {
                crate::Error::permanent(ErrorCode::BadUrl, "a URL must be UTF-8; percent-encode it")
            })?;
            return Ok(Source::Url(url.to_string()));
        }
        let path = std::path::absolute(text).map_err(|e| {
            let shown = text.to_string_lossy();
            crate::Error::permanent(ErrorCode::BadPath, format!("`{shown}` cannot be a path: {e}"))
        })?;
        Source::from_path(&path)
    }

    pub fn path(&self) -> Option<PathBuf> {
        match self {
            Source::Path(encoded) => {
                Some(PathBuf::from(OsString::from_vec(queue::subject::decode(encoded))))
            }
            Source::Url(_) => None,
        }
    }

    /// The last part of the path, without query and fragment.
    pub fn file_name(&self) -> String {
        let text = match self {
            Source::Path(encoded) => encoded.as_str(),
            Source::Url(url) => url.split(['?', '#']).next().unwrap_or(url),
        };
        text.trim_end_matches('/').rsplit('/').next().unwrap_or(text).to_string()
    }
}

/// As it may be shown: a URL without what can be a key.
impl std::fmt::Display for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Source::Path(text) => f.write_str(text),
            Source::Url(url) => f.write_str(&crate::model::text::shown_url(url)),
        }
    }
}

/// What a deposit says about whether its objects are there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// None of them is.
    New,
    /// All of them are.
    Update,
    #[default]
    Either,
}

impl Mode {
    pub fn name(self) -> &'static str {
        match self {
            Mode::New => "new",
            Mode::Update => "update",
            Mode::Either => "either",
        }
    }
}

/// Whether files that a deposit does not have stay in the new version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Update {
    /// The new version has the deposited files and no others.
    #[default]
    Replace,
    /// The new version has the files of the one before as well.
    Add,
}

/// A digest that someone says something has.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ExpectedDigest {
    pub algorithm: String,
    pub digest: String,
}

impl std::fmt::Display for ExpectedDigest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.algorithm, self.digest)
    }
}

/// What one ingest job is to bring in: the payload of the job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Item {
    pub kind: DepositKind,
    pub source: Source,
    /// The name of the package or file.
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identifier: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub local_ids: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claimed: Option<ExpectedDigest>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    #[serde(default)]
    pub mode: Mode,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub update: Option<Update>,
    #[serde(default)]
    pub metadata: Metadata,
    /// Who deposited it.
    #[serde(default)]
    pub submitter: String,
    /// The line of the manifest that this came from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// Where its depositor put it, if it is read elsewhere; see [`crate::model::place::place_of`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// How it looked when it was taken from a drop folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<String>,
}

impl Item {
    /// Where its depositor put it.
    pub fn place(&self) -> String {
        self.place.clone().unwrap_or_else(|| crate::model::place::place_of(&self.source))
    }

    /// Whether any of it has to be downloaded; `file:` URLs of packages are read where they are.
    pub fn is_downloaded(&self) -> bool {
        match (&self.kind, &self.source) {
            (DepositKind::Manifest, _) => true,
            (_, source) => source.is_remote(),
        }
    }

    /// The lock of the object as far as the deposit tells: by identifier or local id, else by
    /// collection and package name.
    pub fn lock(&self, collection: &str) -> String {
        match (&self.identifier, self.local_ids.first()) {
            (Some(identifier), _) => format!("object/{identifier}"),
            (None, Some(local)) => format!("object/{collection}/{local}"),
            (None, None) => format!("object/{collection}/{}", stem(&self.name)),
        }
    }

    pub fn parse(payload: Option<&[u8]>) -> crate::Result<Item> {
        let payload = payload.unwrap_or_default();
        serde_json::from_slice(payload).map_err(|e| {
            let message = format!(
                "the job does not say what to ingest ({e}); deposit it with `accession deposit`"
            );
            crate::Error::permanent(ErrorCode::BadPayload, message)
        })
    }
}

/// A package's name without the extension of an archive.
pub fn stem(name: &str) -> &str {
    const KNOWN: [&str; 11] = [
        ".tar.gz", ".tar.bz2", ".tar.zst", ".tgz", ".tbz2", ".tbz", ".tzst", ".tar", ".zip",
        ".checkm", ".json",
    ];
    let lower = name.to_ascii_lowercase();
    let known = KNOWN.iter().find(|e| lower.ends_with(**e) && lower.len() > e.len());
    known.map_or(name, |extension| &name[..name.len() - extension.len()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_kept_byte_for_byte() {
        let path = Path::new(std::ffi::OsStr::from_bytes(b"/srv/a\xffb\n%41"));
        let source = Source::from_path(path).unwrap();
        assert_eq!(source.path().as_deref(), Some(path));
        assert_eq!(Source::parse(&"HTTPS://a.org/b?c".into()).unwrap().file_name(), "b");
    }

    #[test]
    fn a_lock_is_by_identifier_then_local_id_then_name() {
        let mut item = Item {
            kind: DepositKind::Container,
            source: Source::Url("https://a.org/box-17.tar.gz".into()),
            name: "box-17.tar.gz".into(),
            identifier: None,
            local_ids: vec![],
            claimed: None,
            size: None,
            mode: Mode::Either,
            update: None,
            metadata: Metadata::default(),
            submitter: "ann".into(),
            line: None,
            place: None,
            fingerprint: None,
        };
        assert_eq!(item.lock("maps"), "object/maps/box-17");
        item.local_ids = vec!["B17".into()];
        assert_eq!(item.lock("maps"), "object/maps/B17");
        item.identifier = Some("ark:/99999/fk4x".into());
        assert_eq!(item.lock("maps"), "object/ark:/99999/fk4x");
        assert_eq!(stem(".zip"), ".zip");
    }
}
