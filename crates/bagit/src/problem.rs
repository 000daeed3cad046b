//! What validation finds: a code that stays the same, a severity, and the place it is about.

use serde::{Serialize, Serializer};
use std::fmt;

/// Whether a finding makes the bag invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    Error,
    Warning,
}

macro_rules! codes {
    ($($name:ident $code:literal $about:literal)*) => {
        /// What kind of finding it is. The texts of codes are stable; messages may improve.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum Code { $(#[doc = $about] $name,)* }

        impl Code {
            /// Every code there is.
            pub const ALL: &'static [Code] = &[$(Code::$name),*];

            /// The stable text of the code.
            pub fn as_str(self) -> &'static str {
                match self { $(Code::$name => $code,)* }
            }

            /// What the code means, in one sentence.
            pub fn about(self) -> &'static str {
                match self { $(Code::$name => $about,)* }
            }
        }
    };
}

codes! {
    BagitTxtMissing "bagit-txt-missing" "The bag has no bagit.txt (RFC 8493 §2.1.1)."
    BagitTxtMalformed "bagit-txt-malformed" "bagit.txt is not the two lines that the standard fixes."
    BagitTxtBom "bagit-txt-bom" "bagit.txt starts with a byte order mark."
    VersionUnsupported "version-unsupported" "The declared version is none of 0.93 to 0.97 and 1.0."
    EncodingUnknown "encoding-unknown" "Tag-File-Character-Encoding is missing or unknown."
    PayloadDirectoryMissing "payload-directory-missing" "There is no directory data/ (§2.1.2)."
    PayloadManifestMissing "payload-manifest-missing" "There is no payload manifest that can be used (§2.1.3)."
    AlgorithmUnknown "algorithm-unknown" "A manifest is named after an algorithm that is not computed here."
    ManifestLineMalformed "manifest-line-malformed" "A line of a manifest is not a checksum and a path."
    ManifestPathUnsafe "manifest-path-unsafe" "A manifest lists a path that leads out of the bag (§5.1.1)."
    ManifestPathOutsidePayload "manifest-path-outside-payload" "A payload manifest lists a path that is not in data/."
    ManifestDuplicate "manifest-duplicate" "A manifest lists a path more than once (§2.1.3)."
    ManifestConflict "manifest-conflict" "A manifest lists a path twice with different checksums."
    ManifestIncomplete "manifest-incomplete" "A payload file is in some payload manifests and not in others (§2.1.3)."
    ManifestAsterisk "manifest-asterisk" "Paths carry the asterisk of md5sum and its kind."
    ManifestPathRelative "manifest-path-relative" "Paths are written with ./ or doubled slashes."
    ManifestEmpty "manifest-empty" "A manifest lists nothing although there is a payload."
    TagmanifestListsTagmanifest "tagmanifest-lists-tagmanifest" "A tag manifest lists a tag manifest (§2.2.1)."
    TagmanifestListsPayload "tagmanifest-lists-payload" "A tag manifest lists a payload file."
    TagmanifestMissesManifest "tagmanifest-misses-manifest" "A tag manifest does not list a payload manifest (§2.2.1)."
    PayloadFileMissing "payload-file-missing" "A payload manifest lists a file that is not there."
    PayloadFileUnlisted "payload-file-unlisted" "A payload file is in no manifest."
    TagFileMissing "tag-file-missing" "A tag manifest lists a file that is not there."
    TagFileUnlisted "tag-file-unlisted" "A tag file is in no tag manifest."
    DigestMismatch "digest-mismatch" "The bytes of a file do not have the checksum of a manifest."
    DigestUnchecked "digest-unchecked" "A checksum could not be computed, because the manifest came after the file in a stream."
    FileUnreadable "file-unreadable" "A file could not be read to its end."
    OxumMismatch "oxum-mismatch" "Payload-Oxum is not what the payload has (§2.2.2)."
    OxumMalformed "oxum-malformed" "Payload-Oxum is not octets, a dot and a number of files."
    OxumMissing "oxum-missing" "There is no Payload-Oxum, so the fast check has nothing to compare."
    OxumRepeated "oxum-repeated" "Payload-Oxum is given more than once."
    InfoLineMalformed "info-line-malformed" "A line of bag-info.txt is not a label, a colon and a value (§2.2.2)."
    InfoWhitespace "info-whitespace" "Whitespace around the colon is not as RFC 8493 says."
    InfoTooLarge "info-too-large" "bag-info.txt has more tags than are read."
    TagFileEncoding "tag-file-encoding" "Bytes of a tag file are not in the declared encoding."
    TagFileBom "tag-file-bom" "A UTF-8 tag file starts with a byte order mark."
    LineTooLong "line-too-long" "A line of a tag file is longer than 64 KiB."
    FetchLineMalformed "fetch-line-malformed" "A line of fetch.txt is not a URL, a length and a path (§2.2.3)."
    FetchPathUnsafe "fetch-path-unsafe" "fetch.txt lists a path that leads out of the bag (§5.1.1)."
    FetchPathOutsidePayload "fetch-path-outside-payload" "fetch.txt lists a path that is not in data/."
    FetchDuplicate "fetch-duplicate" "fetch.txt lists a path more than once."
    FetchUnlisted "fetch-unlisted" "fetch.txt lists a file that a payload manifest does not (§2.2.3)."
    FetchPending "fetch-pending" "A file of fetch.txt has not been fetched, so the bag is not complete."
    FetchLengthDiffers "fetch-length-differs" "A file has another length than fetch.txt says."
    SpecialFile "special-file" "A member is a link, a device or something else that is not a file or directory."
    MemberPathUnsafe "member-path-unsafe" "A member of the archive has a path that leads out of it."
    MemberDuplicate "member-duplicate" "The archive has two members of one path."
    MemberOutsideBag "member-outside-bag" "The archive has members outside the bag's directory (§4)."
    MemberUnsupported "member-unsupported" "A member is stored in a way that is not read here, such as encryption."
    MemberCrcMismatch "member-crc-mismatch" "The bytes of a zip member do not have the CRC-32 that the archive states."
    BaseDirectoryMissing "base-directory-missing" "The archive has the bag at its top, not in one directory (§4)."
    ArchiveUnmarked "archive-unmarked" "The tar archive has no end marker, so members may be missing at its end."
    ArchiveDataAfterEnd "archive-data-after-end" "The archive has data after its end marker, which is not read."
    ArchiveDataBeforeStart "archive-data-before-start" "The archive has data before its first member, which is not read."
    BaseDirectoryName "base-directory-name" "The bag's directory is not named like the archive (§4)."
    TooManyTagFiles "too-many-tag-files" "There are more manifests than are read."
    PathCase "path-case" "A manifest and the file differ in the case of letters."
    PathNormalization "path-normalization" "A manifest and the file differ in Unicode normal form (§5.2.2)."
    PathPercent "path-percent" "A manifest has a percent sign where RFC 8493 wants %25."
    PathCaseCollision "path-case-collision" "Two paths differ in case only, and are one file on some systems (§5.2.3)."
    PathNormalizationCollision "path-normalization-collision" "Two paths differ in Unicode normal form only (§5.2.2)."
    PathNotUtf8 "path-not-utf8" "A name is not UTF-8; what cannot be read is shown as %XX."
    PathTooDeep "path-too-deep" "Directories are nested deeper than are read."
    SystemFile "system-file" "A file that operating systems leave behind is in the bag."
    SystemFileMissing "system-file-missing" "A file that operating systems leave behind is listed but gone."
    ProfileIdentifier "profile-identifier" "BagIt-Profile-Identifier in bag-info.txt does not name the profile."
    ProfileTagMissing "profile-tag-missing" "Bag-Info or Tag-Files: a required tag is missing."
    ProfileTagRecommended "profile-tag-recommended" "Bag-Info or Tag-Files: a recommended tag is missing."
    ProfileTagValue "profile-tag-value" "Bag-Info or Tag-Files: a tag has a value that the profile does not allow."
    ProfileTagRepeated "profile-tag-repeated" "Bag-Info or Tag-Files: a tag that is not repeatable is repeated."
    ProfileManifestRequired "profile-manifest-required" "Manifests-Required: a payload manifest is missing."
    ProfileManifestAllowed "profile-manifest-allowed" "Manifests-Allowed: a payload manifest is not allowed."
    ProfileTagManifestRequired "profile-tag-manifest-required" "Tag-Manifests-Required: a tag manifest is missing."
    ProfileTagManifestAllowed "profile-tag-manifest-allowed" "Tag-Manifests-Allowed: a tag manifest is not allowed."
    ProfileTagFileRequired "profile-tag-file-required" "Tag-Files-Required: a tag file is missing."
    ProfileTagFileAllowed "profile-tag-file-allowed" "Tag-Files-Allowed: a tag file is not allowed."
    ProfilePayloadFileRequired "profile-payload-file-required" "Payload-Files-Required: a payload file is missing."
    ProfilePayloadFileAllowed "profile-payload-file-allowed" "Payload-Files-Allowed: a payload file is not allowed."
    ProfileFetch "profile-fetch" "Allow-Fetch.txt or Fetch.txt-Required: fetch.txt is there, or is not."
    ProfileDataEmpty "profile-data-empty" "Data-Empty: the payload is not empty."
    ProfileSerialization "profile-serialization" "Serialization or Accept-Serialization: the container is not accepted."
    ProfileVersion "profile-version" "Accept-BagIt-Version: the version is not accepted."
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Code {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// One finding.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Problem {
    pub severity: Severity,
    pub code: Code,
    /// The tag file in which the problem shows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The line of that file, counted from one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// The path that the problem is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    pub message: String,
}

impl Problem {
    pub fn new(severity: Severity, code: Code, message: impl Into<String>) -> Problem {
        Problem { severity, code, file: None, line: None, path: None, message: message.into() }
    }

    pub fn error(code: Code, message: impl Into<String>) -> Problem {
        Problem::new(Severity::Error, code, message)
    }

    pub fn warning(code: Code, message: impl Into<String>) -> Problem {
        Problem::new(Severity::Warning, code, message)
    }

    pub fn path(mut self, path: impl Into<String>) -> Problem {
        self.path = Some(path.into());
        self
    }

    pub fn file(mut self, file: impl Into<String>) -> Problem {
        self.file = Some(file.into());
        self
    }

    pub fn line(mut self, line: u64) -> Problem {
        self.line = Some(line);
        self
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.file, self.line, &self.path) {
            (Some(file), Some(line), _) => write!(f, "{file}:{line}: ")?,
            (Some(file), None, _) => write!(f, "{file}: ")?,
            (None, _, Some(path)) => write!(f, "{path}: ")?,
            (None, _, None) => {}
        }
        write!(f, "{} [{}]", self.message, self.code)
    }
}

/// Collects findings up to a cap for each severity, and counts all. What is kept does not depend
/// on the order in which threads found it.
#[derive(Debug)]
pub(crate) struct Problems {
    cap: usize,
    kept: [Vec<Problem>; 2],
    counts: [u64; 2],
}

impl Problems {
    pub fn new(cap: usize) -> Problems {
        Problems { cap, kept: [Vec::new(), Vec::new()], counts: [0; 2] }
    }

    pub fn add(&mut self, problem: Problem) {
        let which = problem.severity as usize;
        self.counts[which] += 1;
        let kept = &mut self.kept[which];
        kept.push(problem);
        if kept.len() > 2 * self.cap + 64 {
            kept.sort_by(place);
            kept.truncate(self.cap);
        }
    }

    pub fn errors(&self) -> u64 {
        self.counts[Severity::Error as usize]
    }

    pub fn warnings(&self) -> u64 {
        self.counts[Severity::Warning as usize]
    }

    /// All that is kept, errors first, in the order of the places they are about.
    pub fn into_sorted(self) -> Vec<Problem> {
        let cap = self.cap;
        let mut all = Vec::new();
        for mut kept in self.kept {
            kept.sort_by(place);
            kept.truncate(cap);
            all.append(&mut kept);
        }
        all
    }
}

fn place(a: &Problem, b: &Problem) -> std::cmp::Ordering {
    (&a.file, a.line, &a.path, a.code, &a.message)
        .cmp(&(&b.file, b.line, &b.path, b.code, &b.message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_unique_words() {
        let mut seen = std::collections::HashSet::new();
        for code in Code::ALL {
            assert!(seen.insert(code.as_str()), "{code} twice");
            assert!(
                code.as_str()
                    .chars()
                    .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
            );
            assert!(code.about().ends_with('.'));
        }
    }

    #[test]
    fn the_cap_keeps_the_same_problems_in_any_order() {
        let problem = |line| Problem::error(Code::DigestMismatch, "x").file("m").line(line);
        let collect = |lines: &mut dyn Iterator<Item = u64>| {
            let mut problems = Problems::new(3);
            lines.for_each(|line| problems.add(problem(line)));
            assert_eq!(problems.errors(), 1000);
            problems.into_sorted()
        };
        let forward = collect(&mut (0..1000));
        assert_eq!(forward.len(), 3);
        assert_eq!(forward, collect(&mut (0..1000).rev()));
    }
}
