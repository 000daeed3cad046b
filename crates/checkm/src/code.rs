//! What can be wrong with a manifest: one stable code for each, with its meaning and what to do.

use serde::{Serialize, Serializer};

/// Whether a problem makes the manifest unfit, or only deserves a look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The manifest, or the row, cannot be used as it is.
    Error,
    /// It can be used, and is probably not what its author meant.
    Warning,
}

impl std::fmt::Display for Severity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
        })
    }
}

// One table makes the enum, the stable names, and the documentation, so that none can be forgotten.
macro_rules! codes {
    ($($variant:ident $name:literal $severity:ident $meaning:literal, $advice:literal;)*) => {
        /// A kind of problem. Its name ([`Code::as_str`]) never changes once published.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Code { $(#[doc = $meaning] $variant,)* }

        impl Code {
            /// Every code there is, in the order of the documentation.
            pub const ALL: &'static [Code] = &[$(Code::$variant,)*];

            /// The stable name, e.g. `digest-length`.
            pub fn as_str(self) -> &'static str {
                match self { $(Code::$variant => $name,)* }
            }

            /// The severity it usually has; a few are milder in general Checkm, which demands less.
            pub fn severity(self) -> Severity {
                match self { $(Code::$variant => Severity::$severity,)* }
            }

            /// What it means, in a sentence.
            pub fn meaning(self) -> &'static str {
                match self { $(Code::$variant => $meaning,)* }
            }

            /// What the author of the manifest can do about it.
            pub fn advice(self) -> &'static str {
                match self { $(Code::$variant => $advice,)* }
            }
        }
    };
}

codes! {
    Empty "empty" Error "The manifest has no content at all.", "Make it again; it was probably cut short.";
    NoRows "no-rows" Error "The manifest lists nothing.", "Add the rows, or do not send it.";
    Encoding "encoding" Error "The file is UTF-16 or UTF-32.", "Save it as UTF-8.";
    ByteOrderMark "bom" Warning "The file begins with a byte order mark, which is skipped.", "Save it as UTF-8 without a mark.";
    Utf8 "utf-8" Error "The line is not UTF-8.", "Save the file as UTF-8.";
    LineTooLong "line-too-long" Error "The line, or the JSON row, is longer than any honest one.", "Break it up; check that line ends were not lost.";
    VersionMissing "version-missing" Warning "The first line is not `#%checkm_0.7`.", "Put that line first.";
    VersionUnknown "version-unknown" Warning "The manifest declares another version of Checkm; it is read as 0.7.", "Declare 0.7.";
    EofMissing "eof-missing" Error "There is no `#%eof` line, so the manifest may be cut short.", "End it with `#%eof`.";
    EofTrailing "eof-trailing" Error "There is content after `#%eof`.", "Move `#%eof` to the end.";
    HeaderSyntax "header-syntax" Warning "A `#%` line is not written as the standard says, and is understood all the same.", "Separate its parts with `|`.";
    HeaderUnknown "header-unknown" Warning "A `#%` line is unknown and is ignored.", "Check its spelling.";
    HeaderLate "header-late" Warning "A `#%` line comes after the first row and is ignored.", "Move it before the rows.";
    HeaderRepeated "header-repeated" Error "A `#%` line that may be there once is there again, with other content.", "Keep one.";
    HeaderTooLarge "header-too-large" Error "The header declares more columns or prefixes than any honest one.", "Check how the manifest was made.";
    ProfileUnknown "profile-unknown" Warning "The profile is not one that is known; the manifest is read as general Checkm.", "Check the profile's address.";
    ProfileMismatch "profile-mismatch" Error "The manifest is of another profile than the one asked for.", "Send the right kind of manifest.";
    FieldsDiffer "fields-differ" Warning "`#%fields` is not the profile's own list of columns. It is honoured here; Merritt goes by position.", "Use the profile's columns in their order.";
    FieldUnknown "field-unknown" Warning "A field is not known to the profile; its values are kept aside.", "Check its spelling.";
    FieldMissing "field-missing" Error "A column that the profile requires is not among the fields.", "Add the column.";
    FieldRepeated "field-repeated" Error "The same column is declared twice.", "Keep one.";
    PrefixUnknown "prefix-unknown" Warning "A field uses a prefix that no `#%prefix` line declares.", "Declare the prefix.";
    ColumnsTooMany "columns-too-many" Error "The row has more columns than there are fields.", "Write `|` inside a value as `%7c`.";
    ValueMissing "value-missing" Error "A required value is empty.", "Fill it in.";
    ControlCharacter "control-character" Error "A value has a control character in it.", "Remove it; a lone CR means the line ends are wrong.";
    EscapeSyntax "escape-syntax" Warning "A `%` is not followed by two hexadecimal digits and is taken as it is.", "Write `%` as `%25`.";
    EscapeUtf8 "escape-utf-8" Error "The percent-escapes of a value are not UTF-8.", "Encode names as UTF-8 first.";
    IncludeUnexpected "include-unexpected" Error "The row begins with `@`, and the profile has no inclusions.", "Remove the `@`.";
    IncludeUnread "include-unread" Warning "The row includes another manifest, which was not read.", "Follow inclusions, or check that manifest too.";
    IncludeRemote "include-remote" Warning "The included manifest is at a URL, and is not fetched.", "Fetch it and check it.";
    IncludeMissing "include-missing" Error "The included manifest is not there or cannot be read.", "Put it where the row says, or correct the row.";
    IncludeOutside "include-outside" Error "The included manifest is outside the directory of the manifest that was asked for.", "Put it beside that manifest or below.";
    IncludeChanged "include-changed" Error "The included manifest does not have the size or digest that the row states.", "Send the right one, or correct the row.";
    IncludeUnchecked "include-unchecked" Warning "The digest of the included manifest is of an algorithm that is not computed here.", "Use md5, sha1, sha256, sha384 or sha512.";
    IncludeCycle "include-cycle" Error "Manifests include each other in a circle.", "Remove one of the inclusions.";
    IncludeLimit "include-limit" Error "Manifests include each other more than 16 deep, or more than 10000 in all.", "Check them one by one.";
    UrlSyntax "url-syntax" Error "The URL is malformed.", "Percent-encode spaces and other odd characters; give the host.";
    UrlScheme "url-scheme" Error "The profile takes http and https URLs only.", "Use such a URL.";
    UrlUserinfo "url-userinfo" Warning "The URL has a user name or password in it.", "Use another way to give access.";
    AlgorithmUnknown "algorithm-unknown" Error "The digest algorithm is not known.", "Use md5, sha1, sha256, sha384 or sha512.";
    AlgorithmWeak "algorithm-weak" Warning "The algorithm finds accidents, not changes made on purpose.", "Use sha256 or sha512.";
    AlgorithmMissing "algorithm-missing" Error "There is a digest and no algorithm.", "Name the algorithm.";
    DigestMissing "digest-missing" Error "There is an algorithm and no digest.", "Give the digest, or leave both out.";
    DigestUnexpected "digest-unexpected" Warning "A directory has a digest or a size.", "Leave it out.";
    DigestSyntax "digest-syntax" Error "The digest is not hexadecimal.", "Write it in hexadecimal digits.";
    DigestLength "digest-length" Error "The digest has the wrong length for its algorithm.", "Check the algorithm, and that the digest was not cut.";
    SizeSyntax "size-syntax" Error "The size is not a whole number of bytes.", "Write digits only.";
    SizeRange "size-range" Error "The size is larger than a file can be.", "Check the number.";
    DateSyntax "date-syntax" Error "The modification time is neither YYYY-MM-DDThh:mm:ss (or a part of it) nor YYYYMMDDhhmmss.", "Write it so.";
    DateImpossible "date-impossible" Error "There is no such date or time.", "Check the date.";
    IdentifierSyntax "identifier-syntax" Error "The primary identifier is not an ARK.", "Write `ark:/NAAN/name`.";
    IdentifierForm "identifier-form" Warning "The ARK is written `ark:` without the slash, which Merritt does not accept.", "Write `ark:/`.";
    IdentifierDuplicate "identifier-duplicate" Warning "Two rows of a batch have the same identifier, so they are versions of one object.", "Check that this is meant.";
    LocalIdRepeated "local-id-repeated" Warning "A row gives the same local identifier twice; once is kept.", "Remove one.";
    MimeSyntax "mime-syntax" Warning "The media type is not written type/subtype.", "Correct it, or leave it out.";
    NameMissing "name-missing" Warning "There is no file name; it is made from the URL.", "Give the name.";
    NameEscape "name-escape" Error "The name leaves its directory with `..`.", "Use a name inside the object.";
    NameAbsolute "name-absolute" Error "The name is an absolute path.", "Use a relative name.";
    NameSyntax "name-syntax" Error "The name is not one of a file: an empty or `.` part, or a slash at its end.", "Use a plain relative name.";
    NameBackslash "name-backslash" Warning "The name has a backslash in it, which is a path on one system and a name on another.", "Use `/` between directories.";
    NameTooLong "name-too-long" Error "A part of the name has more than 255 bytes, or the whole more than 4096.", "Shorten it.";
    NameSpace "name-space" Warning "A part of the name begins or ends with white space.", "Remove it.";
    NameDuplicate "name-duplicate" Error "Another row has the same name.", "Give every file its own name.";
    NameCollision "name-collision" Warning "Another row has a name that differs only in case or in Unicode normalisation.", "Make them differ, or they are one file on some systems.";
    NotContainer "not-container" Error "The row of a container batch is not a .tar, .tar.gz, .tgz, .tar.bz2, .bz2, .tar.zst or .zip.", "Name a container.";
    NotManifest "not-manifest" Error "The row of a batch of manifests is not a .checkm or .json.", "Name a manifest.";
    LooksContainer "looks-container" Warning "The row of a single-file batch looks like a container; it will be kept as one file.", "Use a container batch if it is to be unpacked.";
    LooksManifest "looks-manifest" Warning "The row of a single-file batch looks like a manifest; it will be kept as one file, and what it lists is not fetched.", "Use a batch of manifests if its files are to be fetched.";
    JsonSyntax "json-syntax" Error "It is not JSON.", "Correct it with any JSON tool.";
    JsonType "json-type" Error "A member has the wrong type.", "Compare with the JSON Schema.";
    JsonMember "json-member" Error "A member is unknown, or is there twice.", "Compare with the JSON Schema.";
    JsonFormat "json-format" Error "`format` is missing or is not `checkm-json/1`.", "Begin with `\"format\": \"checkm-json/1\"`.";
    JsonOrder "json-order" Error "A member of the header comes after `rows`, so the rows were read without it.", "Put `rows` last.";
}

impl std::fmt::Display for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Code {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_fit_for_programs() {
        let names: std::collections::BTreeSet<_> = Code::ALL.iter().map(|c| c.as_str()).collect();
        assert_eq!(names.len(), Code::ALL.len());
        for name in names {
            assert!(
                name.bytes().all(|b| b.is_ascii_lowercase() || b == b'-' || b == b'8'),
                "{name}"
            );
        }
    }
}
