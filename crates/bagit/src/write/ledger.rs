//! Digests of many files, given back as manifests in the order of paths.

use crate::declaration::Version;
use crate::error::Error;
use crate::info::Oxum;
use crate::path;
use crate::spill::{MEMORY_BYTES, Record, Sorter};
use digest::{Algorithm, Algorithms, Digests};
use std::borrow::Cow;
use std::io::{self, Write};

/// Takes digests in any order; memory is bounded.
pub(crate) struct Ledger {
    sorter: Sorter,
    algorithms: Algorithms,
    version: Version,
    pub oxum: Oxum,
    body: Vec<u8>,
}

impl Ledger {
    pub fn new(algorithms: Algorithms, version: Version) -> Ledger {
        Ledger {
            sorter: Sorter::new(MEMORY_BYTES),
            algorithms,
            version,
            oxum: Oxum { octets: 0, files: 0 },
            body: Vec::new(),
        }
    }

    pub fn add(&mut self, path: &str, size: u64, digests: &Digests) -> io::Result<()> {
        self.oxum.octets += size;
        self.oxum.files += 1;
        self.body.clear();
        for algorithm in self.algorithms.iter() {
            let digest = digests.get(algorithm).ok_or(io::ErrorKind::InvalidInput)?;
            self.body.extend_from_slice(digest.as_bytes());
        }
        self.sorter.push(path.as_bytes(), &self.body)
    }

    /// Writes the manifest of every algorithm, in the order of [`Algorithms::iter`]. A path that
    /// was added twice is refused: no bag has two files of one path.
    pub fn write(self, outputs: &mut [Box<dyn Write + '_>]) -> io::Result<Result<(), Error>> {
        let algorithms: Vec<Algorithm> = self.algorithms.iter().collect();
        let mut sorted = self.sorter.sorted()?;
        let (mut record, mut previous) = (Record::default(), Vec::new());
        let mut line = String::new();
        while sorted.next(&mut record)? {
            let path = String::from_utf8_lossy(&record.key);
            if record.key == previous {
                return Ok(Err(Error::Refused(format!("{path}: was added to the bag twice"))));
            }
            let path = encode(&path, self.version);
            let mut rest = record.body.as_slice();
            for (algorithm, output) in algorithms.iter().zip(outputs.iter_mut()) {
                let (digest, after) = rest.split_at(algorithm.digest_len());
                rest = after;
                line.clear();
                push_hex(&mut line, digest);
                line.push_str("  ");
                line.push_str(&path);
                line.push('\n');
                output.write_all(line.as_bytes())?;
            }
            std::mem::swap(&mut previous, &mut record.key);
        }
        outputs.iter_mut().try_for_each(|output| output.flush()).map(Ok)
    }
}

fn push_hex(line: &mut String, bytes: &[u8]) {
    for byte in bytes {
        for nibble in [byte >> 4, byte & 15] {
            line.push(char::from(b"0123456789abcdef"[usize::from(nibble)]));
        }
    }
}

/// Before 1.0 a percent sign stood for itself; line ends could not be written at all.
fn encode(path: &str, version: Version) -> Cow<'_, str> {
    if version.is_strict() {
        return path::percent_encode(path);
    }
    match path.contains(['\n', '\r']) {
        true => Cow::Owned(path.replace('\n', "%0A").replace('\r', "%0D")),
        false => Cow::Borrowed(path),
    }
}
