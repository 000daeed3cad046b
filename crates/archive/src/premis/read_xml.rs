//! Reads PREMIS XML as this archive writes it, record by record: so a registry can be rebuilt from
//! what stores keep.

use super::id::{named, version_id};
use super::writer_xml::OBJECT_KEY;
use super::{
    Agent, AgentType, Event, FileRecord, LinkedAgent, Location, Object, Outcome, Role, Version,
    algorithm_key,
};
use crate::ErrorCode;
use crate::xml;
use crate::{Error, Result};
use quick_xml::Reader;
use quick_xml::events::{BytesRef, BytesStart, Event as Token};
use std::cell::Cell;
use std::io::{self, BufRead, Read};
use std::rc::Rc;

/// Records do not nest deeply, and none is large.
const DEPTH_MAX: usize = 16;
const RECORD_BYTES_MAX: usize = 8 << 20;

/// One record of a document, in the order of the document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Record {
    Object(Object),
    Version(Version),
    File(FileRecord),
    Event(Event),
    Agent(Agent),
}

/// Reads a document that [`super::Writer`] wrote and hands over each record, with memory for one.
/// What the XML does not hold (titles, the times and notes of versions) is empty, and algorithms
/// have their short names (`sha512`). PREMIS that says things in other ways is refused.
pub fn read_xml(input: impl BufRead, mut each: impl FnMut(Record) -> Result<()>) -> Result<()> {
    let left = Rc::new(Cell::new(RECORD_BYTES_MAX));
    let mut reader = Reader::from_reader(Bounded { inner: input, left: left.clone() });
    let mut buffer = Vec::new();
    let mut open: Vec<Element> = Vec::new();
    let mut object = None;
    let mut ended = false;
    loop {
        buffer.clear();
        match reader.read_event_into(&mut buffer).map_err(|error| wrong(&error.to_string()))? {
            Token::Start(start) => {
                if open.len() == DEPTH_MAX || ended {
                    return Err(wrong("it nests too deeply or has two roots"));
                }
                open.push(Element::new(&start)?);
            }
            Token::Empty(start) => adopt(&mut open, Element::new(&start)?)?,
            Token::End(_) => {
                let element =
                    open.pop().ok_or_else(|| wrong("an element ends that did not start"))?;
                match open.len() {
                    0 if element.name != "premis" => return Err(wrong("its root is not premis")),
                    0 => ended = true,
                    1 => {
                        left.set(RECORD_BYTES_MAX);
                        each(record(&element, &mut object)?)?;
                    }
                    _ => adopt(&mut open, element)?,
                }
            }
            Token::Text(piece) => push(&mut open, &piece.xml10_content()),
            Token::CData(piece) => push(&mut open, &piece.xml10_content()),
            Token::GeneralRef(reference) => {
                push(&mut open, resolve(&reference)?.encode_utf8(&mut [0; 4]));
            }
            Token::DocType(_) => return Err(wrong("it has a DOCTYPE")),
            Token::Eof if ended => return Ok(()),
            Token::Eof => return Err(wrong("it is cut off")),
            Token::Comment(_) | Token::Decl(_) | Token::PI(_) => {}
        }
    }
}

/// An element of the record being read.
struct Element {
    name: String,
    /// Of objects: which kind.
    kind: Option<String>,
    text: String,
    children: Vec<Element>,
}

impl Element {
    fn new(start: &BytesStart<'_>) -> Result<Element> {
        let kind =
            start.try_get_attribute("xsi:type").map_err(|error| wrong(&error.to_string()))?;
        let kind = kind.map(|kind| kind.value.rsplit(':').next().unwrap_or_default().to_owned());
        let name = start.local_name().as_ref().to_owned();
        Ok(Element { name, kind, text: String::new(), children: Vec::new() })
    }

    fn all<'e>(&'e self, name: &'e str) -> impl Iterator<Item = &'e Element> {
        self.children.iter().filter(move |child| child.name == name)
    }

    /// The text at the end of a path of names, each the first of its kind.
    fn find(&self, path: &[&str]) -> Option<&str> {
        let Some((first, rest)) = path.split_first() else { return Some(&self.text) };
        self.children.iter().find(|child| child.name == **first)?.find(rest)
    }

    fn text(&self, path: &[&str]) -> Option<String> {
        self.find(path).map(str::to_owned)
    }

    fn needed(&self, path: &[&str]) -> Result<String> {
        let missing = || wrong(&format!("{} has no {}", self.name, path.join("/")));
        self.text(path).ok_or_else(missing)
    }

    /// Type and value of identifiers of this name.
    fn identifiers(&self, name: &str) -> Result<Vec<(String, String)>> {
        let one = |element: &Element| {
            let kind = element.needed(&[&format!("{name}Type")])?;
            Ok((kind, element.needed(&[&format!("{name}Value")])?))
        };
        self.all(name).map(one).collect()
    }

    /// What it is related to in this way.
    fn related(&self, how: &str) -> Result<Vec<(String, String)>> {
        let mut related = Vec::new();
        for relationship in self.all("relationship") {
            if relationship.find(&["relationshipSubType"]) == Some(how) {
                related.extend(relationship.identifiers("relatedObjectIdentifier")?);
            }
        }
        Ok(related)
    }
}

fn adopt(open: &mut [Element], child: Element) -> Result<()> {
    let parent = open.last_mut().ok_or_else(|| wrong("it has no root"))?;
    parent.children.push(child);
    Ok(())
}

/// Between elements there is only layout; the text of the root means nothing.
fn push(open: &mut [Element], piece: &str) {
    if let [_, .., element] = open {
        element.text.push_str(piece);
    }
}

fn record(element: &Element, object: &mut Option<String>) -> Result<Record> {
    match (element.name.as_str(), element.kind.as_deref()) {
        ("object", Some("intellectualEntity")) => {
            let read = read_object(element)?;
            *object = Some(read.identifier.clone());
            Ok(Record::Object(read))
        }
        ("object", Some("representation")) => read_version(element).map(Record::Version),
        ("object", Some("file")) => read_file(element).map(Record::File),
        ("event", _) => read_event(element, object.as_deref()).map(Record::Event),
        ("agent", _) => read_agent(element).map(Record::Agent),
        (name, _) => Err(wrong(&format!("{name:?} is not a record that this archive writes"))),
    }
}

fn own_id(element: &Element) -> Result<(i64, Option<String>)> {
    let value = element.needed(&["objectIdentifier", "objectIdentifierValue"])?;
    let named = named(&value).ok_or_else(|| wrong(&format!("{value:?} names no version")))?;
    Ok((named.version, named.path))
}

fn read_object(element: &Element) -> Result<Object> {
    let mut ids = element.identifiers("objectIdentifier")?.into_iter().map(|(_, value)| value);
    let identifier = ids.next().ok_or_else(|| wrong("an object has no identifier"))?;
    let local_ids = ids.collect();
    let collection = element.related("is part of")?.into_iter().next().map(|(_, value)| value);
    Ok(Object { identifier, local_ids, collection, title: None })
}

fn read_version(element: &Element) -> Result<Version> {
    Ok(Version { number: own_id(element)?.0, ..Version::default() })
}

fn read_file(element: &Element) -> Result<FileRecord> {
    let (version, path) = own_id(element)?;
    let path = path.ok_or_else(|| wrong("a file has no path in its identifier"))?;
    let about = element.all("objectCharacteristics").next();
    let about = about.ok_or_else(|| wrong(&format!("{path:?} has no characteristics")))?;
    let size = about.needed(&["size"])?;
    let size = size.parse().map_err(|_| wrong(&format!("{size:?} is not the size of {path:?}")))?;
    let fixity = |element: &Element| {
        let algorithm = element.needed(&["messageDigestAlgorithm"])?;
        Ok((algorithm_key(&algorithm), element.needed(&["messageDigest"])?))
    };
    let copy = |element: &Element| {
        let key = element.needed(&["contentLocation", "contentLocationValue"])?;
        let kind = element.needed(&["contentLocation", "contentLocationType"])?;
        Ok(Location {
            store: element.needed(&["storageMedium"])?,
            key: xml::name_taken_back(&key),
            is_object: kind == OBJECT_KEY,
        })
    };
    let included = element.related("is included in")?;
    let versions = included.iter().filter_map(|(_, value)| named(value)).map(|named| named.version);
    let format = |path: &[&str]| about.text(&[&["format"], path].concat());
    let notes: Vec<&str> = about
        .all("format")
        .flat_map(|format| format.all("formatNote"))
        .map(|note| note.text.as_str())
        .collect();
    let notes_of = |prefix: &'static str| {
        notes.iter().filter_map(move |note| note.strip_prefix(prefix)).map(str::to_owned)
    };
    Ok(FileRecord {
        version,
        also_in: versions.filter(|other| *other != version).collect(),
        path,
        size,
        digests: about.all("fixity").map(fixity).collect::<Result<_>>()?,
        puid: format(&["formatRegistry", "formatRegistryKey"]),
        format_name: format(&["formatDesignation", "formatName"]).filter(|name| name != "unknown"),
        format_version: format(&["formatDesignation", "formatVersion"]),
        basis: notes_of("basis: ").next(),
        warnings: notes_of("warning: ").collect(),
        candidates: notes_of("candidate: ").collect(),
        copies: element.all("storage").map(copy).collect::<Result<_>>()?,
    })
}

fn read_event(element: &Element, object: Option<&str>) -> Result<Event> {
    let id = element.needed(&["eventIdentifier", "eventIdentifierValue"])?;
    let in_event = |why: String| wrong(&format!("event {id}: {why}"));
    let at = element.needed(&["eventDateTime"])?;
    let at: jiff::Timestamp = at.parse().map_err(|_| in_event(format!("{at:?} is no time")))?;
    let kind = element.needed(&["eventType"])?.parse().map_err(&in_event)?;
    let information = "eventOutcomeInformation";
    let outcome: Outcome =
        element.needed(&[information, "eventOutcome"])?.parse().map_err(&in_event)?;
    let (how, value) = element
        .identifiers("linkingObjectIdentifier")?
        .into_iter()
        .next()
        .ok_or_else(|| in_event("it is about nothing".to_owned()))?;
    let named = if how == "local" { named(&value) } else { None };
    // Names of versions have the identifier as a URI; the record of the object has it as it is.
    let whole = match (&named, object) {
        (Some(named), Some(object)) if version_id(object, 0) == version_id(&named.object, 0) => {
            object.to_owned()
        }
        (Some(named), _) => named.object.clone(),
        (None, _) => value,
    };
    Ok(Event {
        kind,
        at: at.as_microsecond(),
        detail: element.text(&["eventDetailInformation", "eventDetail"]),
        outcome,
        outcome_note: element.text(&[information, "eventOutcomeDetail", "eventOutcomeDetailNote"]),
        agents: element
            .all("linkingAgentIdentifier")
            .map(|agent| linked(agent).map_err(&in_event))
            .collect::<Result<_>>()?,
        object: whole,
        version: named.as_ref().map(|named| named.version),
        file: named.and_then(|named| named.path),
        id,
    })
}

fn linked(element: &Element) -> Result<LinkedAgent, String> {
    let missing = || "an agent has no identifier or no role".to_owned();
    let id = element.text(&["linkingAgentIdentifierValue"]).ok_or_else(missing)?;
    let term = element.text(&["linkingAgentRole"]).ok_or_else(missing)?;
    let role = Role::ALL.into_iter().find(|role| role.term().0 == term);
    Ok(LinkedAgent { id, role: role.ok_or_else(|| format!("{term:?} is no role"))? })
}

fn read_agent(element: &Element) -> Result<Agent> {
    let kind = match element.needed(&["agentType"])?.as_str() {
        "software" => AgentType::Software,
        "person" => AgentType::Person,
        "organization" => AgentType::Organization,
        other => return Err(wrong(&format!("{other:?} is no kind of agent"))),
    };
    Ok(Agent {
        id: element.needed(&["agentIdentifier", "agentIdentifierValue"])?,
        name: element.needed(&["agentName"])?,
        kind,
        version: element.text(&["agentVersion"]),
        note: element.text(&["agentNote"]),
    })
}

fn resolve(reference: &BytesRef<'_>) -> Result<char> {
    xml::resolve(reference).map_err(|why| wrong(&why))
}

fn wrong(why: &str) -> Error {
    Error::permanent(ErrorCode::PremisXml, format!("the PREMIS record cannot be read: {why}"))
}

/// Ends a record that does not end.
struct Bounded<R> {
    inner: R,
    left: Rc<Cell<usize>>,
}

impl<R: BufRead> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let available = self.fill_buf()?;
        let taken = available.len().min(buffer.len());
        buffer[..taken].copy_from_slice(&available[..taken]);
        self.consume(taken);
        Ok(taken)
    }
}

impl<R: BufRead> BufRead for Bounded<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.left.get() == 0 {
            return Err(io::Error::other("a record is too large"));
        }
        self.inner.fill_buf()
    }

    fn consume(&mut self, amount: usize) {
        self.left.set(self.left.get().saturating_sub(amount));
        self.inner.consume(amount);
    }
}
