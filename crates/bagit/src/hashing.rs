//! Digests of what is read.

use digest::{Algorithms, Digests, Hasher};
use std::io::{self, Read};

/// How much is read and hashed at a time: small enough that every algorithm finds it in the
/// cache, large enough that system calls do not count.
pub(crate) const CHUNK_BYTES: usize = 128 * 1024;

/// Reads to the end through `buffer`, and gives the number of bytes and their digests. `progress`
/// hears of every chunk, and stops the reading by an error.
pub(crate) fn hash_reader(
    reader: &mut dyn Read,
    algorithms: Algorithms,
    buffer: &mut [u8],
    progress: &mut dyn FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<(u64, Digests)> {
    let mut hasher = Hasher::new(algorithms);
    let mut total = 0;
    loop {
        let read = match reader.read(buffer) {
            Ok(0) => return Ok((total, hasher.finish())),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        hasher.update(&buffer[..read]);
        total += read as u64;
        progress(&buffer[..read])?;
    }
}
