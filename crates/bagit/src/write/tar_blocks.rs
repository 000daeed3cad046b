//! Blocks of tar archives that are the same for the same input: headers, padding and the end marker.

use crate::source::tar_header::Block;

pub use crate::source::tar_header::BLOCK_BYTES;

/// The largest size that the octal field of a header holds.
const OCTAL_SIZE_MAX: u64 = 0o77_777_777_777;
const NAME_BYTES_MAX: usize = 100;

fn put(block: &mut Block, at: usize, bytes: &[u8]) {
    block[at..at + bytes.len()].copy_from_slice(bytes);
}

fn header(name: &[u8], size: u64, seconds: u64, flag: u8) -> Block {
    let mut block = [0; BLOCK_BYTES];
    put(&mut block, 0, &name[..name.len().min(NAME_BYTES_MAX)]);
    put(&mut block, 100, if flag == b'5' { b"0000755\0" } else { b"0000644\0" });
    put(&mut block, 108, b"0000000\0");
    put(&mut block, 116, b"0000000\0");
    put(&mut block, 124, format!("{:011o}\0", size.min(OCTAL_SIZE_MAX)).as_bytes());
    put(&mut block, 136, format!("{:011o}\0", seconds.min(OCTAL_SIZE_MAX)).as_bytes());
    put(&mut block, 148, b"        ");
    block[156] = flag;
    put(&mut block, 257, b"ustar\x0000");
    let sum: u32 = block.iter().map(|b| u32::from(*b)).sum();
    put(&mut block, 148, format!("{sum:06o}\0 ").as_bytes());
    block
}

/// The blocks before the body of a file: one, or an extended header as well where the name, the size
/// or the time needs it. The time is in microseconds since 1970.
pub fn file_header(path: &str, size: u64, modified: i64) -> Vec<u8> {
    with_extension(path, size, modified, b'0')
}

/// The blocks of a directory, whose path ends in a slash.
pub fn directory_header(path: &str, modified: i64) -> Vec<u8> {
    with_extension(path, 0, modified, b'5')
}

fn with_extension(path: &str, size: u64, modified: i64, flag: u8) -> Vec<u8> {
    let mut records = String::new();
    if path.len() > NAME_BYTES_MAX || !path.is_ascii() {
        records.push_str(&record("path", path));
    }
    if size > OCTAL_SIZE_MAX {
        records.push_str(&record("size", &size.to_string()));
    }
    let seconds = u64::try_from(modified.div_euclid(SECOND)).ok();
    if modified % SECOND != 0 || seconds.is_none_or(|s| s > OCTAL_SIZE_MAX) {
        records.push_str(&record("mtime", &time(modified)));
    }
    let seconds = seconds.unwrap_or(0);
    let mut blocks = Vec::new();
    if !records.is_empty() {
        blocks.extend_from_slice(&header(b"PaxHeader", records.len() as u64, seconds, b'x'));
        blocks.extend_from_slice(records.as_bytes());
        blocks.resize(blocks.len() + padding(records.len() as u64), 0);
    }
    blocks.extend_from_slice(&header(path.as_bytes(), size, seconds, flag));
    blocks
}

const SECOND: i64 = 1_000_000;

/// A time in seconds, with what is left of it as a fraction.
fn time(modified: i64) -> String {
    let sign = if modified < 0 { "-" } else { "" };
    let micros = modified.unsigned_abs();
    let (seconds, rest) = (micros / SECOND.unsigned_abs(), micros % SECOND.unsigned_abs());
    match rest {
        0 => format!("{sign}{seconds}"),
        rest => format!("{sign}{seconds}.{rest:06}"),
    }
}

/// Zeros between the end of a body and the next block.
pub fn padding(size: u64) -> usize {
    // Less than a block, so it fits.
    ((BLOCK_BYTES as u64 - size % BLOCK_BYTES as u64) % BLOCK_BYTES as u64) as usize
}

/// The end marker of an archive: two blocks of zeros.
pub const END: [u8; 2 * BLOCK_BYTES] = [0; 2 * BLOCK_BYTES];

/// `<length> <key>=<value>\n`, where the length counts itself.
fn record(key: &str, value: &str) -> String {
    let bare = key.len() + value.len() + 3;
    let mut len = bare + 1;
    while bare + len.to_string().len() != len {
        len = bare + len.to_string().len();
    }
    format!("{len} {key}={value}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_counts_its_own_length() {
        for len in [1, 5, 88, 89, 90, 91, 92, 985, 990, 991, 10_000] {
            let text = record("path", &"x".repeat(len));
            let stated: usize = text.split(' ').next().unwrap().parse().unwrap();
            assert_eq!(stated, text.len(), "{len}");
        }
    }

    #[test]
    fn times_keep_their_fractions() {
        assert_eq!(time(1_700_000_000_500_000), "1700000000.500000");
        assert_eq!(time(-1_250_000), "-1.250000");
        assert_eq!(time(-3_000_000), "-3");
        let plain = file_header("a", 1, 1_700_000_000_000_000);
        assert_eq!(plain.len(), BLOCK_BYTES, "a whole second needs no extended header");
        let exact = file_header("a", 1, 1_700_000_000_000_001);
        assert_eq!(exact.len(), 3 * BLOCK_BYTES);
    }
}
