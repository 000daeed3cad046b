//! What leaves the archive for people and programs: reports by mail, and callbacks. Each is a job
//! of its own, tried again until it is delivered or cannot be; so none is lost, and a dead host
//! holds up no object.

mod attachments;
pub mod callback;
pub mod mail;
pub mod messages;
pub mod reporting;
pub mod sending;
pub mod unsent;

pub const REPORT: &str = "report";
pub const CALLBACK: &str = "callback";
