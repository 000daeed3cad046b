//! What became of restores, for people and programs.

use crate::cli::Global;
use crate::exit::{Exit, Failure};
use crate::output;
use archive::app::App;
use archive::model::restore::{Arrangement, Order};
use archive::registry::reports;
use archive::registry::restoring::{self, Delivery};
use queue::JobId;
use queue::rules::batch::Batch;
use std::sync::Arc;

/// Lines of each kind that are shown.
pub const SHOWN: usize = 20;

/// The form of a package in a word or two.
pub fn form(order: &Order) -> String {
    match order.arrangement {
        Arrangement::Files => order.container.to_string(),
        Arrangement::Bag => format!("bag, {}", order.container),
        Arrangement::Ocfl => format!("ocfl, {}", order.container),
    }
}

/// How a batch of restores ended.
pub fn result(app: &Arc<App>, batch: &Batch, global: &Global) -> Result<Exit, Failure> {
    let (id, limit) = (batch.id, if global.json { i64::MAX } else { SHOWN as i64 });
    let read: archive::Result<_> = app.db.read_blocking(move |tx| {
        let deliveries = restoring::deliveries(tx, id, JobId::default(), limit)?;
        Ok((deliveries, reports::failures_after(tx, id, JobId::default(), limit)?))
    });
    let (deliveries, failures) = read?;
    let is_whole = deliveries.iter().all(|one| one.missing.is_empty());
    if global.json {
        output::json(&serde_json::json!({
            "batch": batch.id,
            "state": batch.state,
            "objects": batch.total,
            "delivered": deliveries,
            "failures": failures,
        }))?;
    } else {
        deliveries.iter().try_for_each(show)?;
        for failure in &failures {
            let text = format!("{}: not delivered: {}", failure.subject, failure.message);
            output::line(&output::printable(&text))?;
            let job = failure.job;
            output::line(&format!("  `accession jobs requeue {job}` tries it again"))?;
        }
        let cancelled = match batch.cancelled {
            0 => String::new(),
            cancelled => format!(", {cancelled} cancelled"),
        };
        if batch.total > 1 {
            output::line(&format!(
                "batch {}: {} of {} delivered{cancelled}",
                batch.id,
                batch.succeeded,
                output::count(batch.total, "object")
            ))?;
        }
    }
    Ok(if batch.succeeded == batch.total && is_whole { Exit::Yes } else { Exit::No })
}

fn show(one: &Delivery) -> Result<(), Failure> {
    let files = output::count(one.files, "file");
    let size = output::size(one.bytes);
    let head = format!("{}, version {}: {files}, {size}", one.identifier, one.version);
    output::line(&format!("{head} in {}", output::printable(&one.place)))?;
    if let (Some(bytes), Some(sha256)) = (one.package_bytes, &one.sha256) {
        output::line(&format!("  {bytes} bytes, sha256 {sha256}"))?;
    }
    if let Some(until) = one.kept_until {
        output::line(&format!("  kept until {}", queue::view::show_time(until)))?;
    }
    if !one.missing.is_empty() {
        let missing = output::count(one.missing.len(), "file");
        output::line(&format!("  {missing} missing, because no store has them intact:"))?;
        for file in one.missing.iter().take(SHOWN) {
            output::line(&format!("    {}", output::printable(&file.path)))?;
        }
    }
    Ok(())
}
