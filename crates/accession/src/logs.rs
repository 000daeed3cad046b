//! Structured logs on standard error: readable on a terminal, JSON elsewhere.
//!
//! `ACCESSION_LOG` filters them (`info`, `queue=debug`, …); `-v` and `--quiet` set the level.

use crate::cli::Global;
use std::io::IsTerminal;
use tracing_subscriber::EnvFilter;

/// `told` is for commands that tell their story themselves: only errors unless more is asked for.
pub fn start(global: &Global, told: bool) {
    let level = match (global.quiet || told && global.verbose == 0, global.verbose) {
        (true, _) => "error",
        (false, 0) => "warn",
        (false, 1) => "info",
        (false, 2) => "debug",
        _ => "trace",
    };
    let filter = EnvFilter::try_from_env("ACCESSION_LOG").unwrap_or_else(|_| EnvFilter::new(level));
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    if std::io::stderr().is_terminal() {
        builder.with_target(false).compact().init();
    } else {
        builder.json().flatten_event(true).init();
    }
}
