//! Files to be stored, which compress badly and differ from each other.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

/// Makes so many files of a size below a directory.
pub fn make(directory: &Path, files: u64, bytes: u64) -> std::io::Result<()> {
    let mut block = vec![0_u8; 1 << 16];
    for number in 0..files {
        let folder = directory.join(format!("{:03}", number / 100));
        std::fs::create_dir_all(&folder)?;
        let mut out = BufWriter::new(File::create(folder.join(format!("{number:06}.bin")))?);
        let mut state = (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut left = bytes;
        while left > 0 {
            for word in block.chunks_exact_mut(8) {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                word.copy_from_slice(&state.to_le_bytes());
            }
            let part = left.min(block.len() as u64);
            out.write_all(&block[..part as usize])?;
            left -= part;
        }
        out.flush()?;
    }
    Ok(())
}
