//! What the archive keeps: objects, versions, files, copies, events.

pub mod bad_copy;
pub mod brief;
pub mod carried;
pub mod check;
pub mod collection;
pub mod compare;
pub mod deposit;
pub mod derived;
pub mod events;
pub mod ingest;
pub mod logs;
pub mod messages;
pub mod placed;
pub mod premis;
pub mod rebuild;
pub mod record;
pub mod reports;
pub mod resolve;
pub mod restoring;
pub mod superseding;
pub mod thaws;
pub mod view;
pub mod waits;
mod walk;
