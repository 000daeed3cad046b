//! What people and programs see: tables and colours on a terminal, JSON when asked, progress bars
//! on long work, and never a raw control character from an untrusted name.

use comfy_table::{ContentArrangement, Table, presets};
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;
use std::io::{IsTerminal, Write};
use std::sync::OnceLock;

/// Writes one line to standard output; a reader that went away is an error the caller may ignore.
pub fn line(text: &str) -> std::io::Result<()> {
    let mut out = anstream::stdout().lock();
    writeln!(out, "{text}")
}

/// Writes one JSON value as one line: what `--json` prints.
pub fn json(value: &impl Serialize) -> std::io::Result<()> {
    line(&serde_json::to_string(value).map_err(std::io::Error::other)?)
}

/// What a worker has done.
pub fn work_done(
    summary: &queue::runtime::Summary,
    json: bool,
    quiet: bool,
) -> std::io::Result<()> {
    let queue::runtime::Summary { runs, succeeded, errors, .. } = summary;
    if json {
        let counts = serde_json::json!({"runs": runs, "succeeded": succeeded, "errors": errors});
        return self::json(&counts);
    }
    if !quiet {
        anstream::eprintln!("{runs} runs: {succeeded} succeeded, {errors} ended in an error");
    }
    Ok(())
}

/// Prints a table; columns shrink to the terminal's width, and are left alone in a pipe.
pub fn table(headers: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> std::io::Result<()> {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_header(headers.iter().map(|h| h.to_uppercase()));
    if std::io::stdout().is_terminal() {
        table.set_content_arrangement(ContentArrangement::Dynamic);
    }
    for row in rows {
        table.add_row(row.iter().map(|cell| printable(cell)).collect::<Vec<_>>());
    }
    line(&table.trim_fmt())
}

/// Makes a name safe to show in a line: control characters, line ends among them, and the Unicode
/// marks that reorder or hide text become visible escapes.
pub fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\r' | '\t' => shown.extend(c.escape_default()),
            c if is_hidden(c) => shown.extend(c.escape_unicode()),
            c => shown.push(c),
        }
    }
    shown
}

/// The same for text that has lines: names in it have gone through [`printable`] before.
pub fn printable_lines(text: &str) -> String {
    text.split('\n').map(printable).collect::<Vec<_>>().join("\n")
}

/// A message of several lines in one, for a cell of a table.
pub fn in_one_line(text: &str) -> String {
    text.lines().map(str::trim).collect::<Vec<_>>().join("; ")
}

fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

/// A progress bar over bytes on standard error; hidden when that is not a terminal.
pub fn bytes_bar(total: Option<u64>, what: &str) -> ProgressBar {
    bar(
        total,
        what,
        "{msg} {bar:30} {bytes}/{total_bytes} {bytes_per_sec} {eta}",
        "{msg} {spinner} {bytes} {bytes_per_sec}",
    )
}

/// All bars that move while lines of the log are written above them.
pub fn bars() -> &'static MultiProgress {
    static BARS: OnceLock<MultiProgress> = OnceLock::new();
    BARS.get_or_init(|| MultiProgress::with_draw_target(ProgressDrawTarget::stderr_with_hz(8)))
}

/// Standard error, written to above the bars.
pub struct AboveBars;

impl Write for AboveBars {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        bars().suspend(|| std::io::stderr().write(bytes))
    }

    fn flush(&mut self) -> std::io::Result<()> {
        std::io::stderr().flush()
    }
}

/// A progress bar over things counted one by one.
pub fn count_bar(total: Option<u64>, what: &str) -> ProgressBar {
    bar(
        total,
        what,
        "{msg} {bar:30} {pos}/{len} {per_sec} {eta}",
        "{msg} {spinner} {pos} {per_sec}",
    )
}

fn bar(total: Option<u64>, what: &str, known: &str, unknown: &str) -> ProgressBar {
    let target = ProgressDrawTarget::stderr_with_hz(8);
    let bar = ProgressBar::with_draw_target(total, target);
    let template = if total.is_some() { known } else { unknown };
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar.with_message(printable(what))
}

/// `1 object`, `2 objects`.
pub fn count(number: impl std::fmt::Display, what: &str) -> String {
    let number = number.to_string();
    let end = if number == "1" { "" } else { "s" };
    format!("{number} {what}{end}")
}

/// `1536` as `1.5 KiB`.
pub fn size(bytes: u64) -> String {
    indicatif::BinaryBytes(bytes).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_and_direction_marks_are_shown_not_obeyed() {
        assert_eq!(printable("a\u{1b}[31mb\u{202e}c"), "a\\u{1b}[31mb\\u{202e}c");
        assert_eq!(printable("plain ü 名"), "plain ü 名");
        assert_eq!(printable("a\nb\tc\r"), "a\\nb\\tc\\r");
        assert_eq!(printable_lines("a\nb\tc"), "a\nb\\tc");
        assert_eq!((count(1, "file"), count(2, "file")), ("1 file".into(), "2 files".into()));
    }
}
