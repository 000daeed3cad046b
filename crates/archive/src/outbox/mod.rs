//! What leaves the archive for people and programs: mail and callbacks. Each is a job of its own,
//! tried again until it is delivered or cannot be.

pub mod callback;
pub mod mail;
