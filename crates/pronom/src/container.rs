//! Container signatures: what is in a zip or a compound file says what it is.

use crate::error::Result;
use crate::model::{Anchor, ContainerKind, ContainerSignature, Member, Sequence};
use crate::ole2::{Ole2, Stream, StreamReader};
use crate::progress::{Hit, Progress};
use crate::result::{MemberSpan, Span};
use crate::source::Source;
use crate::zip;
use std::collections::{BTreeMap, HashMap, HashSet};

/// Bytes of one member that are looked at, at most, however far the scan may go: what a bomb gets.
const MEMBER_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// Bytes of all members of one container that are looked at, at most.
const CONTAINER_BYTES_MAX: u64 = 64 * 1024 * 1024;
const PIECE_BYTES: usize = 32 * 1024;

/// A container signature that was found.
#[derive(Debug)]
pub(crate) struct FoundInside {
    /// By place in the set.
    pub signature: usize,
    pub members: Vec<MemberSpan>,
}

/// What came of looking inside.
#[derive(Debug, Default)]
pub(crate) struct Inside {
    pub found: Vec<FoundInside>,
    /// Why (part of) it could not be looked at.
    pub unreadable: Option<&'static str>,
}

/// The container signatures of one kind, and the paths they ask for.
#[derive(Debug, Default)]
pub(crate) struct Kind {
    signatures: Vec<usize>,
    paths: HashSet<String>,
}

impl Kind {
    pub fn new(kind: ContainerKind, all: &[ContainerSignature]) -> Kind {
        let mut own = Kind::default();
        for (number, signature) in all.iter().enumerate().filter(|(_, s)| s.kind == kind) {
            own.signatures.push(number);
            own.paths.extend(signature.members.iter().map(|member| member.path.clone()));
        }
        own
    }

    /// Looks inside. `limit` is how much of each member is scanned from its beginning.
    pub fn look(
        &self,
        kind: ContainerKind,
        all: &[ContainerSignature],
        object: &mut dyn Source,
        limit: u64,
    ) -> Result<Inside> {
        let wanted = |path: &str| self.paths.contains(path);
        let mut members: HashMap<String, Opened> = HashMap::new();
        let mut inside = Inside::default();
        let mut file = None;
        match kind {
            ContainerKind::Zip => match zip::find(object, wanted)? {
                Err(why) => inside.unreadable = Some(why),
                Ok(found) => members
                    .extend(found.into_iter().map(|(path, entry)| (path, Opened::Zip(entry)))),
            },
            ContainerKind::Ole2 => match Ole2::open(object)? {
                Err(why) => inside.unreadable = Some(why),
                Ok(mut opened) => {
                    let found = opened.find(object, wanted)?;
                    members.extend(found.into_iter().map(|(path, s)| (path, Opened::Ole2(s))));
                    file = Some(opened);
                }
            },
        }
        let possible: Vec<usize> = self
            .signatures
            .iter()
            .copied()
            .filter(|number| all[*number].members.iter().all(|m| members.contains_key(&m.path)))
            .collect();
        let mut reading = Reading { object, file, limit, budget: CONTAINER_BYTES_MAX, why: None };
        let spans = reading.members(&possible, all, &members)?;
        inside.unreadable = inside.unreadable.or(reading.why);
        inside.found = possible.iter().filter_map(|number| found(*number, all, &spans)).collect();
        Ok(inside)
    }
}

/// A member that is there, and how to read it.
enum Opened {
    Zip(zip::Entry),
    /// A directory of a compound file has no content.
    Ole2(Option<Stream>),
}

/// Where the signatures of a member were found: by signature and place among its members.
type Spans = HashMap<(usize, usize), Vec<Hit>>;

/// A signature is found if each of its members is there and matches.
fn found(number: usize, all: &[ContainerSignature], spans: &Spans) -> Option<FoundInside> {
    let mut members = Vec::new();
    for (place, member) in all[number].members.iter().enumerate() {
        let hits = match spans.get(&(number, place)) {
            Some(hits) => hits.as_slice(),
            None if member.signatures.is_empty() => &[],
            None => return None,
        };
        let spans = hits.iter().map(|hit| Span::from(*hit)).collect();
        members.push(MemberSpan { path: member.path.clone(), spans });
    }
    Some(FoundInside { signature: number, members })
}

/// Reads the members that signatures have patterns for, each once, within a budget.
struct Reading<'o> {
    object: &'o mut dyn Source,
    file: Option<Ole2>,
    limit: u64,
    budget: u64,
    why: Option<&'static str>,
}

impl Reading<'_> {
    fn members(
        &mut self,
        possible: &[usize],
        all: &[ContainerSignature],
        members: &HashMap<String, Opened>,
    ) -> Result<Spans> {
        // In one order always: they share a budget, and what cannot be read is said once.
        let mut by_path: BTreeMap<&str, Vec<(usize, usize, &Member)>> = BTreeMap::new();
        for number in possible {
            for (place, member) in all[*number].members.iter().enumerate() {
                if !member.signatures.is_empty() {
                    by_path.entry(&member.path).or_default().push((*number, place, member));
                }
            }
        }
        let mut spans = Spans::new();
        for (path, users) in by_path {
            if let Some(reader) =
                members.get(path).map(|opened| self.open(opened)).transpose()?.flatten()
            {
                self.member(reader, &users, &mut spans)?;
            }
        }
        Ok(spans)
    }

    fn open(&mut self, opened: &Opened) -> Result<Option<Reader>> {
        match opened {
            Opened::Zip(entry) => match zip::MemberReader::open(self.object, entry)? {
                Ok(reader) => Ok(Some(Reader::Zip(reader))),
                Err(why) => {
                    self.why = Some(why);
                    Ok(None)
                }
            },
            Opened::Ole2(stream) => {
                let file = self.file.as_ref();
                Ok(stream.and_then(|stream| Some(Reader::Ole2(file?.reader(stream)))))
            }
        }
    }

    /// Matches all that is wanted of one member while it is read.
    fn member(
        &mut self,
        mut reader: Reader,
        users: &[(usize, usize, &Member)],
        spans: &mut Spans,
    ) -> Result<()> {
        let sequences = || users.iter().flat_map(|(.., member)| member.signatures.iter().flatten());
        let to_end = sequences().any(|sequence| sequence.anchor == Anchor::End);
        let patterns = sequences().flat_map(|s| &s.slots).flat_map(|slot| &slot.choices);
        let overlap = patterns.map(|pattern| pattern.len()).max().unwrap_or(0);
        let mut forward: Vec<Progress<'_>> = sequences().map(|s| Progress::new(&s.slots)).collect();
        let anchors: Vec<Anchor> = sequences().map(|s| s.anchor).collect();
        let limit = if to_end { MEMBER_BYTES_MAX } else { self.limit.min(MEMBER_BYTES_MAX) };
        let (mut view, mut tail, mut seen) = (Vec::new(), Vec::new(), 0u64);
        let mut piece = vec![0; PIECE_BYTES];
        loop {
            let open = limit.min(self.budget).min(PIECE_BYTES as u64) as usize;
            let wanted = open.min((limit - seen.min(limit)) as usize);
            if wanted == 0 {
                break;
            }
            let got = reader.read(self.file.as_mut(), self.object, &mut piece[..wanted])?;
            if got == 0 {
                break;
            }
            let start = seen - view.len() as u64;
            seen += got as u64;
            self.budget -= got as u64;
            view.extend_from_slice(&piece[..got]);
            for (progress, anchor) in forward.iter_mut().zip(&anchors) {
                if *anchor != Anchor::End {
                    // Beyond the limit only the end is of interest.
                    let inside = self.limit.saturating_sub(start).min(view.len() as u64) as usize;
                    progress.feed(start, &view[..inside]);
                }
            }
            view.drain(..view.len().saturating_sub(overlap));
            if to_end {
                tail.extend_from_slice(&piece[..got]);
                tail.drain(..tail.len().saturating_sub(65_535));
            } else if forward.iter().all(Progress::settled) {
                break;
            }
        }
        tail.reverse();
        for (progress, anchor) in forward.iter_mut().zip(&anchors) {
            if *anchor == Anchor::End {
                progress.feed(0, &tail);
            }
        }
        let hits = forward.iter().zip(&anchors).map(|(progress, anchor)| {
            let turn = |hit: Hit| match anchor {
                Anchor::End => Hit { start: seen - hit.end, end: seen - hit.start },
                _ => hit,
            };
            progress.hit().map(turn)
        });
        collect(users, hits, spans);
        Ok(())
    }
}

/// Deals the hits, which come in the order of all sequences, out to the signatures.
fn collect(
    users: &[(usize, usize, &Member)],
    mut hits: impl Iterator<Item = Option<Hit>>,
    spans: &mut Spans,
) {
    for (number, place, member) in users {
        for signature in &member.signatures {
            let own: Vec<Option<Hit>> =
                signature.iter().map(|_: &Sequence| hits.next().flatten()).collect();
            if let Some(own) = own.into_iter().collect::<Option<Vec<Hit>>>() {
                spans.entry((*number, *place)).or_insert(own);
            }
        }
    }
}

enum Reader {
    Zip(zip::MemberReader),
    Ole2(StreamReader),
}

impl Reader {
    fn read(
        &mut self,
        file: Option<&mut Ole2>,
        object: &mut dyn Source,
        buffer: &mut [u8],
    ) -> Result<usize> {
        match (self, file) {
            (Reader::Zip(reader), _) => reader.read(object, buffer),
            (Reader::Ole2(reader), Some(file)) => reader.read(file, object, buffer),
            (Reader::Ole2(_), None) => Ok(0),
        }
    }
}
