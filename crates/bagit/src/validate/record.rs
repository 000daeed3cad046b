//! What is sorted by path while a bag is validated: members that were found, digests that are
//! expected, and files that are to be fetched.

use crate::source::{Kind, Member};
use digest::{Algorithm, Digest, Digests};
use std::io;

/// A member, and how to get at its digests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Found {
    /// From the top of the container.
    pub path: String,
    pub utf8: bool,
    pub size: Option<u64>,
    pub what: What,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum What {
    /// A file to be read when its checks are known.
    Locator(Vec<u8>),
    /// A file of a stream, which was hashed when it went by.
    Digests(Digests),
    /// Not a file; says why it is wrong.
    Wrong { unsupported: bool, why: String },
}

/// A line of a manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Expected {
    pub manifest: u16,
    pub line: u64,
    pub path: String,
    /// None where the line names the file and has no checksum that could be one.
    pub digest: Option<Digest>,
}

/// A line of `fetch.txt`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pending {
    pub line: u64,
    pub path: String,
    pub length: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Item {
    Found(Found),
    Expected(Expected),
    Pending(Pending),
}

/// Says why a member that is no file does not belong in a bag.
pub(crate) fn wrong(kind: Kind) -> Option<What> {
    let (unsupported, why) = match kind {
        Kind::File | Kind::Directory => return None,
        Kind::Symlink => {
            (false, "it is a symbolic link; bags hold files, and links are not followed")
        }
        Kind::HardLink => {
            (false, "it is a hard link to another member; write the archive with copies")
        }
        Kind::Special => (false, "it is a device, pipe or socket"),
        Kind::Unsupported(why) => (true, why),
    };
    Some(What::Wrong { unsupported, why: why.to_owned() })
}

impl Found {
    pub fn from_member(member: Member) -> Found {
        let what = wrong(member.kind).unwrap_or(What::Locator(member.locator));
        Found { path: member.path, utf8: member.utf8, size: member.size, what }
    }
}

/// Writes a record's body piece by piece.
struct Writer<'a>(&'a mut Vec<u8>);

impl Writer<'_> {
    fn number(&mut self, number: u64) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    fn optional(&mut self, number: Option<u64>) {
        self.0.push(number.is_some().into());
        self.number(number.unwrap_or_default());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
        self.0.extend_from_slice(bytes);
    }
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, len: usize) -> io::Result<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(len).ok_or(io::ErrorKind::InvalidData)?;
        self.0 = rest;
        Ok(taken)
    }

    fn byte(&mut self) -> io::Result<u8> {
        Ok(self.take(1)?[0])
    }

    fn number(&mut self) -> io::Result<u64> {
        let bytes = self.take(8)?;
        Ok(u64::from_le_bytes(std::array::from_fn(|i| bytes[i])))
    }

    fn optional(&mut self) -> io::Result<Option<u64>> {
        let some = self.byte()? != 0;
        Ok(Some(self.number()?).filter(|_| some))
    }

    fn bytes(&mut self) -> io::Result<&'a [u8]> {
        let len = self.take(4)?;
        self.take(u32::from_le_bytes(std::array::from_fn(|i| len[i])) as usize)
    }

    fn text(&mut self) -> io::Result<String> {
        String::from_utf8(self.bytes()?.to_vec()).map_err(|_| io::ErrorKind::InvalidData.into())
    }

    fn optional_digest(&mut self) -> io::Result<Option<Digest>> {
        match self.bytes()? {
            [] => Ok(None),
            bytes => Digest::from_bytes(bytes).map(Some).ok_or(io::ErrorKind::InvalidData.into()),
        }
    }

    fn digest(&mut self) -> io::Result<Digest> {
        Digest::from_bytes(self.bytes()?).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }
}

impl Item {
    /// Writes the item into `body`, which is emptied first.
    pub fn encode(&self, body: &mut Vec<u8>) {
        body.clear();
        let mut writer = Writer(body);
        match self {
            Item::Found(found) => {
                writer.0.push(match found.what {
                    What::Locator(_) => 0,
                    What::Digests(_) => 1,
                    What::Wrong { unsupported: false, .. } => 2,
                    What::Wrong { unsupported: true, .. } => 3,
                });
                writer.bytes(found.path.as_bytes());
                writer.0.push(found.utf8.into());
                writer.optional(found.size);
                match &found.what {
                    What::Locator(locator) => writer.bytes(locator),
                    What::Wrong { why, .. } => writer.bytes(why.as_bytes()),
                    What::Digests(digests) => {
                        for (algorithm, digest) in digests.iter() {
                            writer.0.push(algorithm as u8);
                            writer.bytes(digest.as_bytes());
                        }
                    }
                }
            }
            Item::Expected(expected) => {
                writer.0.push(4);
                writer.number(expected.manifest.into());
                writer.number(expected.line);
                writer.bytes(expected.path.as_bytes());
                writer.bytes(expected.digest.as_ref().map_or(&[], Digest::as_bytes));
            }
            Item::Pending(pending) => {
                writer.0.push(5);
                writer.number(pending.line);
                writer.bytes(pending.path.as_bytes());
                writer.optional(pending.length);
            }
        }
    }

    pub fn decode(body: &[u8]) -> io::Result<Item> {
        let mut reader = Reader(body);
        let tag = reader.byte()?;
        Ok(match tag {
            0..=3 => {
                let (path, utf8, size) = (reader.text()?, reader.byte()? != 0, reader.optional()?);
                let what = match tag {
                    0 => What::Locator(reader.bytes()?.to_vec()),
                    1 => What::Digests(decode_digests(&mut reader)?),
                    _ => What::Wrong { unsupported: tag == 3, why: reader.text()? },
                };
                Item::Found(Found { path, utf8, size, what })
            }
            4 => Item::Expected(Expected {
                manifest: reader.number()? as u16,
                line: reader.number()?,
                path: reader.text()?,
                digest: reader.optional_digest()?,
            }),
            5 => Item::Pending(Pending {
                line: reader.number()?,
                path: reader.text()?,
                length: reader.optional()?,
            }),
            _ => return Err(io::ErrorKind::InvalidData.into()),
        })
    }
}

fn decode_digests(reader: &mut Reader<'_>) -> io::Result<Digests> {
    let mut digests = Vec::new();
    while !reader.0.is_empty() {
        let algorithm = Algorithm::ALL.get(usize::from(reader.byte()?));
        digests.push((*algorithm.ok_or(io::ErrorKind::InvalidData)?, reader.digest()?));
    }
    Ok(digests.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use digest::Algorithms;
    use digest::Hasher;

    #[test]
    fn items_come_back_as_they_were() {
        let digests = Hasher::new(Algorithms::LIKELY).finish();
        let digest = digests.get(Algorithm::Sha512).unwrap();
        let found =
            |what| Item::Found(Found { path: "data/é".into(), utf8: true, size: Some(7), what });
        let items = [
            found(What::Locator(vec![1, 2, 3])),
            found(What::Digests(digests)),
            found(wrong(Kind::Symlink).unwrap()),
            found(wrong(Kind::Unsupported("x")).unwrap()),
            Item::Expected(Expected {
                manifest: 3,
                line: 9,
                path: "p".into(),
                digest: Some(digest),
            }),
            Item::Expected(Expected { manifest: 0, line: 1, path: "p".into(), digest: None }),
            Item::Pending(Pending { line: 1, path: "q".into(), length: None }),
        ];
        let mut body = Vec::new();
        for item in items {
            item.encode(&mut body);
            assert_eq!(Item::decode(&body).unwrap(), item);
        }
    }
}
