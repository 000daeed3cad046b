//! Text as it may be shown: safe, short, and without secrets.

/// Text that can do nothing where it is shown: control characters and the marks that reorder or
/// hide text become visible.
pub fn printable(text: &str) -> String {
    let hidden = |c: char| {
        (c.is_control() && c != '\n' && c != '\t')
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}')
    };
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if hidden(c) { shown.extend(c.escape_unicode()) } else { shown.push(c) }
    }
    shown
}

/// The same on one line.
pub fn one_line(text: &str) -> String {
    printable(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The same, cut if it is longer.
pub fn shortened(text: &str, bytes_max: usize) -> String {
    let line = one_line(text);
    if line.len() <= bytes_max {
        return line;
    }
    let end = (0..=bytes_max).rev().find(|at| line.is_char_boundary(*at)).unwrap_or(0);
    format!("{}…", &line[..end])
}

/// A URL, or what was meant to be one, as it may be shown: without name, password and query, each
/// of which can be a key.
pub fn shown_url(text: &str) -> String {
    let cut = text.find(['?', '#']).unwrap_or(text.len());
    let (place, rest) = text.split_at(cut);
    let rest = if rest.starts_with('?') { "?…" } else { "" };
    let start = place.find("//").map_or(0, |at| at + 2);
    let end = place[start..].find('/').map_or(place.len(), |at| start + at);
    match place[start..end].rfind('@') {
        Some(at) => format!("{}…{}{rest}", &place[..start], &place[start + at..]),
        None => format!("{place}{rest}"),
    }
}

/// `1 problem`, `2 problems`.
pub fn plural(count: u64, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}
