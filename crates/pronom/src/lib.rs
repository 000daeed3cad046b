#![doc = include_str!("../README.md")]

mod compiled;
mod container;
mod droid;
mod error;
mod essential;
mod expr;
mod identify;
mod index;
mod library;
mod model;
mod ole2;
mod pattern;
mod progress;
mod result;
mod scan;
mod sequence;
mod source;
mod stream;
mod xml;
mod zip;

pub use droid::{ATTRIBUTION, OfficialFile};
pub use error::{Error, Result};
pub use identify::Identifier;
pub use library::{Installed, Library, NewFile};
pub use model::{ContainerKind, Format, Origin, SignatureSet};
pub use result::{Basis, Identification, Match, MemberSpan, Scope, Span, Warning};
pub use source::{FileSource, Source};
pub use stream::Stream;
