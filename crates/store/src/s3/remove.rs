//! Deleting objects: one, or a thousand at a time.

use super::answer::{self, base64};
use super::client::{Client, Request};
use super::document::{self, contradiction};
use super::put::content_md5;
use super::{list, xml};
use crate::checksum::Sha256Digest;
use crate::error::{Error, ErrorKind, Result};
use futures_util::{TryStreamExt, stream};
use http::Method;
use std::collections::HashSet;

pub(super) async fn delete(client: &Client, key: &str) -> Result<()> {
    match client.send(&Request::new(Method::DELETE, key)).await {
        Ok(_) => Ok(()),
        // Some stores do not agree that deleting what is not there is no error.
        Err(failure) if failure.error.is_not_found() && failure.code != "NoSuchBucket" => Ok(()),
        Err(failure) => Err(failure.into()),
    }
}

/// Deletes everything below a prefix. Each page is listed anew from the start, since the one
/// before is gone by then.
pub(super) async fn delete_all(client: &Client, prefix: &str) -> Result<u64> {
    let mut deleted = 0;
    let mut first_before: Option<String> = None;
    let mut token: Option<String> = None;
    loop {
        let from = token.as_deref().map_or(list::From::Start, list::From::Token);
        let (listed, next) = list::page(client, prefix, true, from, list::PAGE_MAX).await?;
        let keys: Vec<String> = listed.into_iter().map(|object| object.key).collect();
        if keys.is_empty() {
            // A page may be empty and the list go on all the same.
            token = next;
            match token {
                Some(_) => continue,
                None => return Ok(deleted),
            }
        }
        if first_before.as_ref() == keys.first() {
            return Err(contradiction(&keys[0], "it was deleted, and is listed again"));
        }
        delete_page(client, prefix, &keys).await?;
        first_before = keys.first().cloned();
        deleted += keys.iter().filter(|key| !key.ends_with('/')).count() as u64;
        if next.is_none() {
            return Ok(deleted);
        }
        token = None;
    }
}

async fn delete_page(client: &Client, prefix: &str, keys: &[String]) -> Result<()> {
    // XML has no way to write most control characters.
    let (odd, keys): (Vec<String>, Vec<String>) =
        keys.iter().cloned().partition(|key| key.chars().any(char::is_control));
    delete_each(client, &odd).await?;
    if keys.is_empty() {
        return Ok(());
    }
    let mut document = String::from("<Delete>");
    for key in &keys {
        document.push_str("<Object>");
        document.push_str(&xml::element("Key", &client.full_key(key)));
        document.push_str("</Object>");
    }
    document.push_str("<Quiet>false</Quiet></Delete>");
    let digest = Sha256Digest::of(document.as_bytes());
    let request = Request::new(Method::POST, "")
        .query("delete", "")
        .header("content-md5", content_md5(&document))
        .header("x-amz-checksum-sha256", base64(digest))
        .header("x-amz-sdk-checksum-algorithm", "SHA256")
        .body(document.into(), digest);
    let answer = match client.document(&request).await {
        Ok(answer) => answer,
        // Older stores want an MD5 here, or do not know this request: one by one, then.
        Err(failure) if matches!(failure.status.map(|s| s.as_u16()), Some(400 | 405 | 501)) => {
            return delete_each(client, &keys).await;
        }
        Err(failure) => return Err(failure.into()),
    };
    let answer = document::read(prefix, &answer, &["DeleteResult"])?;
    let mut left: HashSet<String> = keys.iter().map(|key| client.full_key(key)).collect();
    for gone in answer.children("Deleted") {
        left.remove(gone.text_of("Key").unwrap_or_default());
    }
    for failed in answer.children("Error") {
        let key = failed.text_of("Key").unwrap_or_default();
        let code = failed.text_of("Code").unwrap_or_default();
        if code == "NoSuchKey" {
            left.remove(key);
            continue;
        }
        let message = failed.text_of("Message").unwrap_or_default();
        let kind = answer::kind_of_code(code).unwrap_or(ErrorKind::Permanent);
        return Err(Error::new(kind, key, format!("not deleted: {code} {message}")));
    }
    // What the answer says nothing about may still be there.
    let left: Vec<String> =
        keys.iter().filter(|key| left.contains(&client.full_key(key))).cloned().collect();
    delete_each(client, &left).await
}

/// Deletes one by one, several at a time.
async fn delete_each(client: &Client, keys: &[String]) -> Result<()> {
    let keys = stream::iter(keys.iter().cloned().map(Ok));
    let delete = |key: String| async move { delete(client, &key).await };
    keys.try_for_each_concurrent(client.config.requests_max, delete).await
}
