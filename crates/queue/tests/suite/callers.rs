//! Many callers at once, each of which adds one job.

use crate::support;
use crate::support::World;
use queue::rules::add::add;
use queue::{Added, BatchId, Entity, Error, JobId, NewJob, Pipeline, Result};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

const CALLERS: usize = 40;

type Answers = Vec<(usize, Result<Added>)>;

async fn add_one(
    db: &db::Db,
    pipeline: Arc<Pipeline>,
    who: &'static str,
    job: NewJob,
) -> Result<Added> {
    let jobs = [job];
    db.write(move |tx| Ok(add(tx, tx.now(), &pipeline, who, &jobs)?.remove(0))).await
}

/// Every third caller is bob, with a map; the others are ann, with a letter. Some of them ask for
/// what cannot be, and some for the same thing.
async fn call_all(world: &World, letters: Arc<Pipeline>, maps: Arc<Pipeline>) -> Answers {
    let mut calls = tokio::task::JoinSet::new();
    for n in 0..CALLERS {
        let (db, letters, maps) = (world.db.clone(), letters.clone(), maps.clone());
        calls.spawn(async move {
            let (pipeline, who) = if n % 3 == 0 { (maps, "bob") } else { (letters, "ann") };
            let job = match n % 10 {
                7 => NewJob { batch: Some(BatchId::new(4711)), ..NewJob::new(n.to_string()) },
                8 => NewJob { priority: Some(100), ..NewJob::new(n.to_string()) },
                9 => NewJob::new("the same"),
                _ => NewJob::new(n.to_string()),
            };
            (n, add_one(&db, pipeline, who, job).await)
        });
    }
    calls.join_all().await
}

/// Each caller gets the answer to its own job, whatever is wrong with the others'.
fn each_has_its_own_answer(world: &World, answers: Answers) {
    let jobs: HashMap<JobId, (String, String)> = world
        .rows::<(JobId, String, String)>("select id, subject, added_by from job_records")
        .into_iter()
        .map(|(id, subject, who)| (id, (subject, who)))
        .collect();
    let mut same: BTreeMap<&str, Vec<Added>> = BTreeMap::new();
    for (n, answer) in answers {
        let who = if n % 3 == 0 { "bob" } else { "ann" };
        match (n % 10, answer) {
            (7, Err(Error::Unknown { what: Entity::Batch, .. })) => {}
            (8, Err(Error::BadInput(why))) => assert!(why.contains("priority"), "{why}"),
            (9, Ok(added)) => same.entry(who).or_default().push(added),
            (0..=6, Ok(Added { job, coalesced: false })) => {
                assert_eq!(jobs[&job], (n.to_string(), who.to_string()));
            }
            (_, other) => panic!("job {n}: {other:?}"),
        }
    }
    // One job in each queue, added by one caller and met by the others.
    assert_eq!(same.len(), 2);
    for mine in same.values() {
        assert!(mine.iter().all(|added| added.job == mine[0].job), "{mine:?}");
        assert_eq!(mine.iter().filter(|added| !added.coalesced).count(), 1, "{mine:?}");
    }
    assert_eq!(jobs.len(), CALLERS * 7 / 10 + 2);
}

/// Jobs of a queue that is gone are refused, each with the reason.
async fn a_queue_that_is_gone_takes_none(world: &World, letters: Arc<Pipeline>) {
    let mut gone = false;
    while !gone {
        let name = letters.name.clone();
        let step: Result<bool> = world
            .db
            .write(move |tx| {
                let catalog = queue::Catalog::load(tx)?;
                queue::rules::pipelines::delete(tx, tx.now(), &catalog, support::ANN, &name, 100)
            })
            .await;
        gone = step.unwrap();
    }
    let calls = (0..5).map(|n| {
        let (db, letters) = (world.db.clone(), letters.clone());
        async move { add_one(&db, letters, "ann", NewJob::new(format!("late-{n}"))).await }
    });
    let calls: tokio::task::JoinSet<Result<Added>> = calls.collect();
    for refused in calls.join_all().await {
        assert!(matches!(refused, Err(Error::Unknown { what: Entity::Queue, .. })), "{refused:?}");
    }
}

fn suite(world: &World) {
    let [letters, maps] = ["letters", "maps"].map(|name| Arc::new(world.queue(name)));
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let answers = runtime.block_on(call_all(world, letters.clone(), maps));
    each_has_its_own_answer(world, answers);
    support::invariants::check(world);
    runtime.block_on(a_queue_that_is_gone_takes_none(world, letters));
}

#[test]
fn on_sqlite() {
    suite(&World::sqlite());
}

#[test]
fn on_postgres() {
    match World::postgres(4) {
        Some(world) => suite(&world),
        None => testing::skip("on PostgreSQL: ACCESSION_TEST_POSTGRES is not set"),
    }
}
