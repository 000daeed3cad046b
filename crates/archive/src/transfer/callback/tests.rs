use super::*;
use crate::transfer::http::stand_in::{Reply, nobody, serve};
use serde_json::{Map, Value, json};

const NOW: i64 = 1_700_000_000;

fn fields() -> Map<String, Value> {
    let Value::Object(fields) = json!({"job": 7, "identifier": "ark:/99999/fk4sccxvj"}) else {
        unreachable!()
    };
    fields
}

fn callback(url: &str) -> Callback {
    let timeout = Duration::from_secs(600);
    Callback { allow_private: true, timeout, ..Callback::new(url, b"secret") }
}

#[tokio::test]
async fn a_receiver_can_trust_and_recognise_it() {
    let server = serve(|_| Reply::Answer(204, String::new()));
    callback(&format!("{}/hook?key=1", server.url)).send("job-7.1", &fields(), NOW).await.unwrap();
    let seen = server.seen.lock().unwrap()[0].clone();
    assert_eq!((seen.method.as_str(), seen.path.as_str()), ("POST", "/hook?key=1"));
    assert_eq!(seen.header(ID), "job-7.1");
    assert_eq!(seen.header("content-type"), "application/json");
    let body: Value = serde_json::from_str(&seen.body).unwrap();
    assert_eq!(body, json!({"id": "job-7.1", "job": 7, "identifier": "ark:/99999/fk4sccxvj"}));
    let (timestamp, signature) = (seen.header(TIMESTAMP), seen.header(SIGNATURE));
    let check =
        |secret: &[u8], body: &[u8], now| verify(secret, timestamp, signature, body, now, 300);
    assert_eq!(check(b"secret", seen.body.as_bytes(), NOW + 200), Ok(()));
    assert_eq!(check(b"other", seen.body.as_bytes(), NOW), Err(NotGenuine::Signature));
    assert_eq!(check(b"secret", b"{}", NOW), Err(NotGenuine::Signature));
    assert_eq!(check(b"secret", seen.body.as_bytes(), NOW + 301), Err(NotGenuine::Timestamp));
    assert_eq!(check(b"secret", seen.body.as_bytes(), NOW - 301), Err(NotGenuine::Timestamp));
}

/// Computed with `printf '1700000000.{}' | openssl dgst -sha256 -hmac secret`.
#[test]
fn the_signature_is_what_others_compute() {
    let known = "v1=b8569b78799ff9e3cbff0fc2d63a33a2b57f3282abd07c37ae5e8e7d79a5f163";
    assert_eq!(sign(b"secret", NOW, b"{}"), known);
    let stamp = NOW.to_string();
    assert_eq!(verify(b"secret", &stamp, &format!("v1=00, {known}"), b"{}", NOW, 0), Ok(()));
    let bad = [
        "",
        "v1=",
        "v1=zz",
        "v0=00",
        &known[..60],
        &format!("{known}00"),
        &known.replace("v1=", ""),
    ];
    for signature in bad {
        assert_eq!(verify(b"secret", &stamp, signature, b"{}", NOW, 0), Err(NotGenuine::Signature));
    }
    assert_eq!(
        verify(b"", &stamp, &sign(b"", NOW, b"{}"), b"{}", NOW, 0),
        Err(NotGenuine::Signature)
    );
    for stamp in ["", "x", "9999999999999999999999", "-9223372036854775808"] {
        assert_eq!(verify(b"secret", stamp, known, b"{}", NOW, 9), Err(NotGenuine::Timestamp));
    }
}

#[tokio::test]
async fn answers_decide_whether_it_is_tried_again() {
    let cases = [
        (400, "callback.refused", false),
        (401, "callback.refused", false),
        (404, "callback.refused", false),
        (410, "callback.gone", false),
        (408, "callback.unavailable", true),
        (425, "callback.unavailable", true),
        (429, "callback.unavailable", true),
        (500, "callback.unavailable", true),
        (503, "callback.unavailable", true),
    ];
    for (status, code, transient) in cases {
        let server = serve(move |_| Reply::Answer(status, "no".into()));
        let error = callback(&server.url).send("a", &fields(), NOW).await.unwrap_err();
        assert_eq!((error.code(), error.is_transient()), (code, transient), "{status}");
        if let Error::Transient { target, .. } = &error {
            assert_eq!(target.as_deref(), Some("127.0.0.1"));
        }
    }
    let mute = serve(|_| Reply::Silence);
    let impatient = Callback { timeout: Duration::from_millis(300), ..callback(&mute.url) };
    let rude = serve(|_| Reply::HangUp);
    for callback in [impatient, callback(&rude.url)] {
        let error = callback.send("a", &fields(), NOW).await.unwrap_err();
        assert_eq!((error.code(), error.is_transient()), ("callback.unreachable", true), "{error}");
    }
    let error =
        callback(&format!("http://{}", nobody())).send("a", &fields(), NOW).await.unwrap_err();
    assert_eq!((error.code(), error.is_transient()), ("callback.unreachable", true));
}

#[tokio::test]
async fn redirects_and_inner_addresses_are_not_followed() {
    let inner = serve(|_| Reply::Answer(200, String::new()));
    let to = inner.url.clone();
    let outer = serve(move |_| Reply::Elsewhere(to.clone()));
    let error = callback(&outer.url).send("a", &fields(), NOW).await.unwrap_err();
    assert_eq!((error.code(), error.is_transient()), ("callback.redirected", false));
    let guarded = Callback {
        allow_private: false,
        ..callback(&inner.url.replace("http://", "http://user:hush@"))
    };
    let error = guarded.send("a", &fields(), NOW).await.unwrap_err();
    assert_eq!((error.code(), error.is_transient()), ("callback.refused-address", false));
    assert!(!error.to_string().contains("hush"), "{error}");
    assert!(inner.seen.lock().unwrap().is_empty());
}

#[tokio::test]
async fn what_cannot_be_sent_is_said() {
    let url = "https://example.org/hook";
    for bad in ["", "ftp://example.org/", "/hook", "http://"] {
        assert_eq!(
            callback(bad).send("a", &fields(), NOW).await.unwrap_err().code(),
            "callback.url",
            "{bad}"
        );
    }
    let unsigned = Callback { secret: Vec::new(), ..callback(url) };
    assert_eq!(unsigned.send("a", &fields(), NOW).await.unwrap_err().code(), "callback.secret");
    assert_eq!(
        callback(url).send("a\r\nb", &fields(), NOW).await.unwrap_err().code(),
        "callback.id"
    );
    let mut large = fields();
    large.insert("x".into(), "y".repeat(BODY_BYTES_MAX).into());
    assert_eq!(
        callback(url).send("a", &large, NOW).await.unwrap_err().code(),
        "callback.too-large"
    );
    assert!(!format!("{:?}", callback(url)).contains("secret"));
}
