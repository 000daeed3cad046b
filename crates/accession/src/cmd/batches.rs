//! `accession batches …`: deposits on their way and done.

use super::app;
use super::queue::{act, batches as queued};
use crate::cli::{Global, number};
use crate::exit::{Exit, Failure};
use crate::output;
use crate::session::{Act, Session};
use archive::app::App;
use archive::intake::pending;
use archive::registry::reports::{self, Cursor};
use archive::report::{self, Format, Writer};
use clap::Subcommand;
use db::Tx;
use queue::rules::batch;
use queue::{BatchId, BatchState, JobId};
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

#[derive(clap::Args)]
#[command(after_help = "Examples:
  accession batches list
  accession batches show 3
  accession batches report 3 --format csv --output batch-3.csv
  accession batches hold 3 --reason 'the depositor asked to wait'
  accession batches cancel 3 --reason 'deposited by mistake'
  accession batches report-again 3")]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// List batches, newest first
    #[command(after_help = "Examples:
  accession batches list --limit 10
  accession batches list --state failed")]
    List(List),
    /// Show a batch and what became of its objects
    #[command(after_help = "Examples:
  accession batches show 3
  accession batches show 3 --json")]
    Show(One),
    /// Write the whole report
    #[command(after_help = "Examples:
  accession batches report 3
  accession batches report 3 --format csv --output batch-3.csv")]
    Report(Report),
    /// Write the report again, and tell those who should know
    #[command(after_help = "Example:
  accession batches report-again 3 --reason 'the mail was lost'")]
    ReportAgain(Acted),
    /// Hold a batch: what runs finishes its stage, and nothing further of it is done
    #[command(after_help = "Example:
  accession batches hold 3 --reason 'the depositor asked to wait'")]
    Hold(Acted),
    /// Let a held batch go on
    #[command(after_help = "Example:
  accession batches release 3 --reason 'the depositor agrees'")]
    Release(Acted),
    /// Cancel what is not done; running jobs are asked to stop
    #[command(after_help = "Example:
  accession batches cancel 3 --reason 'deposited by mistake'")]
    Cancel(Acted),
    /// Delete a held or failed batch: its jobs are cancelled, its reports kept
    #[command(after_help = "Example:
  accession batches delete 3 --reason 'sent twice' --yes")]
    Delete(Delete),
}

#[derive(clap::Args)]
struct List {
    /// Only those that are pending, processing, reporting, completed, failed, update-reporting or deleted
    #[arg(long, value_parser = parse_state)]
    state: Option<BatchState>,
    /// Only batches with smaller numbers
    #[arg(long, value_name = "BATCH")]
    before: Option<BatchId>,
    /// At most this many
    #[arg(long, default_value_t = 50)]
    limit: i64,
}

#[derive(clap::Args)]
struct One {
    /// The batch's number
    #[arg(value_parser = number::<BatchId>)]
    batch: BatchId,
}

#[derive(clap::Args)]
struct Acted {
    /// The batch's number
    #[arg(value_parser = number::<BatchId>)]
    batch: BatchId,
    #[command(flatten)]
    act: Act,
}

#[derive(clap::Args)]
struct Delete {
    /// The batch's number
    #[arg(value_parser = number::<BatchId>)]
    batch: BatchId,
    /// Do not ask
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    act: Act,
}

#[derive(clap::Args)]
struct Report {
    /// The batch's number
    #[arg(value_parser = number::<BatchId>)]
    batch: BatchId,
    /// text, html, csv or json
    #[arg(long, default_value = "text", value_parser = parse_format)]
    format: Format,
    /// Where to write it (default: standard output)
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

fn parse_state(text: &str) -> Result<BatchState, String> {
    let names = || BatchState::ALL.iter().map(|state| state.name()).collect::<Vec<_>>().join(", ");
    BatchState::from_name(text).ok_or_else(|| format!("it is one of {}", names()))
}

fn parse_format(text: &str) -> Result<Format, String> {
    match text {
        "text" => Ok(Format::Text),
        "html" => Ok(Format::Html),
        "csv" => Ok(Format::Csv),
        "json" => Ok(Format::Json),
        _ => Err("it is text, html, csv or json".to_string()),
    }
}

pub fn run(args: Args, global: &Global) -> Result<Exit, Failure> {
    match args.command {
        Command::List(args) => {
            queued::list_batches(&Session::open(global)?, args.state, args.before, args.limit)
        }
        Command::Show(args) => {
            let (app, _) = app::open_small(global)?;
            show_result(&app, args.batch, global)?;
            Ok(Exit::Yes)
        }
        Command::Report(args) => write_report(&args, global),
        Command::ReportAgain(args) => queued::report_again(&Session::open(global)?, args.batch),
        Command::Hold(args) => act::hold_batch(args.batch, &args.act, global),
        Command::Release(args) => act::release_batch(args.batch, &args.act, global),
        Command::Cancel(args) => act::cancel_batch(args.batch, &args.act, global),
        Command::Delete(args) => {
            queued::delete_batch(&Session::open(global)?, args.batch, args.yes, &args.act)
        }
    }
}

/// Lines of each kind that are shown; the whole is in the report.
const SHOWN: i64 = 20;

/// What became of a batch, for people or programs.
pub fn show_result(app: &Arc<App>, batch: BatchId, global: &Global) -> Result<(), Failure> {
    let found: archive::Result<(batch::Batch, report::BatchReport)> =
        app.db.read_blocking(move |tx| {
            let catalog = queue::Catalog::load(tx)?;
            Ok((batch::load(tx, batch)?, reports::short(tx, &catalog, batch, SHOWN)?))
        });
    let (batch, mut found) = found?;
    if let Some(mut rows) = pending::rows(app, &batch)? {
        found.head.unfinished_total = total(&rows);
        rows.truncate(usize::try_from(SHOWN).unwrap_or(0));
        found.unfinished = rows;
    }
    if global.json {
        output::json(&found)?;
        return Ok(());
    }
    let mut text = Vec::new();
    report::render(Format::Text, &found, &mut text)?;
    output::line(&output::printable_lines(&String::from_utf8_lossy(&text)))?;
    Ok(())
}

fn total(rows: &[report::UnfinishedLine]) -> i64 {
    i64::try_from(rows.len()).unwrap_or(i64::MAX)
}

/// Lines that are read in one transaction.
const PAGE: i64 = 500;

/// Writes all of it, page by page, however large the batch is.
fn write_report(args: &Report, global: &Global) -> Result<Exit, Failure> {
    let (app, _) = app::open_small(global)?;
    let format = if global.json { Format::Json } else { args.format };
    let id = args.batch;
    let read: archive::Result<_> =
        app.db.read_blocking(move |tx| Ok((batch::load(tx, id)?, reports::head(tx, id)?)));
    let (batch, (mut head, changed)) = read?;
    let rows = pending::rows(&app, &batch)?;
    if let Some(rows) = &rows {
        head.unfinished_total = total(rows);
    }
    // Not before: a request that cannot be leaves what has that name alone.
    let out: Box<dyn Write> = match &args.output {
        Some(path) => Box::new(std::fs::File::create(path).map_err(|e| {
            Failure::unable(
                archive::ErrorCode::Io,
                format!("{} cannot be written: {e}", path.display()),
            )
        })?),
        None => Box::new(std::io::stdout().lock()),
    };
    let mut writer = Writer::new(format, &head, std::io::BufWriter::new(out))?;
    let max = format.lines_max();
    let failures = move |tx: &mut Tx<'_>, after| {
        let page = reports::failures_after(tx, id, after, PAGE)?;
        let last = page.last().map_or(after, |line| line.job);
        Ok((page, last))
    };
    pages(&app, max, JobId::default(), failures, |line| writer.failure(line))?;
    let cancellations =
        move |tx: &mut Tx<'_>, after| reports::cancellations_after(tx, id, after, PAGE);
    pages(&app, max, Cursor::default(), cancellations, |line| writer.cancel(line))?;
    changed.iter().try_for_each(|line| writer.change(line))?;
    let unfinished =
        move |tx: &mut Tx<'_>, after| reports::unfinished_after(tx, &batch, after, PAGE);
    match &rows {
        Some(rows) => {
            let shown = rows.iter().take(usize::try_from(max).unwrap_or(usize::MAX));
            shown.into_iter().try_for_each(|line| writer.unfinished(line))?;
        }
        None => pages(&app, max, Cursor::default(), unfinished, |line| writer.unfinished(line))?,
    }
    let objects = move |tx: &mut Tx<'_>, after| {
        let page = reports::objects_after(tx, id, after, PAGE)?;
        let last = page.last().map_or(after, |line| line.job);
        Ok((page, last))
    };
    pages(&app, max, JobId::default(), objects, |line| writer.object(line))?;
    writer.finish()?.flush()?;
    Ok(Exit::Yes)
}

/// Reads a list page by page and writes its lines, as many as the format takes.
fn pages<Line: Send + 'static, After: Copy + Send + Sync + 'static>(
    app: &App,
    lines_max: i64,
    first: After,
    read: impl Fn(&mut Tx<'_>, After) -> archive::Result<(Vec<Line>, After)> + Clone + Send + 'static,
    mut write: impl FnMut(&Line) -> std::io::Result<()>,
) -> Result<(), Failure> {
    let (mut cursor, mut written) = (first, 0);
    while written < lines_max {
        let (read, at) = (read.clone(), cursor);
        let page: archive::Result<(Vec<Line>, After)> =
            app.db.read_blocking(move |tx| read(tx, at));
        let (lines, next) = page?;
        if lines.is_empty() {
            break;
        }
        lines.iter().try_for_each(&mut write)?;
        written += i64::try_from(lines.len()).unwrap_or(i64::MAX);
        cursor = next;
    }
    Ok(())
}
