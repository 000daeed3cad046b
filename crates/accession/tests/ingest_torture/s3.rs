//! A real S3 server in the test process, that can be told to fail.

use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use s3s::auth::SimpleAuth;
use s3s::service::S3ServiceBuilder;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicU64, Ordering};
use std::time::Duration;

pub struct Server {
    pub endpoint: String,
    /// Answered instead of anything else, if it is not 0.
    pub status: Arc<AtomicU16>,
    /// How long every answer takes.
    pub delay_millis: Arc<AtomicU64>,
    _directory: tempfile::TempDir,
    _runtime: tokio::runtime::Runtime,
}

impl Server {
    pub fn start() -> Server {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("bucket")).unwrap();
        let mut builder = S3ServiceBuilder::new(s3s_fs::FileSystem::new(directory.path()).unwrap());
        builder.set_auth(SimpleAuth::from_single("key", "secret"));
        let service = builder.build();
        let (status, delay_millis) = (Arc::new(AtomicU16::new(0)), Arc::new(AtomicU64::new(0)));
        let (code, delay) = (status.clone(), delay_millis.clone());
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        runtime.spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let (service, code, delay) = (service.clone(), code.clone(), delay.clone());
                let handler = service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
                    let (service, code, delay) = (service.clone(), code.clone(), delay.clone());
                    async move {
                        tokio::time::sleep(Duration::from_millis(delay.load(Ordering::SeqCst)))
                            .await;
                        match code.load(Ordering::SeqCst) {
                            0 => service.call(request.map(s3s::Body::from)).await,
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
        Server { endpoint, status, delay_millis, _directory: directory, _runtime: runtime }
    }

    /// The address of a store in it.
    pub fn store(&self, prefix: &str) -> String {
        format!("s3://bucket/{prefix}?endpoint={}&path_style=true", self.endpoint)
    }
}
