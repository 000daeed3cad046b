//! Reserves the space a job needs in its work space. Waiting holds no worker.

use super::room::step;
use super::{Run, Step};
use crate::ErrorCode;
use crate::app::WorkSpace;
use crate::model::error::{Error, Result};
use crate::package::unpack::unwritable;
use db::{Micros, Statement, Tx, statement};
use queue::{Handover, JobId, Outcome};

/// How long a job waits before it asks again.
const AGAIN_MICROS: Micros = 15_000_000;

pub struct Provisioning;

impl Step for Provisioning {
    const NAME: &'static str = "provisioning";

    async fn run(run: Run<'_>) -> Result<Outcome> {
        // Past `downloading`, where slow servers may have taken all places.
        let onward = || match run.item.is_downloaded() {
            true => Outcome::success(),
            false => Outcome::Success(Handover::to("validating")),
        };
        let work = &run.app.settings.work_space;
        let space = Space::of(work)?;
        let bytes = match run.ingest.space_bytes {
            Some(0) => return Ok(onward()),
            Some(known) => u64::try_from(known).unwrap_or(0),
            // The reservation grows as bytes arrive; without any room they do not begin to.
            None => step(0, &space),
        };
        let (job, name) = (run.id(), work.name.clone());
        let needed = Demand { bytes, written: 0 };
        let answer = run
            .app
            .db
            .write(move |tx| Ok::<_, Error>((tx.now(), admit(tx, job, &name, &needed, &space)?)))
            .await?;
        match answer {
            (_, Admission::Admitted) => {
                run.make_directory()?;
                Ok(onward())
            }
            (now, Admission::Later(why)) => Ok(Outcome::Wait { due: now + AGAIN_MICROS, why }),
            (_, Admission::Never(why)) => Err(Error::permanent(ErrorCode::WorkSpaceTooSmall, why)),
        }
    }
}

/// What there is in a work space.
#[derive(Debug, Clone)]
pub struct Space {
    pub total: u64,
    pub used: u64,
    pub admit_percent: u64,
    pub stop_percent: u64,
}

impl Space {
    pub fn of(work: &WorkSpace) -> Result<Space> {
        std::fs::create_dir_all(&work.path).map_err(|e| unwritable(&work.path, e))?;
        let stat = rustix::fs::statvfs(&work.path).map_err(|e| unwritable(&work.path, e.into()))?;
        // As `df` counts: what is kept back for the system is neither used nor to be had.
        let used = stat.f_blocks.saturating_sub(stat.f_bfree) * stat.f_frsize;
        let total = used + stat.f_bavail * stat.f_frsize;
        let (admit_percent, stop_percent) = (work.admit_percent, work.stop_percent);
        Ok(Space { total, used, admit_percent, stop_percent })
    }

    /// The bytes that may be used where a job is admitted.
    pub fn admitted(&self) -> u64 {
        self.share(self.admit_percent)
    }

    /// The bytes that may be used where anything is written.
    pub fn stopped(&self) -> u64 {
        self.share(self.stop_percent)
    }

    /// Why a job that needs so many bytes is never admitted; `None` if it may be.
    pub fn never_has(&self, bytes: u64, work_space: &str) -> Option<String> {
        let limit = self.admitted();
        (bytes > limit).then(|| {
            format!(
                "it needs {bytes} bytes of work space, and {}% of `{work_space}` are {limit}; give it a larger work space",
                self.admit_percent
            )
        })
    }

    fn share(&self, percent: u64) -> u64 {
        u64::try_from(u128::from(self.total) * u128::from(percent) / 100).unwrap_or(u64::MAX)
    }
}

/// What a job asks for: bytes in all, and how many of them are in the work space already.
#[derive(Debug, Clone, Copy)]
pub struct Demand {
    pub bytes: u64,
    pub written: u64,
}

#[derive(Debug)]
pub enum Admission {
    Admitted,
    Later(String),
    Never(String),
}

/// Admits a job if what is used, reserved and needed together stay within bounds.
pub fn admit(
    tx: &mut Tx<'_>,
    job: JobId,
    work_space: &str,
    needed: &Demand,
    space: &Space,
) -> Result<Admission> {
    const LOCK: Statement = statement!(space::lock_reservations);
    const RESERVE: Statement = statement!(space::reserve_space);
    // Two jobs that ask at once must not both get the last of it.
    tx.send(&LOCK, &[])?;
    let answer = room_for(tx, job, work_space, needed, space)?;
    if let Admission::Admitted = answer {
        let now = tx.now();
        let bytes = i64::try_from(needed.bytes).unwrap_or(i64::MAX);
        tx.send(&RESERVE, &db::params![job, work_space, bytes, now])?;
    }
    Ok(answer)
}

/// Whether there is room for what a job needs beside what is used, and what others have reserved.
/// Nothing is reserved: packages of buckets arrive before they have a job.
pub fn room_for(
    tx: &mut Tx<'_>,
    job: JobId,
    work_space: &str,
    needed: &Demand,
    space: &Space,
) -> Result<Admission> {
    const RESERVED: Statement = statement!(space::reserved_bytes);
    const FAILED: Statement = statement!(space::failed_with_data);
    let (bytes, more) = (needed.bytes, needed.bytes.saturating_sub(needed.written));
    let limit = space.admitted();
    if let Some(why) = space.never_has(bytes, work_space) {
        return Ok(Admission::Never(why));
    }
    let (reserved,): (i64,) = tx.one(&RESERVED, &db::params![work_space, job])?;
    let reserved = u64::try_from(reserved).unwrap_or(0);
    let free = limit.saturating_sub(space.used.saturating_add(reserved));
    let stopped = space.used > space.stopped();
    if stopped || more > free {
        let (failed,): (i64,) = tx.one(&FAILED, &[])?;
        let kept = match failed {
            0 => String::new(),
            _ => format!("; the data of {} are kept in it", plural_failed(failed)),
        };
        return Ok(Admission::Later(match stopped {
            true => format!(
                "needs {more} bytes of work space; `{work_space}` is more than {}% full{kept}",
                space.stop_percent
            ),
            false => format!(
                "needs {more} bytes of work space; {free} free of it in `{work_space}`{kept}"
            ),
        }));
    }
    Ok(Admission::Admitted)
}

fn plural_failed(count: i64) -> String {
    match count {
        1 => "1 failed job".to_string(),
        count => format!("{count} failed jobs"),
    }
}

/// Gives back what a job had reserved.
pub fn give_back(tx: &mut Tx<'_>, job: JobId) -> queue::Result<()> {
    const GIVE_BACK: Statement = statement!(space::give_back_space);
    tx.send(&GIVE_BACK, &db::params![job])?;
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use db::{Address, Db, Options};

    #[test]
    fn what_has_no_job_yet_needs_room_beside_what_jobs_have_reserved() {
        let dir = tempfile::tempdir().unwrap();
        let address = Address::sqlite(dir.path().join("a.db"));
        let db = Db::open(&address, crate::MIGRATIONS, &Options::default()).unwrap();
        let space = Space { total: 1000, used: 100, admit_percent: 70, stop_percent: 80 };
        let needs = |bytes| Demand { bytes, written: 0 };
        let done: Result<()> = db.write_blocking(move |tx| {
            assert!(matches!(
                admit(tx, JobId::new(1), "w", &needs(400), &space)?,
                Admission::Admitted
            ));
            let mut answer = |bytes| room_for(tx, JobId::default(), "w", &needs(bytes), &space);
            assert!(matches!(answer(200)?, Admission::Admitted));
            assert!(matches!(answer(200)?, Admission::Admitted), "nothing was reserved");
            assert!(matches!(answer(201)?, Admission::Later(_)));
            assert!(matches!(answer(701)?, Admission::Never(_)));
            Ok(())
        });
        done.unwrap();
    }
}
