//! Finds a named statement in a `.sql` file while the program is compiled.
//!
//! Statements that serve one step or one table are together in one file, `src/sql/<file>.sql`. Each
//! begins with a line that names it, and ends where the next one begins:
//!
//! ```sql
//! -- The line in front of a lock.
//!
//! -- name: parked
//! select id from waiting where lock = $1 and state = 1
//!
//! -- name: promote (sqlite)
//! update waiting set state = 0 where lock = $1
//!
//! -- name: promote (postgres)
//! -- Why the statement is what it is.
//! update waiting set state = 0 where lock = any ($1::text[])
//! ```
//!
//! [`statement!`](crate::statement) takes the file and the name: `statement!(line::promote)`. A name
//! without an engine is for both engines. A name that only one engine has is empty for the other one;
//! only code that knows its engine uses such a statement. A name that the file does not have is a
//! compile error. What precedes the first name describes the file and belongs to no statement.

use crate::tx::Engine;

const MARK: &[u8] = b"-- name: ";

/// Returns the text of the statement `name` for an engine, from the text of a file.
///
/// # Panics
///
/// If the file has no such statement, which in a constant is a compile error.
pub const fn statement_text(file: &'static str, name: &str, engine: Engine) -> &'static str {
    let (suffix, other) = match engine {
        Engine::Sqlite => (" (sqlite)", " (postgres)"),
        Engine::Postgres => (" (postgres)", " (sqlite)"),
    };
    if let Some(text) = block(file, name, suffix) {
        return text;
    }
    if let Some(text) = block(file, name, "") {
        return text;
    }
    assert!(block(file, name, other).is_some(), "the .sql file has no statement of this name");
    ""
}

/// The statement under the line `-- name: {name}{suffix}`, without blank lines around it.
const fn block(file: &'static str, name: &str, suffix: &str) -> Option<&'static str> {
    let bytes = file.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let end = line_end(bytes, at);
        if is_mark(bytes, at)
            && has(bytes, at + MARK.len(), name.as_bytes())
            && has(bytes, at + MARK.len() + name.len(), suffix.as_bytes())
            && at + MARK.len() + name.len() + suffix.len() == end
        {
            return Some(until_next_mark(file, end));
        }
        at = end + 1;
    }
    None
}

const fn until_next_mark(file: &'static str, start: usize) -> &'static str {
    let bytes = file.as_bytes();
    let mut at = start + 1;
    while at < bytes.len() && !is_mark(bytes, at) {
        at = line_end(bytes, at) + 1;
    }
    let end = if at < bytes.len() { at } else { bytes.len() };
    file.split_at(end).0.split_at(start).1.trim_ascii()
}

const fn is_mark(bytes: &[u8], at: usize) -> bool {
    has(bytes, at, MARK)
}

const fn has(bytes: &[u8], at: usize, wanted: &[u8]) -> bool {
    if at + wanted.len() > bytes.len() {
        return false;
    }
    let mut i = 0;
    while i < wanted.len() {
        if bytes[at + i] != wanted[i] {
            return false;
        }
        i += 1;
    }
    true
}

const fn line_end(bytes: &[u8], mut at: usize) -> usize {
    while at < bytes.len() && bytes[at] != b'\n' {
        at += 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "-- About the file.\n\n-- name: both\nselect 1\n\n-- name: two (sqlite)\n\
        -- Why.\nselect 2\n\n-- name: two (postgres)\nselect 3\nfrom t\n\n-- name: last (postgres)\nselect 4\n";

    #[test]
    fn a_statement_ends_where_the_next_begins() {
        assert_eq!(statement_text(FILE, "both", Engine::Sqlite), "select 1");
        assert_eq!(statement_text(FILE, "both", Engine::Postgres), "select 1");
        assert_eq!(statement_text(FILE, "two", Engine::Sqlite), "-- Why.\nselect 2");
        assert_eq!(statement_text(FILE, "two", Engine::Postgres), "select 3\nfrom t");
    }

    #[test]
    fn a_statement_of_one_engine_is_empty_for_the_other() {
        assert_eq!(statement_text(FILE, "last", Engine::Postgres), "select 4");
        assert_eq!(statement_text(FILE, "last", Engine::Sqlite), "");
    }

    #[test]
    #[should_panic(expected = "no statement of this name")]
    fn a_name_is_matched_as_a_whole() {
        statement_text(FILE, "tw", Engine::Sqlite);
    }
}
