//! PREMIS 3: what an object is, and what was done to it, for others to read.
//!
//! An object is an *intellectual entity*; each of its versions is a *representation*; each file
//! content is a *file*, named after the version that brought it. Events say what happened, agents
//! who or what did it. [`Writer`] takes them one by one and writes PREMIS 3.0 XML, valid against
//! the schema of the Library of Congress, or JSON-LD in the terms of the PREMIS 3 ontology, with
//! memory for one record.
//!
//! Identifiers that both forms share are built from the object's own: `ark:/12345/x` has the
//! version `ark:/12345/x#v2` and the file `ark:/12345/x#v2/data/a%20b.tif`, percent-encoded as in
//! a URI. The original name stands beside it; what XML cannot have in it (control characters) is
//! percent-encoded there too, and so is a `%` that two hexadecimal digits follow, so that every
//! name can be taken back exactly.

mod event_type;
mod id;
mod json_ld;
mod model;
mod read_xml;
#[cfg(test)]
mod tests;
mod writer_xml;

pub use event_type::EventType;
pub use id::{event_id, file_id, version_id};
pub use model::{
    Agent, AgentType, Event, FileRecord, LinkedAgent, Location, Object, Outcome, Role, Version,
};
pub use read_xml::{Record, read_xml};

use std::io;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    Xml,
    JsonLd,
}

/// The order in which the schema wants records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Versions,
    Files,
    Events,
    Agents,
}

/// What a form knows: how a document begins and ends and how each record looks.
trait Form {
    fn start(&self, object: &Object, out: &mut dyn io::Write) -> io::Result<()>;
    fn version(
        &self,
        object: &Object,
        version: &Version,
        out: &mut dyn io::Write,
    ) -> io::Result<()>;
    fn file(&self, object: &Object, file: &FileRecord, out: &mut dyn io::Write) -> io::Result<()>;
    fn event(&self, event: &Event, out: &mut dyn io::Write) -> io::Result<()>;
    fn agent(&self, agent: &Agent, out: &mut dyn io::Write) -> io::Result<()>;
    fn end(&self, out: &mut dyn io::Write) -> io::Result<()>;
}

/// Writes the record of one object: versions, then files, then events, then agents.
pub struct Writer<'o, W: io::Write> {
    form: &'static dyn Form,
    object: &'o Object,
    out: W,
    at: Part,
}

impl<'o, W: io::Write> Writer<'o, W> {
    pub fn new(format: Format, object: &'o Object, mut out: W) -> io::Result<Writer<'o, W>> {
        let form: &dyn Form = match format {
            Format::Xml => &writer_xml::Xml,
            Format::JsonLd => &json_ld::JsonLd,
        };
        form.start(object, &mut out)?;
        Ok(Writer { form, object, out, at: Part::Versions })
    }

    pub fn version(&mut self, version: &Version) -> io::Result<()> {
        self.advance(Part::Versions)?;
        self.form.version(self.object, version, &mut self.out)
    }

    pub fn file(&mut self, file: &FileRecord) -> io::Result<()> {
        self.advance(Part::Files)?;
        self.form.file(self.object, file, &mut self.out)
    }

    pub fn event(&mut self, event: &Event) -> io::Result<()> {
        self.advance(Part::Events)?;
        self.form.event(event, &mut self.out)
    }

    pub fn agent(&mut self, agent: &Agent) -> io::Result<()> {
        self.advance(Part::Agents)?;
        self.form.agent(agent, &mut self.out)
    }

    /// Ends the document. One without this is cut off.
    pub fn finish(mut self) -> io::Result<W> {
        self.form.end(&mut self.out)?;
        self.out.flush()?;
        Ok(self.out)
    }

    fn advance(&mut self, part: Part) -> io::Result<()> {
        if part < self.at {
            return Err(io::Error::other("versions come first, then files, events, agents"));
        }
        self.at = part;
        Ok(())
    }
}

/// Writes a whole record from iterators, which may fail on the way.
pub fn write(
    format: Format,
    object: &Object,
    versions: impl IntoIterator<Item = io::Result<Version>>,
    files: impl IntoIterator<Item = io::Result<FileRecord>>,
    events: impl IntoIterator<Item = io::Result<Event>>,
    agents: impl IntoIterator<Item = io::Result<Agent>>,
    out: impl io::Write,
) -> io::Result<()> {
    let mut writer = Writer::new(format, object, out)?;
    versions.into_iter().try_for_each(|version| writer.version(&version?))?;
    files.into_iter().try_for_each(|file| writer.file(&file?))?;
    events.into_iter().try_for_each(|event| writer.event(&event?))?;
    agents.into_iter().try_for_each(|agent| writer.agent(&agent?))?;
    writer.finish().map(|_| ())
}

/// `2026-11-16T00:30:01.000250Z`
fn time(at: db::Micros) -> String {
    jiff::Timestamp::from_microsecond(at)
        .map_or_else(|_| at.to_string(), |time| format!("{time:.6}"))
}

/// The short name of an algorithm of the vocabulary; others have the name they have.
fn algorithm_key(label: &str) -> String {
    algorithm(label).1.map_or_else(|| label.to_owned(), str::to_owned)
}

/// The algorithm's name in the vocabulary of the Library of Congress, and its code there.
fn algorithm(name: &str) -> (String, Option<&'static str>) {
    let bare: String =
        name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
    let known = [
        ("md5", "MD5"),
        ("sha1", "SHA-1"),
        ("sha256", "SHA-256"),
        ("sha384", "SHA-384"),
        ("sha512", "SHA-512"),
    ];
    match known.into_iter().find(|(code, _)| *code == bare) {
        Some((code, label)) => (label.to_owned(), Some(code)),
        None => (name.to_owned(), None),
    }
}
