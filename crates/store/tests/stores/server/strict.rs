//! What Amazon and Ceph refuse before they look at an object, and kinder servers let pass.

use hyper::body::Bytes;
use hyper::http::{Method, Request, Response};

/// The refusal of a request that a strict server does not take.
pub fn refuse<B>(request: &Request<B>) -> Option<Response<Bytes>> {
    let header = |name| request.headers().get(name).and_then(|value| value.to_str().ok());
    let writes = matches!(*request.method(), Method::PUT | Method::POST);
    if writes && header("content-length").is_none() {
        return Some(answer(411, "MissingContentLength"));
    }
    let signed = header("x-amz-content-sha256")?;
    let is_digest = signed.len() == 64 && signed.bytes().all(|b| b.is_ascii_hexdigit());
    if !is_digest {
        return Some(answer(400, "XAmzContentSHA256Mismatch"));
    }
    // The key of the longest name that is allowed, after the bucket's.
    let key = request.uri().path().splitn(3, '/').nth(2).unwrap_or_default();
    let decoded = key.len() - 2 * key.matches('%').count();
    (decoded > 1024).then(|| answer(400, "KeyTooLongError"))
}

/// The refusal of a request that is signed for another region. It says the right one in its body,
/// which the answer to a HEAD does not have.
pub fn refuse_region<B>(request: &Request<B>, region: &str) -> Option<Response<Bytes>> {
    let signed = request.headers().get("authorization")?.to_str().ok()?;
    if signed.contains(&format!("/{region}/s3/")) {
        return None;
    }
    let body = match *request.method() {
        Method::HEAD => String::new(),
        _ => format!(
            "<Error><Code>AuthorizationHeaderMalformed</Code><Message>strictly</Message>\
             <Region>{region}</Region></Error>"
        ),
    };
    Some(Response::builder().status(400).body(body.into()).expect("an answer"))
}

fn answer(status: u16, code: &str) -> Response<Bytes> {
    let body = format!("<Error><Code>{code}</Code><Message>strictly</Message></Error>");
    Response::builder().status(status).body(body.into()).expect("an answer")
}
