//! The one shape of what programs read: docs/json.md.

use serde_json::Value;

/// Integers below this are no times of this century: numbers of versions, for one.
const TIME_MIN: i64 = 946_684_800_000_000;

/// Times are kept as microseconds since 1970; programs get RFC 3339, in UTC.
pub fn with_times(value: Value) -> Value {
    match value {
        Value::Object(map) => map
            .into_iter()
            .map(|(key, value)| {
                let time = value.as_i64().filter(|at| *at >= TIME_MIN && is_time(&key));
                let text = time.and_then(|at| jiff::Timestamp::from_microsecond(at).ok());
                let value = text.map_or_else(|| with_times(value), |at| at.to_string().into());
                (key, value)
            })
            .collect(),
        Value::Array(list) => list.into_iter().map(with_times).collect(),
        other => other,
    }
}

fn is_time(key: &str) -> bool {
    matches!(key, "at" | "since" | "due" | "until" | "next_probe" | "fixity_due")
        || key.ends_with("_at")
        || key.ends_with("_until")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn times_are_text_wherever_they_are_and_numbers_stay() {
        let value = json!({"jobs": [{"id": 1_800_000_000_000_000i64, "added_at": 1_800_000_000_000_001i64, "since": 3}], "at": null});
        let shown = json!({"jobs": [{"id": 1_800_000_000_000_000i64, "added_at": "2027-01-15T08:00:00.000001Z", "since": 3}], "at": null});
        assert_eq!(with_times(value), shown);
    }
}
