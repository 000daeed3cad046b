//! The part of JSON Schema that docs/schemas is written in, and schemas made from examples.

use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Members whose own members are names that people choose, or another document's.
const OPEN: [&str; 9] =
    ["metadata", "counts", "needs", "format", "settings", "digests", "@context", "@graph", "value"];

/// Members that are null in all examples, and integers elsewhere.
const INTEGERS: [&str; 7] =
    ["token", "until", "next", "priority", "file_bytes_max", "bytes_max", "files_max"];

/// What is wrong with a value, and where.
pub fn problems(schema: &Value, value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    check(schema, value, "$", &mut found);
    found
}

fn check(schema: &Value, value: &Value, place: &str, found: &mut Vec<String>) {
    let kinds: Vec<&str> = match &schema["type"] {
        Value::String(kind) => vec![kind],
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
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

/// Makes schemas from examples. Objects with the same members are of one kind, wherever they are, but
/// for whole answers; and what is null in all of them is as a member of its name is elsewhere.
#[derive(Default)]
pub struct Inference {
    scalars: BTreeMap<String, Vec<Value>>,
    objects: BTreeMap<Vec<String>, Vec<Map<String, Value>>>,
}

fn members(map: &Map<String, Value>) -> Vec<String> {
    map.keys().cloned().collect::<BTreeSet<_>>().into_iter().collect()
}

impl Inference {
    pub fn learn(&mut self, value: &Value) {
        if let Some(map) = value.as_object() {
            self.objects.entry(members(map)).or_default().push(map.clone());
        }
        for (name, member) in value.as_object().into_iter().flatten() {
            if !member.is_null() && !member.is_object() && !member.is_array() {
                self.scalars.entry(name.clone()).or_default().push(member.clone());
            }
            self.learn(member);
        }
        value.as_array().into_iter().flatten().for_each(|item| self.learn(item));
    }

    pub fn schema(&self, title: &str, examples: &[Value]) -> Value {
        let Value::Object(inferred) = self.infer("", &examples.iter().collect::<Vec<_>>()) else {
            return Value::Null;
        };
        let mut schema = Map::new();
        schema.insert("$schema".into(), "https://json-schema.org/draft/2020-12/schema".into());
        schema.insert("title".into(), title.into());
        schema.extend(inferred);
        Value::Object(schema)
    }

    fn infer(&self, name: &str, examples: &[&Value]) -> Value {
        let mut kinds: BTreeSet<&str> = examples.iter().map(|value| kind(value)).collect();
        if kinds.contains("number") {
            kinds.remove("integer");
        }
        if kinds.iter().all(|kind| *kind == "null") {
            let others: Vec<&Value> = self.scalars.get(name).into_iter().flatten().collect();
            return match others.is_empty() {
                true if INTEGERS.contains(&name) => json!({"type": ["integer", "null"]}),
                true => json!({"type": ["string", "null"]}),
                false => {
                    let mut schema = self.infer(name, &others);
                    let kinds = schema["type"].take();
                    let mut kinds = kinds.as_array().cloned().unwrap_or_else(|| vec![kinds]);
                    kinds.push("null".into());
                    schema["type"] = kinds.into();
                    schema
                }
            };
        }
        let mut schema = Map::new();
        let kinds: Vec<&str> = kinds.into_iter().collect();
        let kinds = if let [one] = kinds[..] { json!(one) } else { json!(kinds) };
        schema.insert("type".into(), kinds);
        let mut texts = examples.iter().filter_map(|value| value.as_str()).peekable();
        if texts.peek().is_some() && texts.all(is_time) {
            schema.insert("format".into(), "date-time".into());
        }
        let mut maps: Vec<&Map<String, Value>> =
            examples.iter().filter_map(|value| value.as_object()).collect();
        if !name.is_empty() {
            let shapes: BTreeSet<Vec<String>> = maps.into_iter().map(members).collect();
            maps = shapes.iter().filter_map(|shape| self.objects.get(shape)).flatten().collect();
        }
        if !maps.is_empty() && !OPEN.contains(&name) {
            let names: BTreeSet<&String> = maps.iter().flat_map(|map| map.keys()).collect();
            let members = names.iter().map(|name| {
                let examples: Vec<&Value> = maps.iter().filter_map(|map| map.get(*name)).collect();
                ((*name).clone(), self.infer(name, &examples))
            });
            let members: Map<String, Value> = members.collect();
            let all = |name: &&&String| maps.iter().all(|map| map.contains_key(**name));
            let required: Vec<&&String> = names.iter().filter(all).collect();
            schema.insert("required".into(), json!(required));
            schema.insert("properties".into(), members.into());
        }
        let items: Vec<&Value> = examples.iter().filter_map(|v| v.as_array()).flatten().collect();
        if !items.is_empty() {
            schema.insert("items".into(), self.infer(name, &items));
        }
        Value::Object(schema)
    }
}

#[test]
fn values_that_do_not_fit_are_found() {
    let example =
        json!({"jobs": [{"id": 1, "added_at": "2026-11-18T10:00:00Z", "why": null}], "next": null});
    let mut inference = Inference::default();
    inference.learn(&example);
    let schema = inference.schema("t", std::slice::from_ref(&example));
    assert_eq!(problems(&schema, &example), Vec::<String>::new());
    for (wrong, part) in [
        (json!([]), "$ is array, not object"),
        (json!({"jobs": []}), "$.next is missing"),
        (
            json!({"jobs": [{"id": "1", "added_at": "2026-11-18T10:00:00Z", "why": null}], "next": null}),
            "jobs[0].id is string",
        ),
        (
            json!({"jobs": [{"id": 1, "added_at": "today", "why": null}], "next": null}),
            "added_at is no time",
        ),
        (
            json!({"jobs": [{"id": 1, "added_at": 5, "why": null}], "next": null}),
            "added_at is integer",
        ),
        (json!({"jobs": [], "next": null, "more": 1}), "$.more is not in the schema"),
    ] {
        let found = problems(&schema, &wrong);
        assert!(found.iter().any(|problem| problem.contains(part)), "{wrong}: {found:?}");
    }
}
