//! The essential set: the formats archives really receive, written down here, so that the first
//! start needs no network. Its notation is explained at the head of `data/documents.txt`.

use crate::droid::mark_formats_with_signatures;
use crate::error::{Error, Result};
use crate::model::{
    Anchor, ContainerKind, ContainerSignature, Format, Member, Origin, Sequence, Signature,
    SignatureSet, Trigger,
};
use crate::sequence;
use std::collections::HashMap;
use std::sync::OnceLock;

const NAME: &str = "essential-2";
const TEXTS: [&str; 4] = [
    include_str!("../data/documents.txt"),
    include_str!("../data/images.txt"),
    include_str!("../data/media.txt"),
    include_str!("../data/data.txt"),
];
/// Definitions within definitions, at most.
const EXPANSIONS_MAX: usize = 64;

/// Extensions of formats that the set knows, and of others of quite another kind that it does not:
/// alone they say nothing.
pub(crate) const SHARED_EXTENSIONS: &[&str] =
    &["arc", "bin", "cdr", "db", "dmg", "mat", "mod", "pdd", "pic", "spx", "toast", "ts"];

impl SignatureSet {
    /// The set that comes with this crate.
    pub fn essential() -> &'static SignatureSet {
        static SET: OnceLock<SignatureSet> = OnceLock::new();
        SET.get_or_init(|| read(&TEXTS))
    }
}

/// Reads the texts. What cannot be read is listed in the set; a test sees that nothing is.
fn read(texts: &[&str]) -> SignatureSet {
    let mut reader = Reader::default();
    for text in texts {
        for (number, line) in text.lines().enumerate() {
            if let Err(error) = reader.line(line) {
                reader.set.skipped.push(format!("line {}: {error}", number + 1));
            }
        }
    }
    reader.finish()
}

struct Reader {
    definitions: HashMap<String, String>,
    /// For each format the PUIDs it is preferred to, which may be defined later.
    preferred: Vec<Vec<String>>,
    set: SignatureSet,
}

impl Default for Reader {
    fn default() -> Reader {
        let origin = Origin {
            name: NAME.to_owned(),
            version: NAME.trim_start_matches("essential-").to_owned(),
            container_version: None,
            created: "2026-11-15".to_owned(),
            attribution: "Format identifiers are those of PRONOM, The National Archives."
                .to_owned(),
        };
        let set = SignatureSet {
            origin,
            formats: Vec::new(),
            signatures: Vec::new(),
            containers: Vec::new(),
            triggers: Vec::new(),
            skipped: Vec::new(),
        };
        Reader { definitions: HashMap::new(), preferred: Vec::new(), set }
    }
}

fn bad(line: &str, message: &str) -> Error {
    Error::Pattern { pattern: line.chars().take(80).collect(), message: message.to_owned() }
}

impl Reader {
    fn line(&mut self, line: &str) -> Result<()> {
        if line.trim().is_empty() || line.starts_with('#') {
            return Ok(());
        }
        if let Some(definition) = line.strip_prefix("let ") {
            let (name, text) = definition
                .split_once(" = ")
                .ok_or_else(|| bad(line, "a definition has no ` = `"))?;
            self.definitions.insert(name.to_owned(), text.to_owned());
            return Ok(());
        }
        let full = self.expand(line)?;
        match full.strip_prefix("  ") {
            Some(signature) => self.signature(signature),
            None => {
                self.format(&full);
                Ok(())
            }
        }
    }

    /// Replaces `$name` and `$name:word` by what they stand for.
    fn expand(&self, line: &str) -> Result<String> {
        let mut text = line.to_owned();
        for _ in 0..EXPANSIONS_MAX {
            let Some(at) = text.find('$') else { return Ok(text) };
            let end = text[at..].find(char::is_whitespace).map_or(text.len(), |length| at + length);
            let (name, word) =
                text[at + 1..end].split_once(':').unwrap_or((&text[at + 1..end], ""));
            let body = match name {
                "utf16le" => hex(word.encode_utf16().flat_map(u16::to_le_bytes)),
                "utf16be" => hex(word.encode_utf16().flat_map(u16::to_be_bytes)),
                _ => {
                    let body = self.definitions.get(name);
                    body.ok_or_else(|| bad(line, "an unknown definition"))?.replace("<>", word)
                }
            };
            text = format!("{}{body}{}", &text[..at], &text[end..]);
        }
        Err(bad(line, "definitions go round in circles"))
    }

    fn format(&mut self, line: &str) {
        let mut fields = line.split(';').map(|field| field.trim().to_owned());
        let mut next = || fields.next().unwrap_or_default();
        let (puid, name, version) = (next(), next(), next());
        let mime = next();
        let words = |text: String| text.split_whitespace().map(str::to_owned).collect();
        self.set.formats.push(Format {
            puid,
            name,
            version,
            mime: mime.split(',').map(|m| m.trim().to_owned()).filter(|m| !m.is_empty()).collect(),
            extensions: words(next()),
            has_signature: false,
            priority_over: Vec::new(),
        });
        self.preferred.push(words(next()));
    }

    fn signature(&mut self, line: &str) -> Result<()> {
        let format =
            self.set.formats.len().checked_sub(1).and_then(|place| u32::try_from(place).ok());
        let format = format.ok_or_else(|| bad(line, "a signature without a format"))?;
        let (word, rest) = line.split_once(' ').ok_or_else(|| bad(line, "a word alone"))?;
        let id = |count: usize| u32::try_from(count + 1).unwrap_or(u32::MAX);
        match (word, rest) {
            ("inside", kind) => {
                self.set.triggers.push(Trigger { format, kind: container_kind(line, kind)? });
            }
            ("zip" | "ole2", members) => {
                let members = members.split(" && ").map(member).collect::<Result<_>>()?;
                let (id, kind) = (id(self.set.containers.len()), container_kind(line, word)?);
                self.set.containers.push(ContainerSignature { id, format, kind, members });
            }
            _ => {
                let sequences = line.split(" && ").map(anchored).collect::<Result<_>>()?;
                let id = id(self.set.signatures.len());
                self.set.signatures.push(Signature { id, format, sequences });
            }
        }
        Ok(())
    }

    fn finish(mut self) -> SignatureSet {
        for (place, lower) in self.preferred.iter().enumerate() {
            for puid in lower {
                match self.set.position(puid) {
                    Some(other) => self.set.formats[place].priority_over.push(other),
                    None => {
                        self.set.skipped.push(format!("{puid} is preferred to but not defined"))
                    }
                }
            }
        }
        mark_formats_with_signatures(&mut self.set);
        self.set
    }
}

fn hex(bytes: impl Iterator<Item = u8>) -> String {
    bytes.map(|byte| format!("{byte:02X}")).collect()
}

fn container_kind(line: &str, word: &str) -> Result<ContainerKind> {
    match word {
        "zip" => Ok(ContainerKind::Zip),
        "ole2" => Ok(ContainerKind::Ole2),
        _ => Err(bad(line, "a container is zip or ole2")),
    }
}

/// `path` or `path = bof… pattern`
fn member(text: &str) -> Result<Member> {
    let (path, signatures) = match text.split_once(" = ") {
        None => (text, Vec::new()),
        Some((path, pattern)) => (path, vec![vec![anchored(pattern)?]]),
    };
    Ok(Member { path: path.trim().to_owned(), signatures })
}

/// `bof pattern`, `bof@4 pattern`, `eof@0-1024 pattern`, `any pattern`
fn anchored(text: &str) -> Result<Sequence> {
    let (place, pattern) = text.trim().split_once(' ').ok_or_else(|| bad(text, "no pattern"))?;
    let (word, offset) = place.split_once('@').unwrap_or((place, "0"));
    let (low, high) = offset.split_once('-').unwrap_or((offset, offset));
    let number = |text: &str| text.parse::<u32>().map_err(|_| bad(place, "an offset is no number"));
    let (low, high) = (number(low)?, number(high)?);
    let (anchor, gap) = match word {
        "bof" => (Anchor::Beginning, (low, Some(high.max(low)))),
        "eof" => (Anchor::End, (low, Some(high.max(low)))),
        "any" => (Anchor::Anywhere, (low, None)),
        _ => return Err(bad(text, "a sequence begins with bof, eof or any")),
    };
    sequence::from_expression(anchor, gap, pattern)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_texts_are_read_completely_and_are_as_many_as_promised() {
        let set = SignatureSet::essential();
        assert_eq!(set.skipped(), &[] as &[String]);
        assert!(set.formats().len() >= 200, "{}", set.formats().len());
        let found = set.formats().iter().filter(|format| format.has_signature).count();
        assert!(found >= 150, "{found}");
        let mut puids: Vec<_> = set.formats().iter().map(|format| &format.puid).collect();
        puids.sort();
        puids.dedup();
        assert_eq!(puids.len(), set.formats().len(), "no format twice");
    }

    #[test]
    fn mistakes_are_listed_not_swallowed() {
        for text in [
            "  bof 00",
            "a/1 ; x\n  bof",
            "a/1 ; x\n  bof@x 00",
            "a/1 ; x\n  $nope",
            "a/1 ; x ; ; ; ; b/2",
            "let x",
            "let a = $b\nlet b = $a\na/1 ; x\n  $a",
            "a/1 ; x\n  inside rar",
            "a/1 ; x\n  mid 00",
        ] {
            assert_eq!(read(&[text]).skipped.len(), 1, "{text}");
        }
    }
}
