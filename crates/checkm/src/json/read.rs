//! Reading the JSON manifest: the header's members, then the rows one by one.

use crate::code::Code;
use crate::error::Error;
use crate::json::FORMAT;
use crate::json::frame::{Cut, Frames};
use crate::json::row::parse_row;
use crate::json::value::Value;
use crate::layout::{COLUMNS_MAX, Declared, Header, PREFIXES_MAX};
use crate::options::Options;
use crate::profile::Profile;
use crate::report::{Place, Report};
use crate::row::RawRow;
use std::borrow::Cow;
use std::io::BufRead;

pub(crate) struct JsonReader<R> {
    frames: Frames<R>,
    buffer: Vec<u8>,
    expected: Option<Profile>,
    declared: Declared,
    header: Option<Header>,
    state: State,
    rows: u64,
    has_format: bool,
    has_rows: bool,
    members: Vec<&'static str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Start,
    /// Before a member, or after the last.
    Member,
    /// Before a row, or after the last.
    Row,
    Done,
}

/// The members that a manifest may have beside its rows.
const HEADER_MEMBERS: [&str; 5] = ["$schema", "format", "profile", "columns", "prefixes"];

impl<R: BufRead> JsonReader<R> {
    pub fn new(source: R, options: &Options) -> JsonReader<R> {
        JsonReader {
            frames: Frames::new(source, options.line_bytes_max),
            buffer: Vec::new(),
            expected: options.profile,
            declared: Declared::default(),
            header: None,
            state: State::Start,
            rows: 0,
            has_format: false,
            has_rows: false,
            members: Vec::new(),
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
        loop {
            match self.state {
                State::Start => self.start(report)?,
                State::Member => self.member(report)?,
                State::Row => {
                    if let Some(place) = self.row(report)? {
                        let Some(header) = &self.header else { return Ok(false) };
                        let raw = parse_row(&self.buffer, place, header, report);
                        if let Some(raw) = raw {
                            visit(raw, header, report)?;
                        }
                        self.count(report);
                        return Ok(true);
                    }
                }
                State::Done => {
                    self.count(report);
                    return Ok(false);
                }
            }
        }
    }

    fn count(&self, report: &mut Report) {
        report.rows = self.rows;
        report.bytes = self.frames.bytes;
        report.lines = self.frames.line;
    }

    fn place(&self) -> Place {
        Place { line: self.frames.line, row: 0 }
    }

    /// After this there is no telling where the next value begins.
    fn broken(&mut self, report: &mut Report, message: impl FnOnce() -> String) {
        let place = Place { line: self.frames.line, row: self.rows };
        report.add(Code::JsonSyntax, place, None, message);
        self.state = State::Done;
    }

    fn start(&mut self, report: &mut Report) -> Result<(), Error> {
        match self.frames.peek().map_err(Error::Read)? {
            Some(b'{') => {
                self.frames.take();
                self.state = State::Member;
                // An object without members ends at once.
                if self.frames.take_if(b'}').map_err(Error::Read)? {
                    self.end(report)?;
                }
            }
            Some(_) => {
                report.add(Code::JsonFormat, self.place(), None, || {
                    "the manifest is not a JSON object with format, profile and rows".to_string()
                });
                self.state = State::Done;
            }
            None => {
                report.add(Code::Empty, Place::default(), None, || {
                    "there is nothing in the manifest".to_string()
                });
                self.state = State::Done;
            }
        }
        Ok(())
    }

    fn member(&mut self, report: &mut Report) -> Result<(), Error> {
        let cut = self.frames.value(&mut self.buffer).map_err(Error::Read)?;
        let key = serde_json::from_slice::<String>(&self.buffer).ok().filter(|_| cut == Cut::Value);
        let (Some(key), true) = (key, self.frames.take_if(b':').map_err(Error::Read)?) else {
            self.broken(report, || "there is no member of the manifest here".to_string());
            return Ok(());
        };
        if key == "rows" {
            return self.begin_rows(report);
        }
        let place = self.place();
        match self.frames.value(&mut self.buffer).map_err(Error::Read)? {
            Cut::Value => {}
            Cut::TooLong => report
                .add(Code::LineTooLong, place, Some(&key), || "the value is too long".to_string()),
            Cut::End => {
                self.broken(report, || "the manifest ends within a value".to_string());
                return Ok(());
            }
        }
        self.declare(&key, place, report);
        self.after_member(report)
    }

    fn after_member(&mut self, report: &mut Report) -> Result<(), Error> {
        if self.frames.take_if(b',').map_err(Error::Read)? {
            self.state = State::Member;
            return Ok(());
        }
        if self.frames.take_if(b'}').map_err(Error::Read)? {
            return self.end(report);
        }
        self.broken(report, || "a comma or the end of the manifest is missing".to_string());
        Ok(())
    }

    fn begin_rows(&mut self, report: &mut Report) -> Result<(), Error> {
        if self.has_rows {
            self.broken(report, || "there is a second member rows".to_string());
            return Ok(());
        }
        self.has_rows = true;
        let place = self.place();
        if !self.frames.take_if(b'[').map_err(Error::Read)? {
            report.add(Code::JsonType, place, Some("rows"), || "rows is not a list".to_string());
            self.state = State::Done;
            return Ok(());
        }
        self.settle(report);
        self.state = State::Row;
        if self.frames.take_if(b']').map_err(Error::Read)? {
            return self.after_member(report);
        }
        Ok(())
    }

    fn settle(&mut self, report: &mut Report) {
        if self.header.is_none() {
            let declared = std::mem::take(&mut self.declared);
            self.header = Some(declared.resolve(self.expected, report));
        }
    }

    /// The next row is in the buffer; nothing when there is none, or it cannot be used.
    fn row(&mut self, report: &mut Report) -> Result<Option<Place>, Error> {
        self.frames.peek().map_err(Error::Read)?;
        self.rows += 1;
        let place = Place { line: self.frames.line, row: self.rows };
        let cut = self.frames.value(&mut self.buffer).map_err(Error::Read)?;
        if cut == Cut::End {
            self.broken(report, || "the manifest ends within its rows".to_string());
            return Ok(None);
        }
        if self.frames.take_if(b']').map_err(Error::Read)? {
            self.after_member(report)?;
        } else if !self.frames.take_if(b',').map_err(Error::Read)? {
            self.broken(report, || "a comma or the end of the rows is missing".to_string());
        }
        if cut == Cut::TooLong {
            report.add(Code::LineTooLong, place, None, || "the row is too long".to_string());
            return Ok(None);
        }
        Ok(Some(place))
    }

    fn declare(&mut self, key: &str, place: Place, report: &mut Report) {
        let Some(known) = HEADER_MEMBERS.into_iter().find(|known| *known == key) else {
            report
                .add(Code::JsonMember, place, Some(key), || "there is no such member".to_string());
            return;
        };
        if self.members.contains(&known) {
            report.add(Code::JsonMember, place, Some(key), || "it is there twice".to_string());
            return;
        }
        self.members.push(known);
        if self.has_rows && known != "$schema" {
            report.add(Code::JsonOrder, place, Some(key), || format!("{known} comes after rows"));
        }
        let value = match serde_json::from_slice::<Value<'_>>(&self.buffer) {
            Ok(value) => value,
            Err(error) => {
                report.add(Code::JsonSyntax, place, Some(key), || error.to_string());
                return;
            }
        };
        let line = place.line;
        match (known, value) {
            ("$schema", Value::Text(_)) => {}
            ("format", Value::Text(text)) if text == FORMAT => self.has_format = true,
            ("format", _) => {
                self.has_format = true;
                report.add(Code::JsonFormat, place, Some(key), || format!("it is not {FORMAT}"));
            }
            ("profile", Value::Text(text)) => {
                self.declared.profile = Some((text.into_owned(), line));
            }
            ("columns", Value::List(list)) if list.len() <= COLUMNS_MAX => {
                let fields = list.into_iter().map(Cow::into_owned).collect();
                self.declared.fields = Some((fields, line));
            }
            ("prefixes", Value::Map(map)) if map.len() <= PREFIXES_MAX => {
                self.declared.prefixes =
                    map.into_iter().map(|(k, v)| (k.into_owned(), v.into_owned())).collect();
            }
            ("columns", Value::List(_)) | ("prefixes", Value::Map(_)) => {
                report.add(Code::HeaderTooLarge, place, Some(key), || "it has too many".into());
            }
            (_, value) => report.add(Code::JsonType, place, Some(key), || {
                format!("{} is not what {known} is", value.what())
            }),
        }
    }

    /// The manifest is complete; nothing may follow, and what must be there is.
    fn end(&mut self, report: &mut Report) -> Result<(), Error> {
        self.state = State::Done;
        if self.frames.peek().map_err(Error::Read)?.is_some() {
            report.add(Code::JsonSyntax, self.place(), None, || {
                "there is content after the end of the manifest".to_string()
            });
        }
        if !self.has_format {
            report.add(Code::JsonFormat, Place::default(), None, || {
                format!("format is missing; it must be {FORMAT}")
            });
        }
        self.settle(report);
        let is_merritt = self.header.as_ref().is_some_and(|header| header.profile.is_merritt());
        if self.rows == 0 && (is_merritt || !self.has_rows) {
            report.add(Code::NoRows, Place::default(), None, || "there are no rows".to_string());
        }
        Ok(())
    }
}
