//! Columns, and the many spellings of their names in `#%fields` lines.

/// What a column holds.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Column {
    /// Where the content is: a URL, or in general Checkm a file name.
    Source,
    /// The digest algorithm.
    Algorithm,
    /// The digest.
    Digest,
    /// The size in bytes.
    Size,
    /// When the content was last modified.
    Modified,
    /// The name that the file has in the object.
    Name,
    /// The media type.
    MimeType,
    /// The primary identifier, an ARK.
    PrimaryId,
    /// Local identifiers, separated by `;`.
    LocalIds,
    /// Who made it.
    Creator,
    /// What it is called.
    Title,
    /// When it was made, in words.
    Date,
    /// Any other, by the identifier that the manifest gives it.
    Extra(String),
}

impl Column {
    /// The columns that have a meaning here.
    pub const KNOWN: [Column; 12] = [
        Column::Source,
        Column::Algorithm,
        Column::Digest,
        Column::Size,
        Column::Modified,
        Column::Name,
        Column::MimeType,
        Column::PrimaryId,
        Column::LocalIds,
        Column::Creator,
        Column::Title,
        Column::Date,
    ];

    /// The name in messages and in JSON.
    pub fn as_str(&self) -> &str {
        match self {
            Column::Source => "source",
            Column::Algorithm => "algorithm",
            Column::Digest => "digest",
            Column::Size => "size",
            Column::Modified => "modified",
            Column::Name => "name",
            Column::MimeType => "mime_type",
            Column::PrimaryId => "primary_id",
            Column::LocalIds => "local_ids",
            Column::Creator => "creator",
            Column::Title => "title",
            Column::Date => "date",
            Column::Extra(id) => id,
        }
    }

    /// The identifier written in a `#%fields` line.
    pub fn field(&self) -> &str {
        match self {
            Column::Source => "nfo:fileUrl",
            Column::Algorithm => "nfo:hashAlgorithm",
            Column::Digest => "nfo:hashValue",
            Column::Size => "nfo:fileSize",
            Column::Modified => "nfo:fileLastModified",
            Column::Name => "nfo:fileName",
            Column::MimeType => "mrt:mimeType",
            Column::PrimaryId => "mrt:primaryIdentifier",
            Column::LocalIds => "mrt:localIdentifier",
            Column::Creator => "mrt:creator",
            Column::Title => "mrt:title",
            Column::Date => "mrt:date",
            Column::Extra(id) => id,
        }
    }

    /// The column that a field identifier names, whether it is written with a prefix, as a whole
    /// URL, or as in the Checkm specification, in whatever case.
    pub fn from_field(field: &str) -> Option<Column> {
        let (space, local) = match field.rfind(['#', '/', ':']) {
            Some(at) => (&field[..=at], &field[at + 1..]),
            None => ("", field),
        };
        if !space.is_empty() && !is_known_space(space) {
            return None;
        }
        Some(match local.to_ascii_lowercase().as_str() {
            "fileurl" | "sourcefileorurl" | "source" => Column::Source,
            "hashalgorithm" | "alg" | "algorithm" => Column::Algorithm,
            "hashvalue" | "digest" => Column::Digest,
            "filesize" | "length" | "size" => Column::Size,
            "filelastmodified" | "modtime" | "modified" => Column::Modified,
            "filename" | "targetfileorurl" | "targetfilepath" | "name" => Column::Name,
            "mimetype" | "mime_type" => Column::MimeType,
            "primaryidentifier" | "primaryid" | "primary_id" => Column::PrimaryId,
            "localidentifier" | "localid" | "local_ids" => Column::LocalIds,
            "creator" => Column::Creator,
            "title" => Column::Title,
            "date" => Column::Date,
            _ => return None,
        })
    }

    /// Where a row keeps the value of a known column.
    pub(crate) fn index(&self) -> Option<usize> {
        // The order of `KNOWN`. Every value of every row comes by here.
        Some(match self {
            Column::Source => 0,
            Column::Algorithm => 1,
            Column::Digest => 2,
            Column::Size => 3,
            Column::Modified => 4,
            Column::Name => 5,
            Column::MimeType => 6,
            Column::PrimaryId => 7,
            Column::LocalIds => 8,
            Column::Creator => 9,
            Column::Title => 10,
            Column::Date => 11,
            Column::Extra(_) => return None,
        })
    }
}

fn is_known_space(space: &str) -> bool {
    let space = space.to_ascii_lowercase();
    let is_known_url = space.starts_with("http://www.semanticdesktop.org/ontologies/")
        || space.starts_with("http://merritt.cdlib.org/terms")
        || space.starts_with("http://uc3.cdlib.org/ontology/");
    matches!(space.as_str(), "nfo:" | "nie:" | "mrt:") || is_known_url && !space.ends_with(':')
}

impl std::fmt::Display for Column {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indices_are_places_in_the_list() {
        for (place, column) in Column::KNOWN.iter().enumerate() {
            assert_eq!(column.index(), Some(place));
        }
    }

    #[test]
    fn every_spelling_finds_its_column() {
        for column in Column::KNOWN {
            assert_eq!(Column::from_field(column.field()), Some(column.clone()));
            assert_eq!(Column::from_field(column.as_str()), Some(column));
        }
        assert_eq!(Column::from_field("nie:mimeType"), Some(Column::MimeType));
        assert_eq!(Column::from_field("nfo:fileurl"), Some(Column::Source));
        let whole = "http://www.semanticdesktop.org/ontologies/2007/03/22/nfo#hashValue";
        assert_eq!(Column::from_field(whole), Some(Column::Digest));
        assert_eq!(Column::from_field("dc:title"), None);
    }
}
