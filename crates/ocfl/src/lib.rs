#![doc = include_str!("../README.md")]

mod algorithm;
mod code;
mod diff;
mod draft;
mod error;
mod fetch;
mod findings;
mod intern;
mod inventory;
mod json;
mod layout;
mod limits;
mod listing;
mod object;
mod path;
mod purge;
mod root;
mod seal;
mod sealed;
mod sidecar;
mod sweep;
mod time;
mod twin;
mod unsealed;
mod validate;
mod version;
mod walk;

pub use algorithm::{algorithm_name, algorithm_named};
pub use code::{Code, Finding};
pub use diff::Change;
pub use digest::{Algorithm, SingleHasher};
pub use draft::{Draft, DraftOptions, Leftovers, Put, Reference, Start};
pub use error::{Error, Result};
pub use findings::{Findings, Unchecked};
pub use inventory::{About, File, Inventory, User, Version};
pub use layout::{
    FlatDirect, FlatOmitPrefix, HashAndIdNTuple, HashedNTuple, Layout, LayoutError,
    NTupleOmitPrefix, ZeroPadding,
};
pub use limits::Limits;
pub use listing::{ContentSet, Listing};
pub use object::{Exported, Object};
pub use root::{Classes, StorageRoot};
pub use sealed::{ContentSizes, Sealed, SealedContent};
pub use sweep::{Kind as LeftoverKind, Leftover, Outcome, Sweep};
pub use time::rfc3339;
pub use unsealed::Unsealed;
pub use validate::{Progress, RootReport, Validation, validate_object, validate_root};
pub use version::{BadVersionName, Spec, VersionName};
