//! Answers in XML. Each is the kind of document that was asked for, and agrees with itself, or it is
//! an error: an error page, a proxy's greeting or half a list must not pass for an empty list.

use super::answer::kind_of_code;
use super::xml::{self, Element};
use crate::error::{Error, ErrorKind, Result};

/// Reads an answer whose outermost element must have one of these names.
pub(super) fn read(about: &str, document: &[u8], names: &[&str]) -> Result<Element> {
    let answer = xml::parse(document)
        .map_err(|why| contradiction(about, format!("the answer is no XML: {why}")))?;
    if answer.name == "Error" {
        // A success may still hold an error, since the server begins to answer before it knows.
        let code = answer.text_of("Code").unwrap_or_default();
        let message = answer.text_of("Message").unwrap_or_default();
        let kind = kind_of_code(code).unwrap_or(ErrorKind::Permanent);
        let detail = format!("the server answered a success that holds an error: {code} {message}");
        return Err(Error::new(kind, about, detail));
    }
    if !names.contains(&answer.name.as_str()) {
        let found: String = answer.name.chars().take(60).collect();
        let why = format!("the answer is a <{found}>, not a <{}>", names.join("> or <"));
        return Err(contradiction(about, why));
    }
    Ok(answer)
}

/// An answer that cannot be right.
pub(super) fn contradiction(about: &str, why: impl AsRef<str>) -> Error {
    let detail = format!("the store's answer cannot be right: {}", why.as_ref());
    Error::new(ErrorKind::Corrupt, about, detail)
}

/// The text of an element that has to be there.
pub(super) fn required<'a>(about: &str, element: &'a Element, name: &str) -> Result<&'a str> {
    let text = element.text_of(name).filter(|text| !text.is_empty());
    text.ok_or_else(|| contradiction(about, format!("a <{}> has no {name}", element.name)))
}

/// A number that has to be there.
pub(super) fn number(about: &str, element: &Element, name: &str) -> Result<u64> {
    let text = required(about, element, name)?;
    let number = text.trim().parse().ok();
    number.ok_or_else(|| contradiction(about, format!("{name} is {text:?}, which is no number")))
}

/// Whether a list goes on after this answer. One that does not say so may have been cut off.
pub(super) fn is_truncated(about: &str, answer: &Element) -> Result<bool> {
    match answer.text_of("IsTruncated").map(str::trim) {
        Some("true") => Ok(true),
        Some("false") => Ok(false),
        _ => Err(contradiction(about, "the list does not say whether it is complete")),
    }
}

/// Where the next page starts, or `None` if this was the last. A list that is cut off without
/// saying where it goes on is not complete, and one that names the same place twice would go on
/// for ever.
pub(super) fn next_marker(
    about: &str,
    answer: &Element,
    name: &str,
    before: Option<&str>,
) -> Result<Option<String>> {
    if !is_truncated(about, answer)? {
        return Ok(None);
    }
    let Some(next) = answer.text_of(name).filter(|next| !next.is_empty()) else {
        return Err(contradiction(about, "the list is cut off, and does not say where it goes on"));
    };
    if Some(next) == before {
        return Err(contradiction(about, "the list goes on where it began"));
    }
    Ok(Some(next.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_of_another_kind_is_an_error() {
        let read = |text: &str| read("k", text.as_bytes(), &["List"]).map_err(|e| e.kind());
        assert!(read("<List/>").is_ok());
        for strange in ["", "<html><body>Welcome</body></html>", "<List>", "nothing"] {
            assert_eq!(read(strange), Err(ErrorKind::Corrupt), "{strange}");
        }
        let refused = read("<Error><Code>SlowDown</Code></Error>");
        assert_eq!(refused, Err(ErrorKind::Throttled));
    }

    #[test]
    fn a_list_that_is_cut_off_is_not_complete() {
        let next = |text: &str, before: Option<&str>| {
            let answer = xml::parse(text.as_bytes()).unwrap();
            next_marker("k", &answer, "Next", before).map_err(|e| e.kind())
        };
        assert_eq!(next("<L><IsTruncated>false</IsTruncated></L>", None), Ok(None));
        let more = "<L><IsTruncated>true</IsTruncated><Next>b</Next></L>";
        assert_eq!(next(more, Some("a")), Ok(Some("b".to_owned())));
        let bad = [
            (more, Some("b")),
            ("<L><IsTruncated>true</IsTruncated></L>", None),
            ("<L><IsTruncated>true</IsTruncated><Next></Next></L>", None),
            ("<L><IsTruncated>maybe</IsTruncated></L>", None),
            ("<L/>", None),
        ];
        for (text, before) in bad {
            assert_eq!(next(text, before), Err(ErrorKind::Corrupt), "{text}");
        }
    }
}
