//! Where a value came from.

use serde::Serialize;
use serde_json::Value;
use std::fmt;
use std::path::PathBuf;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase", tag = "from")]
pub enum Origin {
    Default,
    File { file: PathBuf, line: usize },
    Environment { variable: String },
    Flag { flag: String },
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Default => f.write_str("default"),
            Origin::File { file, line } => write!(f, "{}:{line}", file.display()),
            Origin::Environment { variable } => write!(f, "environment {variable}"),
            Origin::Flag { flag } => f.write_str(flag),
        }
    }
}

/// One value of the configuration, fit to be shown.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Entry {
    pub key: String,
    pub value: Value,
    pub origin: Origin,
}

/// The values of a tree with their dotted names. Lists of plain values are one value.
pub(super) fn flatten(tree: &Value) -> Vec<(String, Value)> {
    let mut flat = Vec::new();
    walk(String::new(), tree, &mut flat);
    flat
}

fn walk(key: String, value: &Value, flat: &mut Vec<(String, Value)>) {
    let below =
        |name: &str| if key.is_empty() { name.to_string() } else { format!("{key}.{name}") };
    match value {
        Value::Object(map) => {
            for (name, value) in map {
                walk(below(name), value, flat);
            }
        }
        Value::Array(list) if list.iter().any(Value::is_object) => {
            for (at, value) in list.iter().enumerate() {
                walk(below(&at.to_string()), value, flat);
            }
        }
        value => flat.push((key, value.clone())),
    }
}
