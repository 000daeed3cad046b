//! Hostile input, and mail to a real server. `floors` is apart: it only reads the source.
#![allow(clippy::unwrap_used)]

mod fuzz;
mod mail_server;
