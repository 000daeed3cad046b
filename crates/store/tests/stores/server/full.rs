//! `s3s-fs`, and around it what S3 promises and it does not: digests of parts, lists of uploads,
//! conditions that hold between two requests, and directories that are not objects.

use async_trait::async_trait;
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use futures_util::TryStreamExt;
use s3s::dto::*;
use s3s::{S3, S3Error, S3ErrorCode, S3Request, S3Response, S3Result, s3_error};
use s3s_fs::FileSystem;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::SystemTime;
use store::Sha256Digest;

pub struct Full {
    fs: FileSystem,
    root: PathBuf,
    uploads: Mutex<BTreeMap<String, Upload>>,
    /// The SHA-256 of objects that were not put in one piece, by bucket and key.
    digests: Mutex<BTreeMap<(String, String), String>>,
    /// The class of objects that were put with one.
    classes: Mutex<BTreeMap<(String, String), String>>,
    manners: Manners,
    /// Held while an object changes, so that a condition still holds when it is written.
    writing: tokio::sync::Mutex<()>,
}

struct Upload {
    key: String,
    class: Option<String>,
    begun: SystemTime,
    parts: BTreeMap<i32, Part>,
}

/// How a server differs from Amazon's.
#[derive(Debug, Clone, Default)]
pub struct Manners {
    /// It checks checksums, and keeps none: Ceph, SeaweedFS.
    pub no_checksums: bool,
    /// It keeps none of objects in parts.
    pub no_part_checksums: bool,
    /// It keeps the checksums that it is told, and compares them with nothing.
    pub no_checks: bool,
    /// It does not compare those of parts.
    pub no_part_checks: bool,
    /// It takes conditions and does not mind them.
    pub no_conditions: bool,
    /// Requests must be signed for this region; a refusal says so in its body: Garage.
    pub region: Option<&'static str>,
}

fn is_frozen(class: &str) -> bool {
    matches!(class, "GLACIER" | "DEEP_ARCHIVE")
}

type Answer<T> = S3Result<S3Response<T>>;

impl Full {
    pub fn new(root: &Path, manners: Manners) -> Full {
        Full {
            classes: Mutex::default(),
            manners,
            fs: FileSystem::new(root).unwrap(),
            root: root.to_owned(),
            uploads: Mutex::default(),
            digests: Mutex::default(),
            writing: tokio::sync::Mutex::default(),
        }
    }

    fn check_file(&self, bucket: &str, key: &str) -> S3Result<()> {
        match self.root.join(bucket).join(key).is_file() {
            true => Ok(()),
            false => Err(s3_error!(NoSuchKey)),
        }
    }

    fn set_digest(&self, bucket: &str, key: &str, digest: Option<String>) {
        let mut digests = self.digests.lock().unwrap();
        let name = (bucket.to_owned(), key.to_owned());
        match digest {
            Some(digest) => digests.insert(name, digest),
            None => digests.remove(&name),
        };
    }

    fn set_class(&self, bucket: &str, key: &str, class: Option<String>) {
        let name = (bucket.to_owned(), key.to_owned());
        match class {
            Some(class) => self.classes.lock().unwrap().insert(name, class),
            None => self.classes.lock().unwrap().remove(&name),
        };
    }

    fn class(&self, bucket: &str, key: &str) -> Option<String> {
        self.classes.lock().unwrap().get(&(bucket.to_owned(), key.to_owned())).cloned()
    }

    /// What the server lets out of the checksum of an object.
    fn shown(&self, checksum: Option<String>) -> Option<String> {
        let is_of_parts = checksum.as_ref().is_some_and(|checksum| checksum.contains('-'));
        let hidden = self.manners.no_checksums || (self.manners.no_part_checksums && is_of_parts);
        checksum.filter(|_| !hidden)
    }

    fn digest(&self, bucket: &str, key: &str) -> Option<String> {
        let name = (bucket.to_owned(), key.to_owned());
        self.digests.lock().unwrap().get(&name).cloned()
    }
}

fn mismatch(code: &str) -> S3Error {
    let mut error = S3Error::new(S3ErrorCode::Custom(code.to_owned().into()));
    error.set_status_code(http::StatusCode::BAD_REQUEST);
    error
}

/// Reads a body and checks it against what its headers say, as S3 does before it keeps anything.
async fn read<T>(
    body: Option<StreamingBlob>,
    request: &S3Request<T>,
    checksum: Option<&String>,
) -> S3Result<(Bytes, Sha256Digest)> {
    let mut content = Vec::new();
    if let Some(mut body) = body {
        let broken = |error: Box<dyn std::error::Error + Send + Sync>| match error.to_string() {
            text if text.contains("Sha256Mismatch") => mismatch("XAmzContentSHA256Mismatch"),
            _ => s3_error!(IncompleteBody),
        };
        while let Some(chunk) = body.try_next().await.map_err(broken)? {
            content.extend_from_slice(&chunk);
        }
    }
    let digest = Sha256Digest::of(&content);
    let signed = request.headers.get("x-amz-content-sha256").map(|value| value.as_bytes());
    if signed != Some(digest.to_string().as_bytes()) {
        return Err(mismatch("XAmzContentSHA256Mismatch"));
    }
    if checksum.is_some_and(|checksum| *checksum != BASE64.encode(digest.0)) {
        return Err(s3_error!(BadDigest));
    }
    Ok((content.into(), digest))
}

/// Parts come in order, without a gap in their list, and all but the last are large enough.
fn check_parts(upload: &Upload, completed: &[CompletedPart]) -> S3Result<()> {
    const PART_BYTES_MIN: i64 = 5 * 1024 * 1024;
    if completed.is_empty() {
        return Err(s3_error!(MalformedXML));
    }
    if completed.windows(2).any(|pair| pair[0].part_number >= pair[1].part_number) {
        return Err(s3_error!(InvalidPartOrder));
    }
    let size = |part: &CompletedPart| {
        part.part_number.and_then(|number| upload.parts.get(&number)).and_then(|part| part.size)
    };
    let but_last = &completed[..completed.len() - 1];
    match but_last.iter().any(|part| size(part).is_some_and(|size| size < PART_BYTES_MIN)) {
        true => Err(s3_error!(EntityTooSmall)),
        false => Ok(()),
    }
}

/// A key as S3 writes it where `encoding-type=url` is asked for.
fn encode(key: &str) -> String {
    let mut written = String::new();
    for byte in key.bytes() {
        match byte {
            b' ' => written.push('+'),
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'_' | b'.' | b'*' => {
                written.push(char::from(byte));
            }
            other => written.push_str(&format!("%{other:02X}")),
        }
    }
    written
}

/// A key as servers write it that keep to what XML can say.
fn without_controls(key: &str) -> String {
    key.chars().map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c }).collect()
}

fn blob(content: Bytes) -> Option<StreamingBlob> {
    Some(StreamingBlob::from(s3s::Body::from(content)))
}

#[async_trait]
impl S3 for Full {
    async fn head_bucket(&self, r: S3Request<HeadBucketInput>) -> Answer<HeadBucketOutput> {
        self.fs.head_bucket(r).await
    }

    async fn list_objects_v2(
        &self,
        r: S3Request<ListObjectsV2Input>,
    ) -> Answer<ListObjectsV2Output> {
        let encoded = r.input.encoding_type.as_ref().is_some_and(|kind| kind.as_str() == "url");
        let mut answer = self.fs.list_objects_v2(r).await?;
        let write = if encoded { encode } else { without_controls };
        answer.output.encoding_type = encoded.then(|| EncodingType::from_static(EncodingType::URL));
        for object in answer.output.contents.iter_mut().flatten() {
            object.key = object.key.as_deref().map(write);
        }
        for common in answer.output.common_prefixes.iter_mut().flatten() {
            common.prefix = common.prefix.as_deref().map(write);
        }
        Ok(answer)
    }

    async fn put_object(&self, mut r: S3Request<PutObjectInput>) -> Answer<PutObjectOutput> {
        let checksum = r.input.checksum_sha256.clone().filter(|_| !self.manners.no_checks);
        let body = r.input.body.take();
        let (content, digest) = read(body, &r, checksum.as_ref()).await?;
        r.input.body = blob(content);
        if self.manners.no_checks {
            r.input.checksum_sha256 = Some(BASE64.encode(digest.0));
        }
        let _writing = self.writing.lock().await;
        self.set_digest(&r.input.bucket, &r.input.key, None);
        let class = r.input.storage_class.take().map(|class| class.as_str().to_owned());
        if self.manners.no_conditions {
            (r.input.if_none_match, r.input.if_match) = (None, None);
        }
        let (bucket, key) = (r.input.bucket.clone(), r.input.key.clone());
        let mut answer = self.fs.put_object(r).await?;
        self.set_class(&bucket, &key, class);
        answer.output.checksum_sha256 = self.shown(answer.output.checksum_sha256.take());
        Ok(answer)
    }

    async fn get_object(&self, r: S3Request<GetObjectInput>) -> Answer<GetObjectOutput> {
        self.check_file(&r.input.bucket, &r.input.key)?;
        if self.class(&r.input.bucket, &r.input.key).is_some_and(|class| is_frozen(&class)) {
            return Err(s3_error!(InvalidObjectState));
        }
        let digest = self.digest(&r.input.bucket, &r.input.key);
        let (condition, whole) = (r.input.if_match.clone(), r.input.range.is_none());
        let mut answer = self.fs.get_object(r).await?;
        if let (Some(condition), Some(etag)) = (condition, &answer.output.e_tag)
            && condition.as_etag().is_some_and(|expected| !expected.strong_cmp(etag))
        {
            return Err(s3_error!(PreconditionFailed));
        }
        if digest.is_some() {
            answer.output.checksum_sha256 = digest.filter(|_| whole);
        }
        answer.output.checksum_sha256 = self.shown(answer.output.checksum_sha256.take());
        Ok(answer)
    }

    async fn head_object(&self, r: S3Request<HeadObjectInput>) -> Answer<HeadObjectOutput> {
        self.check_file(&r.input.bucket, &r.input.key)?;
        let digest = self.digest(&r.input.bucket, &r.input.key);
        let class = self.class(&r.input.bucket, &r.input.key);
        let mut answer = self.fs.head_object(r).await?;
        if digest.is_some() {
            answer.output.checksum_sha256 = digest;
        }
        answer.output.checksum_sha256 = self.shown(answer.output.checksum_sha256.take());
        answer.output.storage_class = class.map(StorageClass::from);
        Ok(answer)
    }

    async fn copy_object(&self, r: S3Request<CopyObjectInput>) -> Answer<CopyObjectOutput> {
        let CopySource::Bucket { bucket, key, .. } = &r.input.copy_source else {
            return Err(s3_error!(NotImplemented));
        };
        self.check_file(bucket, key)?;
        let content = std::fs::read(self.root.join(&**bucket).join(&**key)).unwrap();
        let _writing = self.writing.lock().await;
        let digest = BASE64.encode(Sha256Digest::of(&content).0);
        self.set_digest(&r.input.bucket, &r.input.key, Some(digest));
        self.fs.copy_object(r).await
    }

    async fn delete_object(&self, r: S3Request<DeleteObjectInput>) -> Answer<DeleteObjectOutput> {
        if self.check_file(&r.input.bucket, &r.input.key).is_err() {
            return Ok(S3Response::new(DeleteObjectOutput::default()));
        }
        self.fs.delete_object(r).await
    }

    async fn delete_objects(
        &self,
        r: S3Request<DeleteObjectsInput>,
    ) -> Answer<DeleteObjectsOutput> {
        self.fs.delete_objects(r).await
    }

    async fn create_multipart_upload(
        &self,
        r: S3Request<CreateMultipartUploadInput>,
    ) -> Answer<CreateMultipartUploadOutput> {
        let key = r.input.key.clone();
        let class = r.input.storage_class.as_ref().map(|class| class.as_str().to_owned());
        let answer = self.fs.create_multipart_upload(r).await?;
        let id = answer.output.upload_id.clone().unwrap();
        let upload = Upload { key, class, begun: SystemTime::now(), parts: BTreeMap::new() };
        self.uploads.lock().unwrap().insert(id, upload);
        Ok(answer)
    }

    async fn upload_part(&self, mut r: S3Request<UploadPartInput>) -> Answer<UploadPartOutput> {
        let (id, number) = (r.input.upload_id.clone(), r.input.part_number);
        if !self.uploads.lock().unwrap().contains_key(&id) {
            return Err(s3_error!(NoSuchUpload));
        }
        let checks = !self.manners.no_checks && !self.manners.no_part_checks;
        let checksum = r.input.checksum_sha256.take().filter(|_| checks);
        let body = r.input.body.take();
        let (content, digest) = read(body, &r, checksum.as_ref()).await?;
        let size = content.len() as i64;
        r.input.body = blob(content);
        let mut answer = self.fs.upload_part(r).await?;
        let checksum = BASE64.encode(digest.0);
        let part = Part {
            checksum_sha256: Some(checksum.clone()),
            e_tag: answer.output.e_tag.clone(),
            part_number: Some(number),
            size: Some(size),
            ..Part::default()
        };
        if let Some(upload) = self.uploads.lock().unwrap().get_mut(&id) {
            upload.parts.insert(number, part);
        }
        answer.output.checksum_sha256 = self.shown(Some(checksum));
        Ok(answer)
    }

    async fn upload_part_copy(
        &self,
        r: S3Request<UploadPartCopyInput>,
    ) -> Answer<UploadPartCopyOutput> {
        let (id, number) = (r.input.upload_id.clone(), r.input.part_number);
        let mut answer = self.fs.upload_part_copy(r).await?;
        let name = format!(".upload_id-{id}.part-{number}");
        let content = std::fs::read(self.root.join(name)).unwrap();
        let checksum = BASE64.encode(Sha256Digest::of(&content).0);
        if let Some(result) = &mut answer.output.copy_part_result {
            result.checksum_sha256 = Some(checksum.clone());
            let part = Part {
                checksum_sha256: Some(checksum),
                e_tag: result.e_tag.clone(),
                part_number: Some(number),
                size: Some(content.len() as i64),
                ..Part::default()
            };
            self.uploads.lock().unwrap().get_mut(&id).unwrap().parts.insert(number, part);
        }
        Ok(answer)
    }

    /// Two parts a page, so that readers have to turn pages.
    async fn list_parts(&self, r: S3Request<ListPartsInput>) -> Answer<ListPartsOutput> {
        let uploads = self.uploads.lock().unwrap();
        let upload = uploads.get(&r.input.upload_id).ok_or_else(|| s3_error!(NoSuchUpload))?;
        let after: i32 =
            r.input.part_number_marker.map_or(0, |marker| marker.to_string().parse().unwrap());
        let mut parts: Vec<Part> =
            upload.parts.range(after + 1..).map(|(_, p)| p.clone()).collect();
        let more = parts.len() > 2;
        parts.truncate(2);
        for part in &mut parts {
            part.checksum_sha256 = self.shown(part.checksum_sha256.take());
        }
        Ok(S3Response::new(ListPartsOutput {
            is_truncated: Some(more),
            next_part_number_marker: parts.last().and_then(|part| part.part_number),
            parts: Some(parts),
            ..ListPartsOutput::default()
        }))
    }

    async fn list_multipart_uploads(
        &self,
        r: S3Request<ListMultipartUploadsInput>,
    ) -> Answer<ListMultipartUploadsOutput> {
        let prefix = r.input.prefix.clone().unwrap_or_default();
        let uploads = self.uploads.lock().unwrap();
        let found = uploads.iter().filter(|(_, upload)| upload.key.starts_with(&prefix));
        let found = found.map(|(id, upload)| MultipartUpload {
            key: Some(upload.key.clone()),
            upload_id: Some(id.clone()),
            initiated: Some(upload.begun.into()),
            ..MultipartUpload::default()
        });
        Ok(S3Response::new(ListMultipartUploadsOutput {
            is_truncated: Some(false),
            uploads: Some(found.collect()),
            ..ListMultipartUploadsOutput::default()
        }))
    }

    async fn complete_multipart_upload(
        &self,
        r: S3Request<CompleteMultipartUploadInput>,
    ) -> Answer<CompleteMultipartUploadOutput> {
        let (bucket, key) = (r.input.bucket.clone(), r.input.key.clone());
        let id = r.input.upload_id.clone();
        let completed = r.input.multipart_upload.clone().and_then(|upload| upload.parts);
        let mut all = store::Sha256Hasher::new();
        let completed = completed.ok_or_else(|| s3_error!(MalformedXML))?;
        {
            let uploads = self.uploads.lock().unwrap();
            let upload = uploads.get(&id).ok_or_else(|| s3_error!(NoSuchUpload))?;
            check_parts(upload, &completed)?;
            for part in &completed {
                let there = part.part_number.and_then(|number| upload.parts.get(&number));
                let there = there.ok_or_else(|| s3_error!(InvalidPart))?;
                let digest = there.checksum_sha256.as_ref().unwrap();
                if part.e_tag != there.e_tag || part.checksum_sha256.as_ref() != Some(digest) {
                    return Err(s3_error!(InvalidPart));
                }
                all.update(&BASE64.decode(digest).unwrap());
            }
        }
        let digest = format!("{}-{}", BASE64.encode(all.finish().0), completed.len());
        let _writing = self.writing.lock().await;
        let mut answer = self.fs.complete_multipart_upload(r).await?;
        let upload = self.uploads.lock().unwrap().remove(&id);
        self.set_class(&bucket, &key, upload.and_then(|upload| upload.class));
        self.set_digest(&bucket, &key, Some(digest.clone()));
        let digest = self.shown(Some(digest));
        if let Some(future) = answer.output.future.take() {
            answer.output.future = Some(Box::pin(async move {
                let mut output = future.await?;
                output.checksum_sha256 = digest;
                Ok(output)
            }));
        }
        Ok(answer)
    }

    async fn abort_multipart_upload(
        &self,
        r: S3Request<AbortMultipartUploadInput>,
    ) -> Answer<AbortMultipartUploadOutput> {
        if self.uploads.lock().unwrap().remove(&r.input.upload_id).is_none() {
            return Err(s3_error!(NoSuchUpload));
        }
        self.fs.abort_multipart_upload(r).await
    }
}
