//! Structured logs on standard error: readable on a terminal, JSON elsewhere.
//!
//! `ACCESSION_LOG` filters them (`info`, `queue=debug`, …); `-v` and `--quiet` set the level.

use crate::cli::Global;
use std::fmt;
use std::io::IsTerminal;
use tracing::field::{Field, Visit};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::field::RecordFields;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt::FormatFields;
use tracing_subscriber::fmt::format::Writer;

/// `told` is for commands that tell their story themselves: only errors unless more is asked for.
pub fn start(global: &Global, told: bool) {
    let level = match (global.quiet || told && global.verbose == 0, global.verbose) {
        (true, _) => LevelFilter::ERROR,
        (false, 0) => LevelFilter::WARN,
        (false, 1) => LevelFilter::INFO,
        (false, 2) => LevelFilter::DEBUG,
        _ => LevelFilter::TRACE,
    };
    let builder = tracing_subscriber::fmt().with_writer(std::io::stderr);
    let readable = std::io::stderr().is_terminal();
    // A filter by module looks at every span of every job; a level costs nothing.
    match (EnvFilter::try_from_env("ACCESSION_LOG"), readable) {
        (Ok(filter), true) => builder.with_env_filter(filter).with_target(false).compact().init(),
        (Err(_), true) => builder.with_max_level(level).with_target(false).compact().init(),
        (Ok(filter), false) => {
            builder.with_env_filter(filter).json().flatten_event(true).fmt_fields(JsonObject).init()
        }
        (Err(_), false) => {
            builder.with_max_level(level).json().flatten_event(true).fmt_fields(JsonObject).init()
        }
    }
}

/// The fields of a span as a JSON object, written as they come. A span is made for every job, and
/// hardly any of them has something to say.
struct JsonObject;

impl<'w> FormatFields<'w> for JsonObject {
    fn format_fields<R: RecordFields>(&self, writer: Writer<'w>, fields: R) -> fmt::Result {
        let mut object = Object { writer, empty: true, result: Ok(()) };
        object.result = object.writer.write_char('{');
        fields.record(&mut object);
        object.result.and_then(|()| object.writer.write_char('}'))
    }
}

struct Object<'w> {
    writer: Writer<'w>,
    empty: bool,
    result: fmt::Result,
}

impl Object<'_> {
    fn put(&mut self, field: &Field, value: impl fmt::Display) {
        if self.result.is_ok() {
            let comma = if self.empty { "" } else { "," };
            self.result = write!(self.writer, "{comma}\"{}\":{value}", field.name());
            self.empty = false;
        }
    }
}

impl Visit for Object<'_> {
    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, value);
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, serde_json::Value::from(value));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put(field, serde_json::Value::from(format!("{value:?}")));
    }
}
