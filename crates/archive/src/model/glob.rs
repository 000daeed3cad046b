//! Patterns of paths: `*` and `?` within one part, `**` across parts, `[a-z]`; a path that is a
//! directory stands for everything below it.

/// Patterns of which a path must match one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Patterns(Vec<String>);

impl Patterns {
    pub fn new(patterns: &[String]) -> Patterns {
        let tidy = |text: &String| text.trim_end_matches('/').to_string();
        Patterns(patterns.iter().map(tidy).collect())
    }

    /// No pattern at all stands for every path.
    pub fn matches(&self, path: &str) -> bool {
        self.0.is_empty() || self.0.iter().any(|pattern| matches(pattern, path))
    }

    /// The patterns that a path matches, by their place.
    pub fn matching<'a>(&'a self, path: &'a str) -> impl Iterator<Item = usize> + 'a {
        let all = self.0.iter().enumerate();
        all.filter(move |(_, pattern)| matches(pattern, path)).map(|(at, _)| at)
    }

    /// Whether there is a character that stands for others.
    pub fn is_literal(pattern: &str) -> bool {
        !pattern.contains(['*', '?', '['])
    }
}

/// Whether a pattern matches a path, or a directory above it.
fn matches(pattern: &str, path: &str) -> bool {
    // A name with a bracket or a star in it can be given as it is.
    let is_below = |path: &str| path.strip_prefix(pattern).is_some_and(|r| r.starts_with('/'));
    if pattern == path || is_below(path) {
        return true;
    }
    let text: Vec<char> = path.chars().collect();
    let reached = reached(&tokens(pattern), &text);
    let is_end = |at: usize| at == text.len() || text[at] == '/';
    (1..=text.len()).any(|at| reached[at] && is_end(at))
}

/// A part of a pattern.
enum Token {
    One(char),
    /// Any character of one part of a path.
    Any,
    Class {
        ranges: Vec<(char, char)>,
        is_negated: bool,
    },
    /// Any characters of one part.
    Star,
    /// Any characters.
    Stars,
    /// Any directories, or none.
    Directories,
}

fn tokens(pattern: &str) -> Vec<Token> {
    let pattern: Vec<char> = pattern.chars().collect();
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(c) = pattern.get(at) {
        let rest = &pattern[at..];
        let begins_part = at == 0 || pattern[at - 1] == '/';
        let (token, length) = match (c, rest) {
            ('*', ['*', '*', '/', ..]) if begins_part => (Token::Directories, 3),
            ('*', ['*', '*', ..]) => (Token::Stars, 2),
            ('*', _) => (Token::Star, 1),
            ('?', _) => (Token::Any, 1),
            ('[', _) => class(rest).unwrap_or((Token::One('['), 1)),
            (c, _) => (Token::One(*c), 1),
        };
        tokens.push(token);
        at += length;
    }
    tokens
}

/// `[a-z]` or `[!a-z]`, and how long it is; `None` if the bracket is not closed.
fn class(rest: &[char]) -> Option<(Token, usize)> {
    let is_negated = matches!(rest.get(1), Some('!' | '^'));
    let from = 1 + usize::from(is_negated);
    // A bracket that comes first is one of the characters.
    let to = rest.iter().skip(from + 1).position(|c| *c == ']')? + from + 1;
    let mut members = &rest[from..to];
    let mut ranges = Vec::new();
    while let [first, others @ ..] = members {
        match others {
            ['-', last, after @ ..] => {
                ranges.push((*first, *last));
                members = after;
            }
            _ => {
                ranges.push((*first, *first));
                members = others;
            }
        }
    }
    Some((Token::Class { ranges, is_negated }, to + 1))
}

/// For each place of a text whether the pattern can end there. It takes one step for each token and
/// character, whatever the pattern.
fn reached(tokens: &[Token], text: &[char]) -> Vec<bool> {
    let mut reached = vec![false; text.len() + 1];
    reached[0] = true;
    for token in tokens {
        let mut next = vec![false; text.len() + 1];
        let mut is_on = false;
        for (at, was) in reached.iter().enumerate() {
            let c = text.get(at).copied();
            let takes_one = match (token, c) {
                (_, None) => false,
                (Token::One(wanted), Some(c)) => *wanted == c,
                (Token::Any, Some(c)) => c != '/',
                (Token::Class { ranges, is_negated }, Some(c)) => {
                    let found = ranges.iter().any(|(from, to)| (*from..=*to).contains(&c));
                    c != '/' && found != *is_negated
                }
                (Token::Star | Token::Stars | Token::Directories, Some(_)) => {
                    is_on |= was;
                    let after_slash = at == 0 || text[at - 1] == '/';
                    next[at] |= match token {
                        Token::Directories => *was || (is_on && after_slash),
                        _ => is_on,
                    };
                    is_on &= !(matches!(token, Token::Star) && c == Some('/'));
                    false
                }
            };
            if *was && takes_one {
                next[at + 1] = true;
            }
        }
        if matches!(token, Token::Star | Token::Stars) {
            next[text.len()] |= is_on || reached[text.len()];
        }
        reached = next;
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fits(pattern: &str, path: &str) -> bool {
        Patterns::new(&[pattern.to_string()]).matches(path)
    }

    #[test]
    fn patterns_match_as_in_a_shell() {
        for (pattern, path) in [
            ("data/a.txt", "data/a.txt"),
            ("data/letters", "data/letters/1842/a.txt"),
            ("data/letters/", "data/letters/a.txt"),
            ("data/*/a.txt", "data/letters/a.txt"),
            ("data/l*", "data/letters/1842/a.txt"),
            ("*.txt", "a.txt"),
            ("data/**/*.txt", "data/a.txt"),
            ("data/**/*.txt", "data/x/y/a.txt"),
            ("**/a.txt", "a.txt"),
            ("**/a.txt", "x/y/a.txt"),
            ("data/?.txt", "data/ü.txt"),
            ("data/[a-c].txt", "data/b.txt"),
            ("data/[!a-c].txt", "data/d.txt"),
            ("data/a[1].txt", "data/a[1].txt"),
            ("data/*", "data/line\nend"),
            ("**", "x/y"),
            ("a*b*c", "aXbXbXc"),
        ] {
            assert!(fits(pattern, path), "{pattern} {path:?}");
        }
        for (pattern, path) in [
            ("data/a.txt", "data/a.txt2"),
            ("data/letter", "data/letters/a.txt"),
            ("*.txt", "data/a.txt"),
            ("data/*.txt", "data/x/a.txt"),
            ("data/?.txt", "data/ab.txt"),
            ("data/[a-c].txt", "data/d.txt"),
            ("data/**/x", "data/y"),
            ("a*b", "a/b"),
            ("", "a"),
        ] {
            assert!(!fits(pattern, path), "{pattern} {path:?}");
        }
        assert!(Patterns::default().matches("anything"));
        let many = "*a".repeat(30);
        assert!(!fits(&many, &"a".repeat(29)), "and soon");
    }
}
