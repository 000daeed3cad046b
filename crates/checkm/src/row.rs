//! One row: what a manifest says of one file, container or manifest.

use crate::column::Column;
use crate::report::Place;
use crate::url;
use std::borrow::Cow;

/// A row that was found good. It borrows from the reader's line; [`Row::into_owned`] lets it go.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Row<'a> {
    /// Where in the file it was read; ignored in writing.
    pub place: Place,
    /// The source is itself a manifest whose rows belong here (`@` in Checkm).
    pub include: bool,
    /// A URL, or in general Checkm a file name; as written, not decoded, when it is a URL.
    pub source: Option<Cow<'a, str>>,
    /// The digest algorithm in small letters and digits, e.g. `sha256`; `dir` for a directory.
    pub algorithm: Option<Cow<'a, str>>,
    /// The digest, in lower case.
    pub digest: Option<Cow<'a, str>>,
    /// The size in bytes.
    pub size: Option<u64>,
    /// When the content was last modified, as written.
    pub modified: Option<Cow<'a, str>>,
    /// The name of the file in the object: relative, and safe to join to a directory.
    pub name: Option<Cow<'a, str>>,
    /// The media type.
    pub mime_type: Option<Cow<'a, str>>,
    /// An ARK.
    pub primary_id: Option<Cow<'a, str>>,
    /// The depositor's own identifiers, each once.
    pub local_ids: Vec<Cow<'a, str>>,
    /// Who made it.
    pub creator: Option<Cow<'a, str>>,
    /// What it is called.
    pub title: Option<Cow<'a, str>>,
    /// When it was made, in words.
    pub date: Option<Cow<'a, str>>,
    /// Values of columns that have no meaning here, by field identifier (or by position, counting
    /// from one, where the manifest gives none).
    pub extra: Vec<(Cow<'a, str>, Cow<'a, str>)>,
}

impl Row<'_> {
    /// The name to keep the file under: the one given, else the source when that is a file, else
    /// the path of the URL without its slashes, as Merritt does it.
    pub fn file_name(&self) -> Option<Cow<'_, str>> {
        match (&self.name, &self.source) {
            (Some(name), _) => Some(Cow::Borrowed(name)),
            (None, Some(source)) if url::is_url(source) => {
                let name = url::path(source).replace('/', "");
                (!name.is_empty()).then_some(Cow::Owned(name))
            }
            (None, Some(source)) => Some(Cow::Borrowed(source)),
            (None, None) => None,
        }
    }

    /// The row names a directory, which has no content.
    pub fn is_directory(&self) -> bool {
        self.algorithm.as_deref() == Some("dir")
    }

    /// The text of a column, when it has one; lists are not text, and are not found here.
    pub(crate) fn text(&self, column: &Column) -> Option<&str> {
        match column {
            Column::Source => self.source.as_deref(),
            Column::Algorithm => self.algorithm.as_deref(),
            Column::Digest => self.digest.as_deref(),
            Column::Modified => self.modified.as_deref(),
            Column::Name => self.name.as_deref(),
            Column::MimeType => self.mime_type.as_deref(),
            Column::PrimaryId => self.primary_id.as_deref(),
            Column::Creator => self.creator.as_deref(),
            Column::Title => self.title.as_deref(),
            Column::Date => self.date.as_deref(),
            Column::Extra(id) => self.extra.iter().find(|(i, _)| i == id).map(|(_, v)| &**v),
            Column::Size | Column::LocalIds => None,
        }
    }

    /// A copy that borrows nothing.
    pub fn into_owned(self) -> Row<'static> {
        let own = |value: Option<Cow<'_, str>>| value.map(|v| Cow::Owned(v.into_owned()));
        Row {
            place: self.place,
            include: self.include,
            source: own(self.source),
            algorithm: own(self.algorithm),
            digest: own(self.digest),
            size: self.size,
            modified: own(self.modified),
            name: own(self.name),
            mime_type: own(self.mime_type),
            primary_id: own(self.primary_id),
            local_ids: self.local_ids.into_iter().map(|v| Cow::Owned(v.into_owned())).collect(),
            creator: own(self.creator),
            title: own(self.title),
            date: own(self.date),
            extra: self
                .extra
                .into_iter()
                .map(|(id, v)| (Cow::Owned(id.into_owned()), Cow::Owned(v.into_owned())))
                .collect(),
        }
    }
}

/// A row as it was read, decoded and not yet judged: the common ground of Checkm and JSON.
#[derive(Debug, Default)]
pub(crate) struct RawRow<'a> {
    pub place: Place,
    pub include: bool,
    /// By [`Column::index`]; empty values are `None`. Local identifiers are in their own list.
    pub values: [Option<Cow<'a, str>>; 12],
    pub local_ids: Vec<Cow<'a, str>>,
    pub extra: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    /// An error was found in reading, so that the row is bad whatever the rules say.
    pub bad: bool,
}

impl<'a> RawRow<'a> {
    pub fn set(&mut self, column: &Column, value: Cow<'a, str>) {
        match column.index() {
            Some(index) => self.values[index] = Some(value),
            None => self.extra.push((Cow::Owned(column.as_str().to_string()), value)),
        }
    }

    pub fn take(&mut self, column: &Column) -> Option<Cow<'a, str>> {
        column.index().and_then(|index| self.values[index].take())
    }
}
