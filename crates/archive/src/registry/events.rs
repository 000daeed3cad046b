//! Events: those of a job on its way, and those that are kept for ever.

use crate::model::error::Result;
use crate::model::event::{Event, Person};
use crate::model::id::ObjectId;
use db::{FromRow, Row, Statement, Tx, Value, statement};
use queue::JobId;

/// Records events; what is recorded already stays as it is.
pub fn insert(
    tx: &mut Tx<'_>,
    object: Option<ObjectId>,
    version: Option<i64>,
    job: Option<JobId>,
    events: &[Event],
) -> Result<()> {
    const INSERT: Statement = statement!(events::insert_events);
    let people: Vec<Option<String>> = events.iter().map(|e| people(&e.people)).collect();
    let rows: Vec<[Value<'_>; 9]> = events
        .iter()
        .zip(&people)
        .map(|(e, people)| {
            db::params![
                &e.id, &e.path, &e.kind, e.at, &e.agent, &e.outcome, &e.detail, &e.note, people
            ]
        })
        .collect();
    tx.send_each(&INSERT, &db::params![object, version, job], &rows)?;
    Ok(())
}

fn people(people: &[Person]) -> Option<String> {
    (!people.is_empty()).then(|| serde_json::json!(people).to_string())
}

/// An event that was recorded for an object whose number is another one now.
pub fn adopt(tx: &mut Tx<'_>, object: ObjectId, event: &Event) -> Result<()> {
    const ADOPT: Statement = statement!(events::adopt_event);
    tx.send(&ADOPT, &db::params![&event.id, object])?;
    Ok(())
}

/// Keeps events of a job that is on its way; what is kept already stays as it was.
pub fn keep(tx: &mut Tx<'_>, job: JobId, events: &[Event]) -> queue::Result<()> {
    const KEEP: Statement = statement!(events::keep_events);
    let texts: Vec<String> = events.iter().map(|e| serde_json::json!(e).to_string()).collect();
    let rows: Vec<[Value<'_>; 2]> =
        events.iter().zip(&texts).map(|(e, text)| db::params![&e.id, text]).collect();
    tx.send_each(&KEEP, &db::params![job], &rows)?;
    Ok(())
}

struct Kept(Event);

impl FromRow for Kept {
    fn from_row(row: &Row<'_>) -> db::Result<Kept> {
        let text: String = row.get(0)?;
        serde_json::from_str(&text)
            .map(Kept)
            .map_err(|e| db::Error::Other("an event".to_string(), e.to_string()))
    }
}

/// The events of a job on its way, in the order of their time.
pub fn kept(tx: &mut Tx<'_>, job: JobId) -> queue::Result<Vec<Event>> {
    const KEPT: Statement = statement!(events::kept_events);
    let rows: Vec<Kept> = tx.query(&KEPT, &db::params![job])?;
    let mut events: Vec<Event> = rows.into_iter().map(|k| k.0).collect();
    events.sort_by(|a, b| (a.at, &a.id).cmp(&(b.at, &b.id)));
    Ok(events)
}
