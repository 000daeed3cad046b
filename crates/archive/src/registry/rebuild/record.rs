//! Reads the record that a version carries. It is kept in a file while its object is restored,
//! because it has a line for each of any number of files.

use crate::ErrorCode;
use crate::blocking::blocking;
use crate::model::error::{Error, Result};
use crate::model::event::Event;
use crate::package::empty::EmptyDirectory;
use crate::package::unpack::unwritable;
use crate::registry::carried::{Line, RECORD};
use crate::stores::object_error;
use futures_util::TryStreamExt;
use ocfl::Object;
use std::fs::File;
use std::io::{BufRead, BufReader, Seek, SeekFrom, Write};
use std::path::Path;

/// What one version's record says.
pub(super) struct Record {
    pub identifier: String,
    pub collection: String,
    pub local_ids: Vec<String>,
    pub lock: String,
    /// The line about the version.
    pub version: Line,
    pub events: Vec<Event>,
    /// Every empty directory.
    pub directories: Vec<EmptyDirectory>,
    /// How many files it has lines of.
    pub files: u64,
    name: String,
    lines: File,
}

/// Reads a version's record, and every line of it. `scratch` is a directory for temporary files.
pub(super) async fn read(
    store: &str,
    object: &Object,
    version: &ocfl::Version,
    scratch: &Path,
) -> Result<Record> {
    let failed = |e| object_error(store, e);
    let number = version.name();
    let file = object.file(Some(number), RECORD).map_err(|_| {
        Error::permanent(
            ErrorCode::NoRecord,
            format!(
                "version {number} of {} carries no {RECORD}; it was not written by this program",
                object.id()
            ),
        )
    })?;
    let unwritable = |e| unwritable(scratch, e);
    std::fs::create_dir_all(scratch).map_err(unwritable)?;
    let mut lines = tempfile::tempfile_in(scratch).map_err(unwritable)?;
    let mut content = object.content(&file).await.map_err(failed)?;
    while let Some(chunk) = content.try_next().await.map_err(|e| failed(e.into()))? {
        lines.write_all(&chunk).map_err(unwritable)?;
    }
    let name = format!("{RECORD} of version {number} of {}", object.id());
    let record = blocking(move || parse(name, lines)).await?;
    let is_its = |line: &Line| matches!(line, Line::Version { number: n, .. } if *n == i64::from(number.number()));
    if record.identifier != object.id() || !is_its(&record.version) {
        return Err(damaged(&record.name, "it is about another object or version"));
    }
    Ok(record)
}

fn damaged(name: &str, what: &str) -> Error {
    Error::permanent(ErrorCode::BadRecord, format!("{name}: {what}"))
}

fn parse(name: String, lines: File) -> Result<Record> {
    let (mut object, mut version, mut events, mut files) = (None, None, Vec::new(), 0);
    let mut directories = Vec::new();
    for_each_line(&name, &lines, |line| {
        match line {
            Line::Object { identifier, collection, local_ids, lock } => {
                object = Some((identifier, collection, local_ids, lock));
            }
            line @ Line::Version { .. } => version = Some(line),
            Line::Event(event) => events.push(event),
            Line::File { .. } => files += 1,
            Line::Directory(directory) => directories.push(directory),
        }
        Ok(())
    })?;
    let found = object.zip(version);
    let found = found.ok_or_else(|| damaged(&name, "its first lines are missing"))?;
    let ((identifier, collection, local_ids, lock), version) = found;
    Ok(Record {
        identifier,
        collection,
        local_ids,
        lock,
        version,
        events,
        directories,
        files,
        name,
        lines,
    })
}

fn for_each_line(
    name: &str,
    mut lines: &File,
    mut take: impl FnMut(Line) -> Result<()>,
) -> Result<()> {
    let failed =
        |e: std::io::Error| Error::transient(ErrorCode::RecordUnreadable, format!("{name}: {e}"));
    lines.seek(SeekFrom::Start(0)).map_err(failed)?;
    let mut reader = BufReader::new(lines);
    let mut text = Vec::new();
    while reader.read_until(b'\n', &mut text).map_err(failed)? > 0 {
        let line = text.trim_ascii();
        if !line.is_empty() {
            take(serde_json::from_slice(line).map_err(|e| damaged(name, &e.to_string()))?)?;
        }
        text.clear();
    }
    Ok(())
}

impl Record {
    /// When the version was made.
    pub fn at(&self) -> db::Micros {
        match &self.version {
            Line::Version { at, .. } => *at,
            _ => 0,
        }
    }

    /// Goes through the lines of all files, in their order.
    pub fn for_each_file(&self, mut take: impl FnMut(Line) -> Result<()>) -> Result<()> {
        for_each_line(&self.name, &self.lines, |line| match line {
            line @ Line::File { .. } => take(line),
            _ => Ok(()),
        })
    }
}
