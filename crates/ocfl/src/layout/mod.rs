//! Storage layouts: where in a root the object of an identifier is.

mod config;
mod flat;
mod hashed;
mod tuples;

pub use flat::{FlatDirect, FlatOmitPrefix};
pub use hashed::{HashAndIdNTuple, HashedNTuple};
pub use tuples::{NTupleOmitPrefix, ZeroPadding};

use crate::algorithm::algorithm_name;
use digest::Algorithm;
use serde_json::Value;

/// How a storage root maps identifiers to paths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Layout {
    /// 0002: the identifier is the directory.
    FlatDirect(FlatDirect),
    /// 0003: directories from a digest, then the identifier, percent-encoded.
    HashAndIdNTuple(HashAndIdNTuple),
    /// 0004: directories from a digest, then the digest. The default.
    HashedNTuple(HashedNTuple),
    /// 0006: the identifier without its prefix is the directory.
    FlatOmitPrefix(FlatOmitPrefix),
    /// 0007: directories from the identifier without its prefix, then that.
    NTupleOmitPrefix(NTupleOmitPrefix),
}

impl Default for Layout {
    fn default() -> Layout {
        Layout::HashedNTuple(HashedNTuple::default())
    }
}

/// Why a layout cannot be used, or an identifier not be mapped by it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LayoutError {
    #[error("the layout {0:?} is not known here; known are 0002, 0003, 0004, 0006 and 0007")]
    Unknown(String),
    #[error("the layout's configuration is wrong: {0}")]
    Config(String),
    #[error("the layout {layout} has no place for {id:?}: {why}")]
    Id { layout: &'static str, id: String, why: &'static str },
}

impl Layout {
    /// The names of the extensions that are known here.
    pub const NAMES: [&'static str; 5] = [
        FlatDirect::NAME,
        HashAndIdNTuple::NAME,
        HashedNTuple::NAME,
        FlatOmitPrefix::NAME,
        NTupleOmitPrefix::NAME,
    ];

    /// The name of the extension that defines it.
    pub fn name(&self) -> &'static str {
        match self {
            Layout::FlatDirect(_) => FlatDirect::NAME,
            Layout::HashAndIdNTuple(_) => HashAndIdNTuple::NAME,
            Layout::HashedNTuple(_) => HashedNTuple::NAME,
            Layout::FlatOmitPrefix(_) => FlatOmitPrefix::NAME,
            Layout::NTupleOmitPrefix(_) => NTupleOmitPrefix::NAME,
        }
    }

    /// What `ocfl_layout.json` says of it.
    pub fn description(&self) -> &'static str {
        match self {
            Layout::FlatDirect(_) => "Objects in directories named by their identifiers",
            Layout::HashAndIdNTuple(_) => {
                "Objects in directories named by their percent-encoded identifiers, below directories from a digest of them"
            }
            Layout::HashedNTuple(_) => {
                "Objects in directories named by a digest of their identifiers, below directories from it"
            }
            Layout::FlatOmitPrefix(_) => {
                "Objects in directories named by their identifiers without prefix"
            }
            Layout::NTupleOmitPrefix(_) => {
                "Objects in directories named by their identifiers without prefix, below directories from them"
            }
        }
    }

    /// Where the object of this identifier is, relative to the root.
    pub fn path(&self, id: &str) -> Result<String, LayoutError> {
        let path = match self {
            _ if id.is_empty() => Err("an identifier is not empty"),
            Layout::FlatDirect(layout) => layout.path(id),
            Layout::HashAndIdNTuple(layout) => Ok(layout.path(id)),
            Layout::HashedNTuple(layout) => Ok(layout.path(id)),
            Layout::FlatOmitPrefix(layout) => layout.path(id),
            Layout::NTupleOmitPrefix(layout) => layout.path(id),
        };
        let path = path.and_then(|path| {
            if path.len() > PATH_BYTES_MAX {
                return Err("the path would be too long");
            }
            // The top of a root has names of its own.
            let top = path.split('/').next().unwrap_or_default();
            let taken = top == "extensions" || top == "ocfl_layout.json" || top.starts_with("0=");
            if taken { Err("the storage root has another use for this name") } else { Ok(path) }
        });
        path.map_err(|why| LayoutError::Id { layout: self.name(), id: id.to_owned(), why })
    }

    /// A layout by its extension's name, or the number in front of it, with the defaults that the
    /// extension gives.
    pub fn named(name: &str) -> Result<Layout, LayoutError> {
        Layout::from_config(name, &serde_json::json!({}))
    }

    /// A layout from its extension's `config.json`.
    pub fn from_config(name: &str, config: &Value) -> Result<Layout, LayoutError> {
        let full = Layout::NAMES.into_iter().find(|full| {
            *full == name || full.split_once('-').is_some_and(|(number, _)| number == name)
        });
        let full = full.ok_or_else(|| LayoutError::Unknown(name.to_owned()))?;
        let fields = config::Fields::new(full, config).map_err(LayoutError::Config)?;
        let layout = match full {
            FlatDirect::NAME => Ok(Layout::FlatDirect(FlatDirect)),
            HashAndIdNTuple::NAME => HashAndIdNTuple::read(&fields).map(Layout::HashAndIdNTuple),
            HashedNTuple::NAME => HashedNTuple::read(&fields).map(Layout::HashedNTuple),
            FlatOmitPrefix::NAME => FlatOmitPrefix::read(&fields).map(Layout::FlatOmitPrefix),
            _ => NTupleOmitPrefix::read(&fields).map(Layout::NTupleOmitPrefix),
        };
        layout.map_err(LayoutError::Config)
    }

    /// What the extension's `config.json` contains.
    pub fn config(&self) -> Value {
        let mut config = match self {
            Layout::FlatDirect(_) => serde_json::json!({}),
            Layout::HashAndIdNTuple(layout) => layout.config(),
            Layout::HashedNTuple(layout) => layout.config(),
            Layout::FlatOmitPrefix(layout) => layout.config(),
            Layout::NTupleOmitPrefix(layout) => layout.config(),
        };
        config["extensionName"] = Value::from(self.name());
        config
    }
}

/// Leaves room for a version, a content directory and a file within the 1024 bytes of an S3 key.
const PATH_BYTES_MAX: usize = 600;

/// A path of tuples cut off the front of `text`, which is ASCII.
fn tuples(text: &str, size: usize, count: usize) -> String {
    let mut path = String::new();
    for tuple in text.as_bytes().chunks(size.max(1)).take(count) {
        path.extend(tuple.iter().map(|byte| char::from(*byte)));
        path.push('/');
    }
    path
}

/// A size and number of tuples that a digest has room for.
fn check_tuples(algorithm: Algorithm, size: usize, count: usize) -> Result<(), String> {
    if (size == 0) != (count == 0) {
        return Err("tupleSize and numberOfTuples are zero together or not at all".to_owned());
    }
    if size * count > algorithm.hex_length() {
        return Err(format!(
            "{count} tuples of {size} are more than {} has",
            algorithm_name(algorithm)
        ));
    }
    Ok(())
}
