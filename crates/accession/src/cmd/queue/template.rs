//! The command of `--exec`: where `{subject}` may stand in it, and what it becomes.
//!
//! A subject is quoted for the shell, which holds where a word stands by itself. Within quotes,
//! backquotes, `$(…)`, here-documents and comments it does not: there a subject could end the quoting
//! and be run. Such commands are refused before any job is touched.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

const MARK: &[u8] = b"{subject}";

/// What the shell is in the middle of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Within {
    DoubleQuotes,
    Backquotes,
    /// `$(…)` or `$((…))`.
    Substitution,
    /// `${…}`
    Parameter,
    /// `((…))`
    Arithmetic,
    /// `(…)`: commands as anywhere else.
    Subshell,
}

impl Within {
    fn name(self) -> &'static str {
        match self {
            Within::DoubleQuotes => "double quotes",
            Within::Backquotes => "backquotes",
            Within::Substitution => "`$(…)`",
            Within::Parameter => "`${…}`",
            Within::Arithmetic => "`((…))`",
            Within::Subshell => "`(…)`",
        }
    }
}

/// Says where `{subject}` stands if quoting it for the shell would not hold there.
pub fn check(command: &OsStr) -> Result<(), String> {
    let text = command.as_bytes();
    if !text.windows(MARK.len()).any(|w| w == MARK) {
        return Ok(());
    }
    Scanner { text, at: 0, within: Vec::new() }.scan()
}

struct Scanner<'t> {
    text: &'t [u8],
    at: usize,
    within: Vec<Within>,
}

impl Scanner<'_> {
    fn rest(&self) -> &[u8] {
        &self.text[self.at.min(self.text.len())..]
    }

    fn top(&self) -> Option<Within> {
        self.within.last().copied()
    }

    fn scan(mut self) -> Result<(), String> {
        while let Some(byte) = self.rest().first().copied() {
            if self.rest().starts_with(MARK) {
                self.is_plain_word()?;
                self.at += MARK.len();
                continue;
            }
            let quoted = self.top() == Some(Within::DoubleQuotes);
            match byte {
                b'\\' => self.escaped()?,
                // Within double quotes such a quote is a character like any other, and shells differ in where
                // it ends.
                b'\'' if self.top() == Some(Within::Parameter) => {
                    return Err("in a command with a quote within `${…}`".to_string());
                }
                b'\'' if !quoted => self.past(b'\'', "single quotes")?,
                b'"' => self.toggle(Within::DoubleQuotes),
                b'`' => self.toggle(Within::Backquotes),
                b'$' => self.dollar()?,
                b'(' if !quoted => self.open(),
                b')' if !quoted => self.close(),
                b'}' if self.top() == Some(Within::Parameter) => {
                    self.within.pop();
                    self.at += 1;
                }
                b'#' if !quoted && self.begins_word() => self.past(b'\n', "a comment")?,
                b'<' if !quoted && self.rest().starts_with(b"<<") => {
                    return Err("in a command with a here-document".to_string());
                }
                _ => self.at += 1,
            }
        }
        Ok(())
    }

    fn is_plain_word(&self) -> Result<(), String> {
        match self.within.iter().find(|within| **within != Within::Subshell) {
            Some(within) => Err(format!("within {}", within.name())),
            None => Ok(()),
        }
    }

    fn escaped(&mut self) -> Result<(), String> {
        self.at += 1;
        if self.rest().starts_with(MARK) {
            return Err("after a backslash".to_string());
        }
        self.at += 1;
        Ok(())
    }

    /// Past the next `end`, with no subject before it.
    fn past(&mut self, end: u8, what: &str) -> Result<(), String> {
        self.at += 1;
        let rest = self.rest();
        let length = rest.iter().position(|b| *b == end).unwrap_or(rest.len());
        if rest[..length].windows(MARK.len()).any(|w| w == MARK) {
            return Err(format!("within {what}"));
        }
        self.at += length + 1;
        Ok(())
    }

    fn toggle(&mut self, what: Within) {
        if self.top() == Some(what) {
            self.within.pop();
        } else {
            self.within.push(what);
        }
        self.at += 1;
    }

    fn dollar(&mut self) -> Result<(), String> {
        self.at += 1;
        if self.rest().starts_with(MARK) {
            return Err("after a `$`".to_string());
        }
        let within = match self.rest().first() {
            // Some shells let a backslash keep such a quote open, and others do not.
            Some(b'\'') if self.top() != Some(Within::DoubleQuotes) => {
                return Err("in a command with `$'…'`".to_string());
            }
            Some(b'(') => Within::Substitution,
            Some(b'{') => Within::Parameter,
            _ => return Ok(()),
        };
        self.within.push(within);
        self.at += 1;
        Ok(())
    }

    fn open(&mut self) {
        let within = match self.top() {
            // Only to find the end of it.
            Some(outer @ (Within::Substitution | Within::Arithmetic)) => outer,
            _ if self.rest().starts_with(b"((") => Within::Arithmetic,
            _ => Within::Subshell,
        };
        self.within.push(within);
        self.at += 1;
    }

    /// A pattern of `case` ends with a parenthesis that none began.
    fn close(&mut self) {
        use Within::{Arithmetic, Subshell, Substitution};
        if matches!(self.top(), Some(Arithmetic | Subshell | Substitution)) {
            self.within.pop();
        }
        self.at += 1;
    }

    fn begins_word(&self) -> bool {
        let before = self.at.checked_sub(1).and_then(|at| self.text.get(at));
        before.is_none_or(|b| b.is_ascii_whitespace() || b";&|(".contains(b))
    }
}

/// The command with every `{subject}` replaced by the subject, quoted for the shell.
pub fn fill_in(command: &OsStr, subject: &[u8]) -> OsString {
    let mut quoted = vec![b'\''];
    for byte in subject {
        match byte {
            b'\'' => quoted.extend(b"'\\''"),
            byte => quoted.push(*byte),
        }
    }
    quoted.push(b'\'');
    let (mut filled, mut rest) = (Vec::new(), command.as_bytes());
    while let Some(at) = rest.windows(MARK.len()).position(|w| w == MARK) {
        filled.extend(&rest[..at]);
        filled.extend(&quoted);
        rest = &rest[at + MARK.len()..];
    }
    filled.extend(rest);
    OsString::from_vec(filled)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subjects_are_quoted_for_the_shell() {
        let fill =
            |subject: &[u8]| fill_in(OsStr::new("cp {subject} /x/{subject}"), subject).into_vec();
        assert_eq!(fill(b"a b"), b"cp 'a b' /x/'a b'");
        assert_eq!(fill(b"it's; rm -rf /"), b"cp 'it'\\''s; rm -rf /' /x/'it'\\''s; rm -rf /'");
        assert_eq!(fill(b"\xff\n$x"), b"cp '\xff\n$x' /x/'\xff\n$x'");
    }

    #[test]
    fn a_subject_may_stand_where_a_word_stands() {
        for command in [
            "gzip -k -- {subject}",
            "./store --name={subject} /x/{subject}.d",
            "case {subject} in a) ;; *) exit 4;; esac",
            "(cd /x && ./store {subject}) > /dev/null",
            "echo 'it is' \"done\" $(date) `date` ${HOME} $((1 + 1)); ./store {subject}",
            "echo a#b {subject}",
            "test \"$ACCESSION_SUBJECT\" != b && ./store {subject}",
            "cat <<< \"$ACCESSION_SUBJECT\"",
            "echo \"it costs $'1'\" {subject}",
        ] {
            assert_eq!(check(OsStr::new(command)), Ok(()), "{command}");
        }
    }

    #[test]
    fn a_subject_is_refused_where_quoting_does_not_hold() {
        for (command, place) in [
            ("echo \"got {subject}\"", "double quotes"),
            ("echo 'got {subject}'", "single quotes"),
            ("echo `basename {subject}`", "backquotes"),
            ("echo $(basename {subject})", "$(…)"),
            ("echo \"$(basename {subject})\"", "double quotes"),
            ("echo $((1 + (2 * {subject})))", "$(…)"),
            ("echo ${x:-{subject}}", "${…}"),
            ("(( {subject} > 1 ))", "((…))"),
            ("cat <<EOF\n{subject}\nEOF", "here-document"),
            ("cat <<< {subject}", "here-document"),
            ("echo $'{subject}'", "$'…'"),
            ("echo $'a\\' {subject} '", "$'…'"),
            ("echo \"${x:-'}\"'}\"{subject}'", "a quote within"),
            ("echo ${subject}", "after a `$`"),
            ("echo \\{subject}", "backslash"),
            ("true # {subject}", "comment"),
            ("sh -c \"echo '{subject}'\"", "double quotes"),
        ] {
            let refused = check(OsStr::new(command)).unwrap_err();
            assert!(refused.contains(place), "{command}: {refused}");
        }
    }
}
