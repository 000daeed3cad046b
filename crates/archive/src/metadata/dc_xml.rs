//! Dublin Core as XML: read from any wrapper, written as `oai_dc`.

use super::{Metadata, dc_element, text_of};
use crate::ErrorCode;
use crate::xml;
use crate::{Error, Result};
use quick_xml::NsReader;
use quick_xml::events::{BytesStart, Event};
use quick_xml::name::{Namespace, ResolveResult};

const ELEMENTS_NAMESPACE: &str = "http://purl.org/dc/elements/1.1/";
const TERMS_NAMESPACE: &str = "http://purl.org/dc/terms/";
/// Metadata does not nest deeply; something that does was made to hurt.
const DEPTH_MAX: usize = 64;

/// Reads the elements of Dublin Core wherever they are in the document. They are known by their
/// namespace, or by the prefix `dc` or `dcterms` where no namespace is declared. Document types
/// and entities of the document's own are refused.
pub fn parse_dc_xml(bytes: &[u8]) -> Result<Metadata> {
    let mut reader = NsReader::from_str(text_of(bytes)?);
    let mut metadata = Metadata::default();
    let mut depth = 0;
    let mut roots = 0;
    // The element being read, and how deep it lies.
    let mut open: Option<(&'static str, usize, String)> = None;
    loop {
        let event = reader.read_event().map_err(|error| wrong(error.to_string()))?;
        match event {
            Event::Start(start) => {
                roots += usize::from(depth == 0);
                depth += 1;
                if depth > DEPTH_MAX || roots > 1 {
                    return Err(wrong(format!(
                        "it nests deeper than {DEPTH_MAX} or has two roots"
                    )));
                }
                if open.is_none() {
                    open = element_of(&reader, &start).map(|name| (name, depth, String::new()));
                }
            }
            Event::Empty(_) => roots += usize::from(depth == 0),
            Event::End(_) => {
                if let Some((name, _, value)) = open.take_if(|(_, at, _)| *at == depth) {
                    metadata.add_dc(name, &value)?;
                }
                depth = depth.saturating_sub(1);
            }
            Event::Text(piece) => push(&mut open, &piece.xml10_content()),
            Event::CData(piece) => push(&mut open, &piece.xml10_content()),
            Event::GeneralRef(reference) => {
                let character = xml::resolve(&reference).map_err(wrong)?;
                push(&mut open, character.encode_utf8(&mut [0; 4]));
            }
            Event::DocType(_) => {
                return Err(wrong(
                    "it has a DOCTYPE; remove it, and write entities out".to_owned(),
                ));
            }
            Event::Eof => break,
            Event::Comment(_) | Event::Decl(_) | Event::PI(_) => {}
        }
    }
    if depth != 0 || roots != 1 {
        return Err(wrong("it has no root element, or one that is not closed".to_owned()));
    }
    Ok(metadata.with_kernel_of_dc())
}

fn push(open: &mut Option<(&'static str, usize, String)>, piece: &str) {
    if let Some((_, _, value)) = open {
        value.push_str(piece);
    }
}

fn element_of(reader: &NsReader<&[u8]>, start: &BytesStart<'_>) -> Option<&'static str> {
    let (namespace, local) = reader.resolver().resolve_element(start.name());
    let ours = match namespace {
        ResolveResult::Bound(Namespace(uri)) => uri == ELEMENTS_NAMESPACE || uri == TERMS_NAMESPACE,
        ResolveResult::Unknown(prefix) => prefix == "dc" || prefix == "dcterms",
        ResolveResult::Unbound => false,
    };
    dc_element(local.as_ref()).filter(|_| ours)
}

fn wrong(why: String) -> Error {
    Error::permanent(
        ErrorCode::MetadataDcXml,
        format!("the Dublin Core file cannot be read as XML: {why}"),
    )
}

/// Writes the Dublin Core record as `oai_dc`, well-formed whatever the values are.
pub fn write_dc_xml(metadata: &Metadata) -> String {
    let mut record = String::from(concat!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n",
        "<oai_dc:dc xmlns:oai_dc=\"http://www.openarchives.org/OAI/2.0/oai_dc/\"",
        " xmlns:dc=\"http://purl.org/dc/elements/1.1/\"",
        " xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\"",
        " xsi:schemaLocation=\"http://www.openarchives.org/OAI/2.0/oai_dc/",
        " http://www.openarchives.org/OAI/2.0/oai_dc.xsd\">\n",
    ));
    for (name, values) in &metadata.dublin_core {
        let Some(element) = dc_element(name) else { continue };
        for value in values {
            record.push_str(&format!("  <dc:{element}>{}</dc:{element}>\n", xml::text(value)));
        }
    }
    record.push_str("</oai_dc:dc>\n");
    record
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_wrapper_any_prefix() {
        let forms = [
            "<dc xmlns='http://purl.org/dc/elements/1.1/'><title>A &amp; B</title></dc>",
            "<?xml version='1.0'?><x:r xmlns:x='u'><x:m><q:title xmlns:q='http://purl.org/dc/terms/'>A <i>&#38;</i> B</q:title></x:m></x:r>",
            "<metadata><dc:title><![CDATA[A & B]]></dc:title><title>other</title></metadata>",
            "\u{feff}<!-- c --><dcterms:title>\n A &#x26; B\n</dcterms:title>",
        ];
        for form in forms {
            let metadata = parse_dc_xml(form.as_bytes()).unwrap();
            assert_eq!(metadata.dublin_core["title"], ["A & B"], "{form}");
            assert_eq!(metadata.what.as_deref(), Some("A & B"));
        }
    }

    #[test]
    fn hostile_documents_are_refused() {
        let deep = format!("{}{}", "<a>".repeat(70), "</a>".repeat(70));
        let bomb = "<!DOCTYPE x [<!ENTITY a \"aaaa\"><!ENTITY b \"&a;&a;\">]><x>&b;</x>";
        let outside = "<!DOCTYPE x SYSTEM \"file:///etc/passwd\"><x/>";
        let bad = [
            deep.as_str(),
            bomb,
            outside,
            "",
            "text",
            "<a>",
            "<a></b>",
            "<a/><b/>",
            "</a>",
            "<a>&bomb;</a>",
            "<dc:title>&#0;</dc:title>",
            "<a><b></a></b>",
            "<!DOCTYPE",
        ];
        for document in bad {
            let error = parse_dc_xml(document.as_bytes()).unwrap_err();
            assert_eq!(error.code(), "metadata.dc-xml", "{document}");
        }
    }

    #[test]
    fn control_characters_leave_it_well_formed() {
        let mut metadata = Metadata::default();
        metadata.dublin_core.insert("title".into(), vec!["a\0b\u{1b}[<&>\u{ffff}\r".into()]);
        metadata.dublin_core.insert("no<element".into(), vec!["x".into()]);
        let xml = write_dc_xml(&metadata);
        let read = parse_dc_xml(xml.as_bytes()).unwrap();
        assert_eq!(read.dublin_core["title"], ["a\u{fffd}b\u{fffd}[<&>\u{fffd}"]);
        assert!(!xml.contains("no<element"));
    }
}
