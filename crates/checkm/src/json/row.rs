//! One row of the JSON manifest: its members, each judged for its name and its type.

use crate::code::Code;
use crate::column::Column;
use crate::json::value::{Members, Value};
use crate::layout::{Header, position};
use crate::report::{Place, Report, excerpt};
use crate::row::RawRow;
use std::borrow::Cow;

/// A row from its bytes; nothing when they are not a JSON object.
pub(crate) fn parse_row<'a>(
    bytes: &'a [u8],
    place: Place,
    header: &Header,
    report: &mut Report,
) -> Option<RawRow<'a>> {
    let members = match serde_json::from_slice::<Members<'a>>(bytes) {
        Ok(Members(members)) => members,
        Err(error) => {
            let code = match (error.classify(), std::str::from_utf8(bytes)) {
                (serde_json::error::Category::Data, _) => Code::JsonType,
                (_, Err(_)) => Code::Utf8,
                _ => Code::JsonSyntax,
            };
            report.add(code, place, None, || without_position(&error));
            return None;
        }
    };
    let mut raw = RawRow { place, ..RawRow::default() };
    let mut seen: Vec<Cow<'a, str>> = Vec::with_capacity(members.len().min(16));
    for (key, value) in members {
        let result = if seen.contains(&key) {
            Err((Code::JsonMember, "it is there twice"))
        } else {
            set(&mut raw, &key, value, header)
        };
        if let Err((code, message)) = result {
            raw.bad = true;
            report.add(code, place, Some(&key), || message.to_string());
        }
        // A row with more members than there are columns has been found bad already.
        if seen.len() < 32 {
            seen.push(key);
        }
    }
    Some(raw)
}

/// The parser counts lines from the beginning of the row, which would mislead.
fn without_position(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let end = text.rfind(" at line ").unwrap_or(text.len());
    excerpt(&text[..end]).into_owned()
}

/// What is wrong with a member.
type Wrong = (Code, &'static str);

fn set<'a>(
    raw: &mut RawRow<'a>,
    key: &str,
    value: Value<'a>,
    header: &Header,
) -> Result<(), Wrong> {
    let wrong_type = Err((Code::JsonType, "it has the wrong type"));
    match (key, value) {
        ("include", Value::Bool(include)) => raw.include = include,
        ("extra", Value::Map(extra)) => {
            check_extra(&extra, header)?;
            raw.extra = in_order(extra, header);
        }
        ("include" | "extra", _) => return wrong_type,
        (_, value) => match (known(key, header)?, value) {
            (Column::Size, Value::Number(size)) => {
                raw.set(&Column::Size, Cow::Owned(size.to_string()));
            }
            (Column::LocalIds, Value::List(ids)) => {
                if ids.iter().any(|id| id.is_empty()) {
                    return Err((Code::JsonType, "an identifier is empty"));
                }
                raw.local_ids = ids;
            }
            (Column::Size | Column::LocalIds, _) => return wrong_type,
            (_, Value::Text(text)) if text.is_empty() => {
                return Err((Code::JsonType, "it is empty; leave it out"));
            }
            (column, Value::Text(text)) => raw.set(column, text),
            _ => return wrong_type,
        },
    }
    Ok(())
}

/// The column that a member is for.
fn known<'h>(key: &str, header: &'h Header) -> Result<&'h Column, Wrong> {
    let is_named = |column: &&Column| column.index().is_some() && column.as_str() == key;
    header.columns.iter().find(is_named).ok_or_else(|| {
        if Column::KNOWN.iter().any(|column| column.as_str() == key) {
            (Code::JsonMember, "it is not among the columns")
        } else {
            (Code::JsonMember, "there is no such member")
        }
    })
}

/// Extra values belong to columns that the header declares, or that are known by their position.
fn check_extra(extra: &[(Cow<'_, str>, Cow<'_, str>)], header: &Header) -> Result<(), Wrong> {
    let declared = |id: &str| header.columns.contains(&Column::Extra(id.to_string()));
    let numbered = |id: &str| header.is_open && position(id).is_some();
    if extra.iter().any(|(id, _)| !declared(id) && !numbered(id)) {
        return Err((Code::JsonMember, "one of its members is not among the columns"));
    }
    if extra.iter().any(|(_, value)| value.is_empty()) {
        return Err((Code::JsonType, "one of its members is empty; leave it out"));
    }
    let mut ids: Vec<_> = extra.iter().map(|(id, _)| id).collect();
    ids.sort_unstable();
    if ids.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err((Code::JsonMember, "one of its members is there twice"));
    }
    Ok(())
}

/// The members of an object have no order; columns have.
fn in_order<'a>(
    mut extra: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    header: &Header,
) -> Vec<(Cow<'a, str>, Cow<'a, str>)> {
    let place = |id: &str| header.columns.iter().position(|column| column.as_str() == id);
    extra.sort_by_key(|(id, _)| place(id).or_else(|| position(id)));
    extra
}
