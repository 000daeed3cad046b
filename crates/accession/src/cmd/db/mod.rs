//! `accession db backup|restore|migrate|reopen|info`

mod migrate;

use crate::cli::Global;
use crate::error_code::ErrorCode;
use crate::exit::{Exit, Failure};
use crate::output;
use crate::session::{Session, address};
use clap::Subcommand;
use db::Address;
use std::path::PathBuf;

#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Copy the database to a new file while it is in use (SQLite)
    #[command(
        after_help = "PostgreSQL has its own: pg_dump --format=custom --file=FILE \"$ACCESSION_DATABASE\"\n\nExample:\n  accession db backup /backup/accession-2026-11-15.db"
    )]
    Backup {
        /// A file that does not exist yet
        file: PathBuf,
    },
    /// Put a backup where the database should be (SQLite); that place must be empty
    #[command(
        after_help = "PostgreSQL has its own: pg_restore --dbname=\"$ACCESSION_DATABASE\" FILE\n\nExample:\n  accession --data /var/lib/accession db restore /backup/accession-2026-11-15.db"
    )]
    Restore {
        /// The backup
        file: PathBuf,
    },
    /// Move everything to a new database of the other engine: SQLite to PostgreSQL, or back
    #[command(after_help = migrate::HELP)]
    Migrate(migrate::Args),
    /// Use a database again that was moved to another place, or whose move was interrupted
    #[command(
        after_help = "What was done at the other place since then is not in it; never use both.\n\nExample:\n  accession --data /var/lib/accession db reopen"
    )]
    Reopen,
    /// Say which database is used, and how large it is
    #[command(after_help = "Example:
  accession db info")]
    Info,
}

pub fn run(args: Args, global: &Global) -> Result<Exit, Failure> {
    match args.command {
        Command::Backup { file } => {
            let from = sqlite_path(global, "pg_dump --format=custom --file=FILE URL")?;
            let bar = output::count_bar(None, "copying pages");
            db::backup(&from, &file, &mut |done, total| {
                bar.set_length(total);
                bar.set_position(done);
            })?;
            bar.finish_and_clear();
            said(
                global,
                &format!("{} is a backup of {}", file.display(), from.display()),
                &serde_json::json!({"backup": file}),
            )
        }
        Command::Restore { file } => {
            let to = sqlite_path(global, "pg_restore --dbname=URL FILE")?;
            let bar = output::count_bar(None, "copying pages");
            db::restore(&file, &to, &mut |done, total| {
                bar.set_length(total);
                bar.set_position(done);
            })?;
            bar.finish_and_clear();
            // Opening it brings an older backup's schema up to date, and shows that it can be opened.
            Session::open(global)?;
            said(
                global,
                &format!("{} is restored from {}", to.display(), file.display()),
                &serde_json::json!({"restored": to}),
            )
        }
        Command::Migrate(args) => migrate::run(&args, global),
        Command::Reopen => migrate::reopen(global),
        Command::Info => {
            let session = Session::open(global)?;
            let shown = session.db.address().to_string();
            let bytes = match session.db.address() {
                Address::Sqlite(path) => std::fs::metadata(path).map(|m| m.len()).ok(),
                Address::Postgres(_) => None,
            };
            let size = bytes.map(|b| format!(", {}", output::size(b))).unwrap_or_default();
            said(
                global,
                &format!("{shown}{size}"),
                &serde_json::json!({"database": shown, "bytes": bytes}),
            )
        }
    }
}

fn sqlite_path(global: &Global, instead: &str) -> Result<PathBuf, Failure> {
    match address(global)? {
        Address::Sqlite(path) => Ok(path),
        Address::Postgres(_) => Err(Failure::refused(
            ErrorCode::Postgres,
            format!("this is for SQLite; PostgreSQL has its own: {instead}"),
        )),
    }
}

fn said(global: &Global, sentence: &str, json: &serde_json::Value) -> Result<Exit, Failure> {
    match global.json {
        true => output::json(json)?,
        false => output::line(sentence)?,
    }
    Ok(Exit::Yes)
}
