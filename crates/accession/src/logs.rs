//! Structured logs on standard error: readable on a terminal, JSON elsewhere. A line that a job's
//! run writes says which one it is.
//!
//! `ACCESSION_LOG` filters them (`info`, `queue=debug`, …); `-v` and `--quiet` set the level.

use crate::cli::Global;
use crate::output::{self, AboveBars};
use queue::runtime::Label;
use std::fmt;
use std::io::IsTerminal;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt::format::{Format, Json, Writer};
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

/// What a command says itself, so that the log need not say it too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Told {
    Nothing,
    /// Errors of runs: they are in the report, or on the lines that tell what happened.
    Errors,
    /// The whole story.
    Everything,
}

pub fn start(global: &Global, told: Told) {
    let quiet = global.quiet || told == Told::Everything && global.verbose == 0;
    let level = match (quiet, global.verbose) {
        (true, _) => LevelFilter::ERROR,
        (false, 0) => LevelFilter::WARN,
        (false, 1) => LevelFilter::INFO,
        (false, 2) => LevelFilter::DEBUG,
        _ => LevelFilter::TRACE,
    };
    let runs = format!("{}=error", queue::runtime::RUNS);
    let filter = EnvFilter::try_from_env("ACCESSION_LOG").unwrap_or_else(|_| {
        let filter = EnvFilter::default().add_directive(level.into());
        match runs.parse() {
            Ok(runs) if told == Told::Errors && global.verbose == 0 => filter.add_directive(runs),
            _ => filter,
        }
    });
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(|| AboveBars);
    if std::io::stderr().is_terminal() {
        builder.event_format(Lines::Readable).init();
    } else {
        let json = Format::default().json().flatten_event(true).with_current_span(false);
        builder.json().event_format(Lines::Json(json.with_span_list(false))).init();
    }
}

/// How a line is written; each says the run it was written in, if it was in one.
enum Lines {
    /// Time, level, what happened.
    Readable,
    /// An object, with the run in a member of its own.
    Json(Format<Json>),
}

impl<S, N> FormatEvent<S, N> for Lines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'w> FormatFields<'w> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let run = Label::current();
        let Lines::Json(json) = self else {
            begin(&mut writer, *event.metadata().level())?;
            context.format_fields(writer.by_ref(), event)?;
            run.map_or(Ok(()), |run| name(&mut writer, &run))?;
            return writeln!(writer);
        };
        let Some(run) = run else { return json.format_event(context, writer, event) };
        let mut line = String::new();
        json.format_event(context, Writer::new(&mut line), event)?;
        let run = serde_json::to_string(&run).map_err(|_| fmt::Error)?;
        match line.trim_end().strip_suffix('}') {
            Some(object) => writeln!(writer, "{object},\"run\":{run}}}"),
            None => writer.write_str(&line),
        }
    }
}

fn begin(writer: &mut Writer<'_>, level: Level) -> fmt::Result {
    let (begin, end) = match (writer.has_ansi_escapes(), level) {
        (false, _) => ("", ""),
        (true, Level::ERROR) => ("\x1b[31m", "\x1b[0m"),
        (true, Level::WARN) => ("\x1b[33m", "\x1b[0m"),
        (true, Level::INFO) => ("\x1b[32m", "\x1b[0m"),
        (true, _) => ("\x1b[2m", "\x1b[0m"),
    };
    SystemTime.format_time(writer)?;
    write!(writer, " {begin}{level:>5}{end} ")
}

fn name(writer: &mut Writer<'_>, run: &Label) -> fmt::Result {
    write!(writer, " job={} stage={} attempt={}", run.job, run.stage, run.attempt)?;
    if let Some(batch) = run.batch {
        write!(writer, " batch={batch}")?;
    }
    write!(writer, " worker={} subject={}", run.worker, output::printable(&run.subject))
}
