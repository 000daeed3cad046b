//! Statements changed on purpose, for tests that prove a rule is needed by breaking it.

/// A change to a statement's text.
#[derive(Debug, Clone)]
pub struct Rewrite {
    /// The name of the statement.
    pub statement: &'static str,
    /// The text that must occur in it.
    pub find: &'static str,
    /// The text in its place.
    pub replace: &'static str,
}

/// Makes the changes that are about a statement.
///
/// # Panics
///
/// If the text to be changed does not occur in it: the mutant would change nothing.
pub(crate) fn rewritten(rewrites: &[Rewrite], statement: &str, text: String) -> String {
    let about = rewrites.iter().filter(|rewrite| rewrite.statement == statement);
    about.fold(text, |text, rewrite| {
        let Rewrite { find, replace, .. } = rewrite;
        assert!(text.contains(find), "`{find}` does not occur in {statement}");
        text.replace(find, replace)
    })
}
