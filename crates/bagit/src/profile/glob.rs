//! Patterns of file names in profiles: `*` is any text, `?` one character, `[…]` a choice.

/// Whether a path fits a pattern. As in other readers of profiles, `*` also covers `/`.
pub fn fits(pattern: &str, path: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let path: Vec<char> = path.chars().collect();
    let (mut p, mut t) = (0, 0);
    // Where to go on when the text after the last star does not fit: one character further.
    let mut retry: Option<(usize, usize)> = None;
    while t < path.len() {
        if pattern.get(p) == Some(&'*') {
            retry = Some((p, t));
            p += 1;
        } else if let Some(next) = one(&pattern, p, path[t]) {
            p = next;
            t += 1;
        } else if let Some((star, from)) = retry {
            retry = Some((star, from + 1));
            p = star + 1;
            t = from + 1;
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

/// Fits one character at `p`, and gives the place after the piece of the pattern.
fn one(pattern: &[char], p: usize, c: char) -> Option<usize> {
    match pattern.get(p)? {
        '?' => Some(p + 1),
        '[' => match choice(&pattern[p + 1..], c) {
            Some((fits, len)) => fits.then_some(p + 1 + len),
            None => (c == '[').then_some(p + 1),
        },
        literal => (*literal == c).then_some(p + 1),
    }
}

/// A choice after its `[`: whether the character is in it, and its length. None if it has no end.
fn choice(pattern: &[char], c: char) -> Option<(bool, usize)> {
    let negated = matches!(pattern.first(), Some('!' | '^'));
    let start = usize::from(negated);
    // A bracket right at the start belongs to the choice.
    let end = start + 1 + pattern.get(start + 1..)?.iter().position(|c| *c == ']')?;
    let set = &pattern[start..end];
    let mut at = 0;
    let mut within = false;
    while at < set.len() {
        if at + 2 < set.len() && set[at + 1] == '-' {
            within |= (set[at]..=set[at + 2]).contains(&c);
            at += 3;
        } else {
            within |= set[at] == c;
            at += 1;
        }
    }
    Some((within != negated, end + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_fit_as_in_glob() {
        for (pattern, path, expected) in [
            ("*", "a/b.txt", true),
            ("*.txt", "a/b.txt", true),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("dpn-tags/*", "dpn-tags/x", true),
            ("dpn-tags/*", "dpn/x", false),
            ("[a-c]x", "bx", true),
            ("[!a-c]x", "bx", false),
            ("[]]x", "]x", true),
            ("[x", "[x", true),
            ("a*b*c", "aXbYbZc", true),
            ("", "", true),
            ("", "a", false),
        ] {
            assert_eq!(fits(pattern, path), expected, "{pattern} {path}");
        }
    }

    #[test]
    fn many_stars_do_not_take_forever() {
        assert!(!fits(&"*a".repeat(200), &"a".repeat(199)));
    }
}
