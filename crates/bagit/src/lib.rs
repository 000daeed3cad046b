#![doc = include_str!("../README.md")]

pub mod beneath;
mod declaration;
pub mod entry;
mod error;
mod fetch;
mod hashing;
pub mod info;
pub mod path;
mod pool;
mod problem;
mod profile;
pub mod source;
mod spill;
mod summary;
pub mod text;
mod validate;
mod write;

pub use declaration::{Declaration, Version};
pub use digest::{Algorithm, Algorithms, Digest, Digests, Hasher, UnknownAlgorithm};
pub use error::Error;
#[cfg(feature = "http")]
pub use fetch::HttpFetcher;
pub use fetch::guard::is_public;
pub use fetch::{FetchLine, FetchOptions, FetchReport, Fetched, Fetcher, fetch};
pub use problem::{Code, Problem, Severity};
pub use profile::{Catalog, Profile};
pub use source::Serialization;
pub use source::open::Bag;
pub use summary::Summary;
pub use validate::{Limits, Mode, Options, Report, is_bomb};
pub use write::tar_blocks;
pub use write::{
    TarBag, UpdateOptions, WriteOptions, Written, create, create_in_place, create_tar, update,
};

/// Hears how far long work has come, and may stop it. Called from several threads.
pub trait Observer: Sync {
    /// So many more bytes were read.
    fn bytes(&self, _bytes: u64) {}
    /// So many more files are done.
    fn files(&self, _files: u64) {}
    /// The size and digests of a file, if the caller has read it already: it is not read again
    /// then. The path is as the manifests have it. Digests that are needed and not among them
    /// make the file be read after all.
    fn known(&self, _path: &str) -> Option<(u64, Digests)> {
        None
    }
    /// Whether to stop.
    fn stopped(&self) -> bool {
        false
    }
}

/// An observer that does not care.
impl Observer for () {}

impl Bag {
    /// Validates the bag. Whatever is wrong with it is in the report; an error means that the
    /// bag could not be read to the end.
    pub fn validate(&self, options: &Options) -> Result<Report, Error> {
        validate::validate(self, options, &())
    }

    /// Validates the bag, and tells an observer how far it is.
    pub fn validate_observed(
        &self,
        options: &Options,
        observer: &dyn Observer,
    ) -> Result<Report, Error> {
        validate::validate(self, options, observer)
    }
}
