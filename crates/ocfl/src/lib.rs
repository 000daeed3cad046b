#![doc = include_str!("../README.md")]

mod code;
mod digest;
mod error;
mod fetch;
mod intern;
mod inventory;
mod json;
mod layout;
mod limits;
mod path;
mod root;
mod sidecar;
mod time;
mod validate;
mod version;

pub use code::{Code, Finding, Findings};
pub use digest::{Algorithm, Hasher, UnknownAlgorithm};
pub use error::{Error, Result};
pub use inventory::{About, File, Inventory, User, Version};
pub use layout::{
    FlatDirect, FlatOmitPrefix, HashAndIdNTuple, HashedNTuple, Layout, LayoutError,
    NTupleOmitPrefix, ZeroPadding,
};
pub use limits::Limits;
pub use root::StorageRoot;
pub use time::rfc3339;
pub use validate::{Progress, RootReport, Validation, validate_object, validate_root};
pub use version::{BadVersionName, Spec, VersionName};
