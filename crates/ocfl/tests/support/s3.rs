//! A real S3 server in the test process, on a port of its own; or the one that `scripts/torture s3`
//! names, where a bucket of a test is a prefix of its bucket.

#[path = "../../../store/tests/real/mod.rs"]
pub mod real;
#[allow(dead_code)] // What it refuses for its region is tried by the store's own tests.
#[path = "../../../store/tests/stores/server/strict.rs"]
mod strict;

use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use real::RealServer;
use s3s::auth::SimpleAuth;
use s3s::service::S3ServiceBuilder;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use store::{CredentialSource, Credentials, S3Config, S3Store, Store};

/// Serves the directories in `directory` as buckets, as long as this value lives.
pub struct Server {
    pub endpoint: String,
    pub real: Option<RealServer>,
    directory: PathBuf,
    task: Option<tokio::task::JoinHandle<()>>,
}

impl Server {
    pub async fn start(directory: &Path) -> Server {
        if let Some(real) = RealServer::named() {
            let (endpoint, directory) = (real.endpoint.clone(), directory.to_owned());
            return Server { endpoint, real: Some(real), directory, task: None };
        }
        let fs = s3s_fs::FileSystem::new(directory).expect("a directory to serve");
        let mut builder = S3ServiceBuilder::new(fs);
        builder.set_auth(SimpleAuth::from_single("key", "secret"));
        let service = builder.build();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let endpoint = format!("http://{}", listener.local_addr().expect("an address"));
        let task = tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                // Head and body of an answer are two writes; the second shall not wait for the first.
                socket.set_nodelay(true).ok();
                let service = service.clone();
                let handler = service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
                    let service = service.clone();
                    async move {
                        match strict::refuse(&request) {
                            Some(refused) => Ok(refused.map(s3s::Body::from)),
                            None => service.call(request.map(s3s::Body::from)).await,
                        }
                    }
                });
                let connection = hyper::server::conn::http1::Builder::new()
                    .serve_connection(TokioIo::new(socket), handler);
                // A client that goes away is no fault of the server.
                tokio::spawn(async move { connection.await.ok() });
            }
        });
        Server { endpoint, real: None, directory: directory.to_owned(), task: Some(task) }
    }

    /// Where a place in a bucket is: its bucket and prefix.
    fn place(&self, bucket: &str, prefix: &str) -> (String, String) {
        match &self.real {
            Some(real) => (real.bucket.clone(), real.key(&format!("{bucket}/{prefix}"))),
            None => (bucket.to_owned(), prefix.to_owned()),
        }
    }

    pub fn url(&self, bucket: &str, prefix: &str) -> String {
        let (bucket, prefix) = self.place(bucket, prefix);
        format!("s3://{bucket}/{prefix}?endpoint={}", self.endpoint)
    }

    /// What a program needs to be let in.
    pub fn environment(&self) -> Vec<(String, String)> {
        match &self.real {
            Some(real) => real.environment(),
            None => [
                ("AWS_ACCESS_KEY_ID", "key"),
                ("AWS_SECRET_ACCESS_KEY", "secret"),
                ("AWS_EC2_METADATA_DISABLED", "true"),
            ]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .to_vec(),
        }
    }

    /// Changes one bit of an object without our client; `end` is the end of its key.
    pub fn damage(&self, bucket: &str, prefix: &str, end: &str) {
        match &self.real {
            Some(real) => {
                let listed = real.judge("keys", &[&real.key(&format!("{bucket}/{prefix}"))]);
                let key = listed.lines().find_map(|line| {
                    let key = line.split('"').nth(3)?;
                    key.ends_with(end).then(|| key.to_owned())
                });
                real.judge("damage", &[&key.expect("the object is there")]);
            }
            None => damage_file(&self.directory.join(bucket).join(prefix), end),
        }
    }

    /// The store in a bucket below a prefix.
    pub async fn store(&self, bucket: &str, prefix: &str) -> Arc<dyn Store> {
        let (bucket, prefix) = self.place(bucket, prefix);
        let keys = match &self.real {
            Some(real) => Credentials::new(real.access_key(), real.secret_key(), None),
            None => Credentials::new("key", "secret", None),
        };
        let config = S3Config {
            prefix,
            endpoint: Some(self.endpoint.clone()),
            path_style: true,
            credentials: CredentialSource::Static(keys),
            ..S3Config::new(bucket)
        };
        Arc::new(S3Store::open(config).await.expect("a store"))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

fn damage_file(directory: &Path, end: &str) {
    for entry in std::fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            damage_file(&path, end);
        } else if path.ends_with(end) {
            let mut content = std::fs::read(&path).expect("an object");
            let middle = content.len() / 2;
            content[middle] ^= 1;
            std::fs::write(path, content).expect("damage");
        }
    }
}
