//! Amounts of bytes as people write them: `1048576` or `"1 MiB"`.

use serde::{Deserialize, Deserializer};

/// The units, and how many bytes each is.
const UNITS: [(&str, u64); 11] = [
    ("B", 1),
    ("KIB", 1 << 10),
    ("MIB", 1 << 20),
    ("GIB", 1 << 30),
    ("TIB", 1 << 40),
    ("PIB", 1 << 50),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
    ("PB", 1_000_000_000_000_000),
];

/// `30 GiB` as 32212254720; the message says what is accepted.
pub fn parse(text: &str) -> Result<u64, String> {
    let wrong =
        || format!("`{text}` is not an amount of bytes; write 1048576, \"1 MiB\" or \"5 TB\"");
    let text_end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(text_end);
    let number: u64 = number.parse().map_err(|_| wrong())?;
    let unit = unit.trim().to_ascii_uppercase();
    let unit = if unit.is_empty() { "B" } else { unit.as_str() };
    let (_, factor) = UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(wrong)?;
    number.checked_mul(*factor).filter(|bytes| i64::try_from(*bytes).is_ok()).ok_or_else(wrong)
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Written {
    Number(u64),
    Text(String),
}

impl Written {
    fn bytes<E: serde::de::Error>(self) -> Result<u64, E> {
        match self {
            Written::Number(number) => Ok(number),
            Written::Text(text) => parse(&text).map_err(E::custom),
        }
    }
}

const EXPECTED: &str = "expected an amount of bytes: 1048576, \"1 MiB\" or \"5 TB\"";

pub(crate) fn amount<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    let written = Written::deserialize(from).map_err(|_| serde::de::Error::custom(EXPECTED))?;
    written.bytes()
}

pub(crate) fn maybe<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    let written =
        Option::<Written>::deserialize(from).map_err(|_| serde::de::Error::custom(EXPECTED))?;
    written.map(Written::bytes).transpose()
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn people_write_amounts_with_units() {
        assert_eq!(parse("1024"), Ok(1024));
        assert_eq!(parse("30 GiB"), Ok(30 << 30));
        assert_eq!(parse("5tb"), Ok(5_000_000_000_000));
        for wrong in ["", "GiB", "-1", "1.5 GiB", "9 XB", "99999 PiB", "8 PiB x"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
