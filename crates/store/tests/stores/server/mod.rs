//! A real S3 server in the test process, on a port of its own, with faults when asked for.

mod faults;
mod full;
mod strict;

pub use faults::{Fault, Faults};
pub use full::Manners;

use faults::serve;
use full::Full;
use s3s::auth::SimpleAuth;
use s3s::service::S3ServiceBuilder;
use std::sync::Arc;
use std::time::Duration;
use store::{CredentialSource, Credentials, S3Config, S3Store, Store};

pub const MIB: u64 = 1024 * 1024;

/// A server that lives as long as this value.
pub struct Server {
    pub endpoint: String,
    pub faults: Arc<Faults>,
    dir: tempfile::TempDir,
    task: tokio::task::JoinHandle<()>,
}

impl Server {
    /// `s3s-fs` as it is: no digests of parts, no listing of uploads.
    pub async fn plain() -> Server {
        let dir = tempfile::tempdir().unwrap();
        let fs = s3s_fs::FileSystem::new(dir.path()).unwrap();
        Server::start(dir, S3ServiceBuilder::new(fs)).await
    }

    /// `s3s-fs` with what Amazon has and it lacks.
    pub async fn full() -> Server {
        Server::with(Manners::default()).await
    }

    /// The same with the manners of another server.
    pub async fn with(manners: Manners) -> Server {
        let dir = tempfile::tempdir().unwrap();
        let region = manners.region;
        let full = Full::new(dir.path(), manners);
        let server = Server::start(dir, S3ServiceBuilder::new(full)).await;
        *server.faults.region.lock().unwrap() = region;
        server
    }

    async fn start(dir: tempfile::TempDir, mut builder: S3ServiceBuilder) -> Server {
        std::fs::create_dir(dir.path().join("bucket")).unwrap();
        builder.set_auth(SimpleAuth::from_single("key", "secret"));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let faults = Arc::new(Faults::default());
        let task = tokio::spawn(serve(listener, builder.build(), faults.clone()));
        Server { endpoint, faults, dir, task }
    }

    /// Small parts, short pauses: what a test needs to meet every path in little time.
    pub fn config(&self) -> S3Config {
        let keys = Credentials::new("key", "secret", None);
        S3Config {
            prefix: "some/where".into(),
            endpoint: Some(self.endpoint.clone()),
            path_style: true,
            credentials: CredentialSource::Static(keys),
            part_bytes: 5 * MIB,
            buffer_bytes: 20 * MIB,
            tries_max: 4,
            pause_first: Duration::from_millis(1),
            // Long enough for a machine that is busy with other things; tests that want a stall
            // shorten it.
            stall: Duration::from_secs(20),
            answer: Duration::from_secs(60),
            ..S3Config::new("bucket")
        }
    }

    /// Where the server keeps the store's objects, for what others put there.
    pub fn objects(&self) -> std::path::PathBuf {
        self.dir.path().join("bucket/some/where")
    }

    pub async fn store(&self) -> Arc<dyn Store> {
        Arc::new(S3Store::open(self.config()).await.unwrap())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}
