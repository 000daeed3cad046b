//! Sidecars: the digest of an inventory, in a file beside it.

use crate::algorithm::algorithm_name;
use crate::inventory::INVENTORY;
use digest::Algorithm;

/// The name of the sidecar of an inventory.
pub(crate) fn name(algorithm: Algorithm) -> String {
    format!("{INVENTORY}.{}", algorithm_name(algorithm))
}

/// The content of a sidecar.
pub(crate) fn write(digest: &str) -> String {
    format!("{digest} {INVENTORY}\n")
}

/// The digest in a sidecar; `None` if it is not of the form `DIGEST inventory.json`.
pub(crate) fn read(content: &[u8], algorithm: Algorithm) -> Option<String> {
    let text = std::str::from_utf8(content).ok()?;
    let line = text.strip_suffix('\n').unwrap_or(text);
    let line = line.strip_suffix('\r').unwrap_or(line);
    let (digest, rest) = line.split_once([' ', '\t'])?;
    let name = rest.trim_start_matches([' ', '\t']);
    (name == INVENTORY && algorithm.is_digest(digest)).then(|| digest.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sidecars_of_others() {
        let digest = Algorithm::Md5.hex(b"");
        let read = |text: String| super::read(text.as_bytes(), Algorithm::Md5);
        assert_eq!(read(super::write(&digest)), Some(digest.clone()));
        assert_eq!(read(format!("{digest}\t  inventory.json")), Some(digest.clone()));
        assert_eq!(
            read(format!("{} inventory.json\r\n", digest.to_uppercase())),
            Some(digest.clone())
        );
        for bad in [
            String::new(),
            digest.clone(),
            format!("{digest} inventory.json x"),
            format!("{digest} other.json"),
            format!(" {digest} inventory.json"),
            format!("{digest}0 inventory.json"),
            format!("{digest} inventory.json\n\n"),
        ] {
            assert_eq!(read(bad.clone()), None, "{bad:?}");
        }
    }
}
