//! Dublin Core as text (`title: …`) and as JSON, and which of the forms a file has.

use super::{Metadata, anvl, dc_element, parse_dc_xml, text_of};
use crate::ErrorCode;
use crate::{Error, Result};
use serde_json::Value;

/// Reads a Dublin Core file of any form: XML, JSON, or lines of `element: value`.
pub fn parse_dc(bytes: &[u8]) -> Result<Metadata> {
    match text_of(bytes)?.trim_start().bytes().next() {
        Some(b'<') => parse_dc_xml(bytes),
        Some(b'{') => parse_dc_json(bytes),
        _ => parse_dc_text(bytes),
    }
}

/// Lines of `element: value`, repeated and continued as in ANVL. Lines with other labels are
/// left out.
pub fn parse_dc_text(bytes: &[u8]) -> Result<Metadata> {
    let mut metadata = Metadata::default();
    for element in anvl::parse(&with_prefixes_kept(text_of(bytes)?))? {
        if dc_element(&element.label).is_some() {
            metadata.add_dc(&element.label, &element.value)?;
        }
    }
    Ok(metadata.with_kernel_of_dc())
}

/// `dc:title: x` has its colon too early for ANVL.
fn with_prefixes_kept(text: &str) -> String {
    let kept = |line: &str| {
        let prefix = ["dc:", "dcterms:"].into_iter().find(|prefix| {
            line.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix))
        });
        match prefix {
            Some(prefix) if line[prefix.len()..].contains(':') => line[prefix.len()..].to_owned(),
            _ => line.to_owned(),
        }
    };
    text.split('\n').map(kept).collect::<Vec<_>>().join("\n")
}

/// An object with elements as keys and strings, numbers or lists of them as values. `null` and an
/// empty list say that an element has no value. Other keys are left out.
pub fn parse_dc_json(bytes: &[u8]) -> Result<Metadata> {
    let document: Value = serde_json::from_str(text_of(bytes)?)
        .map_err(|error| wrong(format!("the Dublin Core file is no JSON: {error}")))?;
    let Value::Object(fields) = document else {
        return Err(wrong(
            "the Dublin Core file is no JSON object; write {\"title\": …}".to_owned(),
        ));
    };
    let mut metadata = Metadata::default();
    for (name, value) in &fields {
        if dc_element(name).is_none() {
            continue;
        }
        if matches!(value, Value::Null) || value.as_array().is_some_and(Vec::is_empty) {
            metadata.say_dc(name, "")?;
            continue;
        }
        let values = match value {
            Value::Array(values) => values.as_slice(),
            one => std::slice::from_ref(one),
        };
        for value in values {
            match value {
                Value::String(text) => metadata.add_dc(name, text)?,
                Value::Number(number) => metadata.add_dc(name, &number.to_string())?,
                Value::Null => {}
                _ => {
                    return Err(wrong(format!(
                        "{name:?} of the Dublin Core file is neither text nor a list of texts"
                    )));
                }
            }
        }
    }
    Ok(metadata.with_kernel_of_dc())
}

fn wrong(message: String) -> Error {
    Error::permanent(ErrorCode::MetadataDcJson, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_three_forms_say_the_same() {
        let text = "# c\ntitle: A\ndc:creator: B: b\nDC.creator: C\n  c\ndate: 1900\nnote: x\n";
        let json = r#"{"title":"A","dc:creator":["B: b","C c"],"date":1900,"@context":{}}"#;
        let xml = "<m xmlns:dc='http://purl.org/dc/elements/1.1/'><dc:title>A</dc:title><dc:creator>B: b</dc:creator><dc:creator>C c</dc:creator><dc:date>1900</dc:date></m>";
        let [a, b, c] = [text, json, xml].map(|form| parse_dc(form.as_bytes()).unwrap());
        assert_eq!(a, b);
        assert_eq!(b, c);
        assert_eq!(a.dublin_core["creator"], ["B: b", "C c"]);
        assert_eq!(a.who.as_deref(), Some("B: b; C c"));
    }

    #[test]
    fn null_and_an_empty_list_remove_and_empty_texts_say_nothing() {
        let said = parse_dc(br#"{"title":null,"creator":[],"date":"","subject":["",null]}"#);
        let said = said.unwrap();
        assert_eq!(said.dublin_core.keys().collect::<Vec<_>>(), ["creator", "title"]);
        assert_eq!((said.what.as_deref(), said.when), (Some(""), None));
        assert!(parse_dc(b"title:\ndc:date:\n").unwrap().is_empty());
        assert!(parse_dc(b"<dc:title/>").unwrap().is_empty());
    }

    #[test]
    fn other_json_is_refused() {
        for bad in ["{", "{\"title\": {\"a\": 1}}", "{\"title\": [[1]]}"] {
            assert_eq!(parse_dc(bad.as_bytes()).unwrap_err().code(), "metadata.dc-json", "{bad}");
        }
        assert_eq!(parse_dc_json(b"[]").unwrap_err().code(), "metadata.dc-json");
        let deep = format!("{{\"title\":{}", "[".repeat(100_000));
        assert!(parse_dc(deep.as_bytes()).is_err());
    }
}
