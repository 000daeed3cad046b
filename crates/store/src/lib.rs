#![doc = include_str!("../README.md")]

mod body;
mod checksum;
mod error;
mod fault;
mod key;
mod local;
mod memory;
mod meta;
mod open;
mod s3;
mod store;

pub use body::{Body, ByteStream, Object};
pub use checksum::{Digest, Sha256Digest, Sha256Hasher};
pub use error::{Error, ErrorKind, Result};
pub use fault::{FaultStore, Misread, OperationCount};
pub use key::{check_existing_key, check_key, check_prefix, join};
pub use local::{LocalOptions, LocalStore};
pub use memory::MemoryStore;
pub use meta::{
    Availability, Capabilities, Entry, Kind, ListOptions, Meta, Page, Space, StorageClass, Thaw,
    ThawSpeed, Unfinished,
};
pub use open::open;
pub use s3::{CredentialSource, Credentials, S3Config, S3Store, S3Support, Support};
pub use store::{Condition, PutOptions, SmallFile, Store, list_all};
