//! The same suite, and cold storage, against `moto`: another server, written by others. Skipped
//! where it cannot be had.

use crate::server::MIB;
use crate::suite;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;
use store::{
    Availability, CredentialSource, Credentials, ErrorKind, ListOptions, PutOptions, S3Config,
    S3Store, StorageClass, Store, Support, Thaw, ThawSpeed,
};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, Command};

/// Tests run side by side, and one of them installs.
static INSTALL: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

/// A `moto` server that lives as long as this value.
struct Moto {
    address: String,
    _process: Child,
}

impl Moto {
    /// Starts the server, installing it first where that is possible.
    async fn start() -> Option<Moto> {
        let venv = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("moto-venv");
        let program = venv.join("bin/moto_server");
        let installing = INSTALL.lock().await;
        if !program.exists() {
            let made = Command::new("python3").args(["-m", "venv"]).arg(&venv).output().await;
            made.ok().filter(|output| output.status.success())?;
            let pip = Command::new(venv.join("bin/pip"))
                .args(["install", "--quiet", "moto[s3,server]>=5,<6"])
                .output();
            pip.await.ok().filter(|output| output.status.success())?;
        }
        drop(installing);
        let mut process = Command::new(program)
            .args(["-H", "127.0.0.1", "-p", "0"])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .ok()?;
        let mut lines = BufReader::new(process.stderr.take()?).lines();
        while let Some(line) = lines.next_line().await.ok()? {
            if let Some((_, address)) = line.split_once("Running on http://") {
                let address = address.trim().to_owned();
                // The server logs every request; a full pipe would stop it.
                tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
                return Some(Moto { address, _process: process });
            }
        }
        None
    }

    /// One plain request, for what is not S3; the answer's body is not needed.
    async fn request(&self, head: &str, body: &str) {
        let mut socket = tokio::net::TcpStream::connect(&self.address).await.unwrap();
        let request = format!(
            "{head} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\ncontent-length: {}\r\n\
             content-type: application/json\r\n\r\n{body}",
            self.address,
            body.len()
        );
        socket.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        socket.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 20"), "{answer}");
    }

    async fn store(&self) -> Arc<S3Store> {
        self.request("PUT /bucket", "").await;
        let keys = Credentials::new("key", "secret", None);
        let config = S3Config {
            endpoint: Some(format!("http://{}", self.address)),
            path_style: true,
            credentials: CredentialSource::Static(keys),
            part_bytes: 5 * MIB,
            pause_first: Duration::from_millis(1),
            ..S3Config::new("bucket")
        };
        Arc::new(S3Store::open(config).await.unwrap())
    }
}

#[tokio::test]
async fn cold_objects_are_thawed_before_they_are_read() {
    let Some(moto) = Moto::start().await else {
        testing::skip("moto is not installed and cannot be");
        return;
    };
    // A thaw is done when it has been asked about twice.
    let slow = r#"{"model_name":"s3::keyrestore","transition":{"progression":"manual","times":2}}"#;
    moto.request("POST /moto-api/state-manager/set-transition", slow).await;
    let store = moto.store().await;
    assert_eq!(store.support().thaw, Support::Yes);
    assert!(store.capabilities().storage_classes);

    let large = suite::noise(11 * MIB as usize, 1);
    for (key, class, length) in [("small", "GLACIER", 1000), ("large", "DEEP_ARCHIVE", large.len())]
    {
        let content = large.slice(..length);
        let class = StorageClass::new(class);
        let options = PutOptions { storage_class: Some(class.clone()), ..PutOptions::default() };
        let put = store.put(key, suite::chunked(&content, None), &options).await.unwrap();
        assert_eq!(put.availability, Availability::Cold);
        let head = store.head(key).await.unwrap();
        assert_eq!((head.availability, head.storage_class), (Availability::Cold, Some(class)));
        for range in [None, Some(0..10), Some(5..5)] {
            let error = store.get(key, range).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Cold);
        }

        let thaw = Thaw { days: 3, speed: ThawSpeed::Bulk };
        assert_eq!(store.thaw(key, &thaw).await.unwrap(), Availability::Thawing);
        let mut seen = Vec::new();
        while seen.last().is_none_or(|availability| *availability == Availability::Thawing) {
            seen.push(store.thaw(key, &thaw).await.unwrap());
        }
        assert_eq!(seen[0], Availability::Thawing);
        let Some(Availability::Thawed { until: Some(until) }) = seen.last() else {
            panic!("{seen:?}");
        };
        let days = until.duration_since(std::time::SystemTime::now()).unwrap().as_secs() / 86_400;
        assert!((1..=3).contains(&days), "{days}");
        let got = store.get(key, None).await.unwrap().bytes(usize::MAX).await.unwrap();
        assert!(got == content);
    }
    suite::put(&(store.clone() as Arc<dyn Store>), "warm", "x").await;
    assert_eq!(store.thaw("warm", &Thaw::default()).await.unwrap(), Availability::Ready);
    let missing = store.thaw("nothing", &Thaw::default()).await.unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::NotFound);
}

#[tokio::test]
async fn another_server_passes_the_same_suite() {
    let Some(moto) = Moto::start().await else {
        testing::skip("moto is not installed and cannot be");
        return;
    };
    let store = moto.store().await;
    println!("moto supports {}", store.support());
    suite::run(store).await;
}

#[tokio::test]
async fn versions_that_a_bucket_keeps_are_counted_and_removed() {
    let Some(moto) = Moto::start().await else {
        testing::skip("moto is not installed and cannot be");
        return;
    };
    let store = moto.store().await;
    let versioned = "<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>";
    moto.request("PUT /bucket?versioning", versioned).await;
    let store: Arc<dyn Store> = store;
    for content in ["one", "two"] {
        suite::put(&store, "object/a", content).await;
        suite::put(&store, "object/b/c", content).await;
        suite::put(&store, "objects", content).await;
    }
    assert_eq!(store.versions("object").await.unwrap(), Some(4));
    store.delete_all("object").await.unwrap();
    assert_eq!(store.list("object", &ListOptions::default()).await.unwrap().entries, []);
    assert_eq!(store.versions("object").await.unwrap(), Some(6), "two marks of deletion");
    assert_eq!(store.remove_versions("object").await.unwrap(), 6);
    assert_eq!(store.versions("object").await.unwrap(), Some(0));
    assert_eq!(store.versions("objects").await.unwrap(), Some(0), "nothing lies below it");
    assert_eq!(suite::get(&store, "objects").await, "two");
}
