//! How far a run has come, for people who watch it and for bars that move.

use serde::{Deserialize, Serialize};
use std::fmt;

/// What a run is doing, and how much of it is done.
///
/// ```
/// use queue::Progress;
///
/// let progress = Progress::bytes("reading", 3 << 30, Some(12 << 30));
/// assert_eq!(progress.to_string(), "reading 3.0 GiB of 12.0 GiB (25%)");
/// assert_eq!(Progress::parse(&progress.to_text()), progress);
/// assert_eq!(Progress::from("warming up").to_string(), "warming up");
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// What is being done.
    pub what: String,
    /// The bytes that are done.
    #[serde(rename = "done")]
    pub done_bytes: u64,
    /// `None` where it is not known.
    #[serde(rename = "total", default, skip_serializing_if = "Option::is_none")]
    pub total_bytes: Option<u64>,
    /// False where nothing is counted, and `what` says all.
    #[serde(skip, default = "yes")]
    pub counted: bool,
}

fn yes() -> bool {
    true
}

impl Progress {
    /// Makes the progress of something that is counted in bytes.
    pub fn bytes(what: impl Into<String>, done: u64, total: Option<u64>) -> Progress {
        Progress { what: what.into(), done_bytes: done, total_bytes: total, counted: true }
    }

    /// As it is kept: JSON where bytes are counted, else the words.
    pub fn to_text(&self) -> String {
        match self.counted {
            true => serde_json::json!(self).to_string(),
            false => self.what.clone(),
        }
    }

    /// Reads what [`Progress::to_text`] wrote; anything else is taken as words.
    pub fn parse(text: &str) -> Progress {
        let counted = text.starts_with('{').then(|| serde_json::from_str(text).ok()).flatten();
        counted.unwrap_or_else(|| Progress::from(text))
    }

    /// How much of it is done, where that is known.
    pub fn percent(&self) -> Option<u64> {
        let total = self.total_bytes.filter(|total| self.counted && *total > 0)?;
        Some(
            u64::try_from(u128::from(self.done_bytes.min(total)) * 100 / u128::from(total))
                .unwrap_or(100),
        )
    }
}

impl From<&str> for Progress {
    fn from(what: &str) -> Progress {
        Progress { what: what.to_string(), counted: false, ..Progress::default() }
    }
}

impl From<String> for Progress {
    fn from(what: String) -> Progress {
        Progress { what, counted: false, ..Progress::default() }
    }
}

impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.what)?;
        if !self.counted {
            return Ok(());
        }
        write!(f, " {}", Size(self.done_bytes))?;
        if let (Some(total), Some(percent)) = (self.total_bytes, self.percent()) {
            write!(f, " of {} ({percent}%)", Size(total))?;
        }
        Ok(())
    }
}

/// A number of bytes as people read it.
struct Size(u64);

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
        if self.0 < 1024 {
            return write!(f, "{} B", self.0);
        }
        let (mut amount, mut unit) = (self.0 as f64 / 1024.0, 0);
        while amount >= 1024.0 && unit + 1 < UNITS.len() {
            amount /= 1024.0;
            unit += 1;
        }
        write!(f, "{amount:.1} {}", UNITS[unit])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_reads_well() {
        for (progress, shown) in [
            (Progress::from("asleep"), "asleep"),
            (Progress::bytes("fetching", 0, None), "fetching 0 B"),
            (Progress::bytes("fetching", 1536, None), "fetching 1.5 KiB"),
            (
                Progress::bytes("storing", 5 << 20, Some(5 << 20)),
                "storing 5.0 MiB of 5.0 MiB (100%)",
            ),
            // What grew since it was measured is never more than all.
            (Progress::bytes("storing", 9, Some(3)), "storing 9 B of 3 B (100%)"),
            (Progress::bytes("storing", 0, Some(0)), "storing 0 B"),
        ] {
            assert_eq!(progress.to_string(), shown);
            assert_eq!(Progress::parse(&progress.to_text()), progress);
        }
    }

    #[test]
    fn words_that_look_like_json_are_words() {
        for words in ["{", "{}", "{\"what\": 1}", "[1]"] {
            assert_eq!(Progress::parse(words).to_string(), words);
        }
    }
}
