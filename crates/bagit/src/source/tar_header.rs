//! Blocks of a tar archive: ustar, the GNU long names, and the extended headers of POSIX.

use super::Kind;
use super::tar_sparse::{OldMap, SparseRecords};

pub const BLOCK_BYTES: usize = 512;
pub(crate) type Block = [u8; BLOCK_BYTES];

/// What a header block says by itself.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub path: Vec<u8>,
    pub size: u64,
    pub flag: u8,
    /// Seconds since 1970; archives that are to be the same each time say zero, which says nothing.
    pub modified: Option<i64>,
    /// The beginning of the map, when it is a sparse member of old GNU tar.
    pub sparse: Option<OldMap>,
}

/// Whether the bytes start with a header whose checksum is right.
pub(crate) fn looks_like_tar(start: &[u8]) -> bool {
    start
        .first_chunk::<BLOCK_BYTES>()
        .is_some_and(|block| block[0] != 0 && checksum_is_right(block))
}

fn checksum_is_right(block: &Block) -> bool {
    let Some(stored) = octal(&block[148..156]) else { return false };
    let sum = |signed: bool| -> i64 {
        let value = |b: u8| if signed { i64::from(b as i8) } else { i64::from(b) };
        block
            .iter()
            .enumerate()
            .map(|(i, b)| value(if (148..156).contains(&i) { b' ' } else { *b }))
            .sum()
    };
    // Some old writers summed signed characters.
    i64::try_from(stored).is_ok_and(|stored| stored == sum(false) || stored == sum(true))
}

/// An octal number between blanks and NULs; an empty field is zero.
fn octal(field: &[u8]) -> Option<u64> {
    let text: Vec<u8> = field
        .iter()
        .copied()
        .skip_while(|b| *b == b' ')
        .take_while(|b| *b != 0 && *b != b' ')
        .collect();
    text.iter().try_fold(0_u64, |number, digit| match digit {
        b'0'..=b'7' => number.checked_mul(8)?.checked_add(u64::from(digit - b'0')),
        _ => None,
    })
}

/// A number field: octal, or binary where GNU tar sets the highest bit.
pub(crate) fn number(field: &[u8]) -> Option<u64> {
    if field[0] & 0x80 == 0 {
        return octal(field);
    }
    let (high, low) = field.split_at(field.len() - 8);
    let plain = high[0] == 0x80 && high[1..].iter().all(|b| *b == 0);
    let value = u64::from_be_bytes(low.try_into().ok()?);
    // Sizes above the signed range are no sizes of files.
    (plain && i64::try_from(value).is_ok()).then_some(value)
}

fn text(field: &[u8]) -> &[u8] {
    &field[..field.iter().position(|b| *b == 0).unwrap_or(field.len())]
}

/// A time of an extended header, `seconds.fraction`, in microseconds.
fn micros(value: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(value).ok()?;
    let (seconds, fraction) = text.split_once('.').unwrap_or((text, ""));
    if !fraction.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let whole = seconds.parse::<i64>().ok()?.checked_mul(1_000_000)?;
    let digits: String = fraction.chars().chain("000000".chars()).take(6).collect();
    let part: i64 = digits.parse().ok()?;
    match seconds.starts_with('-') {
        true => whole.checked_sub(part),
        false => whole.checked_add(part),
    }
}

impl Header {
    pub fn parse(block: &Block) -> Result<Header, &'static str> {
        if !checksum_is_right(block) {
            return Err("the checksum of a header is wrong: damaged, or not a tar file");
        }
        let size = number(&block[124..136]).ok_or("the size in a header is not a number")?;
        let mut path = text(&block[..100]).to_vec();
        // Only POSIX headers have a prefix; GNU headers keep other things there.
        let prefix = text(&block[345..500]);
        if &block[257..263] == b"ustar\0" && !prefix.is_empty() {
            path = [prefix, b"/", &path].concat();
        }
        let sparse = match block[156] {
            b'S' => Some(OldMap::from_header(block, number)?),
            _ => None,
        };
        // A date is no reason to refuse a member.
        let modified = number(&block[136..148]).and_then(|s| i64::try_from(s).ok());
        let modified = modified.filter(|seconds| *seconds != 0);
        Ok(Header { path, size, flag: block[156], modified, sparse })
    }

    pub fn kind(&self) -> Kind {
        match self.flag {
            // Before ustar, a directory was a file whose name ends in a slash.
            b'0' | 0 if self.path.ends_with(b"/") => Kind::Directory,
            b'0' | 0 | b'7' | b'S' => Kind::File,
            b'5' => Kind::Directory,
            b'2' => Kind::Symlink,
            b'1' => Kind::HardLink,
            b'3' | b'4' | b'6' => Kind::Special,
            _ => Kind::Unsupported("the type of the tar member is unknown"),
        }
    }
}

/// What extended headers say about the next member, or about all that follow.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Extended {
    pub path: Option<Vec<u8>>,
    pub size: Option<u64>,
    /// Microseconds since 1970.
    pub modified: Option<i64>,
    pub sparse: SparseRecords,
}

impl Extended {
    /// Reads the records `<length> <key>=<value>\n`.
    pub fn read_records(&mut self, mut data: &[u8]) -> Result<(), &'static str> {
        const BAD: &str = "an extended header is malformed";
        while !data.is_empty() && data[0] != 0 {
            let space = data.iter().take(20).position(|b| *b == b' ').ok_or(BAD)?;
            let digits = std::str::from_utf8(&data[..space]).map_err(|_| BAD)?;
            let len: usize = digits.parse().map_err(|_| BAD)?;
            let record = data.get(space + 1..len).ok_or(BAD)?;
            let record = record.strip_suffix(b"\n").ok_or(BAD)?;
            let equals = record.iter().position(|b| *b == b'=').ok_or(BAD)?;
            self.record(&record[..equals], &record[equals + 1..])?;
            data = &data[len..];
        }
        Ok(())
    }

    fn record(&mut self, key: &[u8], value: &[u8]) -> Result<(), &'static str> {
        match key {
            b"mtime" => self.modified = micros(value),
            b"path" => self.path = (!value.is_empty()).then(|| value.to_vec()),
            b"size" => {
                let digits = std::str::from_utf8(value).ok().filter(|v| {
                    !v.is_empty() && v.len() < 20 && v.bytes().all(|b| b.is_ascii_digit())
                });
                let size =
                    digits.and_then(|v| v.parse().ok()).filter(|s| i64::try_from(*s).is_ok());
                self.size = Some(size.ok_or("an extended header has a size that is none")?);
            }
            _ => {
                if let Some(key) = key.strip_prefix(b"GNU.sparse.") {
                    return self.sparse.record(key, value);
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extended_records_are_read_or_refused() {
        let mut extended = Extended::default();
        extended.read_records(b"16 path=data/ab\n11 size=42\n").unwrap();
        assert_eq!(extended.path.as_deref(), Some(&b"data/ab"[..]));
        assert_eq!(extended.size, Some(42));
        for bad in [
            &b"99 path=x\n"[..],
            b"x",
            b"10 size=-1\n",
            b"0 =\n",
            b"3 =\n",
            b"18446744073709551616 a=b\n",
        ] {
            assert!(Extended::default().read_records(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn times_have_fractions() {
        assert_eq!(micros(b"1700000000.5"), Some(1_700_000_000_500_000));
        assert_eq!(micros(b"1700000000"), Some(1_700_000_000_000_000));
        assert_eq!(micros(b"-1.25"), Some(-1_250_000));
        assert_eq!(micros(b"12.1234567899"), Some(12_123_456));
        for bad in [&b""[..], b"x", b"1.x", b"99999999999999999999"] {
            assert_eq!(micros(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn numbers_are_octal_or_binary() {
        assert_eq!(number(b"00000000017\0"), Some(15));
        assert_eq!(number(b"\x80\0\0\0\0\0\0\x02\0\0\0\0"), Some(1 << 33));
        assert_eq!(number(b"\x80\0\0\0\xff\0\0\0\0\0\0\0"), None);
        assert_eq!(number(b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"), None);
        assert_eq!(number(b"0000000001x\0"), None);
    }
}
