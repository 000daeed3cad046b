//! The small world that is simulated: few names, so that everything meets everything.

use db::{Memory, Rewrite};
use queue::rules::pipelines::{self, PipelineSpec};
use queue::{Catalog, MIGRATIONS, StageSettings};

pub const SECOND: i64 = 1_000_000;
pub const LEASE: i64 = 40 * SECOND;
pub const START: i64 = 1_000_000 * SECOND;

pub const SUBJECTS: [&str; 5] = ["a", "b", "c", "d", "e"];
pub const LOCKS: [&str; 3] = ["object/1", "object/2", "object/3"];
pub const TARGETS: [&str; 2] = ["east", "west"];
pub const WORKSPACES: [&str; 2] = ["desk", "shelf"];
pub const COLLECTIONS: [&str; 2] = ["maps", "letters"];
pub const RESOURCES: [&str; 2] = ["disk", "memory"];

/// The index of the pipeline whose jobs prepare batches.
pub const PREPARING: usize = 4;

/// The pipelines, in the order of their ids.
pub fn specs() -> Vec<PipelineSpec> {
    let quick = StageSettings {
        max_attempts: 2,
        max_interruptions: 1,
        backoff_seconds: 4,
        backoff_seconds_max: 6,
        ..StageSettings::default()
    };
    let stages = |names: &[&str]| -> Vec<(String, StageSettings)> {
        names.iter().map(|n| ((*n).to_string(), quick.clone())).collect()
    };
    let files = PipelineSpec {
        full_history: true,
        stages: stages(&["files"]),
        ..PipelineSpec::queue("files")
    };
    let orders = PipelineSpec {
        coalesces: false,
        full_history: true,
        stages: stages(&["orders"]),
        ..PipelineSpec::queue("orders")
    };
    let mut ingest = PipelineSpec::staged("ingest", &[]);
    ingest.stages = stages(&["fetch", "resolve", "store", "record", "tell"]);
    ingest.restart = Some("resolve".to_string());
    ingest.settings.forward_from = Some("record".to_string());
    let thumbs = PipelineSpec {
        plain: false,
        stages: stages(&["draw", "keep"]),
        ..PipelineSpec::queue("thumbs")
    };
    // Its jobs fill and accept batches, as far as this world goes by ending.
    let mut batch = PipelineSpec::staged("batch", &[]);
    batch.stages = stages(&["examine", "expand"]);
    vec![files, orders, ingest, thumbs, batch]
}

/// An empty queue with the pipelines of this world.
pub fn open(rewrites: Vec<Rewrite>) -> (Memory, Catalog) {
    let mut memory = Memory::open(MIGRATIONS, rewrites).expect("the schema is good");
    let catalog = memory
        .write(START, |tx| {
            for spec in specs() {
                pipelines::create(tx, START, "founder", &spec)?;
            }
            Catalog::load(tx)
        })
        .expect("the pipelines are good");
    (memory, catalog)
}
