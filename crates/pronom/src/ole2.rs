//! Microsoft's compound files by ranges: the directory, then only the streams that are asked for.
//!
//! Every chain of sectors is followed at most as often as the file has sectors, every entry of the
//! directory is visited at most once, and nothing larger than its part of the file is kept: a file
//! that points at itself ends like any other.

use crate::error::Result;
use crate::source::{self, Source};
use std::collections::{HashMap, HashSet};

const MAGIC: [u8; 8] = [0xd0, 0xcf, 0x11, 0xe0, 0xa1, 0xb1, 0x1a, 0xe1];
const HEADER_BYTES: usize = 512;
/// Sector numbers from here on are marks, not places.
const MARKS_FROM: u32 = 0xffff_fffa;
const END_OF_CHAIN: u32 = 0xffff_fffe;
/// Entries of the directory, and numbers of allocation-table sectors, that are kept at most.
const ENTRIES_MAX: usize = 65_536;
const TABLE_SECTORS_MAX: usize = 1 << 20;
const DEPTH_MAX: usize = 32;
/// Streams below this size are in small sectors; the standard fixes it.
const MINI_BELOW_BYTES: u64 = 4096;
/// Sectors of a chain that are remembered, at most.
const CHAIN_MAX: usize = 1 << 20;

/// Why a compound file cannot be read; shown in a warning.
pub(crate) type Unreadable = &'static str;

/// A stream: where it begins and how long it says it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stream {
    first: u32,
    bytes: u64,
}

struct Node {
    name: String,
    kind: u8,
    left: u32,
    right: u32,
    child: u32,
    stream: Stream,
}

/// An open compound file.
pub(crate) struct Ole2 {
    sector_bytes: u64,
    mini_bytes: u64,
    mini_below: u64,
    table: Vec<u32>,
    mini_table_first: u32,
    mini_stream: Stream,
    directory_first: u32,
    sectors: u64,
    /// The sector of the allocation table read last.
    cached: Option<(u32, Vec<u8>)>,
    /// The sectors of the stream of small sectors, and of its table, as far as they were needed.
    mini_chain: Vec<u32>,
    mini_table_chain: Vec<u32>,
}

impl Ole2 {
    pub fn open(object: &mut dyn Source) -> Result<std::result::Result<Ole2, Unreadable>> {
        let mut header = [0; HEADER_BYTES];
        if !source::read_exact(object, 0, &mut header)? || !header.starts_with(&MAGIC) {
            return Ok(Err("it has no header"));
        }
        let word = |at: usize| u32_at(&header, at);
        let shift = |at: usize| u32::from(u16::from_le_bytes([header[at], header[at + 1]]));
        let (sector_shift, mini_shift) = (shift(30), shift(32));
        if !(7..=16).contains(&sector_shift) || mini_shift >= sector_shift {
            return Ok(Err("its sectors have an impossible size"));
        }
        let sector_bytes = 1u64 << sector_shift;
        let mut file = Ole2 {
            sector_bytes,
            mini_bytes: 1 << mini_shift,
            mini_below: MINI_BELOW_BYTES.min(u64::from(word(56))),
            table: (0..109).map(|i| word(76 + 4 * i)).take_while(|s| *s < MARKS_FROM).collect(),
            mini_table_first: word(60),
            mini_stream: Stream { first: END_OF_CHAIN, bytes: 0 },
            directory_first: word(48),
            sectors: object.len().div_ceil(sector_bytes),
            cached: None,
            mini_chain: Vec::new(),
            mini_table_chain: Vec::new(),
        };
        file.read_table(object, word(68))?;
        Ok(Ok(file))
    }

    /// Follows the list of the sectors that hold the allocation table.
    fn read_table(&mut self, object: &mut dyn Source, mut next: u32) -> Result<()> {
        // A sector of the table covers many sectors of the file; more of them than that are a lie.
        let per_sector = self.sector_bytes / 4;
        let most = (self.sectors.div_ceil(per_sector) as usize + 1).min(TABLE_SECTORS_MAX);
        let mut sector = vec![0; self.sector_bytes as usize];
        let mut rounds = 0;
        while next < MARKS_FROM && self.table.len() < most && rounds < most {
            rounds += 1;
            if !self.sector(object, next, &mut sector)? {
                break;
            }
            let mut words = sector.chunks_exact(4).map(|word| u32_at(word, 0));
            next = words.next_back().unwrap_or(END_OF_CHAIN);
            self.table.extend(words.filter(|word| *word < MARKS_FROM));
        }
        self.table.truncate(most);
        Ok(())
    }

    fn offset(&self, sector: u32) -> u64 {
        (u64::from(sector) + 1) * self.sector_bytes
    }

    /// Reads a sector; the last one of a file may be cut off, and counts as far as it goes.
    fn sector(&self, object: &mut dyn Source, number: u32, buffer: &mut [u8]) -> Result<bool> {
        let got = source::read(object, self.offset(number), buffer)?;
        buffer[got..].fill(0);
        Ok(got > 0)
    }

    /// The sector after this one in its chain.
    fn next(&mut self, object: &mut dyn Source, sector: u32) -> Result<u32> {
        let per_sector = (self.sector_bytes / 4) as u32;
        let Some(place) = self.table.get((sector / per_sector) as usize).copied() else {
            return Ok(END_OF_CHAIN);
        };
        if self.cached.as_ref().is_none_or(|(number, _)| *number != place) {
            let mut words = vec![0; self.sector_bytes as usize];
            if !self.sector(object, place, &mut words)? {
                return Ok(END_OF_CHAIN);
            }
            self.cached = Some((place, words));
        }
        let at = (sector % per_sector) as usize * 4;
        Ok(self.cached.as_ref().map_or(END_OF_CHAIN, |(_, words)| u32_at(words, at)))
    }

    /// Finds the streams whose paths are `wanted`. The control character that marks some names is
    /// not part of the path.
    pub fn find(
        &mut self,
        object: &mut dyn Source,
        wanted: impl Fn(&str) -> bool,
    ) -> Result<HashMap<String, Option<Stream>>> {
        let nodes = self.nodes(object)?;
        let Some(root) = nodes.first().filter(|node| node.kind == 5) else {
            return Ok(HashMap::new());
        };
        self.mini_stream = root.stream;
        let mut found = HashMap::new();
        let mut visited = HashSet::new();
        let mut waiting = vec![(root.child, String::new(), 0)];
        while let Some((number, parent, depth)) = waiting.pop() {
            let Some(node) = nodes.get(number as usize) else { continue };
            if !visited.insert(number) || depth > DEPTH_MAX {
                continue;
            }
            let name = node.name.trim_start_matches(|c: char| c < ' ');
            let path = if parent.is_empty() { name.to_owned() } else { format!("{parent}/{name}") };
            if node.kind != 0 && wanted(&path) {
                found.entry(path.clone()).or_insert((node.kind == 2).then_some(node.stream));
            }
            waiting.push((node.left, parent.clone(), depth));
            waiting.push((node.right, parent, depth));
            if node.kind == 1 {
                waiting.push((node.child, path, depth + 1));
            }
        }
        Ok(found)
    }

    fn nodes(&mut self, object: &mut dyn Source) -> Result<Vec<Node>> {
        let mut nodes = Vec::new();
        let mut sector = self.directory_first;
        let mut buffer = vec![0; self.sector_bytes as usize];
        let mut rounds = 0;
        while sector < MARKS_FROM && rounds < self.sectors && nodes.len() < ENTRIES_MAX {
            rounds += 1;
            if !self.sector(object, sector, &mut buffer)? {
                break;
            }
            nodes.extend(buffer.chunks_exact(128).map(node));
            sector = self.next(object, sector)?;
        }
        Ok(nodes)
    }

    /// The sector `steps` further on in a chain; `chain` remembers the way.
    fn walk(
        &mut self,
        object: &mut dyn Source,
        chain: &mut Vec<u32>,
        first: u32,
        steps: u64,
    ) -> Result<Option<u32>> {
        if steps > self.sectors.min(CHAIN_MAX as u64) {
            return Ok(None);
        }
        if chain.is_empty() {
            chain.push(first);
        }
        while let Some(last) = chain.last().copied().filter(|last| *last < MARKS_FROM) {
            if chain.len() as u64 > steps {
                break;
            }
            chain.push(self.next(object, last)?);
        }
        Ok(chain.get(steps as usize).copied().filter(|sector| *sector < MARKS_FROM))
    }

    /// How many bytes from `within` a sector on lie next to each other in the file, up to `most`,
    /// and the last sector of that run.
    fn run(
        &mut self,
        object: &mut dyn Source,
        first: u32,
        within: u64,
        most: u64,
    ) -> Result<(u64, u32)> {
        let (mut bytes, mut last) = (self.sector_bytes - within, first);
        while bytes < most && self.next(object, last)? == last + 1 {
            bytes += self.sector_bytes;
            last += 1;
        }
        Ok((bytes.min(most), last))
    }

    /// Reads a stream from its beginning.
    pub fn reader(&self, stream: Stream) -> StreamReader {
        let mini = stream.bytes < self.mini_below;
        StreamReader { sector: stream.first, left: stream.bytes, within: 0, mini, rounds: 0 }
    }
}

/// Reads a stream piece by piece.
pub(crate) struct StreamReader {
    sector: u32,
    left: u64,
    /// Bytes of the present sector that were read.
    within: u64,
    mini: bool,
    rounds: u64,
}

impl StreamReader {
    /// Fills `buffer` as far as the stream goes; 0 at its end, or where its chain breaks.
    pub fn read(
        &mut self,
        file: &mut Ole2,
        object: &mut dyn Source,
        buffer: &mut [u8],
    ) -> Result<usize> {
        let unit = if self.mini { file.mini_bytes } else { file.sector_bytes };
        let most = file.sectors.saturating_mul(file.sector_bytes / unit) + 1;
        let mut count = 0;
        while count < buffer.len()
            && self.left > 0
            && self.sector < MARKS_FROM
            && self.rounds <= most
        {
            let open = self.left.min((buffer.len() - count) as u64);
            let (place, wanted) = if self.mini {
                let place = mini_place(file, object, u64::from(self.sector) * unit)?;
                (place, open.min(unit - self.within))
            } else {
                let place = file.offset(self.sector) + self.within;
                let (bytes, last) = file.run(object, self.sector, self.within, open)?;
                // As if only the last sector of the run had been read, and that from its beginning.
                let before = u64::from(last - self.sector) * unit;
                self.sector = last;
                self.rounds += before / unit;
                self.within = self.within.wrapping_sub(before);
                (Some(place), bytes)
            };
            let Some(place) = place else { break };
            let from = if self.mini { place + self.within } else { place };
            let got =
                source::read(object, from, &mut buffer[count..count + wanted as usize])? as u64;
            count += got as usize;
            self.within = self.within.wrapping_add(got);
            self.left = if got < wanted { 0 } else { self.left - got };
            if self.within == unit {
                self.sector = match self.mini {
                    false => file.next(object, self.sector)?,
                    true => mini_next(file, object, self.sector)?,
                };
                self.within = 0;
                self.rounds += 1;
            }
        }
        Ok(count)
    }
}

/// Where an offset of the stream of small sectors lies in the file.
fn mini_place(file: &mut Ole2, object: &mut dyn Source, offset: u64) -> Result<Option<u64>> {
    let mut chain = std::mem::take(&mut file.mini_chain);
    let sector = file.walk(object, &mut chain, file.mini_stream.first, offset / file.sector_bytes);
    file.mini_chain = chain;
    Ok(sector?.map(|sector| file.offset(sector) + offset % file.sector_bytes))
}

fn mini_next(file: &mut Ole2, object: &mut dyn Source, sector: u32) -> Result<u32> {
    let at = u64::from(sector) * 4;
    let mut chain = std::mem::take(&mut file.mini_table_chain);
    let place = file.walk(object, &mut chain, file.mini_table_first, at / file.sector_bytes);
    file.mini_table_chain = chain;
    let Some(place) = place? else { return Ok(END_OF_CHAIN) };
    let mut word = [0; 4];
    let offset = file.offset(place) + at % file.sector_bytes;
    Ok(if source::read_exact(object, offset, &mut word)? { u32_at(&word, 0) } else { END_OF_CHAIN })
}

fn node(bytes: &[u8]) -> Node {
    let units = (usize::from(u16::from_le_bytes([bytes[64], bytes[65]])) / 2).clamp(1, 32) - 1;
    let units =
        bytes.chunks_exact(2).take(units).map(|unit| u16::from_le_bytes([unit[0], unit[1]]));
    let name =
        char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)).collect();
    let [left, right, child, first] = [68, 72, 76, 116].map(|at| u32_at(bytes, at));
    // The upper half of the size is rubbish in files with small sectors; no stream here needs it.
    let stream = Stream { first, bytes: u64::from(u32_at(bytes, 120)) };
    Node { name, kind: bytes[66], left, right, child, stream }
}

/// The little-endian word at `at`, or a mark that ends chains if there is none.
fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes
        .get(at..)
        .and_then(|rest| rest.first_chunk())
        .map_or(END_OF_CHAIN, |c| u32::from_le_bytes(*c))
}
