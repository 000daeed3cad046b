//! When a batch has a new report, those who should know are told; and operators get one gathered
//! mail about new reviews, not one per job.

use crate::app::App;
use crate::model::error::{Result, into_queue};
use crate::model::profile::{Notify, ReportFormat};
use crate::registry::collection;
use crate::registry::deposit;
use crate::registry::messages::{self, Message};
use crate::registry::restoring;
use db::{Micros, Statement, Tx, statement};
use queue::rules::{batch, report};
use queue::{BatchId, JobId};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Batches whose reports are put into the outbox in one transaction.
const BATCHES_PER_STEP: usize = 16;
const EVERY: Duration = Duration::from_secs(15);
/// Operators get no more than one mail in this time.
const REVIEWS_EVERY_MICROS: Micros = 10 * 60 * 1_000_000;
/// Reviews that a mail lists; it says how many more there are.
const REVIEWS_LISTED: usize = 50;
/// Failures that a callback lists; it says how many there are.
const FAILURES_LISTED: i64 = 100;

/// Looks whenever a batch moves, and now and then.
pub async fn run(app: Arc<App>) {
    let mut news = app.db.subscribe(batch::TOPIC);
    loop {
        if let Err(error) = once(&app).await {
            match error.is_outage() {
                true => {
                    tracing::debug!(%error, "reports could not be put into the outbox; it is tried again")
                }
                false => {
                    tracing::warn!(%error, "reports could not be put into the outbox; it is tried again")
                }
            }
        }
        let _ = tokio::time::timeout(EVERY, news.changed()).await;
    }
}

/// Puts what is due into the outbox.
pub async fn once(app: &Arc<App>) -> queue::Result<()> {
    let mail = app.settings.mail.is_some();
    while app.db.write(move |tx| next_batches(tx, mail).map_err(into_queue)).await? {}
    if let Some(settings) = &app.settings.mail
        && !settings.operators.is_empty()
    {
        let operators = settings.operators.clone();
        app.db.write(move |tx| reviews(tx, &operators).map_err(into_queue)).await?;
    }
    Ok(())
}

/// Tells of some batches; false if there are no more to tell of.
fn next_batches(tx: &mut Tx<'_>, mail: bool) -> Result<bool> {
    for _ in 0..BATCHES_PER_STEP {
        if !next_batch(tx, mail)? && !next_restore(tx, mail)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Tells of one batch; false if there is none to tell of.
fn next_batch(tx: &mut Tx<'_>, mail: bool) -> Result<bool> {
    const NEXT: Statement = statement!(outbox::batch_to_tell);
    const TOLD: Statement = statement!(outbox::batch_told);
    let Some((id, version)) = tx.first::<(BatchId, i64)>(&NEXT, &[])? else { return Ok(false) };
    report::announce(tx, id, version)?;
    // Two processes may see the same batch: the first that says so tells of it.
    if tx.execute(&TOLD, &db::params![id, version])? == 0 {
        return Ok(true);
    }
    let notify = deposit::find(tx, id)?.options.notify;
    tell(tx, id, version, mail, &notify)?;
    Ok(true)
}

/// The same for batches of restores.
fn next_restore(tx: &mut Tx<'_>, mail: bool) -> Result<bool> {
    const NEXT: Statement = statement!(outbox::restore_to_tell);
    const TOLD: Statement = statement!(outbox::restore_told);
    let Some((id, version)) = tx.first::<(BatchId, i64)>(&NEXT, &[])? else { return Ok(false) };
    report::announce(tx, id, version)?;
    if tx.execute(&TOLD, &db::params![id, version])? == 0 {
        return Ok(true);
    }
    let notify = restoring::find_request(tx, id)?.unwrap_or_default().notify;
    tell(tx, id, version, mail, &notify)?;
    Ok(true)
}

/// Puts what is to be said of a batch's report into the outbox.
fn tell(tx: &mut Tx<'_>, id: BatchId, version: i64, mail: bool, notify: &[String]) -> Result<()> {
    let batch = batch::load(tx, id)?;
    let collection = batch.collection.clone().unwrap_or_default();
    let profile = collection::find(tx, &collection)?.unwrap_or_default();
    let mut to = recipients(notify, &profile.notify);
    if !mail && !to.is_empty() {
        tracing::warn!(
            batch = id.number(),
            "there is no [mail] in the configuration, so the report was not mailed"
        );
        to.clear();
    }
    for (address, formats) in to {
        let message = Message::Report { batch: id, version, to: vec![address], formats };
        messages::add(tx, Some(id), None, &message)?;
    }
    if profile.callback.is_some() {
        let failures =
            crate::registry::reports::failures_after(tx, id, JobId::default(), FAILURES_LISTED)?;
        let body = serde_json::json!({
            "batch": id,
            "collection": collection,
            "report": version,
            "status": batch.state,
            "submitted": batch.total,
            "succeeded": batch.succeeded,
            "failed": batch.failed,
            "cancelled": batch.cancelled,
            "error": batch.error,
            "failures": failures,
        });
        messages::add(tx, Some(id), None, &Message::Callback { collection, body })?;
    }
    Ok(())
}

/// Who gets a report, and with which files. Addresses that came with the deposit get all that any of
/// the collection's get.
fn recipients(depositors: &[String], collection: &[Notify]) -> BTreeMap<String, Vec<ReportFormat>> {
    let mut formats: Vec<ReportFormat> = Vec::new();
    for format in collection.iter().flat_map(|notify| &notify.formats) {
        if !formats.contains(format) {
            formats.push(*format);
        }
    }
    let of_collection = collection.iter().map(|n| (n.address.clone(), n.formats.clone()));
    let mut to: BTreeMap<String, Vec<ReportFormat>> = of_collection.collect();
    to.extend(depositors.iter().map(|address| (address.clone(), formats.clone())));
    to
}

/// Collects reviews that were not mailed yet.
fn reviews(tx: &mut Tx<'_>, operators: &[String]) -> Result<()> {
    const LAST: Statement = statement!(outbox::last_told_review);
    const NEW: Statement = statement!(outbox::untold_reviews);
    const TELL: Statement = statement!(outbox::tell_reviews);
    let (last,): (Micros,) = tx.one(&LAST, &[])?;
    let now = tx.now();
    if now - last < REVIEWS_EVERY_MICROS {
        return Ok(());
    }
    let jobs: Vec<(JobId,)> = tx.query(&NEW, &[])?;
    if jobs.is_empty() || tx.execute(&TELL, &db::params![now])? == 0 {
        return Ok(());
    }
    let total = i64::try_from(jobs.len()).unwrap_or(i64::MAX);
    let listed: Vec<JobId> = jobs.iter().take(REVIEWS_LISTED).map(|j| j.0).collect();
    for address in operators {
        let message = Message::Reviews { jobs: listed.clone(), total, to: vec![address.clone()] };
        messages::add(tx, None, None, &message)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::Error;
    use db::{Address, Clock, Db, Options};

    const FAIL: Statement = Statement {
        name: "test_fail",
        sqlite: "insert into failures (job, pipeline, subject, lock, stage, failed_at, code, message, needs_review, recoverable, overtaken)
            values (1, 1, 'a', 'a', 1, $1, 'x', 'x', 1, 1, 0) on conflict (job) do update set failed_at = excluded.failed_at",
        postgres: "",
    };
    const MAILS: Statement =
        Statement { name: "test_mails", sqlite: "select count(*) from messages", postgres: "" };

    #[test]
    fn addresses_of_a_deposit_get_what_the_others_get() {
        use ReportFormat::{Csv, Html, Text};
        let notify = |address: &str, formats: &[ReportFormat]| Notify {
            address: address.to_string(),
            formats: formats.to_vec(),
        };
        let of_maps = [notify("cy@example.org", &[Text, Csv]), notify("di@example.org", &[Html])];
        let to = recipients(&["ada@example.org".into(), "di@example.org".into()], &of_maps);
        assert_eq!(to["ada@example.org"], [Text, Csv, Html]);
        assert_eq!(to["cy@example.org"], [Text, Csv], "as it is configured");
        assert_eq!(to["di@example.org"], [Text, Csv, Html], "one mail, with all of it");
        assert!(recipients(&["ada@example.org".into()], &[])["ada@example.org"].is_empty());
    }

    #[test]
    fn operators_hear_of_a_job_again_when_it_failed_again() {
        let dir = tempfile::tempdir().unwrap();
        let clock = Clock::manual(1_000_000 * REVIEWS_EVERY_MICROS);
        let options = Options { clock: clock.clone(), ..Options::default() };
        let address = Address::sqlite(dir.path().join("a.db"));
        let db = Db::open(&address, crate::MIGRATIONS, &options).unwrap();
        let config = crate::config::Config::default();
        db.write_blocking::<_, Error, _>(move |tx| crate::setup::prepare(tx, &config)).unwrap();
        let mails_after = |fails: bool| {
            clock.advance(REVIEWS_EVERY_MICROS);
            let look = move |tx: &mut Tx<'_>| {
                if fails {
                    tx.send(&FAIL, &db::params![tx.now()])?;
                }
                reviews(tx, &["ann@example.org".to_string()])?;
                Ok::<_, Error>(tx.one::<(i64,)>(&MAILS, &[])?.0)
            };
            db.write_blocking(look).unwrap()
        };
        assert_eq!(mails_after(false), 0);
        assert_eq!(mails_after(true), 1);
        assert_eq!(mails_after(false), 1, "told once");
        assert_eq!(mails_after(true), 2, "it failed again");
    }
}
