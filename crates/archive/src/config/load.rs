//! Reading the file, the environment and the flags, one over the other.

use super::DEFAULT_STORE;
use super::origin::{Entry, Origin, flatten};
use super::place::{place, readings};
use super::sections::{Config, StoreSection};
use super::settings::{sections, setting};
use super::variables::key_of;
use crate::ErrorCode;
use crate::model::profile::MASK;
use crate::{Error, Result};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use toml::de::{DeTable, DeValue};

/// The file that is read from the data directory when no other is named.
pub const FILE_NAME: &str = "accession.toml";

/// A configuration is read whole; one that is larger is a mistake.
const FILE_BYTES_MAX: u64 = 16 << 20;
const VARIABLE_PREFIX: &str = "ACCESSION_";

/// What the command line says.
#[derive(Debug, Clone, Default)]
pub struct Flags {
    /// `--config FILE`
    pub config: Option<PathBuf>,
    /// `--set KEY=VALUE`, as often as given.
    pub set: Vec<String>,
}

/// A configuration, and where each value came from.
#[derive(Debug, Clone)]
pub struct Loaded {
    pub config: Config,
    /// For keys that are not at their default.
    pub origins: BTreeMap<String, Origin>,
    /// The file that was read.
    pub file: Option<PathBuf>,
}

impl Config {
    /// The configuration for a data directory. Relative paths in it are below that directory.
    /// `stages` are those that can have settings.
    pub fn load(
        flags: &Flags,
        env: impl IntoIterator<Item = (String, String)>,
        data_dir: &Path,
        stages: &[&str],
    ) -> Result<Loaded> {
        let env: BTreeMap<String, String> = env.into_iter().collect();
        let named = flags
            .config
            .clone()
            .or_else(|| env.get("ACCESSION_CONFIG").filter(|v| !v.is_empty()).map(PathBuf::from));
        let usual = data_dir.join(FILE_NAME);
        let file = named.or_else(|| usual.exists().then_some(usual));
        let mut layers = match &file {
            Some(file) => Layers::of_file(file)?,
            None => Layers::default(),
        };
        for (variable, text) in &env {
            layers.variable(variable, text)?;
        }
        for assignment in &flags.set {
            layers.flag(assignment)?;
        }
        let Layers { tree, origins } = layers;
        let mut config: Config = serde_json::from_value(tree.clone())
            .map_err(|error| incomplete(&tree, &origins, &error))?;
        config.fill_in(data_dir);
        let loaded = Loaded { config, origins, file };
        loaded.check(stages)?;
        Ok(loaded)
    }

    /// What there is when nothing is said, and whole paths.
    fn fill_in(&mut self, data_dir: &Path) {
        if self.stores.is_empty() {
            let main = StoreSection { url: "stores/main".to_string(), ..StoreSection::default() };
            self.stores.insert(DEFAULT_STORE.to_string(), main);
        }
        let whole = |path: &mut PathBuf| *path = data_dir.join(&*path);
        let whole_text = |place: &mut String| {
            if !place.contains("://") && !place.is_empty() {
                *place = data_dir.join(&*place).to_string_lossy().into_owned();
            }
        };
        whole(&mut self.work_space.path);
        self.fetch.file_roots.iter_mut().for_each(whole);
        self.stores.values_mut().for_each(|store| whole_text(&mut store.url));
        self.watch.iter_mut().for_each(|watch| whole_text(&mut watch.path));
        if let Some(mail) = &mut self.mail {
            mail.password_file.iter_mut().chain(&mut mail.ca_file).for_each(whole);
        }
        self.identifiers.ezid.iter_mut().for_each(|ezid| whole(&mut ezid.password_file));
        for profile in self.collections.values_mut() {
            profile.resolve(data_dir);
        }
    }
}

impl Loaded {
    /// Where the value of a key came from.
    pub fn origin(&self, key: &str) -> Origin {
        let mut part = key;
        loop {
            if let Some(origin) = self.origins.get(part) {
                return origin.clone();
            }
            match part.rsplit_once('.') {
                Some((parent, _)) => part = parent,
                None => return Origin::Default,
            }
        }
    }

    /// Every value and where it came from, without secrets.
    pub fn entries(&self) -> Vec<Entry> {
        let flat = flatten(&serde_json::json!(self.config)).into_iter();
        flat.map(|(key, value)| {
            let secret = key.ends_with(".secret") && !value.is_null();
            let value = if secret { Value::String(MASK.to_string()) } else { value };
            Entry { origin: self.origin(&key), key, value }
        })
        .collect()
    }

    /// Refuses what is wrong, all of it at once.
    fn check(&self, stages: &[&str]) -> Result<()> {
        let problems = self.config.problems(stages);
        if problems.is_empty() {
            return Ok(());
        }
        let lines: Vec<String> = problems
            .into_iter()
            .map(|p| match self.near(&p.key) {
                Origin::Default => format!("{} {}", p.key, p.message),
                origin => format!("{origin}: {} {}", p.key, p.message),
            })
            .collect();
        Err(Error::permanent(ErrorCode::ConfigValue, lines.join("\n")))
    }

    /// The origin of a key, or of the first key below it: where a problem should be looked for.
    fn near(&self, key: &str) -> Origin {
        match self.origin(key) {
            Origin::Default => first_below(&self.origins, key),
            origin => origin,
        }
    }
}

fn first_below(origins: &BTreeMap<String, Origin>, key: &str) -> Origin {
    let below = format!("{key}.");
    let first = origins.iter().find(|(k, _)| k.starts_with(&below));
    first.map_or(Origin::Default, |(_, origin)| origin.clone())
}

/// What is said of a section that lacks a value, when all that there is was read.
fn incomplete(
    tree: &Value,
    origins: &BTreeMap<String, Origin>,
    error: &serde_json::Error,
) -> Error {
    let message = error.to_string();
    let shown = in_plain_words(&message);
    let key = match (incomplete_section(tree, &message), missing_field(&message)) {
        (Some(section), Some(field)) => format!(
            "{}{section}.{field}: ",
            match first_below(origins, &section) {
                Origin::Default => String::new(),
                origin => format!("{origin}: "),
            }
        ),
        _ => String::new(),
    };
    Error::permanent(
        ErrorCode::ConfigValue,
        format!("{key}{shown}; docs/configuration.md lists every setting"),
    )
}

/// What the parser says of types, in the words of a configuration.
fn in_plain_words(message: &str) -> String {
    const NUMBERS: [&str; 8] = ["u8", "u16", "u32", "u64", "usize", "i32", "i64", "isize"];
    let (start, expected) = match message.rsplit_once(", expected ") {
        Some((start, expected)) if message.starts_with("invalid ") => (start, expected),
        _ => return message.to_string(),
    };
    let (first, rest) = expected.split_once(' ').unwrap_or((expected, ""));
    let expected = match first {
        _ if NUMBERS.contains(&expected) => "a whole number",
        "f32" | "f64" if rest.is_empty() => "a number",
        "struct" | "map" => "a table",
        "a" if matches!(rest, "map" | "boolean" | "sequence" | "string") => match rest {
            "map" => "a table",
            "boolean" => "true or false",
            "sequence" => "a list",
            _ => "a text in quotes",
        },
        _ => expected,
    };
    let start = start.replacen("invalid type: map", "a table is here", 1);
    let start = start.replacen("invalid type: sequence", "a list is here", 1);
    format!("{start}, expected {expected}")
}

/// The field that a message of serde's says is missing.
fn missing_field(message: &str) -> Option<&str> {
    message.strip_prefix("missing field `")?.split('`').next()
}

/// The section that cannot be read by itself, and fails in the same way as the whole.
fn incomplete_section(tree: &Value, message: &str) -> Option<String> {
    fn within(wrap: &dyn Fn(Value) -> Value, value: &Value, message: &str) -> Option<String> {
        let alone: Vec<(String, Value, Value)> = match value {
            Value::Object(map) => map
                .iter()
                .map(|(name, child)| {
                    (name.clone(), child.clone(), serde_json::json!({ name: child }))
                })
                .collect(),
            Value::Array(list) => list
                .iter()
                .enumerate()
                .map(|(at, child)| (at.to_string(), child.clone(), serde_json::json!([child])))
                .collect(),
            _ => return None,
        };
        alone.into_iter().filter(|(_, child, _)| child.is_object() || child.is_array()).find_map(
            |(name, child, whole)| {
                let read = serde_json::from_value::<Config>(wrap(whole));
                if read.err()?.to_string() != message {
                    return None;
                }
                let deeper = |inner: Value| match value {
                    Value::Array(_) => wrap(Value::Array(vec![inner])),
                    _ => wrap(serde_json::json!({ name.as_str(): inner })),
                };
                Some(match within(&deeper, &child, message) {
                    Some(below) => format!("{name}.{below}"),
                    None => name.clone(),
                })
            },
        )
    }
    within(&|whole| whole, tree, message)
}

/// The values so far.
struct Layers {
    tree: Value,
    origins: BTreeMap<String, Origin>,
}

impl Default for Layers {
    fn default() -> Layers {
        Layers { tree: Value::Object(Default::default()), origins: BTreeMap::new() }
    }
}

impl Layers {
    fn of_file(file: &Path) -> Result<Layers> {
        let text = read(file)?;
        let wrong = |code, at: Option<usize>, key: &str, message: &str| {
            let line = at.map_or(1, |at| line_of(&text, at));
            let key = if key.is_empty() { String::new() } else { format!("{key}: ") };
            // The parser's messages can have several lines; the first says what it is.
            let message = in_plain_words(message.lines().next().unwrap_or_default());
            Error::permanent(
                code,
                format!(
                    "{}:{line}: {key}{message}; docs/configuration.md lists every setting",
                    file.display()
                ),
            )
        };
        let syntax = |e: &toml::de::Error| {
            wrong(ErrorCode::ConfigSyntax, e.span().map(|s| s.start), "", e.message())
        };
        let document = DeTable::parse(&text).map_err(|e| syntax(&e))?;
        let mut keys = Vec::new();
        walk(String::new(), document.get_ref(), &mut keys);
        if let Err(error) = toml::from_str::<Config>(&text) {
            let at = error.span().map(|span| span.start);
            if let Some(field) = missing_field(error.message()) {
                let tree = toml::from_str::<toml::Table>(&text).ok();
                let tree = tree.and_then(|table| serde_json::to_value(table).ok());
                let section = tree.and_then(|tree| incomplete_section(&tree, error.message()));
                let at = section.as_ref().and_then(|section| place_of(document.get_ref(), section));
                let key = section.map(|section| format!("{section}.{field}")).unwrap_or_default();
                return Err(wrong(ErrorCode::ConfigValue, at, &key, error.message()));
            }
            // Tables as well, since one may be where a text was expected.
            let mut keys = keys.clone();
            tables(String::new(), document.get_ref(), &mut keys);
            let before = keys.iter().filter(|(_, start)| at.is_some_and(|at| *start <= at));
            let key = before.max_by_key(|(_, start)| *start).map_or("", |(key, _)| key);
            return Err(wrong(ErrorCode::ConfigValue, at, key, error.message()));
        }
        let table: toml::Table = toml::from_str(&text).map_err(|e| syntax(&e))?;
        let tree = serde_json::to_value(table)
            .map_err(|e| wrong(ErrorCode::ConfigValue, None, "", &e.to_string()))?;
        let origin = |at| Origin::File { file: file.to_path_buf(), line: line_of(&text, at) };
        let origins = keys.into_iter().map(|(key, at)| (key, origin(at))).collect();
        Ok(Layers { tree, origins })
    }

    fn variable(&mut self, variable: &str, text: &str) -> Result<()> {
        let Some(name) = variable.strip_prefix(VARIABLE_PREFIX) else { return Ok(()) };
        let section = |s: &&str| name.starts_with(&format!("{}_", s.to_ascii_uppercase()));
        if sections().find(section).is_none() {
            return Ok(());
        }
        let key = key_of(&self.tree, name).ok_or_else(|| {
            Error::permanent(ErrorCode::ConfigKey, format!("the environment variable {variable} is no setting; correct it or take it away (docs/configuration.md lists every setting)"))
        })?;
        let origin = Origin::Environment { variable: variable.to_string() };
        self.set(&key, text, origin)
    }

    fn flag(&mut self, assignment: &str) -> Result<()> {
        let origin = Origin::Flag {
            flag: format!("--set {}", assignment.split('=').next().unwrap_or_default()),
        };
        let (key, text) = assignment.split_once('=').ok_or_else(|| {
            Error::permanent(
                ErrorCode::ConfigKey,
                format!("`--set {assignment}` has no `=`; write --set fetch.connections=8"),
            )
        })?;
        self.set(key.trim(), text, origin)
    }

    fn set(&mut self, key: &str, text: &str, origin: Origin) -> Result<()> {
        let fail = |message: String| {
            Error::permanent(
                ErrorCode::ConfigValue,
                format!("{origin}: {message}; docs/configuration.md lists every setting"),
            )
        };
        let mut first = None;
        for value in readings(text) {
            let mut tree = self.tree.clone();
            match (&value, place(&mut tree, key, value.clone())) {
                // Taking away what is not there leaves the default, which was asked for.
                (None, Err(_)) if setting(key).is_some() => {}
                (_, placed) => placed.map_err(&fail)?,
            }
            match serde_json::from_value::<Config>(tree.clone()) {
                Err(error) if !error.to_string().starts_with("missing field") => {
                    first = first.or(Some(error));
                }
                // What is missing may come from the next variable.
                _ => {
                    self.tree = tree;
                    let below = format!("{key}.");
                    self.origins.retain(|k, _| k != key && !k.starts_with(&below));
                    if value.is_some() {
                        self.origins.insert(key.to_string(), origin);
                    }
                    return Ok(());
                }
            }
        }
        let why = first.map(|e| in_plain_words(&e.to_string())).unwrap_or_default();
        Err(fail(format!(
            "{key} cannot be `{}`: {why}",
            if key.ends_with("secret") { MASK } else { text }
        )))
    }
}

fn read(file: &Path) -> Result<String> {
    let fail = |why: String| {
        Error::permanent(
            ErrorCode::ConfigFile,
            format!(
                "the configuration {} cannot be read: {why}; name another with --config or ACCESSION_CONFIG",
                file.display()
            ),
        )
    };
    let length = std::fs::metadata(file).map_err(|e| fail(e.to_string()))?.len();
    if length > FILE_BYTES_MAX {
        return Err(fail(format!("it has {length} bytes, more than {FILE_BYTES_MAX}")));
    }
    std::fs::read_to_string(file).map_err(|e| fail(e.to_string()))
}

fn line_of(text: &str, at: usize) -> usize {
    text.bytes().take(at).filter(|byte| *byte == b'\n').count() + 1
}

/// The keys of values, and where each stands.
fn walk(above: String, table: &DeTable<'_>, keys: &mut Vec<(String, usize)>) {
    for (name, value) in table.iter() {
        let name_text: &str = name.get_ref();
        let key =
            if above.is_empty() { name_text.to_string() } else { format!("{above}.{name_text}") };
        match value.get_ref() {
            DeValue::Table(table) if !table.is_empty() => walk(key, table, keys),
            DeValue::Array(list) if list.iter().any(|v| v.get_ref().is_table()) => {
                for (at, value) in list.iter().enumerate() {
                    if let DeValue::Table(table) = value.get_ref() {
                        walk(format!("{key}.{at}"), table, keys);
                    }
                }
            }
            _ => keys.push((key, name.span().start)),
        }
    }
}

/// The tables that are values of a key, and where the key stands.
fn tables(above: String, table: &DeTable<'_>, keys: &mut Vec<(String, usize)>) {
    for (name, value) in table.iter() {
        if let DeValue::Table(below) = value.get_ref() {
            let name_text: &str = name.get_ref();
            let key = if above.is_empty() {
                name_text.to_string()
            } else {
                format!("{above}.{name_text}")
            };
            keys.push((key.clone(), name.span().start));
            tables(key, below, keys);
        }
    }
}

/// Where the name of a table stands, or the table itself in a list of them.
fn place_of(table: &DeTable<'_>, key: &str) -> Option<usize> {
    let (first, rest) = key.split_once('.').unwrap_or((key, ""));
    let (name, value) = table.iter().find(|(name, _)| {
        let name: &str = name.get_ref();
        name == first
    })?;
    let (mut at, mut value, mut rest) = (name.span().start, value, rest);
    while let DeValue::Array(list) = value.get_ref() {
        let (index, after) = rest.split_once('.').unwrap_or((rest, ""));
        value = list.get(index.parse::<usize>().ok()?)?;
        (at, rest) = (value.span().start, after);
    }
    match value.get_ref() {
        DeValue::Table(table) if !rest.is_empty() => place_of(table, rest),
        _ => Some(at),
    }
}

#[cfg(test)]
#[path = "load_tests.rs"]
mod tests;
