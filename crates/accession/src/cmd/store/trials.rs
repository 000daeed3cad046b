//! What ingest does to a store, tried out in small below a prefix of its own.

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};
use serde::Serialize;
use std::sync::Arc;
use store::{
    Body, Error, ErrorKind, Kind, ListOptions, PutOptions, StorageClass, Store, join, list_all,
};

const MIB: usize = 1024 * 1024;

/// Something that was tried.
#[derive(Debug, Serialize)]
pub struct Trial {
    pub what: &'static str,
    /// `yes`, `no`, or `unknown` where it could not be tried.
    pub works: &'static str,
    /// What happened instead, or what it is good for.
    pub detail: String,
}

impl Trial {
    pub fn failed(&self) -> bool {
        self.works == "no"
    }
}

type Result<T> = store::Result<T>;

/// Tries everything out below `prefix`, which is removed again.
pub async fn run(store: &Arc<dyn Store>, prefix: &str, class: Option<&str>) -> Vec<Trial> {
    let mut trials = Vec::new();
    let mut tell = |what, tried: Result<bool>, means: &str| {
        let (works, detail) = match tried {
            Ok(true) => ("yes", means.to_owned()),
            Ok(false) => ("unknown", "it could not be tried here".to_owned()),
            Err(error) => ("no", error.to_string()),
        };
        trials.push(Trial { what, works, detail });
    };
    tell("empty-file", empty_file(store, prefix).await, "files without content are kept");
    tell("nested-listing", nested(store, prefix).await, "a level is listed without those below");
    tell("backslash", backslash(store, prefix).await, "a key with \\ is kept as it is");
    tell("pages", pages(store, prefix).await, "a listing of several pages is complete");
    tell("large-file", in_parts(store, prefix).await, "a file in two parts is kept whole");
    tell("aborted-upload", aborted(store, prefix).await, "an upload is given up without a trace");
    if let Some(class) = class {
        let tried = in_class(store, prefix, class).await;
        tell("storage-class", tried, "an object is kept in the class that was asked for");
    }
    if let Err(error) = store.delete_all(prefix).await {
        tell("cleaning-up", Err(error), "");
    }
    trials
}

fn wrong(key: &str, why: impl Into<String>) -> Error {
    Error::new(ErrorKind::Corrupt, key, why)
}

async fn put(store: &Arc<dyn Store>, key: &str, content: Bytes) -> Result<()> {
    store.put(key, Body::from_bytes(content), &PutOptions::default()).await.map(drop)
}

/// Reads an object back, and says how it differs.
async fn compare(store: &Arc<dyn Store>, key: &str, content: &[u8]) -> Result<()> {
    let found = store.get(key, None).await?.bytes(content.len() + 1).await?;
    match found == content {
        true => Ok(()),
        false => Err(wrong(key, "other bytes came back than were put")),
    }
}

async fn empty_file(store: &Arc<dyn Store>, prefix: &str) -> Result<bool> {
    let key = join(prefix, "empty");
    put(store, &key, Bytes::new()).await?;
    match store.head(&key).await?.size {
        0 => compare(store, &key, b"").await.map(|()| true),
        size => Err(wrong(&key, format!("{size} bytes were kept of none"))),
    }
}

async fn nested(store: &Arc<dyn Store>, prefix: &str) -> Result<bool> {
    let prefix = join(prefix, "nested");
    // Some servers do not list a level of which nothing lies directly below.
    for name in ["a", "b/c", "b/d/e", "b-c", "d/e/f"] {
        put(store, &join(&prefix, name), Bytes::from_static(b"x")).await?;
    }
    let page = store.list(&prefix, &ListOptions { recursive: false, ..Default::default() }).await?;
    let mut found: Vec<(String, Kind)> =
        page.entries.into_iter().map(|entry| (entry.key, entry.kind)).collect();
    found.sort_by(|one, other| one.0.cmp(&other.0));
    let (file, directory) = (Kind::File, Kind::Directory);
    let expected = [("a", file), ("b", directory), ("b-c", file), ("d", directory)];
    let expected = expected.map(|(name, kind)| (join(&prefix, name), kind));
    match found == expected {
        true => Ok(true),
        false => Err(wrong(&prefix, "one level of it is not listed as it is")),
    }
}

async fn backslash(store: &Arc<dyn Store>, prefix: &str) -> Result<bool> {
    let key = join(prefix, "backslash/one\\two");
    put(store, &key, Bytes::from_static(b"x")).await?;
    compare(store, &key, b"x").await?;
    let keys: Vec<String> = list_all(store.clone(), &join(prefix, "backslash"), true)
        .map_ok(|entry| entry.key)
        .try_collect()
        .await?;
    match keys == [key.clone()] {
        true => Ok(true),
        false => Err(wrong(&key, format!("it is listed as {}", keys.join(" and ")))),
    }
}

async fn pages(store: &Arc<dyn Store>, prefix: &str) -> Result<bool> {
    const FILES: usize = 7;
    let prefix = join(prefix, "pages");
    for number in 0..FILES {
        put(store, &join(&prefix, &number.to_string()), Bytes::from_static(b"x")).await?;
    }
    let (mut found, mut after) = (Vec::new(), None);
    for _ in 0..=FILES {
        let options = ListOptions { recursive: true, after, limit: 2 };
        let page = store.list(&prefix, &options).await?;
        found.extend(page.entries.into_iter().map(|entry| entry.key));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    found.sort();
    let expected: Vec<String> = (0..FILES).map(|n| join(&prefix, &n.to_string())).collect();
    match found == expected {
        true => Ok(true),
        false => Err(wrong(&prefix, format!("{} of {FILES} objects are listed", found.len()))),
    }
}

/// Content that does not repeat, in chunks.
fn large() -> (Vec<Bytes>, usize) {
    let line = |number: usize| Bytes::from(format!("{number:07}").repeat(MIB / 8));
    let chunks: Vec<Bytes> = (0..22).map(line).collect();
    let length = chunks.iter().map(Bytes::len).sum();
    (chunks, length)
}

async fn in_parts(store: &Arc<dyn Store>, prefix: &str) -> Result<bool> {
    let key = join(prefix, "large");
    let (chunks, length) = large();
    let whole = chunks.concat();
    let body = Body::from_stream(stream::iter(chunks.into_iter().map(Ok::<_, Error>)), None);
    let meta = store.put(&key, body, &PutOptions::default()).await?;
    if meta.size != length as u64 {
        return Err(wrong(&key, format!("{} bytes were kept of {length}", meta.size)));
    }
    compare(store, &key, &whole).await.map(|()| true)
}

async fn aborted(store: &Arc<dyn Store>, prefix: &str) -> Result<bool> {
    let key = join(prefix, "aborted");
    match store.unfinished(prefix).await {
        Ok(_) => {}
        Err(error) if matches!(error.kind(), ErrorKind::Unsupported | ErrorKind::Denied) => {
            return Ok(false);
        }
        Err(error) => return Err(error),
    }
    let (chunks, _) = large();
    let broken = stream::once(async { Err(wrong("", "broken on purpose")) });
    let body = stream::iter(chunks.into_iter().map(Ok::<_, Error>)).chain(broken);
    let options = PutOptions { resume: true, ..PutOptions::default() };
    if store.put(&key, Body::from_stream(body.boxed(), None), &options).await.is_ok() {
        return Err(wrong(&key, "a body that broke off was taken for whole"));
    }
    for upload in store.unfinished(prefix).await? {
        store.abort(&upload).await?;
    }
    match store.unfinished(prefix).await?.is_empty() {
        true => Ok(true),
        false => Err(wrong(&key, "an upload that was aborted is still listed")),
    }
}

async fn in_class(store: &Arc<dyn Store>, prefix: &str, class: &str) -> Result<bool> {
    let key = join(prefix, "class");
    let storage_class = Some(StorageClass::new(class));
    let options = PutOptions { storage_class, ..PutOptions::default() };
    store.put(&key, Body::from_bytes("x"), &options).await?;
    let found = store.head(&key).await?.storage_class;
    // The usual class goes without saying.
    match found.map_or("STANDARD".to_owned(), |class| class.0) {
        found if found == class => Ok(true),
        found => Err(wrong(&key, format!("it is kept in the class {found}"))),
    }
}
