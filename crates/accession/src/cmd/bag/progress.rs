//! A progress bar that the crate `bagit` moves.

use crate::cli::Global;
use crate::output;
use bagit::{Observer, info::Oxum};
use indicatif::{ProgressBar, ProgressDrawTarget};
use std::path::Path;

pub struct Progress(ProgressBar);

impl Progress {
    pub fn new(total_bytes: Option<u64>, what: &str, global: &Global) -> Progress {
        let bar = output::bytes_bar(total_bytes, what);
        if global.quiet {
            bar.set_draw_target(ProgressDrawTarget::hidden());
        }
        Progress(bar)
    }

    pub fn finish(&self) {
        self.0.finish_and_clear();
    }
}

impl Observer for Progress {
    fn bytes(&self, bytes: u64) {
        self.0.inc(bytes);
    }
}

/// How much a bag's own bag-info.txt says there is to read, if it is a directory.
pub fn announced_bytes(bag: &Path) -> Option<u64> {
    let text = std::fs::read_to_string(bag.join("bag-info.txt")).ok()?;
    let value = text.lines().find_map(|line| line.strip_prefix("Payload-Oxum:"))?;
    Oxum::parse(value).map(|oxum| oxum.octets)
}
