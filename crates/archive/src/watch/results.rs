//! Telling depositors, beside their packages, what became of them.

use super::beside;
use super::decide::State;
use super::names::RESULT_SUFFIX;
use crate::Result;
use crate::collection;
use crate::config::WatchSection;
use db::{Db, Statement, Tx, statement};
use queue::BatchState;
use queue::rules::batch;
use serde_json::{Value, json};

/// Objects that a result lists; the report of the batch has all.
const OBJECTS_MAX: i64 = 1000;

/// A package whose deposit has ended since its depositor was last told.
struct News {
    name: String,
    batch: i64,
    was: State,
    is: State,
    text: Option<Value>,
}

/// Writes the results that are new.
pub(super) async fn tell(db: &Db, watch: &WatchSection) -> Result<()> {
    let it = watch.clone();
    let news: Vec<News> = db.read(move |tx| news(tx, &it)).await?;
    for one in news {
        if let Some(text) = &one.text {
            let text = text.to_string().into_bytes();
            if let Err(error) = beside::write(watch, &one.name, RESULT_SUFFIX, text).await {
                // It is tried again at the next round.
                tracing::warn!(batch = one.batch, "{error}");
                continue;
            }
        }
        let path = watch.path.clone();
        db.write(move |tx| told(tx, &path, &one)).await?;
    }
    Ok(())
}

fn news(tx: &mut Tx<'_>, watch: &WatchSection) -> Result<Vec<News>> {
    let mut news = Vec::new();
    for (name, sighting) in super::known(tx, &watch.path)? {
        let (Some(id), State::Taken | State::ToldFailed | State::Left) =
            (sighting.batch, sighting.state)
        else {
            continue;
        };
        let batch = batch::load(tx, id)?;
        let is = match batch.state {
            BatchState::Completed | BatchState::Deleted => State::Told,
            // What is not there any more can be told of only once.
            BatchState::Failed if sighting.state == State::Left => State::Told,
            BatchState::Failed => State::ToldFailed,
            _ => continue,
        };
        if is == sighting.state {
            continue;
        }
        let collection = batch.collection.clone().unwrap_or_default();
        let profile = collection::find(tx, &collection)?;
        let wanted = watch.results || profile.is_some_and(|profile| profile.results_beside);
        let text = if wanted { Some(result(tx, &batch)?) } else { None };
        news.push(News { name, batch: id, was: sighting.state, is, text });
    }
    Ok(news)
}

fn result(tx: &mut Tx<'_>, batch: &batch::Batch) -> Result<Value> {
    const OBJECTS: Statement = statement!("sql/objects_of_batch");
    let objects: Vec<(String, i64, i64)> =
        tx.query(&OBJECTS, &db::params![batch.id, OBJECTS_MAX])?;
    let objects: Vec<Value> = objects
        .into_iter()
        .map(|(identifier, version, unchanged)| {
            json!({"identifier": identifier, "version": version, "unchanged": unchanged != 0})
        })
        .collect();
    Ok(json!({
        "batch": batch.id,
        "collection": batch.collection,
        "state": batch.state.name(),
        "succeeded": batch.succeeded,
        "failed": batch.failed,
        "cancelled": batch.cancelled,
        "objects": objects,
        "report": format!("accession batches report {}", batch.id),
    }))
}

fn told(tx: &mut Tx<'_>, watch: &str, news: &News) -> Result<()> {
    const TOLD: Statement = statement!("sql/tell_sighting");
    const DONE: Statement = statement!("sql/forget_told_sighting");
    let (was, is) = (news.was.as_str(), news.is.as_str());
    match news.was {
        State::Left => tx.execute(&DONE, &db::params![watch, &news.name, news.batch, was])?,
        _ => tx.execute(&TOLD, &db::params![watch, &news.name, news.batch, was, is])?,
    };
    Ok(())
}
