//! A store in a bucket of S3, or of anything that speaks its protocol.

mod answer;
mod client;
mod clock;
mod cold;
mod config;
mod credentials;
mod document;
mod get;
mod http;
mod list;
mod multipart;
mod parts;
mod pause;
mod probe;
mod put;
mod remove;
mod sign;
mod xml;

pub use config::S3Config;
pub use credentials::{CredentialSource, Credentials};
pub use probe::{S3Support, Support};

use crate::body::{Body, Object};
use crate::error::{Error, ErrorKind, Result};
use crate::key::{check_key, check_prefix, is_below};
use crate::meta::{Availability, Capabilities, ListOptions, Meta, Page, Thaw, Unfinished};
use crate::store::{Condition, PutOptions, SmallFile, Store};
use ::http::Method;
use async_trait::async_trait;
use client::{Client, Request};
use futures_util::{TryStreamExt, stream};
use std::ops::Range;
use std::sync::Arc;

/// Puts of a batch that are under way at once.
const BATCH_AT_ONCE: usize = 32;

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

    /// What the store turned out to support when it was opened.
    pub fn support(&self) -> &S3Support {
        &self.support
    }

    fn here<T>(&self, result: Result<T>) -> Result<T> {
        result.map_err(|error| error.in_store(&self.client.url))
    }

    fn check_condition(&self, key: &str, condition: &Condition) -> Result<()> {
        let can = match condition {
            Condition::Always => true,
            Condition::IfAbsent => self.capabilities().put_if_absent,
            Condition::IfMatch(_) => self.capabilities().put_if_match,
        };
        match can {
            true => Ok(()),
            false => Err(Error::new(ErrorKind::Unsupported, key, "no conditional put")),
        }
    }

    async fn copy_within(&self, from: &str, to: &str) -> Result<Meta> {
        check_key(from).and(check_key(to))?;
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
        if let Some(class) = &source.storage_class {
            request = request.header("x-amz-storage-class", class);
        }
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
            digests: is(self.support.checksums_kept),
            storage_classes: is(self.support.thaw),
            ..Capabilities::default()
        }
    }

    async fn put(&self, key: &str, body: Body, options: &PutOptions) -> Result<Meta> {
        self.here(check_key(key).and(self.check_condition(key, &options.condition)))?;
        self.here(put::put(&self.client, key, body, options).await)
    }

    async fn put_batch(&self, files: Vec<SmallFile>) -> Result<()> {
        self.here(files.iter().try_for_each(|file| check_key(&file.key)))?;
        let options = PutOptions::default();
        let puts = stream::iter(files.into_iter().map(Ok)).try_for_each_concurrent(
            BATCH_AT_ONCE,
            |file| {
                let (client, options) = (&self.client, &options);
                async move {
                    let body = Body::from_bytes(file.content);
                    put::put(client, &file.key, body, options).await.map(drop)
                }
            },
        );
        self.here(puts.await)
    }

    async fn get(&self, key: &str, range: Option<Range<u64>>) -> Result<Object> {
        self.here(check_key(key))?;
        self.here(get::get(&self.client, key, range).await)
    }

    async fn head(&self, key: &str) -> Result<Meta> {
        self.here(check_key(key))?;
        self.here(get::head(&self.client, key).await)
    }

    async fn list(&self, prefix: &str, options: &ListOptions) -> Result<Page> {
        self.here(check_prefix(prefix))?;
        self.here(list::list(&self.client, prefix, options).await)
    }

    async fn copy(&self, from: &str, to: &str) -> Result<Meta> {
        self.here(self.copy_within(from, to).await)
    }

    async fn delete(&self, key: &str) -> Result<()> {
        self.here(check_key(key))?;
        self.here(remove::delete(&self.client, key).await)
    }

    async fn delete_all(&self, prefix: &str) -> Result<u64> {
        self.here(check_prefix(prefix))?;
        self.here(remove::delete_all(&self.client, prefix).await)
    }

    async fn thaw(&self, key: &str, thaw: &Thaw) -> Result<Availability> {
        self.here(check_key(key))?;
        self.here(cold::thaw(&self.client, key, thaw).await)
    }

    async fn unfinished(&self, prefix: &str) -> Result<Vec<Unfinished>> {
        self.here(check_prefix(prefix))?;
        let found = self.here(multipart::list_uploads(&self.client, prefix).await)?;
        let below = |one: &Unfinished| one.key.as_deref().is_some_and(|key| is_below(key, prefix));
        Ok(found.into_iter().filter(below).collect())
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
