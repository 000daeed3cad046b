//! A real S3 server in the test process, on a port of its own.

use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use s3s::auth::SimpleAuth;
use s3s::service::S3ServiceBuilder;
use std::path::Path;
use std::sync::Arc;
use store::{CredentialSource, Credentials, S3Config, S3Store, Store};

/// Serves the directories in `directory` as buckets, as long as this value lives.
pub struct Server {
    pub endpoint: String,
    task: tokio::task::JoinHandle<()>,
}

impl Server {
    pub async fn start(directory: &Path) -> Server {
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
                    async move { service.call(request.map(s3s::Body::from)).await }
                });
                let connection = hyper::server::conn::http1::Builder::new()
                    .serve_connection(TokioIo::new(socket), handler);
                // A client that goes away is no fault of the server.
                tokio::spawn(async move { connection.await.ok() });
            }
        });
        Server { endpoint, task }
    }

    /// The store in a bucket below a prefix.
    pub async fn store(&self, bucket: &str, prefix: &str) -> Arc<dyn Store> {
        let config = S3Config {
            prefix: prefix.to_owned(),
            endpoint: Some(self.endpoint.clone()),
            path_style: true,
            credentials: CredentialSource::Static(Credentials::new("key", "secret", None)),
            ..S3Config::new(bucket)
        };
        Arc::new(S3Store::open(config).await.expect("a store"))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}
