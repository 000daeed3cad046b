//! A real S3 server in the test process, that can be told to fail, and remembers what it was asked;
//! or the one that `scripts/torture s3` names, where a bucket of a test is a prefix of its bucket,
//! and nothing can be controlled or looked at from inside.

#[path = "../../../store/tests/stores/server/strict.rs"]
mod strict;

use super::real::RealServer;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use s3s::auth::SimpleAuth;
use s3s::service::S3ServiceBuilder;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use store::{CredentialSource, Credentials, PutOptions, S3Config, S3Store, Store};

type Hook = Box<dyn FnMut(&str, &str) + Send>;

/// Content in cold storage: what was asked for, and when it can be read. Hours are milliseconds.
#[derive(Default)]
pub struct Freezer {
    /// Everything below `content/` is frozen.
    pub is_on: AtomicBool,
    /// How long a thaw takes, and how long what it thawed can be read; 0 for ever.
    pub thaw_millis: AtomicU64,
    pub readable_millis: AtomicU64,
    /// How requests to thaw are refused: 403 or 503.
    pub refusal: AtomicU16,
    /// When each key was asked for, by the path of the request.
    pub asked: Mutex<BTreeMap<String, Vec<Instant>>>,
}

/// How far a thaw is.
#[derive(PartialEq)]
enum Frozen {
    Cold,
    Thawing,
    Readable,
}

impl Freezer {
    fn is_frozen(&self, path: &str) -> bool {
        self.is_on.load(Ordering::SeqCst) && path.contains("/content/")
    }

    fn state(&self, path: &str) -> Frozen {
        let asked = self.asked.lock().unwrap();
        let Some(last) = asked.get(path).and_then(|times| times.last()) else {
            return Frozen::Cold;
        };
        let passed = last.elapsed().as_millis() as u64;
        let thaw = self.thaw_millis.load(Ordering::SeqCst);
        let readable = self.readable_millis.load(Ordering::SeqCst);
        match passed {
            passed if passed < thaw => Frozen::Thawing,
            passed if readable == 0 || passed < thaw + readable => Frozen::Readable,
            _ => Frozen::Cold,
        }
    }

    /// The answer to a request for frozen content, if the server behind it must not give its own.
    fn answer(&self, method: &str, uri: &str) -> Option<hyper::Response<s3s::Body>> {
        let (path, query) = uri.split_once('?').unwrap_or((uri, ""));
        if !self.is_frozen(path) {
            return None;
        }
        match method {
            "GET" if self.state(path) != Frozen::Readable => {
                Some(refused(403, "InvalidObjectState"))
            }
            "POST" if query.starts_with("restore") => Some(match self.state(path) {
                _ if self.refusal.load(Ordering::SeqCst) == 403 => refused(403, "AccessDenied"),
                _ if self.refusal.load(Ordering::SeqCst) == 503 => refused(503, "SlowDown"),
                Frozen::Thawing => refused(409, "RestoreAlreadyInProgress"),
                _ => {
                    let mut asked = self.asked.lock().unwrap();
                    asked.entry(path.to_string()).or_default().push(Instant::now());
                    answered(202, String::new())
                }
            }),
            _ => None,
        }
    }

    /// What a look at frozen content says of it.
    fn tell(&self, method: &str, uri: &str, headers: &mut hyper::HeaderMap) {
        let path = uri.split('?').next().unwrap_or(uri);
        if method != "HEAD" || !self.is_frozen(path) {
            return;
        }
        headers.insert("x-amz-storage-class", "GLACIER".parse().unwrap());
        let restore = match self.state(path) {
            Frozen::Cold => return,
            Frozen::Thawing => "ongoing-request=\"true\"",
            Frozen::Readable => "ongoing-request=\"false\"",
        };
        headers.insert("x-amz-restore", restore.parse().unwrap());
    }
}

fn refused(status: u16, code: &str) -> hyper::Response<s3s::Body> {
    answered(status, format!("<Error><Code>{code}</Code><Message>{code}</Message></Error>"))
}

fn answered(status: u16, body: String) -> hyper::Response<s3s::Body> {
    hyper::Response::builder().status(status).body(s3s::Body::from(body)).unwrap()
}

/// What tests change while it runs.
#[derive(Default)]
pub struct Control {
    pub freezer: Freezer,
    /// Answered instead of anything else, if it is not 0.
    pub status: AtomicU16,
    /// How long every answer takes.
    pub delay_millis: AtomicU64,
    /// In every list, the first of these texts is answered as the second.
    pub list_says: Mutex<Option<(&'static str, &'static str)>>,
    /// Method and path with its query, of each request that was answered well.
    pub seen: Mutex<Vec<(String, String)>>,
    /// Called with method and path before each request is answered.
    pub hook: Mutex<Option<Hook>>,
}

pub struct Server {
    pub endpoint: String,
    pub real: Option<RealServer>,
    pub control: Arc<Control>,
    directory: tempfile::TempDir,
    runtime: tokio::runtime::Runtime,
}

/// What programs need to be let in.
pub fn keys() -> Vec<(String, String)> {
    if let Some(real) = RealServer::named() {
        return real.environment();
    }
    let keys = [
        ("AWS_ACCESS_KEY_ID", "key"),
        ("AWS_SECRET_ACCESS_KEY", "secret"),
        ("AWS_REGION", "us-east-1"),
        ("AWS_EC2_METADATA_DISABLED", "true"),
    ];
    keys.map(|(k, v)| (k.to_string(), v.to_string())).to_vec()
}

impl Server {
    pub fn start() -> Server {
        match RealServer::named() {
            Some(real) => Server::at(real),
            None => Server::start_inside(),
        }
    }

    /// A server that runs elsewhere.
    pub fn at(real: RealServer) -> Server {
        Server {
            endpoint: real.endpoint.clone(),
            real: Some(real),
            control: Arc::default(),
            directory: tempfile::tempdir().unwrap(),
            runtime: tokio::runtime::Runtime::new().unwrap(),
        }
    }

    fn start_inside() -> Server {
        let directory = tempfile::tempdir().unwrap();
        for bucket in ["bucket", "incoming"] {
            std::fs::create_dir(directory.path().join(bucket)).unwrap();
        }
        let mut builder = S3ServiceBuilder::new(s3s_fs::FileSystem::new(directory.path()).unwrap());
        builder.set_auth(SimpleAuth::from_single("key", "secret"));
        let service = builder.build();
        let control: Arc<Control> = Arc::default();
        let shared = control.clone();
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        runtime.spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                // Head and body of an answer are two writes; the second shall not wait for the first.
                socket.set_nodelay(true).ok();
                let (service, control) = (service.clone(), shared.clone());
                let handler = service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
                    let (service, control) = (service.clone(), control.clone());
                    async move {
                        let asked = (request.method().to_string(), request.uri().to_string());
                        if let Some(hook) = control.hook.lock().unwrap().as_mut() {
                            hook(&asked.0, &asked.1);
                        }
                        let delay = control.delay_millis.load(Ordering::SeqCst);
                        tokio::time::sleep(Duration::from_millis(delay)).await;
                        if let Some(answer) = control.freezer.answer(&asked.0, &asked.1) {
                            return Ok(answer);
                        }
                        match control.status.load(Ordering::SeqCst) {
                            0 => {
                                if let Some(refused) = strict::refuse(&request) {
                                    return Ok(refused.map(s3s::Body::from));
                                }
                                // A task of its own: S3 does not leave a put half done because
                                // whoever asked for it was killed.
                                let call =
                                    async move { service.call(request.map(s3s::Body::from)).await };
                                let is_list = asked.1.contains("list-type=2");
                                let mut answer = tokio::spawn(call).await.unwrap();
                                if let Ok(answer) = &mut answer {
                                    let headers = answer.headers_mut();
                                    control.freezer.tell(&asked.0, &asked.1, headers);
                                }
                                if answer.as_ref().is_ok_and(|a| a.status().is_success()) {
                                    control.seen.lock().unwrap().push(asked);
                                }
                                let says = *control.list_says.lock().unwrap();
                                match (answer, says) {
                                    (Ok(answer), Some(says)) if is_list => {
                                        Ok(distorted(answer, says).await)
                                    }
                                    (answer, _) => answer,
                                }
                            }
                            status => Ok(hyper::Response::builder()
                                .status(status)
                                .body(s3s::Body::empty())
                                .unwrap()),
                        }
                    }
                });
                let connection = hyper::server::conn::http1::Builder::new()
                    .serve_connection(TokioIo::new(socket), handler);
                // A client that goes away is no fault of the server.
                tokio::spawn(async move { connection.await.ok() });
            }
        });
        Server { endpoint, real: None, control, directory, runtime }
    }

    /// The address of a bucket, or of a place in it.
    pub fn store(&self, bucket_and_prefix: &str) -> String {
        match &self.real {
            Some(real) => real.url(bucket_and_prefix),
            None => format!("s3://{bucket_and_prefix}?endpoint={}&path_style=true", self.endpoint),
        }
    }

    /// Where a bucket's objects lie.
    pub fn file(&self, bucket: &str, key: &str) -> PathBuf {
        assert!(self.real.is_none(), "only the server of the test process has files");
        self.directory.path().join(bucket).join(key)
    }

    /// A bucket as its depositors use it.
    pub fn depositor(&self, bucket: &str) -> Depositor<'_> {
        let keys = match &self.real {
            Some(real) => Credentials::new(real.access_key(), real.secret_key(), None),
            None => Credentials::new("key", "secret", None),
        };
        let (bucket, prefix) = match &self.real {
            Some(real) => (real.bucket.as_str(), real.key(bucket)),
            None => (bucket, String::new()),
        };
        let config = S3Config {
            prefix,
            endpoint: Some(self.endpoint.clone()),
            path_style: true,
            credentials: CredentialSource::Static(keys),
            ..S3Config::new(bucket)
        };
        let store = self.runtime.block_on(S3Store::open(config)).unwrap();
        Depositor { server: self, store: Arc::new(store) }
    }
}

/// An answer in which one text stands for another.
async fn distorted(
    answer: hyper::Response<s3s::Body>,
    (text, instead): (&str, &str),
) -> hyper::Response<s3s::Body> {
    let (mut head, body) = answer.into_parts();
    let content = http_body_util::BodyExt::collect(body).await.unwrap().to_bytes();
    let content = String::from_utf8(content.to_vec()).unwrap().replace(text, instead);
    head.headers.insert("content-length", content.len().into());
    hyper::Response::from_parts(head, s3s::Body::from(content))
}

pub struct Depositor<'s> {
    server: &'s Server,
    store: Arc<dyn Store>,
}

impl Depositor<'_> {
    pub fn put(&self, key: &str, content: &str) {
        let (content, options) = (content.as_bytes().to_vec(), PutOptions::default());
        self.server.runtime.block_on(self.store.put(key, content.into(), &options)).unwrap();
    }

    pub fn delete(&self, key: &str) {
        self.server.runtime.block_on(self.store.delete(key)).unwrap();
    }

    /// What is there, if anything is. While something is being replaced there is nothing: this
    /// server replaces an object and its digest one after the other.
    pub fn get(&self, key: &str) -> Option<Vec<u8>> {
        let got = self.store.get_batch(vec![key.to_string()], 1 << 20);
        match self.server.runtime.block_on(got) {
            Ok(mut found) => found.remove(0).map(|bytes| bytes.to_vec()),
            Err(error) if error.kind() == store::ErrorKind::Corrupt => None,
            Err(error) => panic!("{error}"),
        }
    }
}
