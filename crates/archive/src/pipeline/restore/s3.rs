//! Packages in buckets: sent in parts, of which those that are there stay when a run is cut short.

use super::making::written;
use super::{Run, Telling};
use crate::ErrorCode;
use crate::delivery::feed::{self, Written};
use crate::delivery::plan::Plan;
use crate::delivery::sink::{ChannelSink, GzipSink, Sent};
use crate::delivery::tar::TarWriter;
use crate::delivery::writer::PackageWriter;
use crate::delivery::zip::ZipWriter;
use crate::model::error::{Error, Result};
use crate::model::restore::{Arrangement, Container, Destination};
use crate::stores::copies::Copies;
use digest::{Sha256, to_hex};
use futures_util::{StreamExt, stream};
use queue::runtime::Stop;
use std::sync::PoisonError;
use store::{Body, Condition, ErrorKind, PutOptions, S3Config, S3Store, Store};

/// The key under which a job remembers that it has begun to send.
const SENDING: &str = "sending";

async fn open(run: &Run<'_>) -> Result<(S3Store, String)> {
    let Destination::S3 { url, key } = &run.order.to else {
        return Err(Error::permanent(ErrorCode::BadPayload, "the destination is not a bucket"));
    };
    let config = S3Config::from_url(url).map_err(|error| failed(run, error))?;
    let store = S3Store::connect(config, None).await.map_err(|error| failed(run, error))?;
    Ok((store, key.clone()))
}

fn failed(run: &Run<'_>, error: store::Error) -> Error {
    let message = format!("{}: {error}", run.order.to);
    let target = run.order.to.target();
    match error.kind() {
        ErrorKind::PreconditionFailed => Error::permanent(
            ErrorCode::DestinationExists,
            format!(
                "{} is there already, and nothing is ever overwritten; name another place with --to, or remove it and requeue the job",
                run.order.to
            ),
        ),
        ErrorKind::Unavailable | ErrorKind::Throttled => {
            Error::down(ErrorCode::DestinationDown, message, target)
        }
        ErrorKind::NoSpace => Error::transient(ErrorCode::DestinationFull, message).at(target),
        ErrorKind::Denied
        | ErrorKind::NotFound
        | ErrorKind::InvalidKey
        | ErrorKind::Unsupported => Error::permanent(ErrorCode::DestinationDenied, message),
        _ => Error::transient(ErrorCode::DestinationUnwritable, message).at(target),
    }
}

/// Sends a package. What was sent is known by its digest, which the delivery compares.
pub async fn write(run: &mut Run<'_>, copies: &Copies, plan: &Plan) -> Result<Written> {
    let (store, key) = open(run).await?;
    let has_begun = run.context.checkpoints().await?.contains_key(SENDING);
    let is_there = match store.head(&key).await {
        Ok(_) => true,
        Err(error) if error.is_not_found() => false,
        Err(error) => return Err(failed(run, error)),
    };
    if is_there && !has_begun {
        let error = store::Error::new(ErrorKind::PreconditionFailed, &key, "there is an object");
        return Err(failed(run, error));
    }
    run.context.checkpoint(SENDING, key.clone()).await?;
    let (sink, mut parts, sent) = ChannelSink::new();
    let writer: Box<dyn PackageWriter> = match run.order.container {
        Container::Tar => Box::new(TarWriter::new(sink)),
        Container::TarGz => Box::new(TarWriter::new(GzipSink::new(sink))),
        Container::Zip => Box::new(ZipWriter::new(sink).map_err(Error::Output)?),
        Container::File => Box::new(super::making::OneFile { sink }),
        Container::Directory => {
            return Err(Error::permanent(
                ErrorCode::NoDirectoryInBucket,
                "a bucket has no directories that appear as a whole; restore as tar, tar.gz or zip",
            ));
        }
    };
    let needs_all = run.order.arrangement != Arrangement::Files;
    let telling = Telling { run, root: None };
    let feeding = feed::write(copies, plan.members(), writer, needs_all, &telling);
    let (put, done) = if is_there {
        // A run before this one has sent it and could not say so. What it must be is worked out again.
        let draining = async {
            while let Some(Some(_)) = parts.recv().await {}
            Ok(())
        };
        tokio::join!(draining, feeding)
    } else {
        // A stream that breaks off is none that ends: the upload stays unfinished.
        let body = stream::unfold(Some(parts), |parts| async move {
            let mut parts = parts?;
            match parts.recv().await {
                Some(Some(bytes)) => Some((Ok(bytes), Some(parts))),
                Some(None) => None,
                None => Some((Err(std::io::Error::other("the package was not finished")), None)),
            }
        });
        let options =
            PutOptions { condition: Condition::IfAbsent, resume: true, ..PutOptions::default() };
        let put = async {
            let put = store.put(&key, Body::from_stream(body.fuse().boxed(), None), &options).await;
            put.map(drop)
        };
        tokio::join!(put, feeding)
    };
    let done = match (put, done) {
        (Err(error), _) if error.kind() != ErrorKind::Body => return Err(failed(run, error)),
        (put, done) => {
            let done = written(done, |error| {
                Error::transient(
                    ErrorCode::DestinationUnwritable,
                    format!("{}: {error}", run.order.to),
                )
                .at(run.order.to.target())
            })?;
            if let (Err(error), Written::Complete(_)) = (put, &done) {
                return Err(failed(run, error));
            }
            done
        }
    };
    let sent = sent.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let (Written::Complete(_), Some(Sent { bytes, sha256 })) = (&done, sent) {
        let package = &mut run.restore.package;
        (package.bytes, package.sha256) = (Some(bytes), Some(sha256));
    }
    Ok(done)
}

/// K1: reads the package again, and compares it with what was sent.
pub async fn verify(run: &mut Run<'_>) -> Result<()> {
    let (store, key) = open(run).await?;
    let (bytes, sha256) = (run.restore.package.bytes, run.restore.package.sha256.clone());
    run.meter.begin("reading again", bytes);
    let mut body = store.get(&key, None).await.map_err(|error| failed(run, error))?.body;
    let (mut hasher, mut length) = (Sha256::new(), 0);
    while let Some(chunk) = body.next().await {
        if run.context.stop() != Stop::No {
            return Err(Error::Stopped);
        }
        let chunk = chunk.map_err(|error| failed(run, error))?;
        hasher.update(&chunk);
        length += chunk.len() as u64;
        run.meter.add(chunk.len() as u64);
    }
    if Some(length) == bytes && Some(to_hex(&hasher.finish())) == sha256 {
        return Ok(());
    }
    Err(Error::permanent(
        ErrorCode::DeliveryDiffers,
        format!(
            "{}: what is read again is not what was sent; check the bucket, remove the object and requeue the job to `packaging`",
            run.order.to
        ),
    ))
}
