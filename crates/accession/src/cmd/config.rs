//! `accession config`: what is configured, and by what.

use crate::cli::Global;
use crate::cmd::app;
use crate::exit::{Exit, Failure};
use crate::output;
use archive::config::{Origin, setting};
use clap::Subcommand;
use serde_json::{Value, json};

#[derive(clap::Args)]
#[command(after_help = "Example:\n  accession config show --changed")]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Every value and where it came from, without secrets
    ///
    /// A value comes from a flag (--set), an environment variable, the configuration file, or is
    /// the default.
    #[command(after_help = "Examples:
  accession config show
  accession config show --changed
  accession config show fetch
  ACCESSION_FETCH_CONNECTIONS=8 accession config show --json")]
    Show {
        /// Only keys that begin with this
        #[arg(default_value = "")]
        prefix: String,
        /// Only what is not at its default
        #[arg(long)]
        changed: bool,
    },
}

pub fn run(args: Args, global: &Global) -> Result<Exit, Failure> {
    let Command::Show { prefix, changed } = args.command;
    let loaded = app::configuration(global)?;
    let mut entries = loaded.entries();
    entries.retain(|entry| {
        entry.key.starts_with(&prefix) && !(changed && entry.origin == Origin::Default)
    });
    if global.json {
        let entries: Vec<Value> = entries
            .iter()
            .map(|entry| {
                let about = setting(&entry.key).map(|setting| setting.about);
                json!({"key": entry.key, "value": entry.value, "origin": entry.origin, "about": about})
            })
            .collect();
        output::json(&json!({"file": loaded.file, "values": entries}))?;
        return Ok(Exit::Yes);
    }
    let shown = |value: &Value| match value {
        Value::Null => "-".to_string(),
        Value::String(text) => text.clone(),
        value => value.to_string(),
    };
    let rows = entries
        .iter()
        .map(|entry| vec![entry.key.clone(), shown(&entry.value), entry.origin.to_string()]);
    output::table(&["key", "value", "from"], rows)?;
    Ok(Exit::Yes)
}
