//! Hexadecimal text.

const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// Formats bytes as lower-case hexadecimal digits.
pub fn to_hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        text.push(char::from(DIGITS[usize::from(byte >> 4)]));
        text.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
    text
}

/// Reads hexadecimal digits of either case into the start of `out`, and returns how many bytes
/// they are. Returns `None` for other characters, half a byte, no byte, or too many.
pub(crate) fn read_into(text: &str, out: &mut [u8]) -> Option<usize> {
    let length = text.len() / 2;
    if text.is_empty() || !text.len().is_multiple_of(2) || length > out.len() {
        return None;
    }
    for (byte, pair) in out.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        let high = char::from(pair[0]).to_digit(16)?;
        let low = char::from(pair[1]).to_digit(16)?;
        *byte = (high << 4 | low) as u8;
    }
    Some(length)
}
