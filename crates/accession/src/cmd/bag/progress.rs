//! A progress bar that the crate `bagit` moves.

use crate::cli::Global;
use crate::output;
use bagit::{Observer, info::Oxum};
use indicatif::{ProgressBar, ProgressDrawTarget};
use std::path::Path;

pub struct Progress {
    bar: ProgressBar,
    counts_files: bool,
}

impl Progress {
    pub fn new(total_bytes: Option<u64>, what: &str, global: &Global) -> Progress {
        Progress { bar: shown(output::bytes_bar(total_bytes, what), global), counts_files: false }
    }

    /// A bar that moves with files, not bytes.
    pub fn of_files(total: Option<u64>, what: &str, global: &Global) -> Progress {
        Progress { bar: shown(output::count_bar(total, what), global), counts_files: true }
    }

    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

impl Observer for Progress {
    fn bytes(&self, bytes: u64) {
        if !self.counts_files {
            self.bar.inc(bytes);
        }
    }

    fn files(&self, files: u64) {
        if self.counts_files {
            self.bar.inc(files);
        }
    }
}

fn shown(bar: ProgressBar, global: &Global) -> ProgressBar {
    if global.quiet {
        bar.set_draw_target(ProgressDrawTarget::hidden());
    }
    bar
}

/// How much a bag's own bag-info.txt says there is to read, if it is a directory.
pub fn announced_bytes(bag: &Path) -> Option<u64> {
    let text = std::fs::read_to_string(bag.join("bag-info.txt")).ok()?;
    let value = text.lines().find_map(|line| line.strip_prefix("Payload-Oxum:"))?;
    Oxum::parse(value).map(|oxum| oxum.octets)
}
