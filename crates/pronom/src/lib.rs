#![doc = include_str!("../README.md")]

// The helpers of the tests name this crate as its users do.
#[cfg(test)]
extern crate self as pronom;

#[cfg(test)]
#[path = "../tests/common/build.rs"]
mod build;
#[cfg(test)]
#[path = "../tests/common/mod.rs"]
mod common;
mod compiled;
mod container;
mod droid;
mod error;
mod essential;
mod expr;
#[cfg(test)]
mod hostile;
#[cfg(feature = "http")]
mod http;
mod identify;
mod index;
mod latest;
mod library;
mod model;
mod ole2;
mod pattern;
mod progress;
mod result;
mod scan;
mod search;
mod sequence;
mod source;
mod stream;
#[cfg(test)]
mod synth;
mod xml;
mod zip;

pub use droid::{ATTRIBUTION, OfficialFile};
pub use error::{Error, Result};
#[cfg(feature = "http")]
pub use http::Http;
pub use identify::Identifier;
pub use latest::{Fetch, PAGE as LATEST_PAGE, fetch_latest};
pub use library::{Installed, Library, NewFile};
pub use model::{ContainerKind, Format, Origin, SignatureSet};
pub use result::{Basis, Identification, Match, MemberSpan, Scope, Span, Warning};
pub use source::{FileSource, Source};
pub use stream::Stream;
