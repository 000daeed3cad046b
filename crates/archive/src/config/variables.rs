//! Which setting an environment variable stands for.

use super::settings::SETTINGS;
use serde_json::Value;

/// The key that `STORES_MAIN_URL` stands for.
pub(super) fn key_of(tree: &Value, name: &str) -> Option<String> {
    let mut found: Option<(usize, String)> = None;
    for setting in SETTINGS {
        let parts: Vec<&str> = setting.key.split('.').collect();
        for key in match_parts(Some(tree), &parts, name) {
            // The more of the name is fixed, the better the match.
            let fixed = parts.iter().filter(|p| **p != "*").map(|p| p.len()).sum();
            if found.as_ref().is_none_or(|(best, _)| fixed > *best) {
                found = Some((fixed, key));
            }
        }
    }
    found.map(|(_, key)| key)
}

/// The ways in which `name` can be the parts of a key; `*` is a name that is there or, if there
/// is none like it, a new one in small letters.
fn match_parts(tree: Option<&Value>, parts: &[&str], name: &str) -> Vec<String> {
    let Some((part, rest)) = parts.split_first() else { return Vec::new() };
    let candidates: Vec<String> = match *part {
        "*" => names_in(tree, name),
        fixed => vec![fixed.to_string()],
    };
    let mut keys = Vec::new();
    for candidate in candidates {
        let Some(left) = name.strip_prefix(&variable_form(&candidate)) else { continue };
        if rest.is_empty() {
            if left.is_empty() {
                keys.push(candidate);
            }
            continue;
        }
        let Some(left) = left.strip_prefix('_') else { continue };
        let below = tree.and_then(|tree| match tree {
            Value::Array(list) => candidate.parse::<usize>().ok().and_then(|at| list.get(at)),
            tree => tree.get(&candidate),
        });
        let found = match_parts(below, rest, left);
        keys.extend(found.into_iter().map(|key| format!("{candidate}.{key}")));
    }
    keys
}

/// Names that are there, then those that `name` could begin with.
fn names_in(tree: Option<&Value>, name: &str) -> Vec<String> {
    let mut names: Vec<String> = match tree {
        Some(Value::Object(map)) => map.keys().cloned().collect(),
        Some(Value::Array(list)) => (0..=list.len()).map(|at| at.to_string()).collect(),
        _ => Vec::new(),
    };
    let ends = name.match_indices('_').map(|(at, _)| at).chain([name.len()]);
    for end in ends.filter(|end| *end > 0) {
        let new = name[..end].to_ascii_lowercase();
        if !names.iter().any(|there| variable_form(there) == variable_form(&new)) {
            names.push(new);
        }
    }
    names
}

/// A name as it is in a variable: `cold-copies` as `COLD_COPIES`.
fn variable_form(name: &str) -> String {
    name.to_ascii_uppercase().replace('-', "_")
}
