//! What a package may be at most: the one bound on its files, its bytes, and how far a container
//! expands. It is checked against what a container announces before anything is written, and
//! against what is read.

use crate::ErrorCode;
use crate::app::Settings;
use crate::model::error::{Error, Result};
use crate::model::problem::Problems;
use crate::model::profile::Profile;

/// The limits that apply to one package.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    pub files_max: u64,
    pub bytes_max: u64,
    /// How many times larger than the container its content may be.
    pub ratio_max: u64,
}

impl Bounds {
    /// A collection can lower the limits of the installation, and not raise them.
    pub fn of(settings: &Settings, profile: &Profile) -> Bounds {
        Bounds {
            files_max: profile.files_max.unwrap_or(settings.files_max).min(settings.files_max),
            bytes_max: profile.bytes_max.unwrap_or(settings.bytes_max).min(settings.bytes_max),
            ratio_max: settings.expand_ratio_max,
        }
    }

    /// Adds a problem where a manifest names more files or bytes than a package may have.
    pub fn check_listed(&self, name: &str, files: u64, bytes: u64, problems: &mut Problems) {
        if files > self.files_max || bytes > self.bytes_max {
            problems.error(
                ErrorCode::TooLarge,
                name,
                format!(
                    "{name}: {files} files of {bytes} bytes are more than the collection takes ({} files, {} bytes)",
                    self.files_max, self.bytes_max
                ),
            );
        }
    }

    /// Refuses a package that has more files or bytes than it may have. `stored` is the size of
    /// the deposited container; directories and single files have none.
    pub fn check(&self, name: &str, files: u64, bytes: u64, stored: Option<u64>) -> Result<()> {
        if files > self.files_max {
            let most = self.files_max;
            return Err(Error::permanent(
                ErrorCode::TooManyFiles,
                format!(
                    "{name} has more than {most} files, which is the collection's limit; raise files_max or divide the package"
                ),
            ));
        }
        if bytes > self.bytes_max {
            let most = self.bytes_max;
            return Err(Error::permanent(
                ErrorCode::TooManyBytes,
                format!(
                    "{name} has more than {most} bytes, which is the collection's limit; raise bytes_max or divide the package"
                ),
            ));
        }
        match stored {
            Some(stored) if bagit::is_bomb(bytes, stored, self.ratio_max) => {
                let most = self.ratio_max;
                Err(Error::permanent(
                    ErrorCode::DecompressionBomb,
                    format!(
                        "{name} has {stored} bytes and expands to more than {most} times as many; if this is expected, raise limits.expand_ratio_max, else check where the package comes from"
                    ),
                ))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_bytes_and_expansion_are_bounded() {
        let bounds = Bounds { files_max: 10, bytes_max: 1 << 40, ratio_max: 250 };
        let code = |files, bytes, stored| {
            bounds.check("x", files, bytes, stored).map_err(|e| e.code()).err()
        };
        assert_eq!(code(10, 1 << 40, None), None);
        assert_eq!(code(11, 1, None), Some("too_many_files"));
        assert_eq!(code(1, (1 << 40) + 1, None), Some("too_many_bytes"));
        assert_eq!(code(1, 2 << 30, Some(2_000_000)), Some("decompression_bomb"));
        assert_eq!(code(1, 1 << 40, Some(3000)), Some("decompression_bomb"));
        assert_eq!(code(1, 64 << 20, Some(1)), None, "small archives of zeros are taken");
        assert_eq!(code(1, 250 << 20, Some(1 << 20)), None);
        assert_eq!(code(1, (250 << 20) + 1, Some(1 << 20)), Some("decompression_bomb"));
    }
}
