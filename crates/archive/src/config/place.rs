//! Putting a value at its dotted name in a tree.

use serde_json::Value;

/// What a text can mean: nothing, a value of TOML, or itself.
pub(crate) fn readings(text: &str) -> Vec<Option<Value>> {
    if text.is_empty() {
        return vec![None];
    }
    let parsed = toml::from_str::<toml::Table>(&format!("value = {text}")).ok();
    let value = parsed.filter(|table| table.len() == 1).and_then(|mut table| table.remove("value"));
    let value = value.and_then(|value| serde_json::to_value(value).ok());
    let mut readings: Vec<_> = value.into_iter().map(Some).collect();
    readings.push(Some(Value::String(text.to_string())));
    readings
}

/// Puts a value at a dotted place, or takes away what is there.
pub(crate) fn place(whole: &mut Value, key: &str, value: Option<Value>) -> Result<(), String> {
    let (parent, name) = match key.rsplit_once('.') {
        Some((parent, name)) => (Some(parent), name),
        None => (None, key),
    };
    let mut at = whole;
    for part in parent.into_iter().flat_map(|p| p.split('.')) {
        at = match at {
            Value::Array(list) => {
                let place = position(list.len(), part, key)?;
                if place == list.len() {
                    list.push(Value::Object(Default::default()));
                }
                &mut list[place]
            }
            other => {
                if !other.is_object() {
                    *other = Value::Object(Default::default());
                }
                other
                    .as_object_mut()
                    .ok_or_else(|| no_such(key))?
                    .entry(part)
                    .or_insert(Value::Null)
            }
        };
    }
    match (at, value) {
        (Value::Array(list), value) => {
            let place = position(list.len(), name, key)?;
            match value {
                Some(value) if place == list.len() => list.push(value),
                Some(value) => list[place] = value,
                None if place < list.len() => drop(list.remove(place)),
                None => return Err(no_such(key)),
            }
        }
        (Value::Object(map), Some(value)) => drop(map.insert(name.to_string(), value)),
        (Value::Object(map), None) => {
            if map.remove(name).is_none() {
                return Err(no_such(key));
            }
        }
        (other, Some(value)) => {
            *other = Value::Object([(name.to_string(), value)].into_iter().collect());
        }
        (_, None) => return Err(no_such(key)),
    }
    Ok(())
}

fn position(length: usize, part: &str, key: &str) -> Result<usize, String> {
    let place = part.parse::<usize>().ok().filter(|place| *place <= length);
    place.ok_or_else(|| format!("`{part}` in {key} is not a place in a list of {length}"))
}

fn no_such(key: &str) -> String {
    format!("there is no setting {key}")
}
