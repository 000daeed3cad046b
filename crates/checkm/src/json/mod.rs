//! The same content as JSON: `{"format": …, "profile": …, "rows": [ … ]}`.

pub(crate) mod frame;
pub(crate) mod read;
pub(crate) mod row;
pub(crate) mod value;

/// What `format` must be.
pub const FORMAT: &str = "checkm-json/1";

/// The JSON Schema (draft 2020-12) of the JSON manifest.
pub const SCHEMA: &str = include_str!("schema.json");
