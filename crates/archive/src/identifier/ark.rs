//! Archival resource keys: `ark:/12345/x54xz321` and, the same, `ark:12345/x54xz321`.

use super::IDENTIFIER_BYTES_MAX;
use crate::ErrorCode;
use crate::{Error, Result};
use std::fmt;

/// Digits and consonants without `l`, so that names form no words and are not misread.
pub(super) const BETANUMERIC: &[u8; 29] = b"0123456789bcdfghjkmnpqrstvwxz";

pub(super) fn is_betanumeric(byte: u8) -> bool {
    BETANUMERIC.contains(&byte)
}

/// An ARK in its normal form: two that are the same thing are equal. Hyphens do not count and
/// are left out, the authority is in lower case, and escapes are in upper case.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ark {
    naan: String,
    name: String,
}

impl Ark {
    /// Reads an ARK, also one that follows the address of a resolver
    /// (`https://n2t.net/ark:/12345/x`).
    pub fn parse(text: &str) -> Result<Ark> {
        let wrong = |why: &str| {
            let shown: String = text.chars().take(100).collect();
            Error::permanent(ErrorCode::IdentifierArk, format!("{shown:?} is no ARK: {why}"))
        };
        if text.len() > IDENTIFIER_BYTES_MAX {
            return Err(wrong("it is too long"));
        }
        let Some(rest) = after_scheme(text.trim()) else {
            return Err(wrong("it does not start with \"ark:\""));
        };
        let rest = rest.strip_prefix('/').unwrap_or(rest);
        let Some((naan, name)) = rest.split_once('/') else {
            return Err(wrong("write ark:/NAAN/name"));
        };
        let naan = naan.replace('-', "").to_ascii_lowercase();
        if naan.len() < 5 || naan.len() > 16 || !naan.bytes().all(is_betanumeric) {
            return Err(wrong("its authority (NAAN) is not five or more betanumeric characters"));
        }
        let name = normal_name(name).map_err(wrong)?;
        Ok(Ark { naan, name })
    }

    /// Who assigned it.
    pub fn naan(&self) -> &str {
        &self.naan
    }

    /// What follows the authority: the name, and qualifiers if there are any.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The name without qualifiers, which start with a slash or a dot.
    pub fn base_name(&self) -> &str {
        self.name.split(['/', '.']).next().unwrap_or_default()
    }
}

impl fmt::Display for Ark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ark:/{}/{}", self.naan, self.name)
    }
}

fn after_scheme(text: &str) -> Option<&str> {
    let bytes = text.as_bytes();
    let lower = text.to_ascii_lowercase();
    if lower.starts_with("http://") || lower.starts_with("https://") {
        let at = lower.find("/ark:")?;
        return text.get(at + 5..);
    }
    (bytes.len() > 4 && lower.starts_with("ark:")).then(|| &text[4..])
}

/// Without hyphens and without structural characters at the end, as the ARK specification says.
fn normal_name(name: &str) -> Result<String, &'static str> {
    let mut normal = String::with_capacity(name.len());
    let mut rest = name.bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'-' => {}
            b'%' => {
                let (Some(high), Some(low)) = (rest.next(), rest.next()) else {
                    return Err("a % is not followed by two hexadecimal digits");
                };
                if !high.is_ascii_hexdigit() || !low.is_ascii_hexdigit() {
                    return Err("a % is not followed by two hexadecimal digits");
                }
                let escape = [b'%', high.to_ascii_uppercase(), low.to_ascii_uppercase()];
                normal.extend(escape.map(char::from));
            }
            b if b.is_ascii_alphanumeric() || b"=~*+@_$./".contains(&b) => normal.push(b.into()),
            _ => return Err("it has a character that must be percent-encoded in an ARK"),
        }
    }
    normal.truncate(normal.trim_end_matches(['/', '.']).len());
    match normal.bytes().next() {
        None => Err("it has no name"),
        Some(b'/' | b'.') => Err("its name starts with a slash or a dot"),
        Some(_) => Ok(normal),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_thing_is_equal() {
        let forms = [
            "ark:/12345/x54xz321",
            "ark:12345/x54xz321",
            "ARK:/12345/x54-xz-321",
            " ark:/12345/x54xz321/. ",
            "https://n2t.net/ark:/12345/x54xz321",
            "http://example.org/objects/ark:12345/x5-4xz321",
        ];
        for form in forms {
            let ark = Ark::parse(form).unwrap();
            assert_eq!(ark.to_string(), "ark:/12345/x54xz321", "{form}");
            assert_eq!(Ark::parse(&ark.to_string()).unwrap(), ark);
        }
        let ark = Ark::parse("ark:/b5488x/Ab%c3/c1.v2").unwrap();
        assert_eq!((ark.naan(), ark.name(), ark.base_name()), ("b5488x", "Ab%C3/c1.v2", "Ab%C3"));
        // Case counts in names.
        assert_ne!(Ark::parse("ark:/12345/X").unwrap(), Ark::parse("ark:/12345/x").unwrap());
    }

    #[test]
    fn other_things_are_refused() {
        let long = format!("ark:/12345/{}", "x".repeat(2000));
        let bad = [
            "",
            "ark:",
            "ark:/",
            "ark:/12345",
            "ark:/12345/",
            "ark:/12345/---",
            "ark:/1234/x",
            "ark:/1234a/x",
            "ark:/12345//x",
            "ark:/12345/../x",
            "ark:/12345/a b",
            "ark:/12345/a%2",
            "ark:/12345/é",
            "ark:/12345/a\n",
            "doi:10.1/x",
            "xark:/12345/x",
            &long,
            "https://x/y",
        ];
        for text in bad {
            // A newline at the end is trimmed away; everything else is an error.
            let parsed = Ark::parse(text);
            assert!(parsed.is_err() || text.ends_with('\n'), "{text:?} {parsed:?}");
        }
        assert!(Ark::parse("ark:/12345/a\nb").is_err());
    }
}
