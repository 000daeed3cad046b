//! What leaves the archive: reports by mail, callbacks. Each is a job of its own with its own
//! retries, so that none is lost and a dead host holds up no object.

pub mod messages;
//pub mod reporting;
//pub mod sending;

pub const REPORT: &str = "report";
pub const CALLBACK: &str = "callback";
