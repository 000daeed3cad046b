//! Opening a store by its URL.

use crate::error::{Error, ErrorKind, Result};
use crate::local::LocalStore;
use crate::s3::{S3Config, S3Store};
use crate::store::Store;
use std::sync::Arc;

/// Opens `s3://bucket/prefix?…` (see [`S3Config::from_url`]), `file:///path`, or a plain path.
/// Nothing is written, so nothing optional is known of an S3 store; see
/// [`S3Store::open_remembering`] for that.
pub async fn open(url: &str) -> Result<Arc<dyn Store>> {
    if url.starts_with("s3://") {
        return Ok(Arc::new(S3Store::connect(S3Config::from_url(url)?, None).await?));
    }
    let path = match url.split_once("://") {
        None => url,
        Some(("file", path)) if path.starts_with('/') => path,
        Some(("file", _)) => {
            let detail = "a file:// URL has three slashes and a whole path: file:///srv/objects";
            return Err(Error::new(ErrorKind::Permanent, "", detail).in_store(url));
        }
        Some((scheme, _)) => {
            let detail = format!("no store is called {scheme}://; there are s3:// and file://");
            return Err(Error::new(ErrorKind::Unsupported, "", detail).in_store(url));
        }
    };
    Ok(Arc::new(LocalStore::open(path)?))
}
