//! Writes the files that every version carries of its own; see [`crate::registry::carried`].

use super::Run;
use super::resolving::update_of;
use crate::ErrorCode;
use crate::metadata;
use crate::model::codes::Change;
use crate::model::error::{Error, Result};
use crate::model::event::Event;
use crate::model::item::Update;
use crate::package::unpack::unwritable;
use crate::registry::carried::{DIRECTORY, Line, RECORD};
use crate::registry::ingest::{self, JobFile};
use crate::stores::{Place, store_error};
use bytes::Bytes;
use db::Micros;
use futures_util::StreamExt;
use ocfl::{Algorithm, Draft, SingleHasher};
use std::io::Write;
use std::path::PathBuf;
use store::{Body, PutOptions};

/// Files that are read together.
const PAGE: i64 = 1000;
/// A record up to this size is kept in memory on its way.
const MEMORY_BYTES: usize = 4 * 1024 * 1024;

/// The files, ready to be put.
pub struct Carried {
    record: Content,
    small: Vec<(String, Bytes)>,
}

enum Content {
    Memory(Bytes),
    File(PathBuf, u64, String),
}

/// Makes the files. The same job makes the same ones, however often it runs.
pub async fn write(run: &Run<'_>, at: Micros, events: &[Event]) -> Result<Carried> {
    let mut out = Spill::new(run.directory().join("record.jsonl"));
    let summary = &run.ingest.summary;
    out.line(&Line::Object {
        identifier: summary.identifier.clone(),
        collection: run.ingest.collection.clone(),
        local_ids: summary.local_ids.clone(),
        lock: run.job.lease.lock.clone(),
    })?;
    out.line(&Line::Version {
        number: run.ingest.version.unwrap_or(0),
        at,
        job: run.id(),
        batch: run.ingest.batch,
        submitter: super::storing::submitter(run),
        message: Some(format!("Deposit of {}", run.name())),
        place: Some(run.item.place()),
        fingerprint: run.item.fingerprint.clone(),
        metadata: run.ingest.metadata.clone(),
        replaces: update_of(run) == Update::Replace,
        files_new: summary.files_new,
        files_changed: summary.files_changed,
        files_absent: summary.files_absent,
    })?;
    for event in events {
        out.line(&Line::Event(event.clone()))?;
    }
    let (mut after, job) = (0, run.id());
    loop {
        let page = run.app.db.read(move |tx| ingest::files_after(tx, job, after, PAGE)).await?;
        for file in page.iter().filter(|f| f.change != Change::Unchanged) {
            out.line(&file_line(file))?;
        }
        match page.last() {
            Some(last) if page.len() as i64 == PAGE => after = last.number,
            _ => break,
        }
    }
    let mut after = String::new();
    loop {
        let from = after.clone();
        let page =
            run.app.db.read(move |tx| ingest::directories_after(tx, job, &from, PAGE)).await?;
        let Some(last) = page.last() else { break };
        after = last.path.clone();
        page.into_iter().try_for_each(|directory| out.line(&Line::Directory(directory)))?;
    }
    let described = run.ingest.metadata.clone().with_kernel_of_dc();
    let small = vec![
        (format!("{DIRECTORY}/erc.txt"), Bytes::from(metadata::write_erc(&described))),
        (
            format!("{DIRECTORY}/dc.xml"),
            Bytes::from(metadata::write_dc_xml(&described.with_dc_of_kernel())),
        ),
    ];
    Ok(Carried { record: out.finish()?, small })
}

fn file_line(file: &JobFile) -> Line {
    let json = |text: &Option<String>| text.as_deref().and_then(|t| serde_json::from_str(t).ok());
    Line::File {
        path: file.path.clone(),
        size: file.size.unwrap_or(0),
        sha512: file.sha512.clone().unwrap_or_default(),
        digests: json(&file.digests),
        puid: file.puid.clone(),
        format: json(&file.format),
        modified: file.modified,
    }
}

impl Carried {
    /// Puts the files into a version, and reads them back.
    pub async fn put(&self, place: &Place, draft: &Draft) -> Result<()> {
        let failed = |e| store_error(&place.name, e);
        let mut small = self.small.clone();
        let mut puts = Vec::new();
        match &self.record {
            Content::Memory(bytes) => small.push((RECORD.to_string(), bytes.clone())),
            Content::File(path, size, digest) => {
                let file = tokio::fs::File::open(path).await.map_err(|e| unwritable(path, e))?;
                let body = Body::from_reader(file, Some(*size));
                let storage_class = place.root.classes().own.clone();
                let options = PutOptions { storage_class, ..PutOptions::default() };
                let put = draft.put_with(RECORD, body, &options).await.map_err(failed)?;
                puts.push((put, digest.clone()));
            }
        }
        let digests: Vec<String> =
            small.iter().map(|(_, content)| Algorithm::Sha512.hex(content)).collect();
        puts.extend(draft.put_records(small).await.map_err(failed)?.into_iter().zip(digests));
        for (put, digest) in puts.into_iter().filter(|(put, _)| !put.deduplicated) {
            let failed = |e: store::Error| store_error(&place.name, e.into());
            let key = draft.key(&put);
            let mut body = place.root.store().get(&key, None).await.map_err(failed)?.body;
            let mut hasher = SingleHasher::new(Algorithm::Sha512);
            while let Some(chunk) = body.next().await {
                hasher.update(&chunk.map_err(failed)?);
            }
            if hasher.finish().to_string() != digest {
                return Err(Error::transient(
                    ErrorCode::StoreCorrupt,
                    format!(
                        "store {} does not give back what was put at {key}; check the store",
                        place.name
                    ),
                )
                .at(place.target()));
            }
        }
        Ok(())
    }
}

/// Keeps a little in memory, and more in a file.
struct Spill {
    path: PathBuf,
    memory: Vec<u8>,
    file: Option<std::io::BufWriter<std::fs::File>>,
    size: u64,
    hasher: SingleHasher,
}

impl Spill {
    fn new(path: PathBuf) -> Spill {
        Spill {
            path,
            memory: Vec::new(),
            file: None,
            size: 0,
            hasher: SingleHasher::new(Algorithm::Sha512),
        }
    }

    fn line(&mut self, line: &Line) -> Result<()> {
        let mut text = serde_json::json!(line).to_string();
        text.push('\n');
        self.size += text.len() as u64;
        self.hasher.update(text.as_bytes());
        self.memory.extend_from_slice(text.as_bytes());
        if self.memory.len() > MEMORY_BYTES {
            self.spill()?;
        }
        Ok(())
    }

    fn spill(&mut self) -> Result<()> {
        let failed = |e| unwritable(&self.path, e);
        if self.file.is_none() {
            let directory = self.path.parent().unwrap_or(&self.path);
            std::fs::create_dir_all(directory).map_err(failed)?;
            let file = std::fs::File::create(&self.path).map_err(failed)?;
            self.file = Some(std::io::BufWriter::new(file));
        }
        if let Some(file) = &mut self.file {
            file.write_all(&self.memory).map_err(failed)?;
        }
        self.memory.clear();
        Ok(())
    }

    fn finish(mut self) -> Result<Content> {
        if self.file.is_none() {
            return Ok(Content::Memory(self.memory.into()));
        }
        self.spill()?;
        let path = self.path;
        if let Some(mut file) = self.file {
            file.flush().map_err(|e| unwritable(&path, e))?;
        }
        Ok(Content::File(path, self.size, self.hasher.finish().to_string()))
    }
}
