#![doc = include_str!("../README.md")]

mod code;
mod digest;
mod error;
mod intern;
mod inventory;
mod json;
mod layout;
mod limits;
mod path;
mod sidecar;
mod time;
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
pub use time::rfc3339;
pub use version::{BadVersionName, Spec, VersionName};
