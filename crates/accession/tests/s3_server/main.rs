//! What is promised of S3 as a whole, on a real server: `scripts/torture s3` starts one, names it in
//! the environment and runs this. boto3 judges, which shares no code with ours.

#![allow(clippy::unwrap_used)]

mod bytes;
mod commands;
mod ingests;
mod relay;
#[path = "../../../store/tests/stores/suite.rs"]
#[allow(dead_code)] // Two of its helpers look into files, which a real server does not show.
mod suite;
#[path = "../support/mod.rs"]
mod support;
mod uploads;

use std::sync::Arc;
use store::{CredentialSource, Credentials, S3Config, S3Store};
use support::real::RealServer;

const MIB: u64 = 1024 * 1024;

/// How a place on the server is reached, with small parts.
fn config(server: &RealServer, name: &str) -> S3Config {
    let keys = Credentials::new(server.access_key(), server.secret_key(), None);
    S3Config {
        prefix: server.key(name),
        endpoint: Some(server.endpoint.clone()),
        path_style: true,
        credentials: CredentialSource::Static(keys),
        part_bytes: 5 * MIB,
        ..S3Config::new(&server.bucket)
    }
}

async fn open(server: &RealServer, name: &str) -> Arc<S3Store> {
    Arc::new(S3Store::open(config(server, name)).await.unwrap())
}
