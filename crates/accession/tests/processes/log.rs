//! The offline checker: what the executed programs logged themselves, in the order the kernel
//! appended it.

use std::collections::HashMap;
use std::path::Path;

/// One line: `start|beat|end SUBJECT TOKEN`.
struct Line<'a> {
    what: &'a str,
    subject: &'a str,
    token: u64,
}

/// Fails if two runs of one subject overlapped; returns, by subject, the tokens whose runs ended.
pub fn check(path: &Path) -> HashMap<String, Vec<u64>> {
    let text = std::fs::read_to_string(path).unwrap();
    let mut newest: HashMap<&str, u64> = HashMap::new();
    let mut ended: HashMap<String, Vec<u64>> = HashMap::new();
    for line in text.lines().filter_map(parse) {
        let running = newest.entry(line.subject).or_insert(line.token);
        // A sign of life of an older run after a newer one began: both were alive at once.
        assert!(
            line.token >= *running,
            "{} of {} by token {} after token {running} had started",
            line.what,
            line.subject,
            line.token
        );
        *running = line.token;
        if line.what == "end" {
            ended.entry(line.subject.to_string()).or_default().push(line.token);
        }
    }
    for (subject, tokens) in &ended {
        let mut once = tokens.clone();
        once.dedup();
        assert_eq!(&once, tokens, "{subject} ended twice under one token");
    }
    ended
}

fn parse(line: &str) -> Option<Line<'_>> {
    let mut words = line.split(' ');
    Some(Line { what: words.next()?, subject: words.next()?, token: words.next()?.parse().ok()? })
}
