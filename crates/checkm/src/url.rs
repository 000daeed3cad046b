//! Whether a URL is well formed by RFC 3986. A browser's parser repairs what it reads; a manifest
//! is checked to find what other tools would stumble over, so nothing is repaired here.

use crate::escape::hex;

/// It has a scheme and an authority, so it is a URL and not the name of a file.
pub(crate) fn is_url(text: &str) -> bool {
    scheme(text).is_some_and(|scheme| text[scheme.len()..].starts_with("://"))
}

pub(crate) fn scheme(text: &str) -> Option<&str> {
    let scheme = &text[..text.find(':')?];
    let mut bytes = scheme.bytes();
    let first = bytes.next().is_some_and(|b| b.is_ascii_alphabetic());
    let rest = bytes.all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'));
    (first && rest).then_some(scheme)
}

/// The path of a URL, without query and fragment.
pub(crate) fn path(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let end = rest.find(['?', '#']).unwrap_or(rest.len());
    let rest = &rest[..end];
    rest.find('/').map_or("", |at| &rest[at..])
}

/// What is wrong with a URL, in words, or whether it carries a user name.
pub(crate) fn check(url: &str) -> Result<HasUserinfo, String> {
    characters(url)?;
    let Some((scheme, rest)) = url.split_once("://") else {
        return Err("it has no ://".to_string());
    };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let authority = &rest[..end];
    let (userinfo, host_and_port) = match authority.rsplit_once('@') {
        Some((user, host)) => (Some(user), host),
        None => (None, authority),
    };
    let is_http = scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https");
    let host = host(host_and_port)?;
    if is_http && host.is_empty() {
        return Err("it has no host".to_string());
    }
    Ok(HasUserinfo(userinfo.is_some()))
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct HasUserinfo(pub bool);

fn characters(url: &str) -> Result<(), String> {
    let bytes = url.as_bytes();
    let mut hashes = 0;
    for (at, &byte) in bytes.iter().enumerate() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {}
            b':' | b'/' | b'?' | b'[' | b']' | b'@' => {}
            b'!' | b'$' | b'&' | b'\'' | b'(' | b')' | b'*' | b'+' | b',' | b';' | b'=' => {}
            b'%' if hex(bytes.get(at + 1)).is_some() && hex(bytes.get(at + 2)).is_some() => {}
            b'%' => return Err("a % is not followed by two hexadecimal digits".to_string()),
            b'#' => hashes += 1,
            _ => {
                let c = url[at..].chars().next().unwrap_or('\u{fffd}');
                return Err(format!("{c:?} must be percent-encoded"));
            }
        }
    }
    if hashes > 1 { Err("it has more than one #".to_string()) } else { Ok(()) }
}

fn host(host_and_port: &str) -> Result<&str, String> {
    let (host, port) = if let Some(rest) = host_and_port.strip_prefix('[') {
        let Some((inside, after)) = rest.split_once(']') else {
            return Err("its [ has no ]".to_string());
        };
        if inside.parse::<std::net::Ipv6Addr>().is_err() {
            return Err("the address in [ ] is not IPv6".to_string());
        }
        match after.strip_prefix(':') {
            Some(port) => (inside, Some(port)),
            None if after.is_empty() => (inside, None),
            None => return Err("there is text after its ]".to_string()),
        }
    } else {
        match host_and_port.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (host_and_port, None),
        }
    };
    let port_is_good = |port: &str| {
        port.is_empty() || port.bytes().all(|b| b.is_ascii_digit()) && port.parse::<u16>().is_ok()
    };
    match port {
        Some(port) if !port_is_good(port) => Err("its port is not a number up to 65535".into()),
        _ => Ok(host),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn good_and_bad_urls() {
        for good in [
            "http://example.org",
            "https://example.org:8443/a%20b?c=d&e#f",
            "http://[2001:db8::1]:80/x",
            "ftp://host/file",
            "file:///etc/hosts",
        ] {
            assert_eq!(check(good), Ok(HasUserinfo(false)), "{good}");
        }
        assert_eq!(check("https://me:secret@example.org/"), Ok(HasUserinfo(true)));
        for bad in [
            "http://",
            "http:///path",
            "http://host/a b",
            "http://host/%zz",
            "http://host:99999/",
            "http://[::1/",
            "http://host/ü",
            "http://host/a|b",
            "http://host/\\",
            "http://host/#a#b",
            "no-scheme",
        ] {
            assert!(check(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn paths_end_before_the_query() {
        assert_eq!(path("http://h/a/b.tar?x=/y#z"), "/a/b.tar");
        assert_eq!(path("http://h"), "");
    }
}
