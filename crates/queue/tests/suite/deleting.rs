//! Deleting a queue while others add to it, each with a catalog from before.

use crate::support::World;
use queue::rules::batch::{self, Entry, NewBatch};
use queue::rules::pipelines::{PipelineSpec, create, delete};
use queue::rules::{add, operator::Actor, report};
use queue::{BatchId, Catalog, Error, NewJob, Result};

const ROUNDS: usize = 25;

/// Whoever adds is refused, or its job is cancelled with the others; no job is left without a queue.
fn nothing_is_stranded(world: &World) {
    for round in 0..ROUNDS {
        let name = format!("letters-{round}");
        let spec = PipelineSpec::queue(&name);
        let made: Result<_> = world.db.write_blocking(move |tx| create(tx, tx.now(), "ann", &spec));
        let pipeline = made.unwrap();
        std::thread::scope(|scope| {
            for adder in 0..3 {
                let (db, pipeline) = (world.db.clone(), pipeline.clone());
                scope.spawn(move || {
                    for n in 0..4 {
                        let (pipeline, job) =
                            (pipeline.clone(), NewJob::new(format!("{adder}-{n}")));
                        let added: Result<_> = db.write_blocking(move |tx| {
                            add::add(tx, tx.now(), &pipeline, "bob", std::slice::from_ref(&job))
                        });
                        match added {
                            Ok(_) => {}
                            Err(Error::Unknown { what: queue::Entity::Queue, .. }) => return,
                            Err(error) => panic!("{error}"),
                        }
                    }
                });
            }
            let db = world.db.clone();
            scope.spawn(move || {
                loop {
                    let name = name.clone();
                    let gone: Result<bool> = db.write_blocking(move |tx| {
                        let catalog = Catalog::load(tx)?;
                        let actor = Actor { who: "ann", reason: "no more letters" };
                        delete(tx, tx.now(), &catalog, actor, &name, 100)
                    });
                    if gone.unwrap() {
                        return;
                    }
                }
            });
        });
    }
    const STRANDED: &str = "select count(*) from waiting w join stages s on s.id = w.stage
        join pipelines p on p.id = s.pipeline where p.deleted_at is not null and w.id > $1";
    assert_eq!(world.number(STRANDED, 0), 0, "jobs wait in queues that are gone");
}

#[test]
fn nothing_is_stranded_on_sqlite() {
    nothing_is_stranded(&World::sqlite());
}

#[test]
fn nothing_is_stranded_on_postgres() {
    match World::postgres(4) {
        Some(world) => nothing_is_stranded(&world),
        None => testing::skip("on PostgreSQL: ACCESSION_TEST_POSTGRES is not set"),
    }
}

/// A batch that is filled while its queue is deleted ends with it, and other batches go on.
fn a_batch_ends_with_its_queue(world: &World) {
    let begun: Result<(Catalog, Vec<BatchId>)> = world.db.write_blocking(|tx| {
        let mut batches = Vec::new();
        for name in ["letters", "maps"] {
            let pipeline = create(tx, tx.now(), "ann", &PipelineSpec::queue(name))?.id;
            let new = NewBatch {
                label: name,
                pipeline,
                collection: None,
                submitter: "ann",
                mode: "either",
                priority: None,
            };
            batches.push(batch::create(tx, tx.now(), &new)?);
        }
        Ok((Catalog::load(tx)?, batches))
    });
    let (before, batches) = begun.unwrap();
    let ended: Result<Vec<(i64, i64, i64)>> = world.db.write_blocking(move |tx| {
        let actor = Actor { who: "ann", reason: "no more letters" };
        let catalog = Catalog::load(tx)?;
        while !delete(tx, tx.now(), &catalog, actor, "letters", 100)? {}
        let entry =
            |number| Entry { number, subject: number.to_string(), lock: None, payload: None };
        for batch in &batches {
            batch::fill(tx, &before, *batch, &[entry(1), entry(2)])?;
            batch::accept(tx, tx.now(), *batch)?;
        }
        let catalog = Catalog::load(tx)?;
        while batch::move_entries(tx, tx.now(), &catalog, 1)? > 0 {}
        let counts = |b: batch::Batch| (b.open, b.cancelled, b.moved);
        batches.iter().map(|id| batch::load(tx, *id).map(counts)).collect()
    });
    assert_eq!(ended.unwrap(), [(0, 2, 2), (2, 0, 2)]);
    let catalog: Result<Catalog> = world.db.read_blocking(Catalog::load);
    let catalog = catalog.unwrap();
    let written: Result<_> =
        world.db.write_blocking(move |tx| report::write_next(tx, tx.now(), &catalog));
    assert!(written.unwrap().is_some(), "its depositor is told");
}

#[test]
fn a_batch_ends_with_its_queue_on_sqlite() {
    a_batch_ends_with_its_queue(&World::sqlite());
}

#[test]
fn a_batch_ends_with_its_queue_on_postgres() {
    match World::postgres(1) {
        Some(world) => a_batch_ends_with_its_queue(&world),
        None => testing::skip("on PostgreSQL: ACCESSION_TEST_POSTGRES is not set"),
    }
}
