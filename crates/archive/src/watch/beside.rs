//! Receipts and results, written beside the package they are about.

use crate::config::WatchSection;
use crate::{Error, Result};
use std::io::Write;
use std::path::{Path, PathBuf};
use store::PutOptions;

/// Writes `NAME` + suffix beside the package, whole or not at all, over what was there.
pub async fn write(watch: &WatchSection, name: &str, suffix: &str, content: Vec<u8>) -> Result<()> {
    let part = |p: &str| p.is_empty() || p == "." || p == "..";
    if name.split('/').any(part) {
        return Err(Error::permanent(
            "watch_name",
            format!("`{name}` is not the name of a package in {}", watch.path),
        ));
    }
    let key = format!("{name}{suffix}");
    let failed = |why: String| {
        let message = format!(
            "{key} cannot be written in {}: {why}; let this user write there, or set results = false",
            watch.path
        );
        Error::transient("watch_unwritable", message).at(format!("watch {}", watch.path))
    };
    if watch.path.starts_with("s3://") {
        let store = store::open(&watch.path).await.map_err(|e| failed(e.to_string()))?;
        let put = store.put(&key, content.into(), &PutOptions::default()).await;
        return put.map(drop).map_err(|e| failed(e.to_string()));
    }
    let path = Path::new(watch.path.strip_prefix("file://").unwrap_or(&watch.path)).join(&key);
    let written = tokio::task::spawn_blocking(move || replace(&path, &content)).await;
    written.map_err(|_| Error::Stopped)?.map_err(|e| failed(e.to_string()))
}

/// By way of a hidden file, so that whoever waits for the result never reads half of it.
fn replace(path: &Path, content: &[u8]) -> std::io::Result<()> {
    let directory = path.parent().map_or_else(|| PathBuf::from("."), Path::to_path_buf);
    let mut file = tempfile::Builder::new().prefix(".accession-").tempfile_in(directory)?;
    file.write_all(content)?;
    // Results are for the depositor, who is another user.
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o644);
    file.as_file().set_permissions(mode)?;
    file.as_file().sync_all()?;
    file.persist(path).map(drop).map_err(|e| e.error)
}
