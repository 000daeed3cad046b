//! Headers of tar members that are the same for the same input.

use crate::source::tar_header::{BLOCK_BYTES, Block};

/// The largest size that the octal field of a header holds.
const OCTAL_SIZE_MAX: u64 = 0o77_777_777_777;
const NAME_BYTES_MAX: usize = 100;

fn put(block: &mut Block, at: usize, bytes: &[u8]) {
    block[at..at + bytes.len()].copy_from_slice(bytes);
}

fn header(name: &[u8], size: u64, mtime: u64, flag: u8) -> Block {
    let mut block = [0; BLOCK_BYTES];
    put(&mut block, 0, &name[..name.len().min(NAME_BYTES_MAX)]);
    put(&mut block, 100, if flag == b'5' { b"0000755\0" } else { b"0000644\0" });
    put(&mut block, 108, b"0000000\0");
    put(&mut block, 116, b"0000000\0");
    put(&mut block, 124, format!("{:011o}\0", size.min(OCTAL_SIZE_MAX)).as_bytes());
    put(&mut block, 136, format!("{:011o}\0", mtime.min(OCTAL_SIZE_MAX)).as_bytes());
    put(&mut block, 148, b"        ");
    block[156] = flag;
    put(&mut block, 257, b"ustar\x0000");
    let sum: u32 = block.iter().map(|b| u32::from(*b)).sum();
    put(&mut block, 148, format!("{sum:06o}\0 ").as_bytes());
    block
}

/// The blocks before the body of a file: one, or an extended header as well where the name or
/// the size needs it.
pub(super) fn file_header(path: &str, size: u64, mtime: u64) -> Vec<u8> {
    with_extension(path, size, mtime, b'0')
}

/// The blocks of a directory, whose path ends in a slash.
pub(super) fn directory_header(path: &str, mtime: u64) -> Vec<u8> {
    with_extension(path, 0, mtime, b'5')
}

fn with_extension(path: &str, size: u64, mtime: u64, flag: u8) -> Vec<u8> {
    let mut records = String::new();
    if path.len() > NAME_BYTES_MAX || !path.is_ascii() {
        records.push_str(&record("path", path));
    }
    if size > OCTAL_SIZE_MAX {
        records.push_str(&record("size", &size.to_string()));
    }
    let mut blocks = Vec::new();
    if !records.is_empty() {
        blocks.extend_from_slice(&header(b"PaxHeader", records.len() as u64, mtime, b'x'));
        blocks.extend_from_slice(records.as_bytes());
        blocks.resize(blocks.len() + padding(records.len() as u64), 0);
    }
    blocks.extend_from_slice(&header(path.as_bytes(), size, mtime, flag));
    blocks
}

/// Zeros between the end of a body and the next block.
pub(super) fn padding(size: u64) -> usize {
    // Less than a block, so it fits.
    ((BLOCK_BYTES as u64 - size % BLOCK_BYTES as u64) % BLOCK_BYTES as u64) as usize
}

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
}
