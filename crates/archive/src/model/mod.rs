//! What the archive talks about: types without I/O, and the rules that need nothing but them.

pub mod codes;
pub mod deposit_kind;
pub mod error;
pub mod error_code;
pub mod event;
pub mod format;
pub mod glob;
pub mod id;
pub mod identity;
pub mod item;
pub mod mail_address;
pub mod pipelines;
pub mod place;
pub mod problem;
pub mod profile;
pub mod restore;
pub mod text;
