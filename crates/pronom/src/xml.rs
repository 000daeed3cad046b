//! A small tree of XML elements: all that the official signature files need.

use crate::error::{Error, Result};
use quick_xml::events::{BytesRef, BytesStart, Event};
use quick_xml::{Reader, XmlVersion};

/// Largest file read: the official one has under 4 MiB.
const FILE_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Most elements kept; the official file has some 25,000.
const ELEMENTS_MAX: usize = 1_000_000;
const DEPTH_MAX: usize = 32;

/// An element with its attributes, text and children.
#[derive(Debug, Default)]
pub(crate) struct Element {
    pub name: String,
    pub attributes: Vec<(String, String)>,
    pub text: String,
    pub children: Vec<Element>,
    /// Where the element begins in the file, for messages.
    pub offset: u64,
}

impl Element {
    pub fn attribute(&self, name: &str) -> Option<&str> {
        let found = self.attributes.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value.as_str())
    }

    /// An attribute that is a number; absent is `None`, anything else than a number an error.
    pub fn number(&self, name: &str) -> Result<Option<u32>> {
        self.attribute(name)
            .map(|value| {
                let parsed = value.trim().parse();
                parsed.map_err(|_| self.error(format!("{name}=\"{value}\" is not a number")))
            })
            .transpose()
    }

    pub fn required(&self, name: &str) -> Result<&str> {
        self.attribute(name)
            .ok_or_else(|| self.error(format!("<{}> has no attribute {name}", self.name)))
    }

    pub fn children<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Element> {
        self.children.iter().filter(move |child| child.name == name)
    }

    pub fn child(&self, name: &str) -> Option<&Element> {
        self.children.iter().find(|child| child.name == name)
    }

    pub fn error(&self, message: String) -> Error {
        Error::SignatureFile { offset: self.offset, message }
    }
}

/// Reads a document. Elements called `skipped` are left out with all that is in them.
pub(crate) fn read(xml: &[u8], skipped: &[&str]) -> Result<Element> {
    if xml.len() > FILE_BYTES_MAX {
        let message = "the file is larger than 64 MiB".to_owned();
        return Err(Error::SignatureFile { offset: 0, message });
    }
    let mut reader = Reader::from_reader(xml);
    let mut open = vec![Element::default()];
    let mut count = 0usize;
    loop {
        let offset = reader.buffer_position();
        let fail = |message: String| Error::SignatureFile { offset, message };
        let event = reader.read_event().map_err(|e| fail(e.to_string()))?;
        match event {
            Event::Start(start) => {
                let element = element(&start, offset)?;
                if skipped.contains(&element.name.as_str()) {
                    reader.read_to_end(start.name()).map_err(|e| fail(e.to_string()))?;
                    continue;
                }
                open.push(element);
                if open.len() > DEPTH_MAX {
                    return Err(fail("elements are nested too deeply".to_owned()));
                }
            }
            Event::Empty(start) => {
                let element = element(&start, offset)?;
                if let Some(parent) = open.last_mut() {
                    parent.children.push(element);
                }
            }
            Event::End(_) => {
                close(&mut open).ok_or_else(|| fail("an end without a beginning".into()))?
            }
            Event::Text(text) => {
                append(&mut open, &text);
            }
            Event::CData(text) => {
                append(&mut open, &text);
            }
            Event::GeneralRef(reference) => {
                let character =
                    resolve(&reference).ok_or_else(|| fail("an unknown entity".into()))?;
                append(&mut open, character.encode_utf8(&mut [0; 4]));
            }
            Event::Eof => break,
            Event::Comment(_) | Event::Decl(_) | Event::PI(_) | Event::DocType(_) => {}
        }
        count += 1;
        if count > ELEMENTS_MAX {
            return Err(fail("the file has too many elements".to_owned()));
        }
    }
    match (open.len(), open.pop().and_then(|mut document| document.children.pop())) {
        (1, Some(root)) => Ok(root),
        _ => {
            let message = "the document is empty or cut off".to_owned();
            Err(Error::SignatureFile { offset: xml.len() as u64, message })
        }
    }
}

fn element(start: &BytesStart<'_>, offset: u64) -> Result<Element> {
    let fail = |message: String| Error::SignatureFile { offset, message };
    let name = start.local_name().as_ref().to_owned();
    let mut attributes = Vec::new();
    for attribute in start.attributes() {
        let attribute = attribute.map_err(|e| fail(e.to_string()))?;
        let key = attribute.key.local_name().as_ref().to_owned();
        let value =
            attribute.normalized_value(XmlVersion::Implicit1_0).map_err(|e| fail(e.to_string()))?;
        attributes.push((key, value.into_owned()));
    }
    Ok(Element { name, attributes, offset, ..Element::default() })
}

/// Moves the innermost open element into its parent; the document itself stays.
fn close(open: &mut Vec<Element>) -> Option<()> {
    let done = open.pop()?;
    open.last_mut()?.children.push(done);
    Some(())
}

fn append(open: &mut [Element], text: &str) {
    if let Some(element) = open.last_mut() {
        element.text.push_str(text);
    }
}

fn resolve(reference: &BytesRef<'_>) -> Option<char> {
    if let Ok(Some(character)) = reference.resolve_char_ref() {
        return Some(character);
    }
    match &**reference {
        "amp" => Some('&'),
        "lt" => Some('<'),
        "gt" => Some('>'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_comes_out_with_entities_and_without_what_is_skipped() {
        let xml =
            b"<?xml version='1.0'?><a x='1&amp;2'><b>[&amp;01]</b><Shift>9<c/></Shift><b/></a>";
        let root = read(xml, &["Shift"]).unwrap();
        assert_eq!(root.attribute("x"), Some("1&2"));
        let texts: Vec<_> = root.children("b").map(|b| b.text.as_str()).collect();
        assert_eq!(texts, ["[&01]", ""]);
    }

    #[test]
    fn broken_documents_say_where() {
        for bad in ["", "<a>", "<a></b>", "</a>", "<a>&nope;</a>", "<a b></a>", "plain"] {
            assert!(matches!(read(bad.as_bytes(), &[]), Err(Error::SignatureFile { .. })), "{bad}");
        }
        let deep = "<a>".repeat(100);
        assert!(read(deep.as_bytes(), &[]).is_err());
    }
}
