//! The digest algorithms of the specification and of its digest extension (0009), by the names that
//! they have there.

use digest::Algorithm;

/// `sha512` and `sha256` address content; all can be in a fixity block.
const NAMES: [(&str, Algorithm); 9] = [
    ("md5", Algorithm::Md5),
    ("sha1", Algorithm::Sha1),
    ("sha256", Algorithm::Sha256),
    ("sha512", Algorithm::Sha512),
    ("blake2b-512", Algorithm::Blake2b512),
    ("blake2b-160", Algorithm::Blake2b160),
    ("blake2b-256", Algorithm::Blake2b256),
    ("blake2b-384", Algorithm::Blake2b384),
    ("sha512/256", Algorithm::Sha512_256),
];

/// Returns the name in inventories and sidecars.
pub fn algorithm_name(algorithm: Algorithm) -> &'static str {
    let known = NAMES.iter().find(|(_, known)| *known == algorithm);
    // A fixity block may have others; a validator that does not know them passes over them.
    known.map_or(algorithm.name(), |(name, _)| name)
}

/// Finds an algorithm by its exact name in inventories and sidecars.
pub fn algorithm_named(name: &str) -> Option<Algorithm> {
    NAMES.iter().find(|(known, _)| *known == name).map(|(_, algorithm)| *algorithm)
}

/// Describes a name that [`algorithm_named`] does not find.
pub(crate) fn unknown(name: &str) -> String {
    format!(
        "{name:?} is no digest algorithm known here; use one of md5, sha1, sha256, sha512, blake2b-512"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_exact() {
        for (name, algorithm) in NAMES {
            assert_eq!(algorithm_named(name), Some(algorithm));
            assert_eq!(algorithm_name(algorithm), name);
        }
        for other in ["SHA512", "sha-512", "blake2b512", "sha384", "size"] {
            assert_eq!(algorithm_named(other), None, "{other}");
        }
    }
}
