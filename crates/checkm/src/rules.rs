//! What a row must be like: every rule about values, one function for each column.

use crate::algorithm;
use crate::code::{Code, Severity};
use crate::column::Column;
use crate::date::{self, DateFlaw};
use crate::name;
use crate::profile::Profile;
use crate::report::{Place, Report, excerpt};
use crate::row::{RawRow, Row};
use crate::url;
use std::borrow::Cow;

/// Judges one row. Every problem goes to the report; says whether the row is good.
pub(crate) fn check<'a>(
    mut raw: RawRow<'a>,
    profile: Profile,
    report: &mut Report,
) -> (Row<'a>, bool) {
    let mut judge = Judge { profile, report, place: raw.place, bad: raw.bad };
    judge.controls(&raw);
    let source = judge.source(raw.take(&Column::Source));
    let include = judge.include(raw.include);
    let algorithm = judge.algorithm(raw.take(&Column::Algorithm));
    let is_directory = algorithm.as_deref() == Some("dir");
    let digest = judge.digest(raw.take(&Column::Digest), algorithm.as_deref());
    let size = judge.size(raw.take(&Column::Size));
    if is_directory && (digest.is_some() || size.is_some_and(|size| size > 0)) {
        judge.found(Code::DigestUnexpected, &Column::Digest, || {
            "a directory has no content, so it has no digest and no size".to_string()
        });
    }
    let row = Row {
        place: raw.place,
        include,
        source,
        algorithm,
        digest,
        size,
        modified: judge.modified(raw.take(&Column::Modified)),
        name: judge.name(raw.take(&Column::Name), is_directory),
        mime_type: judge.mime_type(raw.take(&Column::MimeType)),
        primary_id: judge.primary_id(raw.take(&Column::PrimaryId)),
        local_ids: judge.local_ids(std::mem::take(&mut raw.local_ids)),
        creator: raw.take(&Column::Creator),
        title: raw.take(&Column::Title),
        date: raw.take(&Column::Date),
        extra: raw.extra,
    };
    judge.as_a_whole(&row);
    let good = !judge.bad;
    (row, good)
}

struct Judge<'r> {
    profile: Profile,
    report: &'r mut Report,
    place: Place,
    bad: bool,
}

impl Judge<'_> {
    fn found(&mut self, code: Code, column: &Column, message: impl FnOnce() -> String) {
        self.found_as(code.severity(), code, column, message);
    }

    fn found_as(
        &mut self,
        severity: Severity,
        code: Code,
        column: &Column,
        message: impl FnOnce() -> String,
    ) {
        self.bad |= severity == Severity::Error;
        self.report.add_as(severity, code, self.place, Some(column.as_str()), message);
    }

    /// Names have their own check, which says more.
    fn controls(&mut self, raw: &RawRow<'_>) {
        let has_control = |text: &str| text.bytes().any(|b| b < 0x20 || b == 0x7f);
        for (column, value) in Column::KNOWN.iter().zip(&raw.values) {
            let value = value.as_deref().filter(|_| *column != Column::Name);
            if value.is_some_and(has_control) {
                self.control(column);
            }
        }
        if raw.local_ids.iter().any(|id| has_control(id)) {
            self.control(&Column::LocalIds);
        }
        for (id, _) in raw.extra.iter().filter(|(id, value)| has_control(value) || has_control(id))
        {
            self.control(&Column::Extra(id.to_string()));
        }
    }

    fn control(&mut self, column: &Column) {
        self.found(Code::ControlCharacter, column, || {
            "there is a control character in the value; a lone CR means wrong line ends".into()
        });
    }

    fn source<'a>(&mut self, source: Option<Cow<'a, str>>) -> Option<Cow<'a, str>> {
        let Some(text) = source else {
            if self.profile.required() == Column::Source {
                self.found(Code::ValueMissing, &Column::Source, || {
                    "the row does not say where the content is".to_string()
                });
            }
            return None;
        };
        if url::is_url(&text) || self.profile.is_merritt() {
            self.url(&text);
        } else {
            self.source_file(&text);
        }
        Some(text)
    }

    fn url(&mut self, text: &str) {
        let scheme = url::scheme(text).unwrap_or_default();
        let is_web = scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https");
        if self.profile.is_merritt() && !is_web {
            self.found(Code::UrlScheme, &Column::Source, || {
                format!("{:?} is not an http or https URL", excerpt(text))
            });
            return;
        }
        match url::check(text) {
            Ok(url::HasUserinfo(false)) => {}
            Ok(url::HasUserinfo(true)) => self.found(Code::UrlUserinfo, &Column::Source, || {
                "the URL has a user name or password in it, for all readers to see".to_string()
            }),
            Err(why) => self.found(Code::UrlSyntax, &Column::Source, || {
                format!("{:?} is not a URL: {why}", excerpt(text))
            }),
        }
    }

    /// General Checkm allows absolute file names as sources; leaving by `..` is never honest.
    fn source_file(&mut self, text: &str) {
        if leaves(text) {
            self.found(Code::NameEscape, &Column::Source, || {
                format!("{:?} leaves its directory", excerpt(text))
            });
        }
        if name::is_absolute(text) {
            self.found_as(Severity::Warning, Code::NameAbsolute, &Column::Source, || {
                format!(
                    "{:?} is an absolute path, which means something on one machine",
                    excerpt(text)
                )
            });
        }
    }

    fn include(&mut self, include: bool) -> bool {
        if include && !matches!(self.profile, Profile::General | Profile::ManifestBatch) {
            let profile = self.profile;
            self.found(Code::IncludeUnexpected, &Column::Source, || {
                format!("a manifest of profile {profile} includes no other manifests")
            });
        }
        include
    }

    fn algorithm<'a>(&mut self, value: Option<Cow<'a, str>>) -> Option<Cow<'a, str>> {
        let normal = algorithm::normal(value?);
        match algorithm::find(&normal) {
            Some(known) if known.is_strong => {}
            Some(_) => self.found(Code::AlgorithmWeak, &Column::Algorithm, || {
                format!("{normal} finds accidents, not changes made on purpose")
            }),
            None if normal == "dir" && self.profile == Profile::General => {}
            None => {
                // General Checkm leaves the list open; a profile does not.
                let severity =
                    if self.profile.is_merritt() { Severity::Error } else { Severity::Warning };
                self.found_as(severity, Code::AlgorithmUnknown, &Column::Algorithm, || {
                    format!("the algorithm {:?} is not known", excerpt(&normal))
                });
            }
        }
        // Nothing may be left of a name that had no letters; then there is none.
        (!normal.is_empty()).then_some(normal)
    }

    fn digest<'a>(
        &mut self,
        value: Option<Cow<'a, str>>,
        algorithm: Option<&str>,
    ) -> Option<Cow<'a, str>> {
        let Some(digest) = value else {
            if let Some(name) = algorithm.filter(|name| *name != "dir") {
                self.found(Code::DigestMissing, &Column::Digest, || {
                    format!("the row names the algorithm {} and gives no digest", excerpt(name))
                });
            }
            return None;
        };
        let Some(name) = algorithm else {
            self.found(Code::AlgorithmMissing, &Column::Algorithm, || {
                "the row gives a digest and names no algorithm".to_string()
            });
            return Some(digest);
        };
        let Some(known) = algorithm::find(name) else { return Some(digest) };
        if !digest.bytes().all(|b| b.is_ascii_hexdigit()) {
            self.found(Code::DigestSyntax, &Column::Digest, || {
                format!("{:?} is not hexadecimal", excerpt(&digest))
            });
        } else if digest.len() != known.digits {
            self.found(Code::DigestLength, &Column::Digest, || {
                let (want, has) = (known.digits, digest.len());
                format!("{name} digests have {want} hexadecimal digits, this one has {has}")
            });
        }
        let is_upper = digest.bytes().any(|b| b.is_ascii_uppercase());
        Some(if is_upper { Cow::Owned(digest.to_ascii_lowercase()) } else { digest })
    }

    fn size(&mut self, value: Option<Cow<'_, str>>) -> Option<u64> {
        let text = value?;
        if !text.bytes().all(|b| b.is_ascii_digit()) {
            self.found(Code::SizeSyntax, &Column::Size, || {
                format!("{:?} is not a whole number of bytes", excerpt(&text))
            });
            return None;
        }
        // Offsets in files are signed 64-bit numbers everywhere.
        let size = text.parse::<u64>().ok().filter(|&size| i64::try_from(size).is_ok());
        if size.is_none() {
            self.found(Code::SizeRange, &Column::Size, || {
                format!("{} bytes are more than a file can have", excerpt(&text))
            });
        }
        size
    }

    fn modified<'a>(&mut self, value: Option<Cow<'a, str>>) -> Option<Cow<'a, str>> {
        let text = value?;
        match date::check(&text) {
            Ok(()) => {}
            Err(DateFlaw::Syntax) => self.found(Code::DateSyntax, &Column::Modified, || {
                format!("{:?} is not a time", excerpt(&text))
            }),
            Err(DateFlaw::Impossible) => {
                self.found(Code::DateImpossible, &Column::Modified, || {
                    format!("there is no time {:?}", excerpt(&text))
                })
            }
        }
        Some(text)
    }

    fn name<'a>(
        &mut self,
        value: Option<Cow<'a, str>>,
        is_directory: bool,
    ) -> Option<Cow<'a, str>> {
        let text = value?;
        // In general Checkm the target may be a URL as well.
        if !self.profile.is_merritt() && url::is_url(&text) {
            if let Err(why) = url::check(&text) {
                self.found(Code::UrlSyntax, &Column::Name, || {
                    format!("{:?} is not a URL: {why}", excerpt(&text))
                });
            }
        } else {
            self.safe(&text, is_directory);
        }
        Some(text)
    }

    fn safe(&mut self, text: &str, is_directory: bool) {
        name::check(text, is_directory, |code| {
            self.found(code, &Column::Name, || {
                format!("{}: {:?}", code.meaning().trim_end_matches('.'), excerpt(text))
            });
        });
    }

    fn mime_type<'a>(&mut self, value: Option<Cow<'a, str>>) -> Option<Cow<'a, str>> {
        let text = value?;
        let is_token = |part: &str| {
            let good = |b: u8| b.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&b);
            !part.is_empty() && part.bytes().all(good)
        };
        let essence = text.split(';').next().unwrap_or_default().trim();
        if !essence.split_once('/').is_some_and(|(a, b)| is_token(a) && is_token(b)) {
            self.found(Code::MimeSyntax, &Column::MimeType, || {
                format!("{:?} is not a media type", excerpt(&text))
            });
        }
        Some(text)
    }

    fn primary_id<'a>(&mut self, value: Option<Cow<'a, str>>) -> Option<Cow<'a, str>> {
        let text = value?;
        let rest = text.strip_prefix("ark:");
        match rest
            .map(|rest| rest.strip_prefix('/').unwrap_or(rest))
            .and_then(|r| r.split_once('/'))
        {
            Some((naan, name)) if is_naan(naan) && is_ark_name(name) => {
                if !text.starts_with("ark:/") {
                    self.found(Code::IdentifierForm, &Column::PrimaryId, || {
                        format!("{:?} is written without the slash after ark:", excerpt(&text))
                    });
                }
            }
            _ => self.found(Code::IdentifierSyntax, &Column::PrimaryId, || {
                format!("{:?} is not an ARK like ark:/12345/name", excerpt(&text))
            }),
        }
        Some(text)
    }

    fn local_ids<'a>(&mut self, ids: Vec<Cow<'a, str>>) -> Vec<Cow<'a, str>> {
        if ids.len() < 2 {
            return ids;
        }
        let mut kept: Vec<Cow<'a, str>> = Vec::with_capacity(ids.len());
        let mut seen = std::collections::HashSet::new();
        for id in ids {
            if seen.insert(id.to_string()) {
                kept.push(id);
            } else {
                self.found(Code::LocalIdRepeated, &Column::LocalIds, || {
                    format!("the row gives {:?} twice", excerpt(&id))
                });
            }
        }
        kept
    }

    fn as_a_whole(&mut self, row: &Row<'_>) {
        let is_url = row.source.as_deref().is_some_and(url::is_url);
        if row.name.is_none() {
            self.without_name(row, is_url);
        }
        let Some(name) = row.file_name() else { return };
        let wrong = |what| format!("{:?} is not {what}", excerpt(&name));
        match self.profile {
            Profile::ContainerBatch if !name::is_container(&name) => {
                self.found(Code::NotContainer, &Column::Name, || wrong("a container"));
            }
            Profile::ManifestBatch if !name::is_manifest(&name) => {
                self.found(Code::NotManifest, &Column::Name, || wrong("a manifest"));
            }
            Profile::SingleFileBatch if name::looks_like_container(&name) => {
                self.found(Code::LooksContainer, &Column::Name, || {
                    format!(
                        "{:?} looks like a container and will be kept as one file",
                        excerpt(&name)
                    )
                });
            }
            Profile::SingleFileBatch if name::is_checkm(&name) => {
                self.found(Code::LooksManifest, &Column::Name, || {
                    let name = excerpt(&name);
                    format!("{name:?} looks like a manifest and will be kept as one file")
                });
            }
            _ => {}
        }
    }

    fn without_name(&mut self, row: &Row<'_>, is_url: bool) {
        if self.profile.required() == Column::Name {
            self.found(Code::ValueMissing, &Column::Name, || "the file has no name".to_string());
            return;
        }
        match row.file_name() {
            Some(made) if self.profile.is_merritt() => {
                self.found(Code::NameMissing, &Column::Name, || {
                    format!("there is no name; it will be {:?}, from the URL", excerpt(&made))
                });
                self.safe(&made, false);
            }
            None if self.profile.is_merritt() && is_url => {
                self.found(Code::ValueMissing, &Column::Name, || {
                    "there is no name, and the URL has no path to make one from".to_string()
                });
            }
            // A source that leaves its directory has been reported as such.
            Some(file) if !is_url && !name::is_absolute(&file) && !leaves(&file) => {
                self.safe(&file, row.is_directory());
            }
            _ => {}
        }
    }
}

fn leaves(file: &str) -> bool {
    file.split(['/', '\\']).any(|part| part == "..")
}

fn is_naan(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit() || b.is_ascii_lowercase())
}

fn is_ark_name(text: &str) -> bool {
    let good = |b: u8| b.is_ascii_alphanumeric() || b"=~*+@_$-./%".contains(&b);
    !text.is_empty() && text.bytes().all(good)
}
