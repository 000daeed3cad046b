//! PREMIS 3.0 as XML: a record on each line, without layout, since objects of many small files
//! carry one for every file.

use super::id::{file_id, version_id};
use super::{Agent, AgentType, Event, FileRecord, Form, Object, Version, algorithm, time};
use crate::xml;
use std::io::{self, Write};

pub(super) struct Xml;

/// The type of a location that names the object and not the file in it.
pub(super) const OBJECT_KEY: &str = "key of the OCFL object";

const VOCABULARY: &str = "http://id.loc.gov/vocabulary/preservation";

impl Form for Xml {
    fn start(&self, object: &Object, out: &mut dyn Write) -> io::Result<()> {
        writeln!(
            out,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<premis xmlns=\"http://www.loc.gov/premis/v3\" \
             xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" \
             xsi:schemaLocation=\"http://www.loc.gov/premis/v3 http://www.loc.gov/standards/premis/v3/premis-v3-0.xsd\" \
             version=\"3.0\">"
        )?;
        let mut e = Elements::default();
        e.object("intellectualEntity");
        e.identifier("objectIdentifier", scheme(&object.identifier), &object.identifier);
        for local in &object.local_ids {
            e.identifier("objectIdentifier", "local", local);
        }
        if let Some(collection) = &object.collection {
            e.relationship("is part of", "collection", collection);
        }
        e.close();
        e.write(out)
    }

    fn version(&self, object: &Object, version: &Version, out: &mut dyn Write) -> io::Result<()> {
        let mut e = Elements::default();
        e.object("representation");
        e.identifier("objectIdentifier", "local", &version_id(&object.identifier, version.number));
        e.relationship("represents", scheme(&object.identifier), &object.identifier);
        e.close();
        e.write(out)
    }

    fn file(&self, object: &Object, file: &FileRecord, out: &mut dyn Write) -> io::Result<()> {
        let mut e = Elements::default();
        e.object("file");
        e.identifier(
            "objectIdentifier",
            "local",
            &file_id(&object.identifier, file.version, &file.path),
        );
        e.open("objectCharacteristics");
        e.leaf("compositionLevel", "0");
        for (name, digest) in &file.digests {
            let (label, _) = algorithm(name);
            e.open("fixity");
            e.leaf("messageDigestAlgorithm", &label);
            e.leaf("messageDigest", digest);
            e.close();
        }
        e.leaf("size", &file.size.to_string());
        e.format(file);
        e.close();
        e.leaf("originalName", &xml::name(&file.path));
        for copy in &file.copies {
            e.open("storage");
            e.open("contentLocation");
            e.leaf("contentLocationType", if copy.is_object { OBJECT_KEY } else { "key" });
            e.leaf("contentLocationValue", &xml::name(&copy.key));
            e.close();
            e.leaf("storageMedium", &copy.store);
            e.close();
        }
        for version in std::iter::once(&file.version).chain(&file.also_in) {
            e.relationship("is included in", "local", &version_id(&object.identifier, *version));
        }
        e.close();
        e.write(out)
    }

    fn event(&self, event: &Event, out: &mut dyn Write) -> io::Result<()> {
        let mut e = Elements::default();
        e.open("event");
        e.identifier("eventIdentifier", "UUID", &event.id);
        e.term("eventType", "eventType", event.kind.as_str(), event.kind.code());
        e.leaf("eventDateTime", &time(event.at));
        if let Some(detail) = &event.detail {
            e.open("eventDetailInformation");
            e.leaf("eventDetail", detail);
            e.close();
        }
        e.open("eventOutcomeInformation");
        e.term("eventOutcome", "eventOutcome", event.outcome.as_str(), Some(event.outcome.code()));
        if let Some(note) = &event.outcome_note {
            e.open("eventOutcomeDetail");
            e.leaf("eventOutcomeDetailNote", note);
            e.close();
        }
        e.close();
        for agent in &event.agents {
            e.open("linkingAgentIdentifier");
            e.leaf("linkingAgentIdentifierType", "local");
            e.leaf("linkingAgentIdentifierValue", &agent.id);
            let (term, code) = agent.role.term();
            e.term("linkingAgentRole", "eventRelatedAgentRole", term, code);
            e.close();
        }
        let (kind, value) = match (event.version, &event.file) {
            (Some(version), Some(path)) => ("local", file_id(&event.object, version, path)),
            (Some(version), None) => ("local", version_id(&event.object, version)),
            (None, _) => (scheme(&event.object), event.object.clone()),
        };
        e.identifier("linkingObjectIdentifier", kind, &value);
        e.close();
        e.write(out)
    }

    fn agent(&self, agent: &Agent, out: &mut dyn Write) -> io::Result<()> {
        let mut e = Elements::default();
        let (kind, code) = match agent.kind {
            AgentType::Software => ("software", "sof"),
            AgentType::Person => ("person", "per"),
            AgentType::Organization => ("organization", "org"),
        };
        e.open("agent");
        e.identifier("agentIdentifier", "local", &agent.id);
        e.leaf("agentName", &agent.name);
        e.term("agentType", "agentType", kind, Some(code));
        if let Some(version) = &agent.version {
            e.leaf("agentVersion", version);
        }
        if let Some(note) = &agent.note {
            e.leaf("agentNote", note);
        }
        e.close();
        e.write(out)
    }

    fn end(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "</premis>")
    }
}

/// What kind of identifier it is, by its scheme.
fn scheme(identifier: &str) -> &'static str {
    match identifier.split(':').next() {
        Some("ark") => "ARK",
        Some("doi") => "DOI",
        Some("hdl") => "Handle",
        Some("urn") => "URN",
        _ => "URI",
    }
}

/// The text of one record, and what is open in it.
#[derive(Default)]
struct Elements {
    text: String,
    open: Vec<&'static str>,
}

impl Elements {
    fn write(mut self, out: &mut dyn Write) -> io::Result<()> {
        self.text.push('\n');
        out.write_all(self.text.as_bytes())
    }

    fn tag(&mut self, parts: &[&str]) {
        self.text.push('<');
        self.text.extend(parts.iter().copied());
        self.text.push('>');
    }

    fn open(&mut self, name: &'static str) {
        self.open.push(name);
        self.tag(&[name]);
    }

    fn object(&mut self, kind: &str) {
        self.open.push("object");
        self.tag(&["object xsi:type=\"", kind, "\""]);
    }

    fn close(&mut self) {
        if let Some(name) = self.open.pop() {
            self.tag(&["/", name]);
        }
    }

    fn leaf(&mut self, name: &str, value: &str) {
        self.leaf_of(name, "", value);
    }

    fn leaf_of(&mut self, name: &str, suffix: &str, value: &str) {
        self.tag(&[name, suffix]);
        self.text.push_str(&xml::text(value));
        self.tag(&["/", name, suffix]);
    }

    /// A term, with where it comes from if it comes from a vocabulary.
    fn term(&mut self, name: &str, vocabulary: &str, term: &str, code: Option<&str>) {
        let Some(code) = code else { return self.leaf(name, term) };
        let from = [
            " authority=\"",
            vocabulary,
            "\" valueURI=\"",
            VOCABULARY,
            "/",
            vocabulary,
            "/",
            code,
            "\"",
        ];
        self.tag(&[&[name], from.as_slice()].concat());
        self.text.push_str(&xml::text(term));
        self.tag(&["/", name]);
    }

    fn identifier(&mut self, name: &'static str, kind: &str, value: &str) {
        self.open(name);
        self.leaf_of(name, "Type", kind);
        self.leaf_of(name, "Value", value);
        self.close();
    }

    fn relationship(&mut self, how: &str, kind: &str, value: &str) {
        self.open("relationship");
        self.leaf("relationshipType", "structural");
        self.leaf("relationshipSubType", how);
        self.identifier("relatedObjectIdentifier", kind, value);
        self.close();
    }

    fn format(&mut self, file: &FileRecord) {
        self.open("format");
        self.open("formatDesignation");
        self.leaf("formatName", file.format_name.as_deref().unwrap_or("unknown"));
        if let Some(version) = file.format_version.as_deref().filter(|version| !version.is_empty())
        {
            self.leaf("formatVersion", version);
        }
        self.close();
        if let Some(puid) = &file.puid {
            self.open("formatRegistry");
            self.leaf("formatRegistryName", "PRONOM");
            self.leaf("formatRegistryKey", puid);
            self.close();
        }
        if let Some(basis) = &file.basis {
            self.leaf("formatNote", &format!("basis: {basis}"));
        }
        for warning in &file.warnings {
            self.leaf("formatNote", &format!("warning: {warning}"));
        }
        for candidate in &file.candidates {
            self.leaf("formatNote", &format!("candidate: {candidate}"));
        }
        self.close();
    }
}
