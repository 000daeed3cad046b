//! Messages for depositors, who cannot run the archive's commands.

/// What stands in the place of the commands.
const STAFF: &str = "the archive's staff can act on this";

/// A message without the parts that name a command of the archive.
pub(crate) fn without_commands(text: &str) -> String {
    if !text.contains("`accession ") {
        return text.to_string();
    }
    text.split('\n').map(line_without).collect::<Vec<_>>().join("\n")
}

fn line_without(line: &str) -> String {
    let parts = parts(line);
    if !parts.iter().any(|part| names_command(part)) {
        return line.to_string();
    }
    let mut kept = String::with_capacity(line.len());
    parts.iter().filter(|part| !names_command(part)).for_each(|part| kept.push_str(part));
    let kept = kept.trim_end().trim_end_matches([';', ',', '.', ':']);
    if kept.is_empty() { STAFF.to_string() } else { format!("{kept}; {STAFF}") }
}

fn names_command(part: &str) -> bool {
    part.contains("`accession ")
}

/// The line, cut after each `; ` and `. ` that is not within backquotes.
fn parts(line: &str) -> Vec<&str> {
    let (mut parts, mut from, mut quoted) = (Vec::new(), 0, false);
    for (at, c) in line.char_indices() {
        quoted ^= c == '`';
        let ends = matches!(c, ';' | '.') && line[at + 1..].starts_with(' ');
        if ends && !quoted {
            parts.push(&line[from..at + 2]);
            from = at + 2;
        }
    }
    parts.push(&line[from..]);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_left_out_and_the_cause_stays() {
        let cases = [
            ("a.tif is not what it was; send it again", "a.tif is not what it was; send it again"),
            (
                "the package was not fetched; fetch it with `accession jobs requeue 3 --to downloading`",
                "the package was not fetched; the archive's staff can act on this",
            ),
            (
                "job 5 failed: no space. Remove the cause, then requeue it with `accession jobs requeue 5`: it goes on",
                "job 5 failed: no space; the archive's staff can act on this",
            ),
            ("`accession check` says more", "the archive's staff can act on this"),
            (
                "two problems\n[a] x; see `accession check`\n[b] y.tif; z",
                "two problems\n[a] x; the archive's staff can act on this\n[b] y.tif; z",
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(without_commands(text), expected);
        }
    }
}
