//! The little of XML that S3 speaks: elements and text, nothing else.

use quick_xml::Reader;
use quick_xml::escape::escape;
use quick_xml::events::Event;

/// Answers are at most a page of a listing; a deeper or larger one is not from S3.
const DEPTH_MAX: usize = 16;
const ELEMENTS_MAX: usize = 200_000;

/// An element with its text and children. Names are without prefix.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Element {
    pub name: String,
    pub text: String,
    pub children: Vec<Element>,
}

impl Element {
    pub(super) fn children<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Element> {
        self.children.iter().filter(move |child| child.name == name)
    }

    /// The text of the first child with this name.
    pub(super) fn text_of(&self, name: &str) -> Option<&str> {
        self.children.iter().find(|child| child.name == name).map(|child| child.text.as_str())
    }
}

/// Reads a document; the message says why it is none.
pub(super) fn parse(bytes: &[u8]) -> Result<Element, String> {
    let text = std::str::from_utf8(bytes).map_err(|error| error.to_string())?;
    let mut reader = Reader::from_str(text);
    let mut open: Vec<Element> = vec![Element::default()];
    let mut elements = 0;
    loop {
        match reader.read_event().map_err(|error| error.to_string())? {
            Event::Start(start) => {
                elements += 1;
                if open.len() > DEPTH_MAX || elements > ELEMENTS_MAX {
                    return Err("too many elements".into());
                }
                open.push(named(start.local_name().as_ref()));
            }
            Event::Empty(start) => {
                elements += 1;
                if elements > ELEMENTS_MAX {
                    return Err("too many elements".into());
                }
                let element = named(start.local_name().as_ref());
                last(&mut open)?.children.push(element);
            }
            Event::End(_) => {
                let mut element = open.pop().ok_or("an end without a start")?;
                // Between elements there is only layout; within one, every space counts.
                if !element.children.is_empty() {
                    element.text.clear();
                }
                last(&mut open)?.children.push(element);
            }
            Event::Text(piece) => {
                last(&mut open)?.text.push_str(&piece);
            }
            Event::CData(piece) => {
                last(&mut open)?.text.push_str(&piece);
            }
            Event::GeneralRef(reference) => {
                let piece = resolve(&reference)?;
                last(&mut open)?.text.push(piece);
            }
            Event::Eof => break,
            Event::Comment(_) | Event::Decl(_) | Event::PI(_) | Event::DocType(_) => {}
        }
    }
    let mut document = open.pop().filter(|_| open.is_empty()).ok_or("an element is not closed")?;
    document.children.pop().ok_or_else(|| "no element".into())
}

fn named(name: &str) -> Element {
    Element { name: name.to_owned(), ..Element::default() }
}

fn last(open: &mut [Element]) -> Result<&mut Element, String> {
    open.last_mut().ok_or_else(|| "an end without a start".to_owned())
}

fn resolve(reference: &quick_xml::events::BytesRef<'_>) -> Result<char, String> {
    if let Some(character) = reference.resolve_char_ref().map_err(|error| error.to_string())? {
        return Ok(character);
    }
    match &**reference {
        "amp" => Ok('&'),
        "lt" => Ok('<'),
        "gt" => Ok('>'),
        "quot" => Ok('"'),
        "apos" => Ok('\''),
        other => Err(format!("unknown entity {other}")),
    }
}

/// `<name>text</name>`, escaped.
pub(super) fn element(name: &str, text: &str) -> String {
    format!("<{name}>{}</{name}>", escape(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spaces_and_references_in_keys_survive() {
        let parsed = parse(
            b"<?xml version=\"1.0\"?>\n<R xmlns=\"x\">\n <K> a &amp;&#x9;b </K>\n <E/>\n <K>&lt;\"</K></R>",
        )
        .unwrap();
        let keys: Vec<&str> = parsed.children("K").map(|key| key.text.as_str()).collect();
        assert_eq!(keys, [" a &\tb ", "<\""]);
        assert_eq!(parsed.name, "R");
        assert_eq!(parsed.text_of("E"), Some(""));
        assert_eq!(element("K", "a&<"), "<K>a&amp;&lt;</K>");
    }

    #[test]
    fn what_is_not_an_answer_is_an_error() {
        let deep = "<a>".repeat(100);
        for bad in ["", "text", "<a>", "</a>", "<a></b>", "<a>&bomb;</a>", deep.as_str()] {
            assert!(parse(bad.as_bytes()).is_err(), "{bad}");
        }
        assert!(parse(b"<a>\xff</a>").is_err());
    }
}
