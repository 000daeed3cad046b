//! `accession queue watch`: a live view of all queues.

use super::print_stats;
use crate::cli::Global;
use crate::exit::{Exit, Failure};
use crate::output;
use crate::session::{Session, parse_duration};
use queue::view::{self, ago};
use std::io::IsTerminal;
use std::time::Duration;

#[derive(clap::Args)]
pub struct Watch {
    /// How often to look
    #[arg(long, default_value = "1", value_parser = parse_duration)]
    every: Duration,
    /// Look this many times and stop
    #[arg(long, value_name = "N")]
    times: Option<u64>,
}

/// Clears the screen and goes to its top left corner.
const CLEAR: &str = "\x1b[2J\x1b[H";

pub fn run(args: Watch, global: &Global) -> Result<Exit, Failure> {
    let session = Session::open(global)?;
    let mut looks = 0;
    loop {
        let (stats, workers, now) = session.read(|tx, now, catalog| {
            Ok((view::stats(tx, now, catalog, None)?, view::workers(tx, now, now)?, now))
        })?;
        if session.json {
            output::json(&serde_json::json!({"at": now, "stats": stats, "workers": workers}))?;
        } else {
            if std::io::stdout().is_terminal() {
                output::line(CLEAR)?;
            }
            let alive = output::count(workers.len(), "worker");
            output::line(&format!("{}   {alive}", view::show_time(now)))?;
            output::line("")?;
            print_stats(&stats, now)?;
            let running: Vec<Vec<String>> = workers
                .iter()
                .flat_map(|w| {
                    w.jobs.iter().filter(|j| j.started).map(|j| {
                        vec![
                            w.name.clone(),
                            j.job.to_string(),
                            ago(now - j.since),
                            j.subject.clone(),
                            j.progress.clone().unwrap_or_default(),
                        ]
                    })
                })
                .take(20)
                .collect();
            if !running.is_empty() {
                output::line("")?;
                let headers = ["worker", "job", "for", "subject", "progress"];
                output::list(&headers, running, &["worker", "subject", "progress"])?;
            }
        }
        looks += 1;
        if args.times.is_some_and(|times| looks >= times) {
            return Ok(Exit::Yes);
        }
        std::thread::sleep(args.every.max(Duration::from_millis(100)));
    }
}
