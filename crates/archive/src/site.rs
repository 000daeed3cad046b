//! What all stages of one process share.

use crate::error::{Error, Result};
use crate::fetch::Fetcher;
use crate::profile::Profile;
use crate::stores::Stores;
use db::Db;
use pronom::Identifier;
use std::path::PathBuf;
use std::sync::Arc;

/// What a deployment is set to.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where submitted manifests are kept with their batches.
    pub payloads: PathBuf,
    pub work_space: WorkSpace,
    pub files_max: u64,
    pub bytes_max: u64,
    pub expand_ratio_max: u64,
    /// Threads that read one package.
    pub threads: usize,
    pub naan: String,
    pub shoulder: String,
    /// How long the staged data of a failed job are kept.
    pub failed_retention_days: i64,
}

/// Where a job's bytes are while it is worked on.
#[derive(Debug, Clone)]
pub struct WorkSpace {
    pub name: String,
    pub path: PathBuf,
    /// Jobs are admitted while no more than this much of it would be used.
    pub admit_percent: u64,
    /// Nothing is admitted while more than this much of it is used.
    pub stop_percent: u64,
}

impl WorkSpace {
    /// The directory of one job, which it alone owns.
    pub fn of(&self, job: i64) -> PathBuf {
        self.path.join(format!("job-{job}"))
    }
}

pub struct Site {
    pub db: Db,
    pub settings: Settings,
    pub stores: Stores,
    pub identifier: Arc<Identifier>,
    pub fetcher: Fetcher,
}

impl Site {
    /// The profile of a collection, as it is now.
    pub async fn profile(&self, collection: &str) -> Result<Profile> {
        let name = collection.to_string();
        let found = self.db.read(move |tx| crate::collection::find(tx, &name)).await?;
        found.ok_or_else(|| {
            Error::permanent(
                "unknown_collection",
                format!("there is no collection `{collection}`; make it with `accession collection create {collection}`"),
            )
        })
    }
}
