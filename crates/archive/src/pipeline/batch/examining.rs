//! What was deposited? Finds out its kind, fetches a manifest that was given by URL, and checks
//! the digest that was given with it.

use super::batch_of;
use crate::app::App;
use crate::model::deposit_kind::DepositKind;
use crate::model::error::into_queue;
use crate::model::error::{Error, Result};
use crate::model::item::Source;
use crate::package::Owner;
use crate::package::kind;
use crate::package::payload;
use crate::package::unpack::unwritable;
use crate::pipeline::Stage;
use crate::pipeline::ingest::room::DiskRoom;
use crate::registry::deposit::{Deposit, find};
use crate::transfer::fetch::Expect;
use crate::transfer::share;
use db::{Statement, Tx, statement};
use queue::rules::batch::{self, Batch};
use queue::runtime::{Context, Handler};
use queue::{BatchId, Carryover, Claimed, Outcome, StageSettings};
use std::path::Path;
use std::sync::Arc;

pub struct Examining(Arc<App>);

impl Stage for Examining {
    const NAME: &'static str = "examining";

    fn defaults() -> StageSettings {
        // Most deposits are examined at once; manifests by URL may wait for their servers.
        StageSettings { workers: 8, ..StageSettings::default() }
    }

    fn handler(app: &Arc<App>) -> impl Handler {
        Examining(app.clone())
    }
}

impl Handler for Examining {
    async fn run(&self, job: &Claimed, context: &Context) -> Outcome {
        match examine(&self.0, job, context).await {
            Ok(outcome) => outcome,
            Err(error) => refuse(job, context, error),
        }
    }
}

/// What cannot be expanded fails the batch, and is reported all the same; what may pass is tried
/// again.
pub(super) fn refuse(job: &Claimed, context: &Context, error: Error) -> Outcome {
    let Ok(id) = batch_of(job) else { return error.into() };
    if error.is_transient() || matches!(error, Error::Stopped) {
        return error.into();
    }
    let text = error.to_string();
    let note = format!("the batch failed: {}", text.lines().next().unwrap_or_default());
    context.record(move |tx| {
        let now = tx.now();
        match batch::fail(tx, now, id, &text) {
            // It was cancelled or deleted while this ran.
            Err(queue::Error::Refused(_)) => Ok(()),
            done => done.map(|_| ()),
        }
    });
    Outcome::Skip(note)
}

async fn examine(app: &Arc<App>, job: &Claimed, context: &Context) -> Result<Outcome> {
    let id = batch_of(job)?;
    let (mut deposit, batch) = of_job(app, job).await?;
    if batch.state != queue::BatchState::Pending {
        return Ok(Outcome::Skip(format!("the batch is {} by now", batch.state)));
    }
    let kind = match (deposit.options.kind, &deposit.source) {
        (Some(kind), _) => kind,
        (None, Source::Url(_)) => kind::of_url(&deposit.name),
        (None, source) => kind::of_path(&source.path().unwrap_or_default())?,
    };
    let kept = match kind {
        DepositKind::Manifest if waits_for_a_server(&deposit) => {
            match app.shares.examining.enter(context.places()).await {
                None => return share::put_off(&app.db).await,
                Some(_inside) => Some(keep(app, &deposit).await?),
            }
        }
        DepositKind::Manifest => Some(keep(app, &deposit).await?),
        _ => None,
    };
    deposit.kind = Some(kind.name().to_string());
    deposit.payload = kept.clone().or(deposit.payload);
    context.record(move |tx| examined(tx, id, kind, kept.as_deref()).map_err(into_queue));
    context.carry_over(Carryover::new((deposit, batch)));
    Ok(Outcome::success())
}

/// Whether the manifest has to be downloaded.
fn waits_for_a_server(deposit: &Deposit) -> bool {
    deposit.payload.is_none() && deposit.source.is_remote()
}

/// The deposit that a job is about, and its batch.
pub(super) async fn of_job(app: &App, job: &Claimed) -> Result<(Deposit, Batch)> {
    if let Some(known) = job.carryover.get::<(Deposit, Batch)>() {
        return Ok(known.clone());
    }
    let id = batch_of(job)?;
    app.db.read(move |tx| Ok((find(tx, id)?, batch::load(tx, id)?))).await
}

fn examined(
    tx: &mut Tx<'_>,
    batch: BatchId,
    kind: DepositKind,
    payload: Option<&str>,
) -> Result<()> {
    const EXAMINED: Statement = statement!(deposit::deposit_examined);
    tx.send(&EXAMINED, &db::params![batch, kind.name(), payload])?;
    Ok(())
}

/// The manifest as it was submitted, kept with the batch, and with the digest that was given.
async fn keep(app: &Arc<App>, deposit: &Deposit) -> Result<String> {
    let payloads = app.settings.payloads.clone();
    if let Some(kept) = &deposit.payload {
        check(&payloads, kept, deposit)?;
        return Ok(kept.clone());
    }
    let name = payload::name_of(deposit.batch);
    let kept = match take(app, deposit, &payloads.join(&name)).await {
        Ok(()) => check(&payloads, &name, deposit),
        Err(error) => Err(error),
    };
    if kept.is_err() {
        payload::forget(&payloads, &name);
    }
    kept.map(|()| name)
}

/// Brings the manifest to its place.
async fn take(app: &Arc<App>, deposit: &Deposit, to: &Path) -> Result<()> {
    let payloads = &app.settings.payloads;
    std::fs::create_dir_all(payloads).map_err(|e| unwritable(payloads, e))?;
    let url = match &deposit.source {
        Source::Url(url) => url,
        source => return payload::copy(&source.path().unwrap_or_default(), to),
    };
    let room = DiskRoom::new(app, payloads);
    let expect =
        Expect { bytes_max: Some(payload::BYTES_MAX), room: Some(&room), ..Expect::default() };
    let fetched = app.fetcher.download(url, to, &expect, &mut (), &|_| ()).await;
    if fetched.is_err() {
        crate::transfer::fetch::forget_part(to);
    }
    fetched.map(drop).map_err(|error| payload::too_large_or(error, &deposit.name))
}

/// Compares the manifest with the digest that was given for it.
fn check(payloads: &Path, name: &str, deposit: &Deposit) -> Result<()> {
    let claimed = deposit.options.claimed.as_ref();
    payload::check_digest(Owner::Archive, &payloads.join(name), &deposit.name, claimed)
}
