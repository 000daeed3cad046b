//! What the archive keeps: objects, versions, files, copies, events.

pub mod carried;
pub mod events;
pub mod record;
pub mod reports;
pub mod resolve;
pub mod view;
