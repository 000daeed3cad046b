//! The part of JSON Schema that docs/schemas is written in, and schemas that are widened by examples.

// Each test program uses its part.
#![allow(dead_code, clippy::unwrap_used)]

use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// Members whose own members are names that people choose, or another document's.
const OPEN: [&str; 10] = [
    "metadata", "counts", "needs", "format", "settings", "digests", "@context", "@graph", "value",
    "states",
];

/// What is wrong with a value, and where.
pub fn problems(schema: &Value, value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    check(schema, value, "$", &mut found);
    found
}

fn check(schema: &Value, value: &Value, place: &str, found: &mut Vec<String>) {
    let kinds = kinds(schema);
    let is = kind(value);
    let fits = kinds.contains(&is) || is == "integer" && kinds.contains(&"number");
    if !kinds.is_empty() && !fits {
        found.push(format!("{place} is {is}, not {}: {value}", kinds.join(" or ")));
        return;
    }
    if schema["format"] == "date-time" && value.as_str().is_some_and(|text| !is_time(text)) {
        found.push(format!("{place} is no time: {value}"));
    }
    if let Some(map) = value.as_object() {
        let required = schema["required"].as_array().into_iter().flatten();
        for name in required.filter_map(Value::as_str).filter(|name| !map.contains_key(*name)) {
            found.push(format!("{place}.{name} is missing"));
        }
        for (name, member) in map {
            let place = format!("{place}.{name}");
            match schema["properties"].get(name) {
                Some(schema) => check(schema, member, &place, found),
                // Programs pass over what they do not know. Here it would be undocumented.
                None if schema.get("properties").is_some() => {
                    found.push(format!("{place} is not in the schema: {member}"));
                }
                None => {}
            }
        }
    }
    for (at, item) in value.as_array().into_iter().flatten().enumerate() {
        check(&schema["items"], item, &format!("{place}[{at}]"), found);
    }
}

/// The kinds of value that a schema allows; none, and it allows all.
fn kinds(schema: &Value) -> Vec<&str> {
    match &schema["type"] {
        Value::String(kind) => vec![kind],
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// RFC 3339 in UTC.
fn is_time(text: &str) -> bool {
    text.ends_with('Z') && text.parse::<jiff::Timestamp>().is_ok()
}

/// Widens a schema by what it takes to fit an example; it fits everything it did before.
pub fn widen(schema: &mut Value, example: &Value) {
    let is_new = schema.get("type").is_none();
    let mut kinds: BTreeSet<String> = kinds(schema).into_iter().map(str::to_string).collect();
    let had_text = kinds.contains("string");
    let had_members = kinds.contains("object");
    kinds.insert(kind(example).to_string());
    if kinds.contains("number") {
        kinds.remove("integer");
    }
    let kinds: Vec<String> = kinds.into_iter().collect();
    schema["type"] = if let [one] = &kinds[..] { json!(one) } else { json!(kinds) };
    match example {
        Value::String(text) if !had_text && is_time(text) => schema["format"] = json!("date-time"),
        Value::String(text) if schema["format"] == "date-time" && !is_time(text) => {
            schema.as_object_mut().unwrap().remove("format");
        }
        Value::Array(items) => {
            for item in items {
                let map = schema.as_object_mut().unwrap();
                widen(map.entry("items").or_insert_with(|| json!({})), item);
            }
        }
        Value::Object(map) => widen_members(schema, map, is_new || !had_members),
        _ => {}
    }
    if schema["format"].is_null() {
        schema.as_object_mut().unwrap().remove("format");
    }
}

fn widen_members(schema: &mut Value, example: &Map<String, Value>, are_new: bool) {
    if !are_new && schema.get("properties").is_none() {
        // Any members fit.
        return;
    }
    if are_new {
        schema["properties"] = json!({});
        schema["required"] = example.keys().cloned().collect();
    } else if let Some(required) = schema["required"].as_array_mut() {
        required.retain(|name| name.as_str().is_some_and(|name| example.contains_key(name)));
    }
    for (name, member) in example {
        let properties = schema["properties"].as_object_mut().unwrap();
        if OPEN.contains(&name.as_str()) && member.is_object() {
            properties.entry(name).or_insert_with(|| json!({"type": "object"}));
        } else {
            widen(properties.entry(name).or_insert_with(|| json!({})), member);
        }
    }
}

/// Parts of a schema that say nothing of what is there: lists of unknown items, and members that are never
/// anything but null.
pub fn unsaid(schema: &Value, place: &str) -> Vec<String> {
    let kinds = kinds(schema);
    let mut found = Vec::new();
    if kinds.is_empty() || kinds == ["null"] {
        found.push(format!("{place} may be anything, or only null"));
    }
    if kinds.contains(&"array") && schema.get("items").is_none() {
        found.push(format!("{place} is a list of unknown items"));
    }
    for (name, member) in schema["properties"].as_object().into_iter().flatten() {
        found.extend(unsaid(member, &format!("{place}.{name}")));
    }
    if let Some(items) = schema.get("items") {
        found.extend(unsaid(items, &format!("{place}[]")));
    }
    found
}
