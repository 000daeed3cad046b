//! `accession db migrate` and its way back.

use super::said;
use crate::cli::Global;
use crate::exit::{Exit, Failure};
use crate::output;
use crate::session::address;
use archive::pipeline::failpoint;
use db::{Address, Move, MoveStep, Moved, Options};
use indicatif::ProgressBar;
use std::time::Duration;

pub const HELP: &str = "The new database must be empty: a file that does not exist yet, or a PostgreSQL database without rows.
No worker may run. The old database refuses every command from the moment the copy begins, until
`accession db reopen`. The data directory stays where it is.

Examples:
  accession db migrate --to postgres://accession@db.example.org/accession
  accession --database postgres://accession@db.example.org/accession db migrate --to sqlite:///var/lib/accession/accession.db";

#[derive(clap::Args)]
pub struct Args {
    /// The new database; what a PostgreSQL address leaves out comes from PGPASSWORD and the like
    #[arg(long, env = "ACCESSION_DATABASE_TO", hide_env_values = true, value_name = "URL")]
    to: String,
}

fn options() -> Options {
    Options { connections: 1, readers: 1, timeout: Duration::from_secs(15), ..Options::default() }
}

pub fn run(args: &Args, global: &Global) -> Result<Exit, Failure> {
    let (from, to) = (address(global)?, Address::parse(&args.to)?);
    let moved = Move {
        from: &from,
        to: &to,
        migrations: archive::MIGRATIONS,
        ranged: queue::RANGED_SEQUENCES,
        options: options(),
    };
    let mut shown = Shown::new(global.quiet);
    let check = |tx: &mut db::Tx<'_>| -> queue::Result<()> {
        let now = tx.now();
        queue::rules::lease::refuse_live(tx, now)
    };
    let done = db::transfer(&moved, check, &mut |step| {
        // Where a test kills the process.
        match step {
            MoveStep::Frozen => failpoint("db/frozen"),
            MoveStep::Copying { done: 0, .. } => failpoint("db/copying"),
            MoveStep::Committed => failpoint("db/committed"),
            _ => {}
        }
        shown.step(step);
    });
    shown.end();
    report(&done?, &from, &to, global)
}

fn report(moved: &Moved, from: &Address, to: &Address, global: &Global) -> Result<Exit, Failure> {
    let rows: u64 = moved.tables.iter().map(|table| table.rows).sum();
    if global.json {
        let tables = moved.tables.iter().map(|table| {
            serde_json::json!({"name": table.name, "rows": table.rows, "digest": table.digest})
        });
        output::json(&serde_json::json!({
            "from": from.to_string(), "database": to.to_string(), "rows": rows,
            "was_complete": moved.was_complete, "tables": tables.collect::<Vec<_>>(),
        }))?;
        return Ok(Exit::Yes);
    }
    if moved.was_complete {
        output::line(&format!(
            "an earlier run had copied everything from {from} to {to}; it is finished now"
        ))?;
    } else {
        let filled = moved.tables.iter().filter(|table| table.rows > 0);
        let lines = filled.map(|table| {
            vec![table.name.clone(), table.rows.to_string(), table.digest[..16].to_string()]
        });
        output::table(&["table", "rows", "digest"], lines)?;
        output::line(&format!(
            "{} of {} moved from {from} to {to}, read again there and found equal",
            output::count(rows, "row"),
            output::count(moved.tables.len(), "table"),
        ))?;
    }
    output::line(&format!(
        "Use the new one from now on: set --database or ACCESSION_DATABASE to {to}; the data directory stays as it is. \
         The old one refuses to be used; `accession --database {from} db reopen` is the way back."
    ))?;
    Ok(Exit::Yes)
}

pub fn reopen(global: &Global) -> Result<Exit, Failure> {
    let address = address(global)?;
    match db::reopen(&address, archive::MIGRATIONS, &options())? {
        None => said(
            global,
            &format!("{address} was not moved; it can be used"),
            &serde_json::json!({"database": address.to_string(), "moved_to": null}),
        ),
        Some(moved) => {
            let to = &moved.address;
            let sentence = match moved.is_complete {
                true => format!(
                    "{address} can be used again. What was done at {to} since is not in it: do not use both"
                ),
                false => format!(
                    "{address} can be used again; the move to {to} had not ended. If {to} can be used too, it is a copy: do not use both"
                ),
            };
            said(
                global,
                &sentence,
                &serde_json::json!({"database": address.to_string(), "moved_to": to, "was_complete": moved.is_complete}),
            )
        }
    }
}

/// One bar a table, for people who watch.
struct Shown {
    quiet: bool,
    bar: ProgressBar,
    what: String,
}

impl Shown {
    fn new(quiet: bool) -> Shown {
        Shown { quiet, bar: ProgressBar::hidden(), what: String::new() }
    }

    fn step(&mut self, step: MoveStep<'_>) {
        let (what, done, total) = match step {
            MoveStep::Copying { table, done, total } => (format!("copying {table}"), done, total),
            MoveStep::Comparing { table, done, total } => {
                (format!("comparing {table}"), done, total)
            }
            MoveStep::Frozen | MoveStep::Committed => return,
        };
        if what != self.what {
            self.end();
            if !self.quiet {
                self.bar = output::count_bar(Some(total), &what);
            }
            self.what = what;
        }
        self.bar.set_position(done);
    }

    fn end(&mut self) {
        self.bar.finish_and_clear();
    }
}
