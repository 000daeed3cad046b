//! Receipts and results, written beside the package they are about.

use super::poll::root;
use crate::ErrorCode;
use crate::config::WatchSection;
use crate::{Error, Result};
use bagit::beneath::Folder;
use std::path::{Path, PathBuf};
use store::PutOptions;

/// Writes `NAME` + suffix beside the package, whole or not at all, over what was there.
pub async fn write(watch: &WatchSection, name: &str, suffix: &str, content: Vec<u8>) -> Result<()> {
    let part = |p: &str| p.is_empty() || p == "." || p == "..";
    if name.split('/').any(part) {
        return Err(Error::permanent(
            ErrorCode::WatchName,
            format!("`{name}` is not the name of a package in {}", watch.path),
        ));
    }
    let key = format!("{name}{suffix}");
    let failed = |why: String| {
        let message = format!(
            "{key} cannot be written in {}: {why}; let this user write there, or set results = false",
            watch.path
        );
        Error::transient(ErrorCode::WatchUnwritable, message).at(format!("watch {}", watch.path))
    };
    if watch.path.starts_with("s3://") {
        let store = store::open(&watch.path).await.map_err(|e| failed(e.to_string()))?;
        let put = store.put(&key, content.into(), &PutOptions::default()).await;
        return put.map(drop).map_err(|e| failed(e.to_string()));
    }
    let (root, place) = (root(watch).to_path_buf(), PathBuf::from(&key));
    let written = tokio::task::spawn_blocking(move || replace(&root, &place, &content)).await;
    written.map_err(|_| Error::Stopped)?.map_err(|e| failed(e.to_string()))
}

/// Writes a hidden file and renames it, so that a reader never sees half of it. Below the watched directory no
/// link is followed: a depositor could lead it elsewhere.
fn replace(root: &Path, place: &Path, content: &[u8]) -> std::io::Result<()> {
    let directory = Folder::open(root)?.folder(place.parent().unwrap_or(Path::new("")))?;
    // Results are for the depositor, who is another user.
    directory.replace(place.file_name().unwrap_or_default(), content, 0o644)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_result_is_not_written_through_a_link() {
        let dir = tempfile::tempdir().unwrap();
        let (inbox, elsewhere) = (dir.path().join("inbox"), dir.path().join("elsewhere"));
        for path in [&inbox, &elsewhere] {
            std::fs::create_dir(path).unwrap();
        }
        // The watched directory may be a link itself.
        std::os::unix::fs::symlink(&inbox, dir.path().join("watched")).unwrap();
        let path = dir.path().join("watched");
        let watch: WatchSection =
            toml::from_str(&format!("path = '{}'\ncollection = 'maps'", path.display())).unwrap();
        write(&watch, "p.txt", ".result.json", b"{}".to_vec()).await.unwrap();
        assert!(inbox.join("p.txt.result.json").is_file());
        std::os::unix::fs::symlink(&elsewhere, inbox.join("maps")).unwrap();
        let error = write(&watch, "maps/p.txt", ".result.json", b"{}".to_vec()).await.unwrap_err();
        assert_eq!(error.code(), "watch_unwritable");
        assert_eq!(std::fs::read_dir(&elsewhere).unwrap().count(), 0);
    }
}
