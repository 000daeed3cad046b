//! Secrets are kept in files of their own, which only the system's user should be able to read.

use crate::ErrorCode;
use crate::{Error, Result};
use std::io::Read;
use std::path::Path;

const SECRET_BYTES_MAX: u64 = 4096;

/// The first line of a file with a secret.
pub fn read_secret(path: &Path) -> Result<String> {
    let wrong = |why: String| {
        Error::permanent(
            ErrorCode::SecretFile,
            format!(
                "the secret in {} cannot be read: {why}; put it there as one line that only this user can read",
                path.display()
            ),
        )
    };
    let file = std::fs::File::open(path).map_err(|e| wrong(e.to_string()))?;
    let mut text = String::new();
    file.take(SECRET_BYTES_MAX + 1).read_to_string(&mut text).map_err(|e| wrong(e.to_string()))?;
    if text.len() as u64 > SECRET_BYTES_MAX {
        return Err(wrong(format!("it has more than {SECRET_BYTES_MAX} bytes")));
    }
    match text.lines().next().map(str::trim_end).filter(|line| !line.is_empty()) {
        Some(line) => Ok(line.to_string()),
        None => Err(wrong("it is empty".to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::read_secret;

    #[test]
    fn a_secret_is_one_line() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("secret");
        assert!(read_secret(&file).unwrap_err().to_string().contains("secret"));
        std::fs::write(&file, "hush hush\n\n").unwrap();
        assert_eq!(read_secret(&file).unwrap(), "hush hush");
        std::fs::write(&file, "\n").unwrap();
        assert!(read_secret(&file).unwrap_err().to_string().contains("it is empty"));
        std::fs::write(&file, "x".repeat(5000)).unwrap();
        assert!(read_secret(&file).unwrap_err().to_string().contains("more than 4096"));
    }
}
