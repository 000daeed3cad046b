//! Reads content that stores keep and compares it with the digest it must have.

use crate::ErrorCode;
use crate::blocking::blocking;
use crate::model::error::Result;
use crate::registry::ingest::JobFile;
use crate::registry::view::FileView;
use crate::stores::{Place, store_error};
use futures_util::{StreamExt, stream};
use ocfl::{Algorithm, SingleHasher};
use std::fmt;
use store::ErrorKind;

/// Files up to this size are read together, so many at a time.
const SMALL_BYTES: u64 = 256 * 1024;
const PORTION: usize = 32;
/// Portions or files of one store that are read at the same time.
const AT_ONCE: usize = 4;
/// Questions to a store that answers with digests of its own.
const QUESTIONS_AT_ONCE: usize = 16;

/// What is wrong with content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    Missing,
    Size {
        found: u64,
        wanted: u64,
    },
    Bytes,
    /// A link, a directory or a special file is in its place.
    NotAFile,
}

impl Fault {
    /// Compares the size that a store has with the one there must be.
    pub fn of_size(found: Option<u64>, wanted: u64) -> Option<Fault> {
        match found {
            None => Some(Fault::Missing),
            Some(found) if found != wanted => Some(Fault::Size { found, wanted }),
            Some(_) => None,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Missing => f.write_str("is missing"),
            Fault::Size { found, wanted } => write!(f, "has {found} bytes instead of {wanted}"),
            Fault::Bytes => f.write_str("does not have its sha512"),
            Fault::NotAFile => f.write_str("is not a plain file"),
        }
    }
}

/// How content is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// By the store's own digest where it vouches for the bytes, else by reading.
    Checksum,
    /// By reading every byte.
    Reading,
}

/// A file, and the content that it refers to.
#[derive(Debug, Clone)]
pub struct Referred {
    /// The name by which people know it.
    pub path: String,
    pub size: u64,
    pub sha512: String,
    pub sha256: Option<String>,
    /// Where the content is in the store.
    pub key: String,
}

impl Referred {
    pub fn of_view(file: FileView, key: String) -> Referred {
        let sha256 = file.digests.as_ref().and_then(sha256);
        let size = u64::try_from(file.size).unwrap_or(0);
        Referred { path: file.path, size, sha512: file.sha512, sha256, key }
    }

    pub fn of_file(file: &JobFile, key: String) -> Referred {
        let digests: Option<serde_json::Value> =
            file.digests.as_deref().and_then(|text| serde_json::from_str(text).ok());
        Referred {
            path: file.path.clone(),
            size: file.size.and_then(|size| u64::try_from(size).ok()).unwrap_or(0),
            sha512: file.sha512.clone().unwrap_or_default(),
            sha256: digests.as_ref().and_then(sha256),
            key,
        }
    }
}

fn sha256(digests: &serde_json::Value) -> Option<String> {
    digests.get("sha256")?.as_str().map(str::to_string)
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ContentState {
    Good,
    /// In cold storage and of the right size; the store has no digest of it.
    Listed,
    Damaged(Fault),
}

/// Looks at content, in any order.
pub async fn look_at_all(
    place: &Place,
    files: Vec<Referred>,
    method: Method,
) -> Result<Vec<(Referred, ContentState)>> {
    let capabilities = place.root.store().capabilities();
    if method == Method::Checksum && capabilities.digests {
        return one_by_one(place, files, method, QUESTIONS_AT_ONCE).await;
    }
    let (small, large): (Vec<Referred>, Vec<Referred>) =
        files.into_iter().partition(|file| file.size <= SMALL_BYTES);
    if !capabilities.rename {
        // Not a directory: a get for each, and waiting is most of it.
        let mut state = one_by_one(place, small, method, QUESTIONS_AT_ONCE).await?;
        state.extend(one_by_one(place, large, method, AT_ONCE).await?);
        return Ok(state);
    }
    let mut portions = Vec::new();
    let mut small = small.into_iter().peekable();
    while small.peek().is_some() {
        portions.push(small.by_ref().take(PORTION).collect::<Vec<_>>());
    }
    let mut looks = stream::iter(portions)
        .map(|portion| async move { together(place, portion).await })
        .buffer_unordered(AT_ONCE);
    let mut state = Vec::new();
    while let Some(looked) = looks.next().await {
        state.extend(looked?);
    }
    state.extend(one_by_one(place, large, method, AT_ONCE).await?);
    Ok(state)
}

async fn together(place: &Place, files: Vec<Referred>) -> Result<Vec<(Referred, ContentState)>> {
    let keys = files.iter().map(|file| file.key.clone()).collect();
    let most = usize::try_from(SMALL_BYTES).unwrap_or(usize::MAX);
    let contents = match place.root.store().get_batch(keys, most).await {
        Ok(contents) => contents,
        Err(error) if error.kind().is_retryable() => {
            return Err(store_error(&place.name, error.into()));
        }
        // One of them is longer than it should be, or otherwise not a file that can be read so.
        Err(_) => return one_by_one(place, files, Method::Reading, 1).await,
    };
    blocking(move || {
        let look = |(file, content): (Referred, Option<bytes::Bytes>)| {
            let state = match content {
                None => ContentState::Damaged(Fault::Missing),
                Some(content) if content.len() as u64 != file.size => {
                    ContentState::Damaged(Fault::Size {
                        found: content.len() as u64,
                        wanted: file.size,
                    })
                }
                Some(content) => by_digest(&file, &Algorithm::Sha512.hex(&content)),
            };
            (file, state)
        };
        Ok(files.into_iter().zip(contents).map(look).collect())
    })
    .await
}

fn by_digest(file: &Referred, found: &str) -> ContentState {
    match file.sha512.eq_ignore_ascii_case(found) {
        true => ContentState::Good,
        false => ContentState::Damaged(Fault::Bytes),
    }
}

async fn one_by_one(
    place: &Place,
    files: Vec<Referred>,
    method: Method,
    at_once: usize,
) -> Result<Vec<(Referred, ContentState)>> {
    let mut looks = stream::iter(files)
        .map(|file| {
            let place = place.clone();
            async move {
                // On a thread of its own as long as there are some: hashing is most of it. A set,
                // because what is left of it ends with this run.
                let mut task = tokio::task::JoinSet::new();
                task.spawn(
                    async move { look(&place, &file, method).await.map(|state| (file, state)) },
                );
                match task.join_next().await {
                    Some(Ok(looked)) => looked.map(Some),
                    Some(Err(error)) => {
                        Err(crate::Error::transient(ErrorCode::LookEnded, error.to_string()))
                    }
                    None => Ok(None),
                }
            }
        })
        .buffer_unordered(at_once);
    let mut state = Vec::new();
    while let Some(looked) = looks.next().await {
        state.extend(looked?);
    }
    Ok(state)
}

/// Looks at one file.
pub async fn look(place: &Place, file: &Referred, method: Method) -> Result<ContentState> {
    let store = place.root.store();
    let failed = |e: store::Error| store_error(&place.name, e.into());
    if method == Method::Checksum && store.capabilities().digests {
        let meta = match store.head(&file.key).await {
            Err(error) if error.is_not_found() => return Ok(ContentState::Damaged(Fault::Missing)),
            meta => meta.map_err(failed)?,
        };
        if let Some(fault) = Fault::of_size(Some(meta.size), file.size) {
            return Ok(ContentState::Damaged(fault));
        }
        if let (Some(sha256), Some(vouched)) = (&file.sha256, meta.vouched_sha256()) {
            return Ok(match vouched.to_string() == *sha256 {
                true => ContentState::Good,
                false => ContentState::Damaged(Fault::Bytes),
            });
        }
    }
    let mut body = match store.get(&file.key, None).await {
        Ok(object) => object.body,
        Err(error) if error.is_not_found() => return Ok(ContentState::Damaged(Fault::Missing)),
        Err(error) if error.kind() == ErrorKind::NotPlain => {
            return Ok(ContentState::Damaged(Fault::NotAFile));
        }
        Err(error) if error.kind() == ErrorKind::Cold => return Ok(ContentState::Listed),
        Err(error) => return Err(failed(error)),
    };
    let (mut hasher, mut length) = (SingleHasher::new(Algorithm::Sha512), 0);
    while let Some(chunk) = body.next().await {
        match chunk {
            Ok(chunk) => {
                length += chunk.len() as u64;
                hasher.update(&chunk);
            }
            Err(error) if error.kind() == ErrorKind::Corrupt => {
                return Ok(ContentState::Damaged(Fault::Bytes));
            }
            Err(error) => return Err(failed(error)),
        }
    }
    Ok(match Fault::of_size(Some(length), file.size) {
        Some(fault) => ContentState::Damaged(fault),
        None => by_digest(file, &hasher.finish().to_string()),
    })
}
