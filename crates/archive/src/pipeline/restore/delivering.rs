//! K1: reads the package again where it was written, compares it, and gives it the name that was
//! asked for. Killed at any point and run again, it delivers and records once.

use super::{Run, Step, making, s3, streams_packages};
use crate::ErrorCode;
use crate::blocking::blocking;
use crate::delivery::local::LocalPlace;
use crate::delivery::plan::Plan;
use crate::delivery::verify::{self, Fault};
use crate::model::error::{Error, Result, into_queue};
use crate::model::restore::{Container, Destination};
use crate::pipeline::failpoint;
use crate::registry::logs::{self, LoggedEvent};
use crate::registry::restoring;
use crate::stores::copies::Copies;
use futures_util::StreamExt;
use queue::runtime::Stop;
use queue::{Outcome, StageSettings};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

pub struct DeliveringStep;
pub type Delivering = super::Handling<DeliveringStep>;

impl Step for DeliveringStep {
    const NAME: &'static str = "delivering";

    fn defaults() -> StageSettings {
        streams_packages()
    }

    async fn run(mut run: Run<'_>) -> Result<Outcome> {
        if run.restore.delivered_at.is_some() {
            return Ok(Outcome::Skip("it was delivered before".to_string()));
        }
        if !run.restore.package.is_written {
            if let Some(wait) = making::make(&mut run).await? {
                return Ok(wait);
            }
            failpoint("delivering.written");
        }
        let copies = run.copies().await?;
        match (run.local(), &run.order.to) {
            (Some(place), _) => deliver_local(&mut run, &copies, &place).await?,
            (None, Destination::Nowhere) => end_drill(&run)?,
            (None, _) => s3::verify(&mut run).await?,
        }
        failpoint("delivering.published");
        let now = run.app.db.read(|tx| Ok::<_, Error>(tx.now())).await?;
        let event = restoring::event(&run.app.installation, &run.restore, &run.order, now);
        let logged = LoggedEvent::new(event.clone(), Some(run.order.version), Some(run.id()));
        logs::write(run.app, &run.object.identifier, copies.stores(), &logged).await;
        let (restore, order) = (run.restore.clone(), run.order.clone());
        run.context.record(move |tx| {
            restoring::record_delivery(tx, &restore, &order, &event).map_err(into_queue)
        });
        Ok(Outcome::success())
    }
}

/// A drill is over: whatever could not have been delivered is for a person to see.
fn end_drill(run: &Run<'_>) -> Result<()> {
    match run.restore.package.missing.as_slice() {
        [] => Ok(()),
        [first, rest @ ..] => Err(Error::permanent(
            ErrorCode::DrillFailed,
            format!(
                "a restore drill could not read {} and {}: {}",
                first.path,
                crate::model::text::plural(rest.len() as u64, "other file"),
                first.why
            ),
        )),
    }
}

async fn deliver_local(run: &mut Run<'_>, copies: &Copies, place: &LocalPlace) -> Result<()> {
    let is_published = place.is_published();
    let path = if is_published { place.path.clone() } else { place.unfinished() };
    let plan = making::written_plan(run, copies).await?;
    match read_back(run, &plan, &path).await {
        Ok((bytes, sha256)) => {
            let package = &mut run.restore.package;
            (package.bytes, package.sha256) = (bytes, sha256);
        }
        Err(Fault::Failed(error)) => return Err(error),
        Err(Fault::Different(_)) if is_published => {
            return Err(crate::delivery::local::taken(&place.path));
        }
        Err(Fault::Different(what)) => {
            // What the destination does not give back as it got it is written once more.
            let place = place.clone();
            blocking(move || place.clean()).await?;
            run.restore.package.is_written = false;
            run.save();
            return Err(Error::transient(
                ErrorCode::DeliveryDiffers,
                format!(
                    "{}: what was written is not what is read again: {what}; it is written once more, check the disk of the destination",
                    run.restore.place
                ),
            )
            .at(run.order.to.target()));
        }
    }
    failpoint("delivering.verified");
    if is_published {
        return Ok(());
    }
    let place = place.clone();
    blocking(move || place.publish()).await
}

type Found = (Option<u64>, Option<String>);

/// Reads a package again, and compares every member.
async fn read_back(run: &Run<'_>, plan: &Plan, path: &Path) -> Result<Found, Fault> {
    run.meter.begin("reading again", Some(plan.bytes()));
    let (to, mut from) = tokio::sync::mpsc::channel(256);
    let mut members = plan.members();
    let listing = async move {
        while let Some(member) = members.next().await {
            if to.send(member).await.is_err() {
                break;
            }
        }
    };
    let stop = Arc::new(AtomicBool::new(false));
    let (path, container) = (PathBuf::from(path), run.order.container);
    // A package that was written in several goes is compared member by member.
    let package = &run.restore.package;
    let written = package.bytes.zip(package.sha256.clone());
    let (meter, stopped, threads) = (run.meter.clone(), stop.clone(), run.app.settings.threads);
    let reading = tokio::task::spawn_blocking(move || {
        let mut expected = move || from.blocking_recv().transpose();
        let progress = move |bytes| {
            meter.add(bytes);
            !stopped.load(Ordering::Relaxed)
        };
        let one = |found: (u64, String)| (Some(found.0), Some(found.1));
        if let Some(written) = written {
            return verify::whole(&path, written, &progress).map(one);
        }
        match container {
            Container::Directory => {
                verify::directory(&path, &mut expected, threads, &progress).map(|()| (None, None))
            }
            Container::Tar => verify::tar(&path, &mut expected, &progress).map(one),
            Container::TarGz => verify::tar_gz(&path, &mut expected, &progress).map(one),
            Container::Zip => verify::zip(&path, &mut expected, &progress).map(one),
            Container::File => verify::file(&path, &mut expected, &progress).map(one),
        }
    });
    let watching = async {
        run.context.stopped().await;
        stop.store(true, Ordering::Relaxed);
        std::future::pending::<()>().await;
    };
    let read = async { tokio::join!(listing, reading).1 };
    tokio::select! {
        read = read => match read {
            Ok(Err(Fault::Failed(Error::Stopped))) if run.context.stop() == Stop::No => {
                Err(Fault::Failed(Error::transient(ErrorCode::ReadingEnded, "the package could not be read to its end")))
            }
            Ok(read) => read,
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            Err(_) => Err(Fault::Failed(Error::Stopped)),
        },
        () = watching => Err(Fault::Failed(Error::Stopped)),
    }
}
