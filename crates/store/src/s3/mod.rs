//! A store in a bucket of S3, or of anything that speaks its protocol.

mod answer;
mod client;
mod clock;
mod cold;
mod config;
mod connect;
mod credentials;
mod document;
mod get;
mod http;
mod limit;
mod list;
mod multipart;
mod parts;
mod pause;
mod probe;
mod put;
mod remember;
mod remove;
mod sign;
mod versions;
mod xml;

pub use config::S3Config;
pub use credentials::{CredentialSource, Credentials};
pub use probe::{S3Support, Support};

use crate::body::{Body, Object};
use crate::error::{Error, ErrorKind, Result};
use crate::key::{check_existing_key, check_key, check_prefix, is_below};
use crate::meta::{Availability, Capabilities, ListOptions, Meta, Page, Thaw, Unfinished};
use crate::store::{Condition, PutOptions, SmallFile, Store};
use ::http::Method;
use async_trait::async_trait;
use bytes::Bytes;
use client::{Client, Request};
use futures_util::{StreamExt, TryStreamExt, stream};
use std::ops::Range;
use std::sync::Arc;

/// Keeps bytes in a bucket.
#[derive(Debug, Clone)]
pub struct S3Store {
    client: Arc<Client>,
    support: S3Support,
}

impl S3Store {
    /// Reaches the bucket and tries out what it supports.
    pub async fn open(config: S3Config) -> Result<S3Store> {
        let client = Client::new(config)?;
        let support = match client.config.probe {
            true => probe::probe(&client).await.map_err(|error| error.in_store(&client.url))?,
            false => S3Support::default(),
        };
        tracing::info!(store = client.url, "the store supports {support}");
        Ok(S3Store { client: Arc::new(client), support })
    }

    /// Reaches the bucket without writing anything. What it supports is what is remembered below
    /// `remembered`, a key of the store; where nothing is, nothing optional is assumed.
    pub async fn connect(config: S3Config, remembered: Option<&str>) -> Result<S3Store> {
        let client = Client::new(config)?;
        let known = match remembered {
            Some(key) => remember::read(&client, key).await,
            None => probe::reach(&client).await.map(|()| None),
        };
        let support = known.map_err(|error| error.in_store(&client.url))?.unwrap_or_default();
        Ok(S3Store { client: Arc::new(client), support })
    }

    /// Reaches the bucket, and tries out what it supports unless that is remembered below the key.
    pub async fn open_remembering(config: S3Config, key: &str) -> Result<S3Store> {
        let client = Client::new(config.clone())?;
        let known = remember::read(&client, key).await.map_err(|e| e.in_store(&client.url))?;
        match known {
            Some(support) => Ok(S3Store { client: Arc::new(client), support }),
            None => S3Store::open_anew(config, key).await,
        }
    }

    /// Tries out what the bucket supports, whatever is remembered, and remembers it.
    pub async fn open_anew(config: S3Config, key: &str) -> Result<S3Store> {
        let store = S3Store::open(S3Config { probe: true, ..config }).await?;
        if store.support.write == Support::Yes {
            remember::write(&store.client, key, &store.support).await;
        }
        Ok(store)
    }

    /// What the store turned out to support.
    pub fn support(&self) -> &S3Support {
        &self.support
    }

    fn here<T>(&self, result: Result<T>) -> Result<T> {
        result.map_err(|error| error.in_store(&self.client.url))
    }

    /// What is known of an object. A store that keeps the SHA-256 that it is told, and does not
    /// compare it with the bytes, vouches for nothing.
    fn known(&self, meta: Meta) -> Meta {
        let compares = self.support.checksums_checked == Support::Yes;
        Meta { vouched: meta.vouched && compares, ..meta }
    }

    async fn check_condition(&self, key: &str, condition: &Condition) -> Result<()> {
        let can = match condition {
            Condition::Always => Support::Yes,
            Condition::IfAbsent => self.support.put_if_absent,
            Condition::IfMatch(_) => self.support.put_if_match,
        };
        match (can, condition) {
            (Support::Yes, _) => Ok(()),
            // The store may not mind the condition, so it is looked at beforehand too.
            (Support::Unknown, Condition::IfAbsent) => match get::head(&self.client, key).await {
                Err(error) if error.is_not_found() => Ok(()),
                Err(error) => Err(error),
                Ok(_) => Err(Error::new(ErrorKind::PreconditionFailed, key, "there is an object")),
            },
            _ => Err(Error::new(ErrorKind::Unsupported, key, "no conditional put")),
        }
    }

    async fn copy_within(&self, from: &str, to: &str) -> Result<Meta> {
        check_existing_key(from).and(check_key(to))?;
        let source = get::head(&self.client, from).await?;
        if source.size > self.client.config.copy_bytes_max {
            return multipart::copy(&self.client, from, to, &source).await;
        }
        let mut request = Request::new(Method::PUT, to)
            .header("x-amz-copy-source", self.client.copy_source(from))
            .header("x-amz-checksum-algorithm", "SHA256");
        if let Some(etag) = &source.etag {
            request = request.header("x-amz-copy-source-if-match", etag);
        }
        let request = self.client.keep_as(request, source.storage_class.as_ref());
        let document = self.client.document(&request).await?;
        // A copy that fails on the way is told in an answer that began as a success.
        let answer = document::read(to, &document, &["CopyObjectResult"])?;
        document::required(to, &answer, "ETag")?;
        let copied = get::head(&self.client, to).await?;
        let differs = source.digest.zip(copied.digest).is_some_and(|(one, other)| {
            one.whole().zip(other.whole()).is_some_and(|(one, other)| one != other)
        });
        if copied.size != source.size || differs {
            let why = format!("the copy has {} bytes of {}", copied.size, source.size);
            return Err(document::contradiction(to, why));
        }
        Ok(copied)
    }
}

#[async_trait]
impl Store for S3Store {
    fn url(&self) -> &str {
        &self.client.url
    }

    fn capabilities(&self) -> Capabilities {
        let is = |support: Support| support == Support::Yes;
        Capabilities {
            put_if_absent: is(self.support.put_if_absent),
            put_if_match: is(self.support.put_if_match),
            digests: is(self.support.checksums_kept) && is(self.support.checksums_checked),
            digests_of_large: is(self.support.part_checksums_kept)
                && is(self.support.checksums_checked),
            storage_classes: is(self.support.thaw),
            ..Capabilities::default()
        }
    }

    fn at_once(&self) -> usize {
        self.client.config.requests_max
    }

    async fn put(&self, key: &str, body: Body, options: &PutOptions) -> Result<Meta> {
        self.here(check_key(key))?;
        self.here(self.check_condition(key, &options.condition).await)?;
        let put = put::put(&self.client, key, body, options).await;
        self.here(put.map(|meta| self.known(meta)))
    }

    async fn put_batch(&self, files: Vec<SmallFile>) -> Result<()> {
        self.here(files.iter().try_for_each(|file| check_key(&file.key)))?;
        let puts = stream::iter(files.into_iter().map(Ok)).try_for_each_concurrent(
            self.at_once(),
            |file| async move {
                let storage_class = file.storage_class;
                let options = PutOptions { storage_class, ..PutOptions::default() };
                let body = Body::from_bytes(file.content);
                put::put(&self.client, &file.key, body, &options).await.map(drop)
            },
        );
        self.here(puts.await)
    }

    async fn get(&self, key: &str, range: Option<Range<u64>>) -> Result<Object> {
        self.here(check_existing_key(key))?;
        let object = get::get(&self.client, key, range).await;
        self.here(object.map(|object| Object { meta: self.known(object.meta), ..object }))
    }

    async fn get_batch(&self, keys: Vec<String>, bytes_max: usize) -> Result<Vec<Option<Bytes>>> {
        // As many as fit into the memory of one get, should each be as long as it may be.
        let fitting = self.client.config.buffer_bytes / (bytes_max as u64).max(1);
        let at_once = self.at_once().min(usize::try_from(fitting).unwrap_or(usize::MAX)).max(1);
        let gets = stream::iter(keys.into_iter().map(|key| async move {
            match self.get(&key, None).await {
                Ok(object) => object.bytes(bytes_max).await.map(Some),
                Err(error) if error.is_not_found() => Ok(None),
                Err(error) => Err(error),
            }
        }));
        gets.buffered(at_once).try_collect().await
    }

    async fn head(&self, key: &str) -> Result<Meta> {
        self.here(check_existing_key(key))?;
        self.here(get::head(&self.client, key).await.map(|meta| self.known(meta)))
    }

    async fn list(&self, prefix: &str, options: &ListOptions) -> Result<Page> {
        self.here(check_prefix(prefix))?;
        self.here(list::list(&self.client, prefix, options).await)
    }

    async fn list_after(&self, prefix: &str, after: &str) -> Result<Page> {
        self.here(check_prefix(prefix))?;
        self.here(list::list_after(&self.client, prefix, after).await)
    }

    async fn copy(&self, from: &str, to: &str) -> Result<Meta> {
        self.here(self.copy_within(from, to).await.map(|meta| self.known(meta)))
    }

    async fn delete(&self, key: &str) -> Result<()> {
        self.here(check_existing_key(key))?;
        self.here(remove::delete(&self.client, key).await)
    }

    async fn delete_all(&self, prefix: &str) -> Result<u64> {
        self.here(check_prefix(prefix))?;
        self.here(remove::delete_all(&self.client, prefix).await)
    }

    async fn thaw(&self, key: &str, thaw: &Thaw) -> Result<Availability> {
        self.here(check_existing_key(key))?;
        self.here(cold::thaw(&self.client, key, thaw).await)
    }

    async fn unfinished(&self, prefix: &str) -> Result<Vec<Unfinished>> {
        self.here(check_prefix(prefix))?;
        let found = self.here(multipart::list_uploads(&self.client, prefix).await)?;
        let below = |one: &Unfinished| one.key.as_deref().is_some_and(|key| is_below(key, prefix));
        Ok(found.into_iter().filter(below).collect())
    }

    async fn versions(&self, prefix: &str) -> Result<Option<u64>> {
        self.here(check_key(prefix))?;
        self.here(versions::count(&self.client, prefix).await)
    }

    async fn remove_versions(&self, prefix: &str) -> Result<u64> {
        self.here(check_key(prefix))?;
        self.here(versions::remove(&self.client, prefix).await)
    }

    async fn abort(&self, unfinished: &Unfinished) -> Result<()> {
        let Some(key) = &unfinished.key else {
            let detail = "an unfinished upload needs its key";
            return self.here(Err(Error::new(ErrorKind::InvalidKey, "", detail)));
        };
        self.here(multipart::abort(&self.client, key, &unfinished.id).await)
    }
}

#[cfg(test)]
mod fuzz;
