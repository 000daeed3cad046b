//! What people and programs see: tables and colours on a terminal, JSON when asked, progress bars
//! on long work, and never a raw control character from an untrusted name.

mod shape;

use comfy_table::{Cell, Color, ColumnConstraint, ContentArrangement, Row, Table, presets};
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;
use std::io::{IsTerminal, Write};
use std::sync::OnceLock;

/// Writes one line to standard output; a reader that went away is an error the caller may ignore.
pub fn line(text: &str) -> std::io::Result<()> {
    let mut out = anstream::stdout().lock();
    writeln!(out, "{text}")
}

/// Writes one JSON object as one line: what `--json` prints, in the one shape of docs/json.md.
pub fn json(value: &impl Serialize) -> std::io::Result<()> {
    let value = serde_json::to_value(value).map_err(std::io::Error::other)?;
    debug_assert!(value.is_object(), "a list has a name: see output::json_list");
    line(&shape::with_times(value).to_string())
}

/// Writes an object with a list in it, and where the next page begins if there is one.
pub fn json_list(
    name: &str,
    items: &impl Serialize,
    next: Option<serde_json::Value>,
) -> std::io::Result<()> {
    json(&serde_json::json!({name: items, "next": next}))
}

/// What is known elsewhere by the number of its kind: here that is its `id`.
pub fn with_own_id(value: &impl Serialize, kind: &str) -> std::io::Result<serde_json::Value> {
    let mut value = serde_json::to_value(value).map_err(std::io::Error::other)?;
    if let Some(map) = value.as_object_mut()
        && let Some(id) = map.remove(kind)
    {
        map.insert("id".to_string(), id);
    }
    Ok(value)
}

/// A list that is written item by item, however long it is.
pub struct JsonList {
    has_items: bool,
}

impl JsonList {
    pub fn begin(name: &str) -> std::io::Result<JsonList> {
        write!(anstream::stdout().lock(), "{{{}:[", serde_json::json!(name))?;
        Ok(JsonList { has_items: false })
    }

    pub fn push(&mut self, item: &impl Serialize) -> std::io::Result<()> {
        let item = shape::with_times(serde_json::to_value(item).map_err(std::io::Error::other)?);
        let comma = if self.has_items { "," } else { "" };
        self.has_items = true;
        write!(anstream::stdout().lock(), "{comma}{item}")
    }

    pub fn end(self) -> std::io::Result<()> {
        line("],\"next\":null}")
    }
}

/// What a worker has done.
pub fn work_done(
    summary: &queue::runtime::Summary,
    json: bool,
    quiet: bool,
) -> std::io::Result<()> {
    let queue::runtime::Summary { runs, succeeded, errors, failed } = summary;
    if json {
        let counts = serde_json::json!({"runs": runs, "succeeded": succeeded, "errors": errors, "failed": failed});
        return self::json(&counts);
    }
    if !quiet {
        let failed = match failed {
            0 => String::new(),
            failed => format!("; {} failed", count(failed, "job")),
        };
        let runs = count(runs, "run");
        anstream::eprintln!("{runs}: {succeeded} succeeded, {errors} ended in an error{failed}");
    }
    Ok(())
}

/// Prints a table. In a pipe nothing is broken. On a terminal cells are broken between words; where even
/// that does not fit, each row is a block with a line for each column, so that identifiers and paths
/// can be copied.
pub fn table(headers: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> std::io::Result<()> {
    let shown = |row: Vec<String>| row.iter().map(|cell| printable(cell)).collect();
    let rows: Vec<Vec<String>> = rows.into_iter().map(shown).collect();
    line(&tabled(headers, &rows, terminal_width()))
}

/// What stands between two columns.
const GAP: usize = 2;

fn tabled(headers: &[&str], rows: &[Vec<String>], width: Option<u16>) -> String {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_header(headers.iter().map(|h| h.to_uppercase()));
    table.add_rows(rows);
    let Some(width) = width else { return table.trim_fmt() };
    table.set_width(width).set_content_arrangement(ContentArrangement::Dynamic);
    if headers.iter().all(|header| header.is_empty()) {
        return table.trim_fmt();
    }
    let longest = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column).map(String::as_str));
        let words = cells.chain([headers[column]]).flat_map(|cell| cell.split(' '));
        words.map(|word| word.chars().count()).max().unwrap_or(0) + GAP
    };
    let least: Vec<usize> = (0..headers.len()).map(longest).collect();
    if least.iter().sum::<usize>() > usize::from(width) {
        return blocks(headers, rows, usize::from(width));
    }
    for (column, least) in table.column_iter_mut().zip(least) {
        let least = comfy_table::Width::Fixed(u16::try_from(least).unwrap_or(u16::MAX));
        column.set_constraint(ColumnConstraint::LowerBoundary(least));
    }
    table.trim_fmt()
}

fn blocks(headers: &[&str], rows: &[Vec<String>], width: usize) -> String {
    let indent = headers.iter().map(|header| header.chars().count()).max().unwrap_or(0) + GAP;
    let block = |row: &Vec<String>| {
        let mut lines = Vec::new();
        for (header, cell) in headers.iter().zip(row).filter(|(_, cell)| !cell.is_empty()) {
            for (n, part) in wrapped(cell, width.saturating_sub(indent).max(20)).iter().enumerate()
            {
                let name = if n == 0 { header.to_uppercase() } else { String::new() };
                lines.push(format!("{name:<indent$}{part}"));
            }
        }
        lines.join("\n")
    };
    rows.iter().map(block).collect::<Vec<_>>().join("\n\n")
}

/// Lines of at most so many characters, broken between words, or within one that is longer.
pub fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    let length = |line: &str| line.chars().count();
    for word in text.split(' ') {
        let mut word: Vec<char> = word.chars().collect();
        while !word.is_empty() {
            let line = match lines.last_mut() {
                Some(line) if line.is_empty() || length(line) + 1 + word.len() <= width => line,
                _ => {
                    lines.push(String::new());
                    continue;
                }
            };
            if !line.is_empty() {
                line.push(' ');
            }
            let rest = word.split_off(word.len().min(width));
            line.extend(std::mem::replace(&mut word, rest));
        }
    }
    lines
}

/// Prints a list of many things, one line each. On a terminal the `flexible` columns are cut to what
/// its width leaves, and the last of them most; in a pipe nothing is cut.
pub fn list(
    headers: &[&str],
    rows: impl IntoIterator<Item = Vec<String>>,
    flexible: &[&str],
) -> std::io::Result<()> {
    line(&listed(headers, rows, flexible, terminal_width()))
}

fn listed(
    headers: &[&str],
    rows: impl IntoIterator<Item = Vec<String>>,
    flexible: &[&str],
    width: Option<u16>,
) -> String {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_header(headers.iter().map(|h| h.to_uppercase()));
    table.set_truncation_indicator("…");
    for cells in rows {
        let coloured = width.is_some();
        let cells = cells.iter().zip(headers).map(|(cell, header)| {
            let shown = Cell::new(printable(cell));
            match colour(header, cell).filter(|_| coloured) {
                Some(colour) => shown.fg(colour),
                None => shown,
            }
        });
        let mut row = Row::from(cells.collect::<Vec<_>>());
        if width.is_some() {
            row.max_height(1);
        }
        table.add_row(row);
    }
    if let Some(width) = width {
        table.set_width(width).set_content_arrangement(ContentArrangement::Dynamic);
        for (column, header) in table.column_iter_mut().zip(headers) {
            if !flexible.contains(header) {
                column.set_constraint(ColumnConstraint::ContentWidth);
            }
        }
    }
    table.trim_fmt()
}

/// What a status or a number says at a glance.
fn colour(header: &str, cell: &str) -> Option<Color> {
    match (header, cell.split([' ', '(']).next().unwrap_or_default()) {
        ("status" | "state", "failed" | "dead") => Some(Color::Red),
        ("status" | "state", "held" | "late") => Some(Color::Yellow),
        ("status" | "state", "running" | "live" | "succeeded" | "completed") => Some(Color::Green),
        ("failed", count) if count.parse::<u64>().is_ok_and(|n| n > 0) => Some(Color::Red),
        _ => None,
    }
}

/// How wide the terminal is; `None` in a pipe.
pub fn terminal_width() -> Option<u16> {
    std::io::stdout().is_terminal().then(|| Table::new().width()).flatten()
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
    fn lists_fit_the_terminal_and_are_whole_in_a_pipe() {
        let headers = ["job", "queue", "subject", "error"];
        let subject = "a subject that is as long as names of files may well be.tif";
        let error = "a message that says what happened and what to do, and goes on and on and on";
        let row = || ["12", "ingest/validating", subject, error].map(str::to_string).to_vec();
        for width in [80, 120] {
            let text = listed(&headers, [row(), row()], &["subject", "error"], Some(width));
            assert_eq!(text.lines().count(), 3, "{text}");
            assert!(text.lines().all(|l| l.chars().count() <= usize::from(width)), "{text}");
            assert!(text.contains("ingest/validating") && text.contains('…'), "{text}");
        }
        let whole = listed(&headers, [row()], &["subject", "error"], None);
        assert!(whole.contains(subject) && whole.contains(error), "{whole}");
    }

    #[test]
    fn tables_break_between_words_and_are_blocks_where_words_do_not_fit() {
        let headers = ["store", "object", "finding"];
        let key = "c0c/f69/02a/c0cf6902a42caa1370ba669eba14d62a68658c675f201b14acb388ec196e1e03";
        let message =
            "it is not what was recorded, and this sentence is longer than a line of a terminal";
        let row = |message: &str| ["main", "ark:/99999/fk4hwrkw1", message].map(str::to_string);
        let text = tabled(&headers, &[row(message).to_vec()], Some(60));
        assert!(text.starts_with(" STORE") && text.lines().count() > 3, "{text}");
        assert!(text.contains("ark:/99999/fk4hwrkw1") && text.contains("recorded,"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 60), "{text}");
        let rows = [row(key).to_vec(), row("").to_vec()];
        let text = tabled(&headers, &rows, Some(80));
        let first = "STORE    main\nOBJECT   ark:/99999/fk4hwrkw1\nFINDING  c0c/f69/02a/";
        assert!(text.starts_with(first), "{text}");
        assert!(text.ends_with("\n\nSTORE    main\nOBJECT   ark:/99999/fk4hwrkw1"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert!(tabled(&headers, &rows, None).contains(key), "a pipe has all of it in one line");
    }

    #[test]
    fn lines_are_broken_between_words() {
        assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
        assert_eq!(wrapped("one", 7), ["one"]);
        assert_eq!(wrapped("a verylongword b", 6), ["a", "verylo", "ngword", "b"]);
        assert!(wrapped("x".repeat(500).as_str(), 71).iter().all(|line| line.len() <= 71));
    }

    #[test]
    fn control_characters_and_direction_marks_are_shown_not_obeyed() {
        assert_eq!(printable("a\u{1b}[31mb\u{202e}c"), "a\\u{1b}[31mb\\u{202e}c");
        assert_eq!(printable("plain ü 名"), "plain ü 名");
        assert_eq!(printable("a\nb\tc\r"), "a\\nb\\tc\\r");
        assert_eq!(printable_lines("a\nb\tc"), "a\nb\\tc");
        assert_eq!((count(1, "file"), count(2, "file")), ("1 file".into(), "2 files".into()));
    }
}
