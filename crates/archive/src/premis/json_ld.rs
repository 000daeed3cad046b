//! PREMIS 3 as JSON-LD, in the terms of its ontology and as its guidelines say: identifiers are
//! URIs, kinds of events and digests are classes of the vocabularies, and PROV links events with
//! objects and agents.

use super::id::{file_id, uri, version_id};
use super::writer_xml::OBJECT_KEY;
use super::{
    Agent, AgentType, Event, FileRecord, Form, LinkedAgent, Location, Object, Version, algorithm,
    time,
};
use serde_json::{Value, json};
use std::io::{self, Write};

pub(super) struct JsonLd;

fn context() -> Value {
    let vocabulary = |name: &str| format!("http://id.loc.gov/vocabulary/preservation/{name}/");
    json!({
        "premis": "http://www.loc.gov/premis/rdf/v3/",
        "dct": "http://purl.org/dc/terms/",
        "prov": "http://www.w3.org/ns/prov#",
        "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
        "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
        "skos": "http://www.w3.org/2004/02/skos/core#",
        "xsd": "http://www.w3.org/2001/XMLSchema#",
        "evType": vocabulary("eventType"),
        "evOutcome": vocabulary("eventOutcome"),
        "evAgentRole": vocabulary("eventRelatedAgentRole"),
        "crypHashFunc": vocabulary("cryptographicHashFunctions"),
        "relSubType": vocabulary("relationshipSubType"),
        "premis:size": {"@type": "xsd:long"},
        "premis:outcome": {"@type": "@id"},
        "dct:date": {"@type": "xsd:dateTime"},
        "dct:created": {"@type": "xsd:dateTime"},
        "skos:exactMatch": {"@type": "@id"},
        "prov:used": {"@type": "@id"},
        "prov:wasAssociatedWith": {"@type": "@id"},
        "prov:agent": {"@type": "@id"},
        "relSubType:isp": {"@type": "@id"},
        "relSubType:isr": {"@type": "@id"},
    })
}

impl Form for JsonLd {
    fn start(&self, object: &Object, out: &mut dyn Write) -> io::Result<()> {
        write!(out, "{{\"@context\":{},\n\"@graph\":[\n", context())?;
        let mut node = json!({
            "@id": uri(&object.identifier),
            "@type": "premis:IntellectualEntity",
        });
        // An identifier that is no URI is said as it is, too.
        let mut ids = object.local_ids.clone();
        if uri(&object.identifier) != object.identifier {
            ids.insert(0, object.identifier.clone());
        }
        set(&mut node, "dct:identifier", (!ids.is_empty()).then(|| json!(ids)));
        set(&mut node, "dct:title", object.title.as_ref().map(|title| json!(title)));
        set(&mut node, "dct:isPartOf", object.collection.as_ref().map(|name| json!(name)));
        // The first node has no comma before it; all others have.
        write!(out, "{node}")
    }

    fn version(&self, object: &Object, version: &Version, out: &mut dyn Write) -> io::Result<()> {
        let id = version_id(&object.identifier, version.number);
        let mut node = json!({
            "@id": id,
            "@type": "premis:Representation",
            "dct:created": time(version.created_at),
        });
        set(&mut node, "premis:note", version.note.as_ref().map(|note| json!(note)));
        let represented = json!({"@id": uri(&object.identifier), "relSubType:isr": id});
        write!(out, ",\n{node},\n{represented}")
    }

    fn file(&self, object: &Object, file: &FileRecord, out: &mut dyn Write) -> io::Result<()> {
        let within: Vec<String> = std::iter::once(&file.version)
            .chain(&file.also_in)
            .map(|version| version_id(&object.identifier, *version))
            .collect();
        let mut node = json!({
            "@id": file_id(&object.identifier, file.version, &file.path),
            "@type": "premis:File",
            "premis:originalName": file.path,
            "premis:size": file.size.to_string(),
            "premis:fixity": file.digests.iter().map(fixity).collect::<Vec<_>>(),
            "dct:format": format(file),
            "relSubType:isp": within,
        });
        let place = |copy: &Location| {
            let mut place = json!({
                "@type": "premis:StorageLocation",
                "rdf:value": copy.key,
                "premis:medium": {"rdfs:label": copy.store},
            });
            set(&mut place, "premis:note", copy.is_object.then(|| json!(OBJECT_KEY)));
            place
        };
        let places: Vec<Value> = file.copies.iter().map(place).collect();
        set(&mut node, "premis:storedAt", (!places.is_empty()).then_some(json!(places)));
        write!(out, ",\n{node}")
    }

    fn event(&self, event: &Event, out: &mut dyn Write) -> io::Result<()> {
        let about = match (event.version, &event.file) {
            (Some(version), Some(path)) => file_id(&event.object, version, path),
            (Some(version), None) => version_id(&event.object, version),
            (None, _) => uri(&event.object),
        };
        let mut kinds = vec!["premis:Event".to_owned()];
        kinds.extend(event.kind.code().map(|code| format!("evType:{code}")));
        let mut node = json!({
            "@id": format!("urn:uuid:{}", event.id),
            "@type": kinds,
            "rdfs:label": event.kind.as_str(),
            "dct:date": time(event.at),
            "premis:outcome": format!("evOutcome:{}", event.outcome.code()),
            "prov:used": about,
        });
        set(&mut node, "premis:note", event.detail.as_ref().map(|detail| json!(detail)));
        set(&mut node, "premis:outcomeNote", event.outcome_note.as_ref().map(|note| json!(note)));
        let agents: Vec<String> = event.agents.iter().map(|agent| agent_uri(&agent.id)).collect();
        set(&mut node, "prov:wasAssociatedWith", (!agents.is_empty()).then(|| json!(agents)));
        let parts: Vec<Value> = event.agents.iter().map(part).collect();
        set(&mut node, "prov:qualifiedAssociation", (!parts.is_empty()).then(|| json!(parts)));
        write!(out, ",\n{node}")
    }

    fn agent(&self, agent: &Agent, out: &mut dyn Write) -> io::Result<()> {
        let kind = match agent.kind {
            AgentType::Software => "premis:SoftwareAgent",
            AgentType::Person => "premis:Person",
            AgentType::Organization => "premis:Organization",
        };
        let mut node = json!({
            "@id": agent_uri(&agent.id),
            "@type": kind,
            "dct:identifier": agent.id,
            "rdfs:label": agent.name,
        });
        set(&mut node, "premis:version", agent.version.as_ref().map(|version| json!(version)));
        set(&mut node, "premis:note", agent.note.as_ref().map(|note| json!(note)));
        write!(out, ",\n{node}")
    }

    fn end(&self, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(b"\n]}\n")
    }
}

fn set(node: &mut Value, name: &str, value: Option<Value>) {
    if let Some(value) = value {
        node[name] = value;
    }
}

/// The part of an agent in an event.
fn part(agent: &LinkedAgent) -> Value {
    let (term, code) = agent.role.term();
    let mut role = json!({"rdfs:label": term});
    set(&mut role, "@id", code.map(|code| json!(format!("evAgentRole:{code}"))));
    json!({"@type": "prov:Association", "prov:agent": agent_uri(&agent.id), "prov:hadRole": role})
}

/// Agents have no identifier outside the archive, so theirs are relative to the document.
fn agent_uri(id: &str) -> String {
    format!("urn:accession:agent:{}", uri(id).replace(['#', '?'], "-"))
}

fn fixity((name, digest): &(String, String)) -> Value {
    match algorithm(name) {
        (_, Some(code)) => json!({"@type": format!("crypHashFunc:{code}"), "rdf:value": digest}),
        (label, None) => {
            json!({"@type": "premis:Fixity", "rdfs:label": label, "rdf:value": digest})
        }
    }
}

fn format(file: &FileRecord) -> Value {
    let mut format = json!({
        "@type": "dct:FileFormat",
        "rdfs:label": file.format_name.as_deref().unwrap_or("unknown"),
    });
    let version = file.format_version.as_ref().filter(|version| !version.is_empty());
    set(&mut format, "premis:version", version.map(|version| json!(version)));
    let registry =
        |puid: &String| json!(format!("http://www.nationalarchives.gov.uk/pronom/{}", uri(puid)));
    set(&mut format, "skos:exactMatch", file.puid.as_ref().map(registry));
    let basis = file.basis.iter().map(|basis| format!("basis: {basis}"));
    let warnings = file.warnings.iter().map(|warning| format!("warning: {warning}"));
    let candidates = file.candidates.iter().map(|candidate| format!("candidate: {candidate}"));
    let notes: Vec<String> = basis.chain(warnings).chain(candidates).collect();
    set(&mut format, "premis:note", (!notes.is_empty()).then(|| json!(notes)));
    format
}
