//! Writing a manifest of either format, row by row. The same rows give the same bytes.

use crate::column::Column;
use crate::error::WriteError;
use crate::escape::{self, Dialect};
use crate::json::FORMAT;
use crate::layout::{Header, position};
use crate::options::Format;
use crate::profile::Profile;
use crate::report::{Report, excerpt};
use crate::row::{RawRow, Row};
use crate::rules;
use crate::url;
use serde::ser::{Serialize, SerializeMap, Serializer};
use std::borrow::Cow;
use std::io::Write;

const PREFIXES: [(&str, &str); 2] = [
    ("mrt", "http://merritt.cdlib.org/terms#"),
    ("nfo", "http://www.semanticdesktop.org/ontologies/2007/03/22/nfo#"),
];

/// Writes a manifest as a stream. Every row is checked by the rules it would be read by.
pub struct Writer<W> {
    out: W,
    format: Format,
    header: Header,
    rows: u64,
    drops: bool,
    line: String,
}

impl<W: Write> Writer<W> {
    /// Begins a manifest by writing its header.
    pub fn new(mut out: W, format: Format, header: Header) -> Result<Writer<W>, WriteError> {
        check_header(&header)?;
        match format {
            Format::Checkm => write_header(&mut out, &header)?,
            Format::Json => write_json_header(&mut out, &header)?,
        }
        Ok(Writer { out, format, header, rows: 0, drops: false, line: String::new() })
    }

    /// Leaves out values that the profile has no column for, which are errors otherwise.
    pub fn dropping(mut self) -> Writer<W> {
        self.drops = true;
        self
    }

    /// Writes one row.
    pub fn write(&mut self, row: &Row<'_>) -> Result<(), WriteError> {
        self.rows += 1;
        let kept = self.without_strangers(row)?;
        let row = kept.as_ref().unwrap_or(row);
        self.check(row)?;
        match self.format {
            Format::Checkm => self.write_text(row),
            Format::Json => self.write_json(row),
        }
    }

    /// How many rows have been written.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Ends the manifest and flushes it.
    pub fn finish(mut self) -> Result<W, WriteError> {
        match self.format {
            Format::Checkm => self.out.write_all(b"#%eof\n")?,
            Format::Json if self.rows == 0 => self.out.write_all(b"]}\n")?,
            Format::Json => self.out.write_all(b"\n]}\n")?,
        }
        self.out.flush()?;
        Ok(self.out)
    }

    fn has(&self, column: &Column) -> bool {
        match column {
            Column::Extra(id) if self.header.is_open => position(id).is_some(),
            _ => self.header.columns.contains(column),
        }
    }

    /// The row without what has no column, when there is something to leave out.
    fn without_strangers<'a>(&self, row: &Row<'a>) -> Result<Option<Row<'a>>, WriteError> {
        let known = Column::KNOWN.into_iter().filter(|column| match column {
            Column::Size => row.size.is_some(),
            Column::LocalIds => !row.local_ids.is_empty(),
            column => row.text(column).is_some(),
        });
        let extra = row.extra.iter().map(|(id, _)| Column::Extra(id.to_string()));
        let strangers: Vec<_> = known.chain(extra).filter(|column| !self.has(column)).collect();
        let Some(first) = strangers.first() else { return Ok(None) };
        if !self.drops {
            return Err(WriteError::NoColumn {
                row: self.rows,
                column: first.to_string(),
                profile: self.header.profile,
            });
        }
        let mut kept = row.clone();
        for column in &strangers {
            remove(&mut kept, column);
        }
        Ok(Some(kept))
    }

    fn check(&self, row: &Row<'_>) -> Result<(), WriteError> {
        let required = self.header.profile.required();
        if row.text(&required).is_none_or(str::is_empty) {
            return Err(WriteError::Required {
                row: self.rows,
                column: required.to_string(),
                profile: self.header.profile,
            });
        }
        let mut report = Report::new(1);
        let (_, is_good) = rules::check(raw(row), self.header.profile, &mut report);
        match report.problems().first() {
            Some(problem) if !is_good => Err(WriteError::Invalid {
                row: self.rows,
                code: problem.code,
                message: problem.message.clone(),
            }),
            _ => Ok(()),
        }
    }

    fn write_text(&mut self, row: &Row<'_>) -> Result<(), WriteError> {
        let mut line = std::mem::take(&mut self.line);
        line.clear();
        let mut empty_since = 0;
        let extra = if self.header.is_open { last_position(row) } else { 0 };
        for at in 0..self.header.columns.len().max(extra) {
            let numbered = Column::Extra((at + 1).to_string());
            let column = self.header.columns.get(at).unwrap_or(&numbered);
            let cell = self.cell(row, column)?;
            if at == 0 {
                self.check_first(&cell, row.include)?;
                if row.include {
                    line.push('@');
                }
            } else {
                line.push_str(" | ");
            }
            line.push_str(&cell);
            if !cell.is_empty() {
                empty_since = line.len();
            }
        }
        line.truncate(empty_since);
        line.push('\n');
        self.out.write_all(line.as_bytes())?;
        self.line = line;
        Ok(())
    }

    /// A line that begins with `#` is a comment, and one with `@` an inclusion.
    fn check_first(&self, cell: &str, include: bool) -> Result<(), WriteError> {
        if cell.starts_with('#') || cell.starts_with('@') && !include {
            let column = self.header.columns.first().map_or("", Column::as_str);
            let why = "at the beginning of a line it would be a comment or an inclusion";
            return Err(self.unrepresentable(column, cell, why));
        }
        Ok(())
    }

    fn cell<'a>(&self, row: &'a Row<'_>, column: &Column) -> Result<Cow<'a, str>, WriteError> {
        match column {
            Column::Size => {
                return Ok(row.size.map_or("".into(), |size| size.to_string().into()));
            }
            Column::LocalIds => return self.list(&row.local_ids),
            _ => {}
        }
        let Some(value) = row.text(column) else { return Ok("".into()) };
        let is_path = matches!(column, Column::Source | Column::Name);
        let dialect = self.header.dialect();
        // The rules have found a URL to be free of bars and spaces.
        let is_url = match dialect {
            Dialect::Merritt => *column == Column::Source,
            Dialect::General => is_path && url::is_url(value),
        };
        if is_url {
            return Ok(value.into());
        }
        if is_path && dialect == Dialect::General && value.starts_with("./") {
            return Err(self.unrepresentable(column.as_str(), value, "a name has no ./ before it"));
        }
        escape::encode(value, dialect, is_path)
            .map_err(|why| self.unrepresentable(column.as_str(), value, why))
    }

    fn list<'a>(&self, ids: &[Cow<'a, str>]) -> Result<Cow<'a, str>, WriteError> {
        for id in ids {
            if id.is_empty() || id.contains(';') || id.trim_matches([' ', '\t']) != &**id {
                let why = "identifiers are separated by ; and lose the white space around them";
                return Err(self.unrepresentable("local_ids", id, why));
            }
        }
        let joined = ids.join(";");
        match escape::encode(&joined, self.header.dialect(), false) {
            Ok(cell) => Ok(Cow::Owned(cell.into_owned())),
            Err(why) => Err(self.unrepresentable("local_ids", &joined, why)),
        }
    }

    fn unrepresentable(&self, column: &str, value: &str, why: &'static str) -> WriteError {
        WriteError::Unrepresentable {
            row: self.rows,
            column: column.to_string(),
            value: excerpt(value).into_owned(),
            why,
        }
    }

    fn write_json(&mut self, row: &Row<'_>) -> Result<(), WriteError> {
        // One row a line, so that a line number in a message means something.
        self.out.write_all(if self.rows == 1 { b"\n" } else { b",\n" })?;
        serde_json::to_writer(&mut self.out, &JsonRow(row)).map_err(std::io::Error::from)?;
        Ok(())
    }
}

fn last_position(row: &Row<'_>) -> usize {
    row.extra.iter().filter_map(|(id, _)| position(id)).max().unwrap_or(0)
}

fn remove(row: &mut Row<'_>, column: &Column) {
    match column {
        Column::Source => row.source = None,
        Column::Algorithm => row.algorithm = None,
        Column::Digest => row.digest = None,
        Column::Size => row.size = None,
        Column::Modified => row.modified = None,
        Column::Name => row.name = None,
        Column::MimeType => row.mime_type = None,
        Column::PrimaryId => row.primary_id = None,
        Column::LocalIds => row.local_ids.clear(),
        Column::Creator => row.creator = None,
        Column::Title => row.title = None,
        Column::Date => row.date = None,
        Column::Extra(id) => row.extra.retain(|(other, _)| other != id),
    }
}

fn raw<'a>(row: &'a Row<'_>) -> RawRow<'a> {
    let mut raw = RawRow { place: row.place, include: row.include, ..RawRow::default() };
    for column in &Column::KNOWN {
        if let Some(text) = row.text(column) {
            raw.set(column, Cow::Borrowed(text));
        }
    }
    if let Some(size) = row.size {
        raw.set(&Column::Size, Cow::Owned(size.to_string()));
    }
    raw.local_ids = row.local_ids.iter().map(|id| Cow::Borrowed(&**id)).collect();
    raw.extra =
        row.extra.iter().map(|(id, v)| (Cow::Borrowed(&**id), Cow::Borrowed(&**v))).collect();
    raw
}

/// What a header line could not hold would end it, or begin another.
fn check_header(header: &Header) -> Result<(), WriteError> {
    let is_plain = |text: &str| {
        !text.is_empty()
            && text.trim() == text
            && !text.contains('|')
            && !text.contains(char::is_control)
    };
    let fields = header.columns.iter().map(|column| ("columns", column.field()));
    let prefixes = header.prefixes.iter().flat_map(|(name, url)| [name.as_str(), url.as_str()]);
    let others = header.profile_uri.as_deref().map(|uri| ("profile", uri));
    let mut all = fields.chain(prefixes.map(|text| ("prefixes", text))).chain(others);
    match all.find(|(_, text)| !is_plain(text)) {
        None => Ok(()),
        Some((column, value)) => Err(WriteError::Unrepresentable {
            row: 0,
            column: column.to_string(),
            value: excerpt(value).into_owned(),
            why: "the header cannot hold white space around it, a bar, or control characters",
        }),
    }
}

fn declared_prefixes(header: &Header) -> Vec<(String, String)> {
    let mut all = header.prefixes.clone();
    for (name, url) in PREFIXES {
        if !all.iter().any(|(other, _)| other == name) {
            all.push((name.to_string(), url.to_string()));
        }
    }
    all.sort();
    all
}

fn write_header(out: &mut impl Write, header: &Header) -> std::io::Result<()> {
    out.write_all(b"#%checkm_0.7\n")?;
    let uri = header.profile_uri.as_deref().or(header.profile.uri());
    if let Some(uri) = uri {
        writeln!(out, "#%profile | {uri}")?;
    }
    if header.is_open {
        return Ok(());
    }
    for (name, url) in declared_prefixes(header) {
        writeln!(out, "#%prefix | {name}: | {url}")?;
    }
    let fields: Vec<_> = header.columns.iter().map(Column::field).collect();
    writeln!(out, "#%fields | {}", fields.join(" | "))
}

fn write_json_header(out: &mut impl Write, header: &Header) -> std::io::Result<()> {
    let profile = header.profile_uri.as_deref().unwrap_or(header.profile.as_str());
    write!(out, "{{\"format\":\"{FORMAT}\",\"profile\":{}", serde_json::to_string(profile)?)?;
    let is_usual = header.columns == header.profile.columns();
    if !is_usual || header.profile == Profile::General && !header.is_open {
        let fields: Vec<_> = header.columns.iter().map(Column::field).collect();
        write!(out, ",\"columns\":{}", serde_json::to_string(&fields)?)?;
        let prefixes: std::collections::BTreeMap<_, _> =
            declared_prefixes(header).into_iter().collect();
        write!(out, ",\"prefixes\":{}", serde_json::to_string(&prefixes)?)?;
    }
    write!(out, ",\"rows\":[")
}

struct JsonRow<'r, 'a>(&'r Row<'a>);

impl Serialize for JsonRow<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let row = self.0;
        let mut map = serializer.serialize_map(None)?;
        if row.include {
            map.serialize_entry("include", &true)?;
        }
        for column in &Column::KNOWN {
            let name = column.as_str();
            match column {
                Column::Size if row.size.is_some() => map.serialize_entry(name, &row.size)?,
                Column::LocalIds if !row.local_ids.is_empty() => {
                    map.serialize_entry(name, &row.local_ids)?;
                }
                column => {
                    if let Some(text) = row.text(column).filter(|text| !text.is_empty()) {
                        map.serialize_entry(name, text)?;
                    }
                }
            }
        }
        if !row.extra.is_empty() {
            map.serialize_entry("extra", &JsonExtra(&row.extra))?;
        }
        map.end()
    }
}

struct JsonExtra<'r, 'a>(&'r [(Cow<'a, str>, Cow<'a, str>)]);

impl Serialize for JsonExtra<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(id, value)| (id, value)))
    }
}
