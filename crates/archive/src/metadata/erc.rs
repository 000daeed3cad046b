//! Electronic resource citations: who, what, when and where of an object, in ANVL.

use super::{Metadata, anvl, text_of, tidy};
use crate::Result;

/// The codes that stand for a character that would be read as something else.
const CODES: [(&str, &str); 26] = [
    ("sp", " "),
    ("ex", "!"),
    ("dq", "\""),
    ("ns", "#"),
    ("do", "$"),
    ("pe", "%"),
    ("am", "&"),
    ("sq", "'"),
    ("op", "("),
    ("cp", ")"),
    ("as", "*"),
    ("pl", "+"),
    ("co", ","),
    ("sl", "/"),
    ("cn", ":"),
    ("sc", ";"),
    ("lt", "<"),
    ("eq", "="),
    ("gt", ">"),
    ("qu", "?"),
    ("at", "@"),
    ("ox", "["),
    ("ls", "\\"),
    ("cx", "]"),
    ("vb", "|"),
    ("nu", ""),
];

/// Placeholder values that mean "not known here": they say nothing.
const UNSAID: [&str; 3] = ["(:unas)", "(:unav)", "(:tba)"];
/// Values that say that there is none: they remove what was there.
const NONE: [&str; 2] = ["(:null)", "(:none)"];

/// Reads the first ERC of a file: labelled lines, the short form `erc: who | what | when | where`,
/// or labelled lines without the `erc:` header.
pub fn parse_erc(bytes: &[u8]) -> Result<Metadata> {
    let elements = anvl::parse(text_of(bytes)?)?;
    let start = elements.iter().position(|element| element.label == "erc").unwrap_or(0);
    let mut fields: [Option<Vec<String>>; 4] = Default::default();
    let Some(record) = elements.get(start).map(|element| element.record) else {
        return Ok(Metadata::default());
    };
    let own = elements[start..].iter().take_while(|element| element.record == record);
    for (index, element) in own.enumerate() {
        match element.label.as_str() {
            "erc" if index == 0 => short_form(&element.value, &mut fields)?,
            // Another segment tells another story: about the record, or about who keeps it.
            "erc" => break,
            label if label.ends_with("-erc") => break,
            label => {
                if let Some(field) = field_of(label) {
                    said(&mut fields[field], &element.value)?;
                }
            }
        }
    }
    let [who, what, when, where_] = fields.map(|values| values.map(|values| values.join("; ")));
    Metadata { who, what, when, where_, ..Metadata::default() }.checked()
}

fn short_form(value: &str, fields: &mut [Option<Vec<String>>; 4]) -> Result<()> {
    for (field, value) in fields.iter_mut().zip(value.split('|')) {
        said(field, value)?;
    }
    Ok(())
}

fn said(field: &mut Option<Vec<String>>, value: &str) -> Result<()> {
    let decoded = decode(value.trim());
    match tidy(&decoded)? {
        Some(value) if NONE.contains(&value.as_str()) => {
            field.get_or_insert_default();
        }
        Some(value) if !UNSAID.contains(&value.as_str()) => {
            field.get_or_insert_default().push(value);
        }
        _ => {}
    }
    Ok(())
}

/// `who`, or `who(h1)` as some records have it.
fn field_of(label: &str) -> Option<usize> {
    let bare = label.split('(').next().unwrap_or(label).trim();
    ["who", "what", "when", "where"].iter().position(|name| *name == bare)
}

/// Decodes the codes of ERC, and the three of ANVL that cannot be confused with what a URL may
/// contain anyway. Anything else after a `%` stays as it is.
fn decode(value: &str) -> String {
    let mut decoded = String::with_capacity(value.len());
    let mut rest = value;
    while let Some(at) = rest.find('%') {
        decoded.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        let (meant, taken) = code(after).unwrap_or(("%", 0));
        decoded.push_str(meant);
        rest = &after[taken..];
    }
    decoded.push_str(rest);
    decoded
}

/// What follows a `%`: its meaning and its length.
fn code(after: &str) -> Option<(&'static str, usize)> {
    match after.bytes().next()? {
        b'%' => return Some(("%", 1)),
        // A place holder, and the brackets within which line breaks do not count.
        b'_' | b'{' | b'}' => return Some(("", 1)),
        _ => {}
    }
    let two = after.get(..2)?.to_ascii_lowercase();
    let meant = match two.as_str() {
        "0a" => "\n",
        "0d" => "\r",
        "25" => "%",
        two => CODES.iter().find(|(code, _)| *code == two)?.1,
    };
    Some((meant, 2))
}

/// Writes the record, with `(:unas)` for fields that are not given.
pub fn write_erc(metadata: &Metadata) -> String {
    let fields = [
        ("who", &metadata.who),
        ("what", &metadata.what),
        ("when", &metadata.when),
        ("where", &metadata.where_),
    ];
    let mut record = String::from("erc:\n");
    for (label, value) in fields {
        let value = value.as_deref().filter(|value| !value.is_empty());
        let value = value.map_or("(:unas)".to_owned(), encode);
        record.push_str(&format!("{label}: {value}\n"));
    }
    record
}

fn encode(value: &str) -> String {
    let mut encoded = String::with_capacity(value.len());
    for (at, c) in value.char_indices() {
        match c {
            '\n' => encoded.push_str("%0A"),
            '\r' => encoded.push_str("%0D"),
            '%' if stays(&value[at + 1..]) => encoded.push('%'),
            '%' => encoded.push_str("%pe"),
            '\t' => encoded.push('\t'),
            c if c.is_control() => encoded.push(char::REPLACEMENT_CHARACTER),
            c => encoded.push(c),
        }
    }
    encoded
}

/// The percent sign of an encoded URL is left alone: it cannot be taken for a code.
fn stays(after: &str) -> bool {
    let hex = after.get(..2).is_some_and(|two| two.bytes().all(|b| b.is_ascii_hexdigit()));
    hex && code(after).is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> [Option<String>; 4] {
        let metadata = parse_erc(text.as_bytes()).unwrap();
        assert!(metadata.dublin_core.is_empty());
        [metadata.who, metadata.what, metadata.when, metadata.where_]
    }

    fn expected(values: [&str; 4]) -> [Option<String>; 4] {
        values.map(|value| Some(value.to_owned()).filter(|value| !value.is_empty()))
    }

    #[test]
    fn both_forms_are_read() {
        let labelled = "# a comment\nerc:\nwho: Gibbon, Edward\nwhat: The Decline and\n   Fall\nwhen(h3): 1781\nwhere: ark:/1/a%20b\nnote: x\n\nerc:\nwho: another\n";
        let all = ["Gibbon, Edward", "The Decline and Fall", "1781", "ark:/1/a%20b"];
        assert_eq!(parsed(labelled), expected(all));
        let short = "erc: Gibbon, Edward | The Decline and Fall\n  | 1781 | ark:/1/a%20b\n";
        assert_eq!(parsed(short), expected(all));
        assert_eq!(parsed("who: A\nwhere: x\nwhere: y"), expected(["A", "", "", "x; y"]));
        assert_eq!(parsed("erc:\nwho: A\nabout-erc:\nwho: B\n"), expected(["A", "", "", ""]));
        assert_eq!(parsed(""), expected([""; 4]));
    }

    #[test]
    fn codes_are_decoded_and_missing_values_are_missing() {
        assert_eq!(
            parsed(
                "erc:\nwho: a%spb%vbc%%d%zze%\nwhat: (:unas)\nwhen: (:unkn) long ago\nwhere: x%0Ay"
            ),
            expected(["a b|c%d%zze%", "", "(:unkn) long ago", "x\ny"])
        );
        assert_eq!(parsed("erc: a%vbb | c"), expected(["a|b", "c", "", ""]));
    }

    #[test]
    fn a_value_that_means_none_removes_and_a_placeholder_says_nothing() {
        let [who, what, when, where_] =
            parsed("erc:\nwho: (:none)\nwhat: (:tba)\nwhen:\nwhere: (:null)\nwhere: x");
        assert_eq!((who.as_deref(), what, when), (Some(""), None, None));
        assert_eq!(where_.as_deref(), Some("x"));
    }

    #[test]
    fn the_record_says_what_is_unknown() {
        let metadata = Metadata { who: Some("A\nB".into()), ..Metadata::default() };
        assert_eq!(
            write_erc(&metadata),
            "erc:\nwho: A%0AB\nwhat: (:unas)\nwhen: (:unas)\nwhere: (:unas)\n"
        );
    }
}
