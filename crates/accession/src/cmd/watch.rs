//! `accession watch status`: what drop folders and receiving buckets see and wait for.

use super::app;
use crate::cli::Global;
use crate::exit::{Exit, Failure};
use crate::output;
use archive::app::App;
use archive::registry::placed;
use archive::watch::status::{self, PlaceStatus};
use clap::Subcommand;
use queue::view::show_time;
use std::sync::Arc;

#[derive(clap::Args)]
#[command(after_help = "Examples:
  accession watch status
  accession watch status --json

Places are named by `[[watch]]` sections of the configuration; `accession work` looks at them and
takes what is ready.")]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Show what each watched place sees, what it waits for, and what it passes over and why
    #[command(after_help = "Examples:
  accession watch status
  accession watch status --limit 500
  accession watch status --json

Looks at each place once, takes nothing and changes nothing. Ends with 1 if a place
cannot be read, or nothing is taken because the stores have objects that the database does not know.")]
    Status(Status),
}

#[derive(clap::Args)]
struct Status {
    /// At most so many packages and names of each place
    #[arg(long, default_value_t = 50)]
    limit: usize,
}

pub fn run(args: Args, global: &Global) -> Result<Exit, Failure> {
    let Command::Status(args) = args.command;
    let (app, _) = app::open_small(global)?;
    let (places, older) = app::block_on(look(&app, args.limit))??;
    let good = older.is_none() && places.iter().all(|place| place.error.is_none());
    if global.json {
        output::json(&serde_json::json!({"places": places, "blocked": older}))?;
    } else if places.is_empty() {
        output::line("nothing is watched; add a [[watch]] section to the configuration")?;
    } else {
        if let Some(why) = older {
            output::line(&format!("nothing is taken: {why}"))?;
        }
        for (nth, place) in places.iter().enumerate() {
            if nth > 0 {
                output::line("")?;
            }
            show(place)?;
        }
    }
    Ok(if good { Exit::Yes } else { Exit::No })
}

/// The places, and why nothing is taken from any of them.
async fn look(app: &Arc<App>, limit: usize) -> archive::Result<(Vec<PlaceStatus>, Option<String>)> {
    let mut places = Vec::new();
    for watch in &app.settings.watches {
        places.push(status::of_place(&app.db, watch, limit).await?);
    }
    let older = match places.is_empty() {
        true => None,
        false => placed::older_store(&app.db, &app.stores).await?,
    };
    Ok((places, older.map(|store| placed::advice(&store))))
}

fn show(place: &PlaceStatus) -> Result<(), Failure> {
    let to = match (&place.collection, place.prefix_is_collection) {
        (Some(name), false) => format!("to collection {name}"),
        (Some(name), true) => format!("to the collection each path names, else {name}"),
        (None, _) => "to the collection each path names".to_string(),
    };
    let heading = format!("{}: {to}, after {} s without a change", place.path, place.still_seconds);
    output::line(&output::printable(&heading))?;
    if let Some(error) = &place.error {
        return Ok(output::line(&format!(
            "  it cannot be read: {} [{}]",
            output::printable(&error.message),
            error.code
        ))?);
    }
    let counts: Vec<String> =
        place.states.iter().map(|(state, count)| format!("{count} {state}")).collect();
    let total: usize = place.states.values().sum();
    output::line(&match total {
        0 => "  no packages".to_string(),
        _ => format!("  {}: {}", output::count(total, "package"), counts.join(", ")),
    })?;
    if !place.packages.is_empty() {
        let rows = place.packages.iter().map(|package| {
            vec![
                format!("  {}", package.name),
                output::size(package.bytes),
                package.state.name().to_string(),
                package.since.map(show_time).unwrap_or_default(),
                package.why.clone(),
            ]
        });
        output::table(&["  package", "size", "state", "unchanged since", "why"], rows)?;
        more(total, place.packages.len())?;
    }
    if place.skipped_total > 0 {
        output::line(&format!("  passed over: {}", output::count(place.skipped_total, "name")))?;
        for stray in &place.skipped {
            output::line(&output::printable(&format!("    {}: {}", stray.name, stray.why)))?;
        }
        more(place.skipped_total, place.skipped.len())?;
    }
    if !place.deposits.is_empty() {
        output::line("  last deposits:")?;
        for deposit in &place.deposits {
            let at = deposit.at.map(show_time).unwrap_or_default();
            output::line(&output::printable(&format!(
                "    {at} batch {}: {}, {}",
                deposit.batch, deposit.name, deposit.state
            )))?;
        }
    }
    Ok(())
}

fn more(total: usize, shown: usize) -> Result<(), Failure> {
    if total > shown {
        output::line(&format!("    … and {} more; --limit {total} shows them", total - shown))?;
    }
    Ok(())
}
