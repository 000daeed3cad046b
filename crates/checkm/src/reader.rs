//! Reading a manifest of either format, row by row, with a report at the end.

use crate::code::Code;
use crate::error::Error;
use crate::json::read::JsonReader;
use crate::layout::Header;
use crate::options::{Format, Options};
use crate::profile::Profile;
use crate::report::{Report, excerpt};
use crate::row::{RawRow, Row};
use crate::rules;
use crate::text::TextReader;
use crate::unique::{Kind, Unique};
use std::io::{self, BufRead, Chain, Cursor, Read};

/// How far the beginning of a file is searched for the character that tells its format.
const SNIFF_BYTES_MAX: usize = 4096;

type Source<R> = Chain<Cursor<Vec<u8>>, R>;

enum Input<R> {
    Text(TextReader<Source<R>>),
    Json(JsonReader<Source<R>>),
}

/// Reads a manifest as a stream: good rows one by one, problems into a [`Report`].
///
/// Some problems, such as duplicate names, show only at the end: act on rows after
/// [`Reader::finish`] has said that the manifest is valid, or be ready to take back what was done.
pub struct Reader<R> {
    input: Input<R>,
    report: Report,
    unique: Unique,
    /// Someone reads the manifests that this one includes.
    pub(crate) is_followed: bool,
}

impl<R: BufRead> Reader<R> {
    /// Begins to read. The format is found out unless the options say it.
    pub fn new(mut source: R, options: &Options) -> Result<Reader<R>, Error> {
        let mut start = sniff(&mut source).map_err(Error::Read)?;
        let has_mark = start.starts_with(b"\xef\xbb\xbf");
        let first = start[if has_mark { 3 } else { 0 }..].trim_ascii_start().first();
        let format = options.format.unwrap_or(match first {
            Some(b'{' | b'[') => Format::Json,
            _ => Format::Checkm,
        });
        let mut report = Report::new(options.problems_max);
        if format == Format::Json && has_mark {
            start.drain(..3);
            report_mark(&mut report);
        }
        let source = Cursor::new(start).chain(source);
        let input = match format {
            Format::Checkm => Input::Text(TextReader::new(source, options)),
            Format::Json => Input::Json(JsonReader::new(source, options)),
        };
        let unique = Unique::new(options.memory_bytes_max, options.temporary_directory.clone());
        Ok(Reader { input, report, unique, is_followed: false })
    }

    /// The format it is read as.
    pub fn format(&self) -> Format {
        match self.input {
            Input::Text(_) => Format::Checkm,
            Input::Json(_) => Format::Json,
        }
    }

    /// The header; known once the first row has been read, or the end been reached.
    pub fn header(&self) -> Option<&Header> {
        match &self.input {
            Input::Text(reader) => reader.header(),
            Input::Json(reader) => reader.header(),
        }
    }

    /// What has been found so far.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// Reads one row, good or bad, and shows it to `visit` when it is good. False at the end.
    pub(crate) fn step(
        &mut self,
        visit: &mut dyn FnMut(Row<'_>, &Header) -> Result<(), Error>,
    ) -> Result<bool, Error> {
        let (unique, is_followed) = (&mut self.unique, self.is_followed);
        let mut judge = |raw: RawRow<'_>, header: &Header, report: &mut Report| {
            let (row, is_good) = rules::check(raw, header.profile, report);
            note(unique, &row, header.profile).map_err(Error::Temporary)?;
            if !is_good {
                return Ok(());
            }
            if row.include && !is_followed {
                report.add(Code::IncludeUnread, row.place, Some("source"), || {
                    let source = row.source.as_deref().unwrap_or_default();
                    format!("{:?} is a manifest, and was not read", excerpt(source))
                });
            }
            match row.size {
                Some(size) => report.content_bytes = report.content_bytes.saturating_add(size),
                None => report.content_unknown += 1,
            }
            visit(row, header)
        };
        match &mut self.input {
            Input::Text(reader) => reader.step(&mut self.report, &mut judge),
            Input::Json(reader) => reader.step(&mut self.report, &mut judge),
        }
    }

    /// The next good row, owned. Bad rows are in the report.
    pub fn next_row(&mut self) -> Result<Option<Row<'static>>, Error> {
        let mut found = None;
        while found.is_none() {
            let is_more = self.step(&mut |row, _| {
                found = Some(row.into_owned());
                Ok(())
            })?;
            if !is_more {
                break;
            }
        }
        Ok(found)
    }

    /// Shows every good row to `visit` without copying it, then looks for duplicates.
    pub fn for_each<E: From<Error>>(
        mut self,
        mut visit: impl FnMut(&Row<'_>, &Header) -> Result<(), E>,
    ) -> Result<Report, E> {
        let mut stopped = None;
        while stopped.is_none() {
            let is_more = self.step(&mut |row, header| {
                stopped = visit(&row, header).err();
                Ok(())
            })?;
            if !is_more {
                break;
            }
        }
        match stopped {
            Some(error) => Err(error),
            None => Ok(self.finish()?),
        }
    }

    /// Reads what is left, looks for duplicates, and hands over the report.
    pub fn finish(self) -> Result<Report, Error> {
        self.finish_with_header().map(|(report, _)| report)
    }

    /// The same, with the header, which is not there when the file could not be read that far.
    pub fn finish_with_header(mut self) -> Result<(Report, Option<Header>), Error> {
        while self.step(&mut |_, _| Ok(()))? {}
        self.unique.finish(&mut self.report).map_err(Error::Temporary)?;
        let header = match self.input {
            Input::Text(reader) => reader.header().cloned(),
            Input::Json(reader) => reader.header().cloned(),
        };
        Ok((self.report, header))
    }
}

fn note(unique: &mut Unique, row: &Row<'_>, profile: Profile) -> io::Result<()> {
    if profile.is_merritt() {
        if let Some(name) = row.file_name() {
            unique.note(Kind::Name, &name, "", row.place)?;
        }
    } else if let Some(name) = row.name.as_deref().or(row.source.as_deref()) {
        // General Checkm may describe a file once for each algorithm.
        unique.note(Kind::Name, name, row.algorithm.as_deref().unwrap_or(""), row.place)?;
    }
    if !profile.is_batch() {
        return Ok(());
    }
    if let Some(id) = &row.primary_id {
        unique.note(Kind::PrimaryId, id, "", row.place)?;
    }
    row.local_ids.iter().try_for_each(|id| unique.note(Kind::LocalId, id, "", row.place))
}

fn report_mark(report: &mut Report) {
    let place = crate::Place { line: 1, row: 0 };
    report.add(Code::ByteOrderMark, place, None, || {
        "the file begins with a byte order mark".to_string()
    });
}

/// The beginning of the source, up to the first character that is not white space.
fn sniff(source: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut start = Vec::new();
    while start.len() < SNIFF_BYTES_MAX {
        let before = start.len();
        let wanted = if before < 4 { 4 - before } else { 1 };
        source.by_ref().take(wanted as u64).read_to_end(&mut start)?;
        let is_at_end = start.len() == before;
        let is_decided = before >= 4 && start.last().is_some_and(|b| !b.is_ascii_whitespace());
        if is_at_end || is_decided {
            break;
        }
    }
    Ok(start)
}

/// Reads a whole manifest for its report alone.
pub fn check(source: impl BufRead, options: &Options) -> Result<Report, Error> {
    Reader::new(source, options)?.finish()
}
