//! Signature version 4: how a request proves who sends it, and that nobody changed it.

use super::clock;
use super::credentials::Credentials;
use crate::checksum::Sha256Digest;
use digest::hmac_sha256;
use http::HeaderMap;
use http::header::{AUTHORIZATION, HeaderName, HeaderValue};
use std::time::SystemTime;

/// What a signature covers beside the headers.
pub(super) struct ToSign<'a> {
    pub method: &'a str,
    /// The path, already encoded.
    pub path: &'a str,
    /// Names and values, not encoded yet.
    pub query: &'a [(String, String)],
    pub payload: Sha256Digest,
    pub region: &'a str,
    pub service: &'a str,
    pub now: SystemTime,
}

/// Adds the headers of a signature to a request. Every header that is there is signed, so all
/// others, `host` among them, must be there before.
pub(super) fn sign(
    headers: &mut HeaderMap,
    request: &ToSign<'_>,
    credentials: &Credentials,
) -> Result<(), http::header::InvalidHeaderValue> {
    let stamp = clock::stamp(request.now);
    let date = &stamp[..8];
    headers.insert("x-amz-date", HeaderValue::from_str(&stamp)?);
    headers.insert("x-amz-content-sha256", HeaderValue::from_str(&request.payload.to_string())?);
    if let Some(token) = &credentials.session_token {
        let mut token = HeaderValue::from_str(token)?;
        token.set_sensitive(true);
        headers.insert("x-amz-security-token", token);
    }
    let (canonical_headers, signed_headers) = canonical_headers(headers);
    let canonical = format!(
        "{}\n{}\n{}\n{canonical_headers}\n{signed_headers}\n{}",
        request.method,
        request.path,
        query_string(request.query),
        request.payload
    );
    let scope = format!("{date}/{}/{}/aws4_request", request.region, request.service);
    let hashed = Sha256Digest::of(canonical.as_bytes());
    let to_sign = format!("AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{hashed}");
    let mut key = format!("AWS4{}", credentials.secret_key).into_bytes();
    for part in [date, request.region, request.service, "aws4_request"] {
        key = hmac_sha256(&key, part.as_bytes()).to_vec();
    }
    let signature = Sha256Digest(hmac_sha256(&key, to_sign.as_bytes()));
    let mut authorization = HeaderValue::from_str(&format!(
        "AWS4-HMAC-SHA256 Credential={}/{scope}, SignedHeaders={signed_headers}, Signature={signature}",
        credentials.access_key
    ))?;
    authorization.set_sensitive(true);
    headers.insert(AUTHORIZATION, authorization);
    Ok(())
}

fn canonical_headers(headers: &HeaderMap) -> (String, String) {
    let mut sorted: Vec<(&HeaderName, &HeaderValue)> = headers.iter().collect();
    sorted.sort_by_key(|(name, _)| name.as_str());
    let mut lines = String::new();
    let mut names = Vec::new();
    for (name, value) in sorted {
        let value = String::from_utf8_lossy(value.as_bytes());
        let value = value.split_ascii_whitespace().collect::<Vec<_>>().join(" ");
        lines.push_str(&format!("{name}:{value}\n"));
        names.push(name.as_str());
    }
    (lines, names.join(";"))
}

/// Encodes everything but letters, digits and `-._~`, as signatures demand.
pub(super) fn encode(text: &str, keep_slash: bool) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                encoded.push(byte as char);
            }
            b'/' if keep_slash => encoded.push('/'),
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

/// The query of a request, encoded and in the order of a signature.
pub(super) fn query_string(query: &[(String, String)]) -> String {
    let mut pairs: Vec<(String, String)> =
        query.iter().map(|(name, value)| (encode(name, false), encode(value, false))).collect();
    pairs.sort();
    let pairs: Vec<String> =
        pairs.into_iter().map(|(name, value)| format!("{name}={value}")).collect();
    pairs.join("&")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The worked examples of the S3 documentation, "Signature Calculations for the
    /// Authorization Header": same inputs, same signatures.
    fn signature(
        headers: &[(&'static str, &str)],
        method: &str,
        path: &str,
        query: &[(&str, &str)],
        body: &[u8],
    ) -> String {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(*name, HeaderValue::from_str(value).unwrap());
        }
        let query: Vec<_> =
            query.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        let request = ToSign {
            method,
            path,
            query: &query,
            payload: Sha256Digest::of(body),
            region: "us-east-1",
            service: "s3",
            now: clock::parse_iso("2013-05-24T00:00:00Z").unwrap(),
        };
        let credentials = Credentials::new(
            "AKIAIOSFODNN7EXAMPLE",
            "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
            None,
        );
        sign(&mut map, &request, &credentials).unwrap();
        let authorization = map[AUTHORIZATION].to_str().unwrap();
        authorization.rsplit_once("Signature=").unwrap().1.to_owned()
    }

    #[test]
    fn the_documented_examples_have_the_documented_signatures() {
        let host = ("host", "examplebucket.s3.amazonaws.com");
        assert_eq!(
            signature(&[host, ("range", "bytes=0-9")], "GET", "/test.txt", &[], b""),
            "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"
        );
        assert_eq!(
            signature(&[host], "GET", "/", &[("lifecycle", "")], b""),
            "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"
        );
        assert_eq!(
            signature(&[host], "GET", "/", &[("prefix", "J"), ("max-keys", "2")], b""),
            "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"
        );
        let put = [
            host,
            ("date", "Fri, 24 May 2013 00:00:00 GMT"),
            ("x-amz-storage-class", "REDUCED_REDUNDANCY"),
        ];
        assert_eq!(
            signature(&put, "PUT", &encode("/test$file.text", true), &[], b"Welcome to Amazon S3."),
            "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"
        );
    }

    #[test]
    fn only_unreserved_characters_stay() {
        assert_eq!(encode("a b/ü+~", true), "a%20b/%C3%BC%2B~");
        assert_eq!(encode("a/b", false), "a%2Fb");
    }
}
