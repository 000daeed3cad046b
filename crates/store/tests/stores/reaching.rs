//! How a server is reached, and what each request tells it.

use crate::suite::put;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use store::{CredentialSource, Credentials, ErrorKind, S3Config, S3Store, Store};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

fn config(endpoint: String) -> S3Config {
    S3Config {
        endpoint: Some(endpoint),
        path_style: true,
        credentials: CredentialSource::Static(Credentials::new("key", "secret", None)),
        probe: false,
        ..S3Config::new("bucket")
    }
}

/// Answers every request with a success that has an etag; gives the heads of all requests.
async fn recorder() -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let heads: Arc<Mutex<Vec<String>>> = Arc::default();
    let kept = heads.clone();
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(socket.read_u8().await.unwrap());
            }
            let head = String::from_utf8_lossy(&head).to_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
            socket.read_exact(&mut body).await.unwrap();
            kept.lock().unwrap().push(head);
            let answer = "HTTP/1.1 200 OK\r\netag: \"1\"\r\ncontent-length: 0\r\n\
                          connection: close\r\n\r\n";
            socket.write_all(answer.as_bytes()).await.unwrap();
        }
    });
    (endpoint, heads)
}

#[tokio::test]
async fn a_put_says_who_asks_what_it_has_and_how_it_is_to_be_kept() {
    let (endpoint, heads) = recorder().await;
    let config = S3Config {
        sse: Some("aws:kms".into()),
        sse_kms_key_id: Some("arn:aws:kms:eu-west-1:1:key/k".into()),
        ..config(endpoint)
    };
    let store: Arc<dyn Store> = Arc::new(S3Store::open(config).await.unwrap());
    put(&store, "empty", "").await;
    let head = heads.lock().unwrap().remove(0);
    for line in [
        "put /bucket/empty http/1.1\r\n",
        "\r\nuser-agent: accession-store/",
        "\r\ncontent-length: 0\r\n",
        "\r\nx-amz-sdk-checksum-algorithm: sha256\r\n",
        "\r\nx-amz-server-side-encryption: aws:kms\r\n",
        "\r\nx-amz-server-side-encryption-aws-kms-key-id: arn:aws:kms:eu-west-1:1:key/k\r\n",
    ] {
        assert!(head.contains(line), "{line:?} is not in {head}");
    }
}

/// A bucket may refuse whatever is not encrypted as it says, what a store is tried out with too.
#[tokio::test]
async fn what_a_store_is_tried_out_with_is_encrypted_as_all_else() {
    let (endpoint, heads) = recorder().await;
    let config = S3Config { sse: Some("aws:kms".into()), probe: true, ..config(endpoint) };
    S3Store::open(config).await.unwrap();
    let heads = heads.lock().unwrap();
    let puts: Vec<&String> = heads.iter().filter(|head| head.starts_with("put ")).collect();
    assert!(puts.len() > 3, "{puts:?}");
    for put in puts {
        assert!(put.contains("\r\nx-amz-server-side-encryption: aws:kms\r\n"), "{put}");
    }
}

/// A server of `openssl` with a certificate that no authority knows.
struct TlsServer {
    endpoint: String,
    certificate: PathBuf,
    process: Child,
}

impl TlsServer {
    fn start(directory: &Path) -> TlsServer {
        let (certificate, key) = (directory.join("cert.pem"), directory.join("key.pem"));
        let made = Command::new("openssl")
            .args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"])
            .args(["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"])
            .args(["-addext", "basicConstraints=critical,CA:FALSE", "-keyout"])
            .arg(&key)
            .arg("-out")
            .arg(&certificate)
            .output()
            .expect("openssl");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let process = Command::new("openssl")
            .args(["s_server", "-www", "-quiet", "-accept", &format!("127.0.0.1:{port}"), "-cert"])
            .arg(&certificate)
            .arg("-key")
            .arg(&key)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("openssl");
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            std::thread::yield_now();
        }
        TlsServer { endpoint: format!("https://127.0.0.1:{port}"), certificate, process }
    }
}

impl Drop for TlsServer {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

#[tokio::test]
async fn a_certificate_that_is_not_trusted_is_an_error_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let server = TlsServer::start(directory.path());
    let reached = async |ca_bundle: Option<PathBuf>| {
        let pause_first = Duration::from_millis(1);
        let config = S3Config { ca_bundle, pause_first, ..config(server.endpoint.clone()) };
        S3Store::connect(config, None).await.map(drop)
    };
    let refused = reached(None).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Permanent, "{refused}");
    let said = refused.to_string();
    assert!(said.contains("AWS_CA_BUNDLE") && !said.contains("tried"), "{said}");
    reached(Some(server.certificate.clone())).await.expect("it is trusted now");
    let missing = reached(Some(directory.path().join("nothing.pem"))).await.unwrap_err();
    assert!(missing.to_string().contains("nothing.pem"), "{missing}");
}
