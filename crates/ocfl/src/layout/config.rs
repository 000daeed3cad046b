//! The fields of a layout's configuration.

use crate::algorithm::{self, algorithm_named};
use digest::Algorithm;
use serde_json::{Map, Value};

/// The fields of one `config.json`, with the checks that all layouts share.
pub(super) struct Fields<'a>(&'a Map<String, Value>);

impl<'a> Fields<'a> {
    pub(super) fn new(name: &str, config: &'a Value) -> Result<Fields<'a>, String> {
        let Value::Object(fields) = config else { return Err("it is not a JSON object".into()) };
        match fields.get("extensionName") {
            None => Ok(Fields(fields)),
            Some(Value::String(given)) if given == name => Ok(Fields(fields)),
            Some(other) => Err(format!("extensionName is {other}, not {name:?}")),
        }
    }

    pub(super) fn algorithm(&self) -> Result<Algorithm, String> {
        match self.0.get("digestAlgorithm") {
            None => Ok(Algorithm::Sha256),
            Some(Value::String(name)) => {
                algorithm_named(name).ok_or_else(|| algorithm::unknown(name))
            }
            Some(other) => Err(format!("digestAlgorithm is {other}, not a string")),
        }
    }

    /// A small whole number, at most 32 as the extensions say.
    pub(super) fn number(&self, key: &str, least: u64, default: usize) -> Result<usize, String> {
        const MOST: u64 = 32;
        let Some(value) = self.0.get(key) else { return Ok(default) };
        let number = value.as_u64().filter(|number| (least..=MOST).contains(number));
        let number = number.and_then(|number| usize::try_from(number).ok());
        number.ok_or_else(|| format!("{key} is {value}, not a number from {least} to {MOST}"))
    }

    pub(super) fn flag(&self, key: &str) -> Result<bool, String> {
        match self.0.get(key) {
            None => Ok(false),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(other) => Err(format!("{key} is {other}, not true or false")),
        }
    }

    pub(super) fn text(&self, key: &str) -> Result<Option<&'a str>, String> {
        match self.0.get(key) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(format!("{key} is {other}, not a string")),
        }
    }

    /// The delimiter that ends a prefix.
    pub(super) fn delimiter(&self) -> Result<Option<String>, String> {
        match self.text("delimiter")? {
            Some("") => Err("delimiter is empty".to_owned()),
            text => Ok(text.map(str::to_owned)),
        }
    }
}
