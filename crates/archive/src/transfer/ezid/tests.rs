use super::*;
use crate::transfer::http::stand_in::{Reply, Seen, StandIn, nobody, serve};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// Keeps identifiers as EZID does. `lose` may lose the answer after the work is done.
fn ezid(
    lose: impl Fn() -> Option<Reply> + Send + Sync + 'static,
) -> (StandIn, Arc<Mutex<BTreeMap<String, String>>>) {
    let kept: Arc<Mutex<BTreeMap<String, String>>> = Arc::default();
    let own = kept.clone();
    let server = serve(move |seen| {
        let answer = answer(&mut own.lock().unwrap(), seen);
        lose().unwrap_or(answer)
    });
    (server, kept)
}

fn answer(kept: &mut BTreeMap<String, String>, seen: &Seen) -> Reply {
    let ark = seen.path.strip_prefix("/id/").unwrap_or_default().to_owned();
    if seen.header("authorization") != "Basic dTpw" {
        return Reply::Answer(401, "error: unauthorized".into());
    }
    match (seen.method.as_str(), kept.get(&ark)) {
        ("PUT", Some(_)) => {
            Reply::Answer(400, "error: bad request - identifier already exists".into())
        }
        ("PUT", None) => {
            kept.insert(ark.clone(), seen.body.clone());
            Reply::Answer(201, format!("success: {ark}"))
        }
        ("GET", Some(body)) => {
            Reply::Answer(200, format!("success: {ark}\n_status: public\n{body}"))
        }
        _ => Reply::Answer(400, "error: bad request - no such identifier".into()),
    }
}

fn client(server: &StandIn) -> Ezid {
    let timeout = Duration::from_secs(600);
    Ezid { timeout, ..Ezid::new(&server.url, "u", "p", "ark:/99999/fk4") }
}

#[tokio::test]
async fn a_job_has_one_identifier_however_often_it_asks() {
    let (server, kept) = ezid(|| None);
    let metadata =
        Metadata { who: Some("A\nB".into()), what: Some("50%".into()), ..Metadata::default() };
    let first = client(&server).mint("here/7", &metadata).await.unwrap();
    assert!(first.starts_with("ark:/99999/fk4") && crate::identifier::check(&first), "{first}");
    assert_eq!(client(&server).mint("here/7", &metadata).await.unwrap(), first);
    assert_ne!(client(&server).mint("here/8", &metadata).await.unwrap(), first);
    assert_eq!(kept.lock().unwrap().len(), 2);
    let methods: Vec<String> =
        server.seen.lock().unwrap().iter().map(|s| s.method.clone()).collect();
    assert_eq!(methods, ["PUT", "PUT", "GET", "PUT"]);
    let body = kept.lock().unwrap()[&first].clone();
    assert_eq!(
        body,
        "accession.job: here/7\n_profile: erc\nerc.who: A%0AB\nerc.what: 50%25\nerc.when: (:unas)\n"
    );
}

#[tokio::test]
async fn an_answer_lost_after_minting_never_makes_two() {
    let ways: [(fn() -> Reply, u64); 2] = [(|| Reply::Silence, 500), (|| Reply::HangUp, 600_000)];
    for (reply, patience_ms) in ways {
        let losing = Arc::new(AtomicBool::new(true));
        let still = losing.clone();
        let (server, kept) = ezid(move || still.load(Ordering::SeqCst).then(reply));
        let impatient = Ezid { timeout: Duration::from_millis(patience_ms), ..client(&server) };
        for _ in 0..2 {
            let error = impatient.mint("j", &Metadata::default()).await.unwrap_err();
            assert_eq!((error.code(), error.is_transient()), ("ezid.unreachable", true), "{error}");
            let named =
                matches!(&error, Error::Transient { target: Some(name), .. } if name == "ezid");
            assert!(named, "{error}");
        }
        losing.store(false, Ordering::SeqCst);
        let ark = client(&server).mint("j", &Metadata::default()).await.unwrap();
        assert_eq!(kept.lock().unwrap().keys().collect::<Vec<_>>(), [&ark]);
    }
}

#[tokio::test]
async fn a_name_that_is_another_s_is_left_alone() {
    let (server, kept) = ezid(|| None);
    let client = client(&server);
    let taken = client.minter().unwrap().mint(number_of("j", 0));
    kept.lock().unwrap().insert(taken.clone(), "accession.job: somebody else\n".into());
    let own = client.mint("j", &Metadata::default()).await.unwrap();
    assert_ne!(own, taken);
    assert_eq!(client.mint("j", &Metadata::default()).await.unwrap(), own);
    assert_eq!(kept.lock().unwrap()[&taken], "accession.job: somebody else\n");
}

#[tokio::test]
async fn what_may_pass_and_what_will_not() {
    for status in [500, 502, 503, 429] {
        let server = serve(move |_| Reply::Answer(status, "error: try later".into()));
        let error = client(&server).mint("j", &Metadata::default()).await.unwrap_err();
        assert_eq!((error.code(), error.is_transient()), ("ezid.unavailable", true));
    }
    let refusals = [
        (401, "ezid.unauthorized"),
        (403, "ezid.forbidden"),
        (400, "ezid.refused"),
        (200, "ezid.answer"),
    ];
    for (status, code) in refusals {
        let server = serve(move |_| Reply::Answer(status, "error: no\u{1b}[2J".into()));
        let error = client(&server).mint("j", &Metadata::default()).await.unwrap_err();
        assert_eq!((error.code(), error.is_transient()), (code, false));
        assert!(!error.to_string().contains('\u{1b}'));
    }
    let server = serve(|_| Reply::Elsewhere("http://127.0.0.1:1/".into()));
    assert_eq!(
        client(&server).mint("j", &Metadata::default()).await.unwrap_err().code(),
        "ezid.answer"
    );
    let down = Ezid::new(&format!("http://{}", nobody()), "u", "p", "ark:/99999/fk4");
    let error = down.mint("j", &Metadata::default()).await.unwrap_err();
    assert_eq!((error.code(), error.is_transient()), ("ezid.unreachable", true));
}

#[tokio::test]
async fn passwords_are_neither_sent_in_the_clear_nor_shown() {
    let open = Ezid::new("http://ezid.example.org", "u", "secret", "ark:/99999/fk4");
    assert_eq!(open.mint("j", &Metadata::default()).await.unwrap_err().code(), "ezid.address");
    assert!(!format!("{open:?}").contains("secret"));
    let bad = Ezid::new("https://x", "u", "p", "fk4");
    assert_eq!(bad.mint("j", &Metadata::default()).await.unwrap_err().code(), "identifier.ark");
}
