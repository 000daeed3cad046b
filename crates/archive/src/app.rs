//! What all stages of one process share.

use crate::ErrorCode;
use crate::config::{AllowPrivate, Config, MailSection, WatchSection, read_secret};
use crate::identifier::Minter;
use crate::metadata::Metadata;
use crate::model::error::{Error, Result};
use crate::model::profile::Profile;
use crate::stores::Stores;
use crate::transfer::ezid::Ezid;
use crate::transfer::fetch::Fetcher;
use crate::transfer::share::Shares;
use db::Db;
use pronom::Identifier;
use queue::JobId;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

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
    pub ezid: Option<Ezid>,
    pub mail: Option<MailSection>,
    /// Hosts that callbacks may go to although they are not public.
    pub allow_private: AllowPrivate,
    /// Drop folders and receiving buckets.
    pub watches: Vec<WatchSection>,
    /// How long the staged data of a failed job are kept.
    pub failed_retention_days: i64,
    /// How old the last check of a copy may be before content that a new version only refers to is
    /// read again.
    pub verify_referenced_days: i64,
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
    /// The directory of one job, which it alone owns. It is another one each time that the job's
    /// data was discarded, so that the old one can be removed while the job goes on.
    pub fn of(&self, job: JobId, discards: i64) -> PathBuf {
        self.path.join(match discards {
            0 => format!("job-{job}"),
            _ => format!("job-{job}.{discards}"),
        })
    }

    /// The job that a directory of this name belongs to, and how often its data had been discarded.
    pub fn job_of(name: &str) -> Option<(JobId, i64)> {
        let rest = name.strip_prefix("job-")?;
        let (job, discards) = rest.split_once('.').unwrap_or((rest, "0"));
        Some((job.parse().ok()?, discards.parse().ok()?))
    }
}

impl Settings {
    /// What a configuration comes to. Secrets are read here, so that a missing one is told at
    /// the start.
    pub fn of(config: &Config, data: &Path) -> Result<Settings> {
        let ezid = match &config.identifiers.ezid {
            Some(ezid) => {
                let password = read_secret(&ezid.password_file)?;
                let timeout = Duration::from_secs(ezid.timeout_seconds);
                let made = Ezid::new(&ezid.url, &ezid.user, &password, &ezid.shoulder);
                Some(Ezid { timeout, ..made })
            }
            None => None,
        };
        let work = &config.work_space;
        Ok(Settings {
            payloads: data.join("payloads"),
            work_space: WorkSpace {
                name: work.name.clone(),
                path: work.path.clone(),
                admit_percent: work.admit_percent.into(),
                stop_percent: work.stop_percent.into(),
            },
            files_max: config.limits.files_max,
            bytes_max: config.limits.bytes_max,
            expand_ratio_max: config.limits.expand_ratio_max,
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            naan: config.identifiers.naan.clone(),
            shoulder: config.identifiers.shoulder.clone(),
            ezid,
            mail: config.mail.clone(),
            allow_private: config.fetch.allow_private.clone(),
            watches: config.watch.clone(),
            failed_retention_days: i64::from(config.limits.invalid_package_retention_days),
            verify_referenced_days: i64::from(config.limits.verify_referenced_days),
        })
    }
}

pub struct App {
    pub db: Db,
    /// Part of the ids of events.
    pub installation: String,
    pub settings: Settings,
    pub stores: Stores,
    pub identifier: Arc<Identifier>,
    pub fetcher: Fetcher,
    pub shares: Shares,
}

impl App {
    /// Mints identifiers of this deployment.
    pub fn minter(&self) -> Result<Minter> {
        Minter::new(&self.settings.naan, &self.settings.shoulder, "reeeeek")
    }

    /// An identifier from the service; the same one for the same job, however often it asks.
    pub async fn mint_outside(&self, job: JobId, metadata: &Metadata) -> Result<String> {
        let Some(ezid) = &self.settings.ezid else {
            return Err(Error::permanent(
                ErrorCode::EzidNotConfigured,
                "the collection's identifiers come from EZID, and none is configured; add [identifiers.ezid], or set identifiers=mint",
            ));
        };
        // Other installations have jobs of the same number.
        ezid.mint(&format!("{}/{job}", self.installation), metadata).await
    }

    /// The profile of a collection, as it is now.
    pub async fn profile(&self, collection: &str) -> Result<Profile> {
        let name = collection.to_string();
        self.db.read(move |tx| crate::registry::collection::profile(tx, &name)).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_say_which_job_they_belong_to() {
        let path = PathBuf::from("/work");
        let work = WorkSpace { name: String::new(), path, admit_percent: 70, stop_percent: 80 };
        for (job, discards) in [(17, 0), (17, 1), (3, 12)].map(|(job, n)| (JobId::new(job), n)) {
            let of = work.of(job, discards);
            let name = of.file_name().and_then(|name| name.to_str()).unwrap();
            assert_eq!(WorkSpace::job_of(name), Some((job, discards)));
        }
        for other in ["received", "job-", "job-x", "job-1.x", "job-1.", "job-1 (copy)", "myjob-1"] {
            assert_eq!(WorkSpace::job_of(other), None, "{other}");
        }
    }
}
