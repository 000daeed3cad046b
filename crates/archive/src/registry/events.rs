//! Events as they are kept for ever.

use crate::error::Result;
use crate::event::{Event, Person};
use db::{Statement, Tx, Value, statement};

/// Records events; what is recorded already stays as it is.
pub fn insert(
    tx: &mut Tx<'_>,
    object: Option<i64>,
    version: Option<i64>,
    job: Option<i64>,
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
pub fn adopt(tx: &mut Tx<'_>, object: i64, event: &Event) -> Result<()> {
    const ADOPT: Statement = statement!(events::adopt_event);
    tx.send(&ADOPT, &db::params![&event.id, object])?;
    Ok(())
}
