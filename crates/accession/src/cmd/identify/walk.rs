//! The files under some paths, in the order of their names, without keeping them all.

use std::path::PathBuf;

/// A file, or a place that could not be looked at and why.
pub type Found = Result<PathBuf, (PathBuf, String)>;

/// Goes through directories; links are not followed, and what is neither file nor directory is
/// left out.
pub struct Walk {
    /// What is left to visit, the next last.
    waiting: Vec<PathBuf>,
    /// How many of those were named by the caller: a link among them is meant.
    named: usize,
}

impl Walk {
    pub fn new(mut paths: Vec<PathBuf>) -> Walk {
        paths.reverse();
        Walk { named: paths.len(), waiting: paths }
    }
}

impl Iterator for Walk {
    type Item = Found;

    fn next(&mut self) -> Option<Found> {
        loop {
            let named = self.waiting.len() <= self.named;
            let path = self.waiting.pop()?;
            self.named = self.named.min(self.waiting.len());
            if path.as_os_str() == "-" {
                return Some(Ok(path));
            }
            let about = if named { path.metadata() } else { path.symlink_metadata() };
            match about {
                Err(error) => return Some(Err((path, error.to_string()))),
                Ok(about) if about.is_file() => return Some(Ok(path)),
                Ok(about) if about.is_dir() => {
                    let entries = std::fs::read_dir(&path)
                        .and_then(|entries| entries.map(|entry| entry.map(|e| e.path())).collect());
                    match entries {
                        Err(error) => return Some(Err((path, error.to_string()))),
                        Ok(entries) => {
                            let mut entries: Vec<PathBuf> = entries;
                            entries.sort_unstable_by(|a, b| b.cmp(a));
                            self.waiting.extend(entries);
                        }
                    }
                }
                Ok(_) => {}
            }
        }
    }
}
