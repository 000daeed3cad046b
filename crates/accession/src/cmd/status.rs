//! `accession status`: the whole system at a glance.

use super::site;
use crate::cli::Global;
use crate::exit::{Exit, Failure};
use crate::output;
use archive::registry::view as registry;
use archive::stage::provisioning::Space;
use queue::rules::batch::{self, Batch};
use queue::view::{self, ago};
use queue::{BatchState, Catalog};

#[derive(clap::Args)]
#[command(after_help = "Examples:
  accession status
  accession status --json | jq .registry

What is stuck, and why: accession jobs stuck. What failed: accession jobs failed.")]
pub struct Args {}

pub fn run(_: Args, global: &Global) -> Result<Exit, Failure> {
    let (site, _) = site::open_small(global)?;
    let seen: archive::Result<_> = site.db.read_blocking(|tx| {
        let catalog = Catalog::load(tx)?;
        let now = tx.now();
        let stats = view::stats(tx, now, &catalog, None)?;
        let workers = view::workers(tx, now, now - 60_000_000)?;
        let open: Vec<Batch> = batch::list(tx, None, None, 50)?
            .into_iter()
            .filter(|b| !matches!(b.state, BatchState::Completed | BatchState::Deleted))
            .collect();
        Ok((now, stats, workers, open, registry::totals(tx)?))
    });
    let (now, stats, workers, open, (objects, files, bytes)) = seen?;
    let space = Space::of(&site.settings.work_space)?;
    let percent = (space.used * 100).checked_div(space.total).unwrap_or(0);
    if global.json {
        output::json(&serde_json::json!({
            "registry": {"objects": objects, "files": files, "bytes": bytes},
            "work_space": {"name": site.settings.work_space.name, "total_bytes": space.total, "used_bytes": space.used},
            "workers": workers,
            "stages": stats.stages,
            "batches": open.iter().map(|b| serde_json::json!({"batch": b.id, "label": b.label, "state": b.state, "held": b.is_held(), "total": b.total, "succeeded": b.succeeded, "failed": b.failed, "unfinished": b.open})).collect::<Vec<_>>(),
        }))?;
        return Ok(Exit::Yes);
    }
    output::line(&format!(
        "{}, {}, {}",
        output::count(objects, "object"),
        output::count(files, "file"),
        output::size(bytes.unsigned_abs())
    ))?;
    output::line(&format!(
        "work space {}: {percent}% of {} used",
        output::printable(&site.settings.work_space.name),
        output::size(space.total)
    ))?;
    let alive = workers.iter().filter(|w| w.state == "live").count();
    output::line(&match alive {
        0 => "no worker is running; start one with `accession work`".to_string(),
        1 => "1 worker is running".to_string(),
        n => format!("{n} workers are running"),
    })?;
    if !open.is_empty() {
        output::line("")?;
        output::table(
            &["batch", "label", "state", "objects", "done", "failed", "since"],
            open.iter().map(|b| {
                vec![
                    b.id.to_string(),
                    b.label.clone(),
                    if b.is_held() { format!("held ({})", b.state) } else { b.state.to_string() },
                    b.total.to_string(),
                    b.succeeded.to_string(),
                    b.failed.to_string(),
                    ago(now - b.created_at),
                ]
            }),
        )?;
    }
    let busy = view::Stats {
        stages: stats
            .stages
            .into_iter()
            .filter(|s| {
                s.ready
                    + s.running
                    + s.parked
                    + s.delayed
                    + s.held
                    + s.blocked
                    + s.starved
                    + s.failed
                    > 0
            })
            .collect(),
        ..stats
    };
    if !busy.stages.is_empty() {
        output::line("")?;
        super::queue::print_stats(&busy, now)?;
    }
    Ok(Exit::Yes)
}
