//! What has not been sent yet: processes that end wait for it, within bounds, and say what is left.

use super::reporting;
use crate::app::App;
use crate::model::error::Result;
use crate::model::pipelines::{CALLBACK, REPORT};
use db::{Micros, Statement, Tx, statement};
use queue::rules::operator::pause::{self, Scope};
use queue::{BatchId, Catalog, JobId, StageId, State, view};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Messages of one batch that are looked at; where there are more, the count is a lower bound.
const LOOKED_AT: i64 = 200;
/// The place of a batch for messages that belong to none.
const OF_NO_BATCH: BatchId = BatchId::new(0);
/// How often is looked.
const EVERY: Duration = Duration::from_millis(200);

/// A message on its way.
struct Unsent {
    job: JobId,
    kind: String,
    way: Way,
}

/// What becomes of it without anybody's help.
enum Way {
    /// It is sent now, or tried again at this time at the latest.
    Goes(Micros),
    /// Somebody stopped it, or what it is sent to is down.
    Waits,
    /// Its code and message: a person has to act.
    Failed(String, String),
}

/// Messages that are left for the same reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Left {
    /// `report` or `callback`.
    pub kind: String,
    pub count: usize,
    /// The job that sends the first of them.
    pub job: JobId,
    pub failed: bool,
    /// Why they are not sent.
    pub why: String,
}

/// Waits until everything that these batches have to tell is sent, or will not be sent before
/// `deadline`; what is left. `since` is when the process began: mails about reviews that it wrote
/// count as its own.
pub async fn wait(
    app: &Arc<App>,
    batches: &[BatchId],
    since: Micros,
    deadline: Instant,
) -> Result<Vec<Left>> {
    // What the end of the last batch brought is put into the outbox here and now.
    reporting::once(app).await?;
    let mut open: Vec<BatchId> = batches.to_vec();
    open.push(OF_NO_BATCH);
    loop {
        let remaining = deadline.saturating_duration_since(Instant::now());
        let until = Micros::try_from(remaining.as_micros()).unwrap_or(Micros::MAX);
        let wanted = open.clone();
        let seen = app.db.read(move |tx| look(tx, &wanted, since, until)).await?;
        open.retain(|batch| seen.open.contains(batch));
        if !seen.goes || remaining.is_zero() {
            return Ok(seen.left);
        }
        tokio::time::sleep(EVERY).await;
    }
}

/// What is there at one moment.
struct Seen {
    /// Batches with anything unsent.
    open: Vec<BatchId>,
    /// Some of it may be sent in time.
    goes: bool,
    left: Vec<Left>,
}

fn look(tx: &mut Tx<'_>, batches: &[BatchId], since: Micros, until: Micros) -> Result<Seen> {
    let catalog = Catalog::load(tx)?;
    let now = tx.now();
    let mut groups: BTreeMap<(String, String), Left> = BTreeMap::new();
    let mut seen = Seen { open: Vec::new(), goes: false, left: Vec::new() };
    for batch in batches {
        let since = if *batch == OF_NO_BATCH { since } else { 0 };
        let unsent = of_batch(tx, &catalog, *batch, since)?;
        if unsent.is_empty() {
            continue;
        }
        seen.open.push(*batch);
        seen.goes |= i64::try_from(unsent.len()).is_ok_and(|looked_at| looked_at == LOOKED_AT);
        for message in unsent {
            let (failed, cause) = match &message.way {
                Way::Goes(due) => {
                    seen.goes |= *due <= now.saturating_add(until);
                    (false, "waits".to_string())
                }
                Way::Waits => (false, "waits".to_string()),
                Way::Failed(code, _) => (true, code.clone()),
            };
            let group = (message.kind.clone(), cause);
            if let Some(left) = groups.get_mut(&group) {
                left.count += 1;
                continue;
            }
            let why = match message.way {
                Way::Failed(code, why) => format!("{why} [{code}]"),
                _ => view::why(tx, now, &catalog, message.job)?,
            };
            let left = Left { kind: message.kind, count: 1, job: message.job, failed, why };
            groups.insert(group, left);
        }
    }
    seen.left = groups.into_values().collect();
    Ok(seen)
}

fn of_batch(
    tx: &mut Tx<'_>,
    catalog: &Catalog,
    batch: BatchId,
    since: Micros,
) -> Result<Vec<Unsent>> {
    const UNSENT: Statement = statement!(outbox::unsent_messages);
    type Row = (
        JobId,
        String,
        Option<String>,
        Option<Micros>,
        Option<StageId>,
        Option<String>,
        Option<String>,
    );
    let rows: Vec<Row> = tx.query(&UNSENT, &db::params![batch, since, LOOKED_AT])?;
    let mut unsent = Vec::with_capacity(rows.len());
    for (job, kind, state, due, stage, code, message) in rows {
        let way = match (code, state.as_deref().and_then(State::from_name)) {
            (Some(code), _) => Way::Failed(code, message.unwrap_or_default()),
            (None, Some(State::Delayed)) => Way::Goes(due.unwrap_or(0)),
            (None, Some(State::Ready)) if is_paused(tx, catalog, stage)? => Way::Waits,
            // No state: it is being sent.
            (None, Some(State::Ready | State::Parked) | None) => Way::Goes(0),
            (None, Some(State::Held | State::Blocked | State::Starved)) => Way::Waits,
        };
        unsent.push(Unsent { job, kind, way });
    }
    Ok(unsent)
}

fn is_paused(tx: &mut Tx<'_>, catalog: &Catalog, stage: Option<StageId>) -> Result<bool> {
    let Some(stage) = stage else { return Ok(false) };
    let pipeline = catalog.stage(stage)?.0.id;
    Ok(pause::all(tx)?.iter().any(|paused| match paused.scope {
        Scope::Everything => true,
        Scope::Pipeline(id) => id == pipeline,
        Scope::Stage(id) => id == stage,
    }))
}

/// Waits until nothing but mail and callbacks is left to do, and none of them was sent for
/// `timeout`; how many are left. `busy` says whether there is any other work.
pub async fn stalled<B>(app: &Arc<App>, timeout: Duration, busy: impl Fn() -> B) -> Result<i64>
where
    B: Future<Output = Result<bool>>,
{
    let mut before = None;
    let mut since = Instant::now();
    loop {
        let unsent = app.db.read(count).await?;
        if before != Some(unsent) || unsent == 0 || busy().await? {
            before = Some(unsent);
            since = Instant::now();
        } else if since.elapsed() >= timeout {
            return Ok(unsent);
        }
        tokio::time::sleep(EVERY).await;
    }
}

/// How many messages wait or are being sent.
fn count(tx: &mut Tx<'_>) -> Result<i64> {
    const COUNT: Statement = statement!(outbox::count_unsent);
    let catalog = Catalog::load(tx)?;
    let mut unsent = 0;
    for pipeline in [REPORT, CALLBACK] {
        for stage in &catalog.named(pipeline)?.stages {
            unsent += tx.one::<(i64,)>(&COUNT, &db::params![stage.id])?.0;
        }
    }
    Ok(unsent)
}
