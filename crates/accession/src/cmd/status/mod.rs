//! `accession status`: what an operator looks at first. What is wrong, how much of it, since when,
//! and what to do; then how much there is of everything.

mod finding;
mod json;
mod show;

use super::app;
use crate::cli::Global;
use crate::exit::{Exit, Failure};
use crate::output;
use archive::app::WorkSpace;
use archive::pipeline::ingest::provisioning::Space;
use archive::registry::view::{self as registry, BadCopies};
use db::Micros;
use queue::Catalog;
use queue::rules::operator::pause::{Pause, Scope};
use queue::view::{self, Limits, Overview, Stats, WorkerView};

#[derive(clap::Args)]
#[command(after_help = "Examples:
  accession status
  accession status --json | jq .findings

What is wrong comes first, each with a command that helps. It ends with 0 whatever it finds; what
could not be looked at ends with 3. Of long lists a few lines are shown, and how many there are.")]
pub struct Args {}

/// How many of each kind are listed, and from when on a run takes long.
const LIMITS: Limits =
    Limits { holds: 5, failures: 5, long_runs: 3, batches: 5, long_micros: 3_600_000_000 };
/// Workers that died are shown for so long.
const DEAD_SHOWN: Micros = 24 * 3_600_000_000;

/// All that was looked at, at one moment.
pub struct Snapshot {
    pub now: Micros,
    pub catalog: Catalog,
    pub database: String,
    pub stats: Stats,
    pub overview: Overview,
    pub workers: Vec<WorkerView>,
    pub objects: i64,
    pub files: i64,
    pub bytes: i64,
    pub bad_copies: Vec<BadCopies>,
    pub work_space: WorkSpace,
    /// What there is in it, or why that is not known.
    pub space: Result<Space, String>,
}

impl Snapshot {
    /// The queue, and the stage if it is one's, that a pause is of.
    pub fn place(&self, pause: &Pause) -> Option<(String, Option<String>)> {
        match pause.scope {
            Scope::Everything => None,
            Scope::Pipeline(id) => self.catalog.pipeline(id).ok().map(|p| (p.name.clone(), None)),
            Scope::Stage(id) => {
                let (pipeline, stage) = self.catalog.stage(id).ok()?;
                Some((pipeline.name.clone(), Some(stage.name.clone())))
            }
        }
    }
}

pub fn run(_: Args, global: &Global) -> Result<Exit, Failure> {
    let (app, _) = app::open_small(global)?;
    let seen: archive::Result<_> = app.db.read_blocking(|tx| {
        let catalog = Catalog::load(tx)?;
        let now = tx.now();
        let stats = view::stats(tx, now, &catalog, None)?;
        let overview = view::overview(tx, now, &catalog, &LIMITS)?;
        let workers = view::workers(tx, now, now - DEAD_SHOWN)?;
        let bad_copies = registry::bad_copies(tx)?;
        Ok((now, catalog, stats, overview, workers, registry::totals(tx)?, bad_copies))
    });
    let (now, catalog, stats, overview, workers, (objects, files, bytes), bad_copies) = seen?;
    let work_space = app.settings.work_space.clone();
    let space = Space::of(&work_space).map_err(|error| error.to_string());
    let database = app.db.address().to_string();
    let seen = Snapshot {
        now,
        catalog,
        database,
        stats,
        overview,
        workers,
        objects,
        files,
        bytes,
        bad_copies,
        work_space,
        space,
    };
    let findings = finding::of(&seen);
    match global.json {
        true => output::json(&json::of(&seen, &findings))?,
        false => show::print(&seen, &findings)?,
    }
    Ok(Exit::Yes)
}
