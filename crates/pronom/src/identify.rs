//! The identifier: signatures made ready, and the way from bytes to an answer.

use crate::container::{FoundInside, Kind};
use crate::error::Result;
use crate::index::{Index, REACH_BYTES_MAX};
use crate::model::{Anchor, ContainerKind, Sequence, SignatureSet};
use crate::result::{Basis, Identification, Match, Scope, Span, Warning};
use crate::scan::{Found, Scan};
use crate::source::{self, FileSource, Remembered, Source};
use crate::stream::Stream;
use std::collections::HashMap;
use std::path::Path;

/// How much is read at a time when the whole file is scanned.
const PIECE_BYTES: usize = 256 * 1024;

/// Identifies files by a set of signatures. Made once, used for any number of files, from any
/// number of threads.
#[derive(Debug)]
pub struct Identifier {
    set: SignatureSet,
    pub(crate) index: Index,
    zip: Kind,
    ole2: Kind,
    by_extension: HashMap<String, Vec<u32>>,
    scope: Scope,
    further_bytes: u64,
    /// For each format, the signatures of formats that are preferred to it and may be completed by
    /// bytes beyond the ends.
    refined_by: HashMap<u32, Vec<u32>>,
}

/// The bytes that a decision is made from.
pub(crate) struct Windows<'a> {
    pub head: &'a [u8],
    pub tail: &'a [u8],
    pub len: u64,
}

impl Identifier {
    /// Makes a set of signatures ready for use.
    pub fn new(set: SignatureSet) -> Identifier {
        let mut by_extension: HashMap<String, Vec<u32>> = HashMap::new();
        // The essential set does not know all that an extension may stand for.
        let is_essential = set.origin.name.starts_with("essential");
        let shared = if is_essential { crate::essential::SHARED_EXTENSIONS } else { &[] };
        for (place, format) in (0u32..).zip(&set.formats) {
            for extension in format.extensions.iter().filter(|e| !shared.contains(&e.as_str())) {
                by_extension.entry(extension.clone()).or_default().push(place);
            }
        }
        let mut refined_by: HashMap<u32, Vec<u32>> = HashMap::new();
        for (number, signature) in (0u32..).zip(&set.signatures) {
            let far = signature.sequences.iter().any(is_unbounded);
            let format = set.formats.get(signature.format as usize).filter(|_| far);
            for lower in format.iter().flat_map(|format| &format.priority_over) {
                refined_by.entry(*lower).or_default().push(number);
            }
        }
        Identifier {
            index: Index::new(&set.signatures),
            zip: Kind::new(ContainerKind::Zip, &set.containers),
            ole2: Kind::new(ContainerKind::Ole2, &set.containers),
            by_extension,
            scope: Scope::default(),
            further_bytes: Identifier::FURTHER_BYTES,
            refined_by,
            set,
        }
    }

    /// Changes how much of each file is scanned.
    #[must_use]
    pub fn with_scope(mut self, scope: Scope) -> Identifier {
        self.scope = scope;
        self
    }

    /// How far a file is scanned by default when its ends say that there may be more to find.
    pub const FURTHER_BYTES: u64 = 16 * 1024 * 1024;

    /// Changes how far a file is scanned when what its ends say may be made more precise by what
    /// follows: PDF/A is PDF until its metadata is found. Zero for the ends only.
    #[must_use]
    pub fn with_further_bytes(mut self, bytes: u64) -> Identifier {
        self.further_bytes = bytes;
        self
    }

    /// How much of each file is scanned.
    pub fn scope(&self) -> Scope {
        self.scope
    }

    /// The signatures in use.
    pub fn set(&self) -> &SignatureSet {
        &self.set
    }

    /// How many bytes of each end are kept in memory.
    pub(crate) fn window_bytes(&self) -> usize {
        match self.scope {
            Scope::Ends(bytes) => bytes as usize,
            Scope::Whole => REACH_BYTES_MAX,
        }
    }

    /// Begins an identification that is fed while the bytes go by, for instance to a hash.
    pub fn stream(&self) -> Stream<'_> {
        Stream::new(self)
    }

    /// Identifies a file by its path.
    ///
    /// # Errors
    /// When the file cannot be opened or read.
    pub fn identify_path(&self, path: &Path) -> Result<Identification> {
        let open = std::fs::File::open(path).and_then(FileSource::new);
        let mut object =
            open.map_err(|source| crate::Error::File { path: path.to_owned(), source })?;
        self.identify(&mut object, path.file_name().and_then(|name| name.to_str()))
    }

    /// Identifies anything that can be read by ranges. The name, if there is one, gives the
    /// extension.
    ///
    /// # Errors
    /// When the bytes cannot be read. What they contain never is an error.
    pub fn identify(&self, object: &mut dyn Source, name: Option<&str>) -> Result<Identification> {
        let len = object.len();
        let window = self.window_bytes() as u64;
        let mut head = vec![0; len.min(window) as usize];
        let got = source::read(object, 0, &mut head)?;
        head.truncate(got);
        let tail = if len <= window {
            None
        } else {
            let mut tail = vec![0; window as usize];
            let got = source::read(object, len - window, &mut tail)?;
            tail.truncate(got);
            Some(tail)
        };
        // A file that shrank while it was read is as long as what was read of it.
        let len = if tail.is_none() { head.len() as u64 } else { len };
        let tail = tail.as_deref().unwrap_or(&head);
        let windows = Windows { head: &head, tail, len };
        let more = self.scope == Scope::Whole && len > head.len() as u64;
        let signatures = &self.set.signatures;
        let mut scan = Scan::begin(signatures, &self.index, &head, more, Some(tail));
        if more {
            let mut piece = vec![0; PIECE_BYTES];
            let mut at = head.len() as u64;
            while scan.wants_more() && at < len {
                let got = source::read(object, at, &mut piece)?;
                if got == 0 {
                    break;
                }
                scan.feed(&piece[..got]);
                at += got as u64;
            }
        }
        self.decide(scan, &windows, Some(object), name)
    }

    /// From what was scanned to the answer.
    pub(crate) fn decide(
        &self,
        scan: Scan<'_>,
        windows: &Windows<'_>,
        mut object: Option<&mut dyn Source>,
        name: Option<&str>,
    ) -> Result<Identification> {
        let whole = self.scope == Scope::Whole;
        let beyond = if whole { object.as_deref_mut().map(|o| o as &mut dyn Source) } else { None };
        let (found, cut) = scan.finish(windows.head, windows.tail, windows.len, beyond)?;
        let mut warnings = Vec::new();
        if windows.len == 0 {
            warnings.push(Warning::Empty);
        }
        let again = object.as_deref_mut().map(|o| o as &mut dyn Source);
        let inside = self.look_inside(&found, windows, again, &mut warnings)?;
        let mut matches =
            if inside.is_empty() { self.by_signatures(found) } else { self.by_containers(inside) };
        self.prefer(&mut matches);
        if let Some(found) = self.look_further(&matches, windows, object, &mut warnings)? {
            matches = self.by_signatures(found);
            self.prefer(&mut matches);
        }
        if matches.is_empty() && !cut.is_empty() {
            let puids = self.puids_of(&cut);
            warnings.push(Warning::Truncated { puids });
        }
        let matches = self.with_name(matches, name, &mut warnings);
        Ok(Identification {
            matches,
            warnings,
            signatures: self.set.origin.name.clone(),
            scope: self.scope,
            size: windows.len,
        })
    }

    fn puids_of(&self, signatures: &[u32]) -> Vec<String> {
        let puid = |number: &u32| {
            let signature = self.set.signatures.get(*number as usize)?;
            Some(self.set.formats.get(signature.format as usize)?.puid.clone())
        };
        let mut puids: Vec<String> = signatures.iter().filter_map(puid).collect();
        puids.dedup();
        puids
    }

    /// Scans beyond the ends if that may say more than they do. What it finds takes the place of
    /// what was found before; a warning tells if even that was not far enough.
    fn look_further(
        &self,
        matches: &[(u32, Basis)],
        windows: &Windows<'_>,
        object: Option<&mut dyn Source>,
        warnings: &mut Vec<Warning>,
    ) -> Result<Option<Vec<Found>>> {
        let Windows { head, tail, len } = *windows;
        let by_bytes = |(_, basis): &&(u32, Basis)| matches!(basis, Basis::Signature { .. });
        let mut better: Vec<u32> = matches
            .iter()
            .filter(by_bytes)
            .filter_map(|(format, _)| self.refined_by.get(format))
            .flatten()
            .copied()
            .collect();
        let covered = head.len() as u64;
        if self.scope == Scope::Whole || len <= covered || better.is_empty() {
            return Ok(None);
        }
        better.sort_unstable();
        let signatures = &self.set.signatures;
        let mut scan = Scan::begin(signatures, &self.index, head, true, Some(tail));
        let open = |scan: &Scan<'_>| -> Vec<u32> {
            let mut open: Vec<u32> =
                scan.pending().filter(|number| better.binary_search(number).is_ok()).collect();
            open.sort_unstable();
            open
        };
        let mut at = covered;
        if let Some(object) = object {
            let most = len.min(self.further_bytes);
            let mut piece = vec![0; PIECE_BYTES];
            while at < most && !open(&scan).is_empty() {
                let wanted = usize::try_from(most - at).unwrap_or(PIECE_BYTES).min(PIECE_BYTES);
                let got = source::read(object, at, &mut piece[..wanted])?;
                if got == 0 {
                    break;
                }
                scan.feed(&piece[..got]);
                at += got as u64;
            }
        }
        let open = open(&scan);
        if !open.is_empty() && at < len {
            warnings.push(Warning::Incomplete { scanned: at, puids: self.puids_of(&open) });
        }
        if at == covered {
            return Ok(None);
        }
        let (found, _) = scan.finish(head, tail, len, None)?;
        Ok(Some(found).filter(|found| !found.is_empty()))
    }

    /// Opens the container if a signature says that there is one.
    fn look_inside(
        &self,
        found: &[Found],
        windows: &Windows<'_>,
        object: Option<&mut dyn Source>,
        warnings: &mut Vec<Warning>,
    ) -> Result<Vec<FoundInside>> {
        let format =
            |found: &Found| self.set.signatures.get(found.signature as usize).map(|s| s.format);
        let formats: Vec<u32> = found.iter().filter_map(format).collect();
        let mut trigger = self.set.triggers.iter().filter(|t| formats.contains(&t.format));
        let Some(kind) = trigger.next().map(|trigger| trigger.kind) else { return Ok(Vec::new()) };
        let Windows { head, tail, len } = *windows;
        let mut object = Remembered { head, tail, len, object, missed: false };
        let limit = match self.scope {
            Scope::Ends(bytes) => u64::from(bytes),
            Scope::Whole => u64::MAX,
        };
        let signatures = match kind {
            ContainerKind::Zip => &self.zip,
            ContainerKind::Ole2 => &self.ole2,
        };
        let inside = signatures.look(kind, &self.set.containers, &mut object, limit)?;
        if inside.found.is_empty() && (inside.unreadable.is_some() || object.missed) {
            let reason = if object.missed {
                "its middle went by and cannot be read again"
            } else {
                inside.unreadable.unwrap_or_default()
            };
            warnings.push(Warning::ContainerUnreadable { reason: reason.to_owned() });
        }
        Ok(inside.found)
    }

    fn by_signatures(&self, found: Vec<Found>) -> Vec<(u32, Basis)> {
        let mut matches: Vec<(u32, Basis)> = Vec::new();
        for found in found {
            let Some(signature) = self.set.signatures.get(found.signature as usize) else {
                continue;
            };
            let spans = found.spans.into_iter().map(Span::from).collect();
            let basis = Basis::Signature { signature: signature.id, spans };
            if matches.iter().all(|(format, _)| *format != signature.format) {
                matches.push((signature.format, basis));
            }
        }
        matches
    }

    fn by_containers(&self, found: Vec<FoundInside>) -> Vec<(u32, Basis)> {
        let mut matches: Vec<(u32, Basis)> = Vec::new();
        for inside in found {
            let Some(signature) = self.set.containers.get(inside.signature) else { continue };
            let basis = Basis::Container {
                signature: signature.id,
                container: signature.kind,
                members: inside.members,
            };
            if matches.iter().all(|(format, _)| *format != signature.format) {
                matches.push((signature.format, basis));
            }
        }
        matches
    }

    /// Drops every format that another one found is preferred to.
    fn prefer(&self, matches: &mut Vec<(u32, Basis)>) {
        let formats =
            matches.iter().filter_map(|(format, _)| self.set.formats.get(*format as usize));
        let lower: Vec<u32> = formats.flat_map(|format| format.priority_over.clone()).collect();
        matches.retain(|(format, _)| !lower.contains(format));
    }

    /// Adds what the file's name says.
    fn with_name(
        &self,
        found: Vec<(u32, Basis)>,
        name: Option<&str>,
        warnings: &mut Vec<Warning>,
    ) -> Vec<Match> {
        let extension = name.and_then(extension).unwrap_or_default();
        let mut matches: Vec<Match> = found
            .into_iter()
            .filter_map(|(format, basis)| self.describe(format, basis, &extension))
            .collect();
        if !matches.is_empty() && matches.iter().all(|found| found.extension_mismatch) {
            warnings.push(Warning::ExtensionMismatch { extension: extension.clone() });
        }
        if matches.is_empty() {
            let formats = self.by_extension.get(&extension).into_iter().flatten();
            matches = formats
                .filter_map(|format| {
                    let basis = Basis::Extension { extension: extension.clone() };
                    self.describe(*format, basis, &extension)
                })
                .collect();
            let warning =
                if matches.is_empty() { Warning::Unknown } else { Warning::ExtensionOnly };
            warnings.push(warning);
        }
        // The bytes fit several formats: the name says which of them is meant.
        let named = matches.iter().filter(|found| found.extension_match).count();
        if matches.len() > 1 && named > 0 && named < matches.len() {
            let puids = matches.iter().map(|found| found.puid.clone()).collect();
            matches.retain(|found| found.extension_match);
            warnings.push(Warning::ChosenByExtension { puids });
        }
        if matches.len() > 1 {
            warnings.push(Warning::SeveralCandidates { count: matches.len() });
        }
        matches
    }

    fn describe(&self, format: u32, basis: Basis, extension: &str) -> Option<Match> {
        let format = self.set.formats.get(format as usize)?;
        let known = format.extensions.iter().any(|e| e == extension);
        let any = format.extensions.is_empty() || extension.is_empty();
        Some(Match {
            puid: format.puid.clone(),
            name: format.name.clone(),
            version: format.version.clone(),
            mime: format.mime.clone(),
            basis,
            extension_match: known,
            extension_mismatch: !known && !any,
        })
    }
}

/// Whether a sequence may go on, or begin, anywhere in a file.
fn is_unbounded(sequence: &Sequence) -> bool {
    sequence.anchor == Anchor::Anywhere || sequence.slots.iter().any(|slot| slot.gap_max.is_none())
}

/// The extension of a name, in lower case; a dot at the beginning begins no extension.
fn extension(name: &str) -> Option<String> {
    let name = name.rsplit(['/', '\\']).next()?;
    let (stem, extension) = name.rsplit_once('.')?;
    (!stem.is_empty() && !extension.is_empty()).then(|| extension.to_lowercase())
}
