//! Reading Checkm: lines into header, comments and rows.

use crate::code::{Code, Severity};
use crate::column::Column;
use crate::error::Error;
use crate::escape::{self, Dialect, Flaw};
use crate::layout::{COLUMNS_MAX, Declared, Header, PREFIXES_MAX};
use crate::lines::{Found, Lines};
use crate::options::Options;
use crate::profile::Profile;
use crate::report::{Place, Report, excerpt};
use crate::row::RawRow;
use crate::url;
use std::borrow::Cow;
use std::io::BufRead;

pub(crate) struct TextReader<R> {
    lines: Lines<R>,
    expected: Option<Profile>,
    declared: Declared,
    header: Option<Header>,
    rows: u64,
    saw_content: bool,
    eof_line: Option<u64>,
    is_done: bool,
}

impl<R: BufRead> TextReader<R> {
    pub fn new(source: R, options: &Options) -> TextReader<R> {
        TextReader {
            lines: Lines::new(source, options.line_bytes_max),
            expected: options.profile,
            declared: Declared::default(),
            header: None,
            rows: 0,
            saw_content: false,
            eof_line: None,
            is_done: false,
        }
    }

    pub fn header(&self) -> Option<&Header> {
        self.header.as_ref()
    }

    /// Reads up to and with the next row, and lets `visit` see it. False at the end.
    pub fn step(
        &mut self,
        report: &mut Report,
        visit: &mut dyn FnMut(RawRow<'_>, &Header, &mut Report) -> Result<(), Error>,
    ) -> Result<bool, Error> {
        while !self.is_done {
            let found = self.lines.advance().map_err(Error::Read)?;
            (report.lines, report.bytes) = (self.lines.number, self.lines.bytes);
            if found == Found::End {
                self.end(report);
                break;
            }
            if self.lines.number == 1 && !self.begin(report) {
                break;
            }
            if found == Found::Line && self.is_no_row(report) {
                continue;
            }
            let place = self.next_place(report);
            if found == Found::TooLong {
                report.add(Code::LineTooLong, place, None, || "the line is too long".to_string());
                continue;
            }
            let Some(header) = &self.header else { continue };
            match std::str::from_utf8(self.lines.line()) {
                Ok(line) => {
                    visit(split(line, header, place, report), header, report)?;
                    return Ok(true);
                }
                Err(error) => report.add(Code::Utf8, place, None, || {
                    format!("byte {} of the line is not UTF-8", error.valid_up_to() + 1)
                }),
            }
        }
        Ok(false)
    }

    fn place(&self) -> Place {
        Place { line: self.lines.number, row: 0 }
    }

    /// Counts a row, which ends the header.
    fn next_place(&mut self, report: &mut Report) -> Place {
        self.rows += 1;
        report.rows = self.rows;
        self.saw_content = true;
        self.settle(report);
        Place { line: self.lines.number, row: self.rows }
    }

    fn settle(&mut self, report: &mut Report) {
        if self.header.is_none() {
            let declared = std::mem::take(&mut self.declared);
            self.header = Some(declared.resolve(self.expected, report));
        }
    }

    /// Looks at the first line for how the file is encoded and what version it is. False when
    /// there is no use in reading on.
    fn begin(&mut self, report: &mut Report) -> bool {
        let place = self.place();
        match self.lines.line() {
            [0xef, 0xbb, 0xbf, ..] => {
                report.add(Code::ByteOrderMark, place, None, || {
                    "the file begins with a byte order mark".to_string()
                });
                self.lines.drop_front(3);
            }
            [0xff, 0xfe, ..] | [0xfe, 0xff, ..] | [0, 0, 0xfe, 0xff, ..] => {
                report.add(Code::Encoding, place, None, || {
                    "the file is UTF-16 or UTF-32; save it as UTF-8".to_string()
                });
                self.is_done = true;
                return false;
            }
            _ => {}
        }
        let line = self.lines.line();
        if !line.get(..9).is_some_and(|start| start.eq_ignore_ascii_case(b"#%checkm_")) {
            report.add(Code::VersionMissing, place, None, || {
                "the first line is not #%checkm_0.7".to_string()
            });
        } else if line[9..].trim_ascii() != b"0.7" {
            let version = String::from_utf8_lossy(&line[9..]).into_owned();
            report.add(Code::VersionUnknown, place, None, || {
                format!("version {:?} is read as 0.7", excerpt(version.trim()))
            });
        }
        true
    }

    /// Deals with blank lines, comments, and whatever comes after the end.
    fn is_no_row(&mut self, report: &mut Report) -> bool {
        let line = self.lines.line();
        if line.iter().all(|b| matches!(b, b' ' | b'\t' | b'\r')) {
            return true;
        }
        if let Some(end) = self.eof_line {
            let place = self.place();
            report.add(Code::EofTrailing, place, None, || {
                format!("there is content after the #%eof of line {end}")
            });
            return true;
        }
        if line[0] != b'#' {
            return false;
        }
        self.saw_content = true;
        if line.starts_with(b"#%") {
            // Only a declared address or name can hold other characters, and is then not known.
            let text = String::from_utf8_lossy(&line[2..]).into_owned();
            self.structured(&text, report);
        }
        true
    }

    fn structured(&mut self, text: &str, report: &mut Report) {
        let end = text.find([' ', '\t', '|']).unwrap_or(text.len());
        let symbol = text[..end].to_ascii_lowercase();
        let place = self.place();
        if symbol.starts_with("eof") {
            self.eof_line = Some(place.line);
            return;
        }
        if symbol.starts_with("checkm_") {
            return;
        }
        if !matches!(symbol.as_str(), "profile" | "prefix" | "fields" | "columns") {
            report.add(Code::HeaderUnknown, place, None, || {
                format!("#%{} is not known", excerpt(&symbol))
            });
        } else if self.header.is_some() {
            report.add(Code::HeaderLate, place, None, || {
                format!("#%{symbol} comes after the first row")
            });
        } else {
            self.declare(&symbol, &text[end..], report);
        }
    }

    fn declare(&mut self, symbol: &str, rest: &str, report: &mut Report) {
        let place = self.place();
        let (tokens, is_regular) = tokens(symbol, rest);
        if !is_regular || tokens.is_empty() {
            report.add(Code::HeaderSyntax, place, None, || {
                format!("#%{symbol} should be followed by | and its parts, separated by |")
            });
        }
        let Some(first) = tokens.first() else { return };
        let is_repeated = match symbol {
            "prefix" => return self.declare_prefix(&tokens, report),
            "profile" => {
                let old = self.declared.profile.get_or_insert((first.to_string(), place.line));
                old.0 != *first
            }
            _ if tokens.len() > COLUMNS_MAX => {
                report.add(Code::HeaderTooLarge, place, None, || {
                    format!("there are {} columns, more than {COLUMNS_MAX}", tokens.len())
                });
                return;
            }
            _ => {
                let fields: Vec<_> = tokens.iter().map(|t| t.to_string()).collect();
                let old = self.declared.fields.get_or_insert((fields.clone(), place.line));
                old.0 != fields
            }
        };
        if is_repeated {
            report.add(Code::HeaderRepeated, place, None, || {
                format!("#%{symbol} was declared otherwise before; the first counts")
            });
        }
    }

    fn declare_prefix(&mut self, tokens: &[&str], report: &mut Report) {
        let place = self.place();
        // Merritt's own code writes `nfo:<http://…>`.
        let (name, url) = match tokens {
            [one] => one.split_once('<').unwrap_or((one, "")),
            [name, url, ..] => (*name, *url),
            [] => return,
        };
        let name = name.trim().trim_end_matches(':').to_string();
        let url = url.trim().trim_start_matches('<').trim_end_matches('>').to_string();
        let prefixes = &mut self.declared.prefixes;
        if prefixes.len() >= PREFIXES_MAX {
            report.add(Code::HeaderTooLarge, place, None, || {
                format!("there are more than {PREFIXES_MAX} prefixes")
            });
        } else if !prefixes.contains(&(name.clone(), url.clone())) {
            prefixes.push((name, url));
        }
    }

    fn end(&mut self, report: &mut Report) {
        self.is_done = true;
        if !self.saw_content {
            report.add(Code::Empty, Place::default(), None, || {
                "there is nothing in the manifest".to_string()
            });
            return;
        }
        self.settle(report);
        let is_general = self.header.as_ref().is_some_and(|h| h.profile == Profile::General);
        let severity = if is_general { Severity::Warning } else { Severity::Error };
        let place = self.place();
        // In general Checkm `#%eof` says that an empty manifest is meant to be empty.
        if self.rows == 0 && !(is_general && self.eof_line.is_some()) {
            report.add_as(severity, Code::NoRows, place, None, || "there are no rows".to_string());
        }
        if self.eof_line.is_none() {
            report.add_as(severity, Code::EofMissing, place, None, || {
                "there is no #%eof at the end; the manifest may be cut short".to_string()
            });
        }
    }
}

/// The parts of a structured comment, and whether they are separated as they should be.
fn tokens<'a>(symbol: &str, rest: &'a str) -> (Vec<&'a str>, bool) {
    let rest = rest.trim();
    let (body, is_regular) = match rest.strip_prefix('|') {
        Some(body) => (body, true),
        None => (rest, false),
    };
    let is_list = matches!(symbol, "fields" | "columns");
    if !is_regular && is_list && !body.contains('|') {
        return (body.split_whitespace().collect(), false);
    }
    let tokens: Vec<_> = body.split('|').map(str::trim).collect();
    let last = tokens.iter().rposition(|t| !t.is_empty()).map_or(0, |at| at + 1);
    (tokens[..last].to_vec(), is_regular)
}

/// A line into its values.
fn split<'a>(line: &'a str, header: &Header, place: Place, report: &mut Report) -> RawRow<'a> {
    let mut raw = RawRow { place, ..RawRow::default() };
    let mut surplus = 0;
    for (position, cell) in line.split('|').enumerate() {
        let mut cell = cell.trim_matches([' ', '\t']);
        if position == 0
            && let Some(rest) = cell.strip_prefix('@')
        {
            raw.include = true;
            cell = rest.trim_start_matches([' ', '\t']);
        }
        if cell.is_empty() {
            continue;
        }
        match header.columns.get(position) {
            Some(column) => set(&mut raw, column, cell, header.dialect(), report),
            // General Checkm leaves the columns after the sixth to whoever uses them.
            None if header.is_open && position < COLUMNS_MAX => {
                let column = Column::Extra((position + 1).to_string());
                set(&mut raw, &column, cell, header.dialect(), report);
            }
            None => surplus += 1,
        }
    }
    if surplus > 0 {
        raw.bad = true;
        report.add(Code::ColumnsTooMany, place, None, || {
            let (has, may) = (header.columns.len() + surplus, header.columns.len());
            format!("the row has {has} columns or more, and there are {may} fields")
        });
    }
    raw
}

fn set<'a>(
    raw: &mut RawRow<'a>,
    column: &Column,
    cell: &'a str,
    dialect: Dialect,
    report: &mut Report,
) {
    let is_path = matches!(column, Column::Source | Column::Name);
    let keeps_escapes = match dialect {
        Dialect::Merritt => *column == Column::Source,
        Dialect::General => is_path && url::is_url(cell),
    };
    let (value, flaw) =
        if keeps_escapes { (Cow::Borrowed(cell), None) } else { escape::decode(cell, dialect) };
    match flaw {
        Some(Flaw::Stray) => {
            report.add(Code::EscapeSyntax, raw.place, Some(column.as_str()), || {
                format!("a % in {:?} begins no escape", excerpt(cell))
            })
        }
        Some(Flaw::NotUtf8) => {
            raw.bad = true;
            report.add(Code::EscapeUtf8, raw.place, Some(column.as_str()), || {
                format!("{:?} does not decode to UTF-8", excerpt(cell))
            });
        }
        None => {}
    }
    if *column == Column::LocalIds {
        raw.local_ids = list(value);
        return;
    }
    // "./" is how the specification keeps a name from being taken for a comment or an inclusion.
    let value = if is_path && dialect == Dialect::General { without_dot(value) } else { value };
    raw.set(column, value);
}

fn without_dot(value: Cow<'_, str>) -> Cow<'_, str> {
    match value {
        Cow::Borrowed(text) => Cow::Borrowed(text.strip_prefix("./").unwrap_or(text)),
        Cow::Owned(text) => match text.strip_prefix("./") {
            Some(rest) => Cow::Owned(rest.to_string()),
            None => Cow::Owned(text),
        },
    }
}

fn list(value: Cow<'_, str>) -> Vec<Cow<'_, str>> {
    fn parts(text: &str) -> impl Iterator<Item = &str> {
        text.split(';').map(|part| part.trim_matches([' ', '\t'])).filter(|part| !part.is_empty())
    }
    match value {
        Cow::Borrowed(text) => parts(text).map(Cow::Borrowed).collect(),
        Cow::Owned(text) => parts(&text).map(|part| Cow::Owned(part.to_string())).collect(),
    }
}
