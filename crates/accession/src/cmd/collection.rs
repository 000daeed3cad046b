//! `accession collection`: who deposits what. A collection that the configuration file defines is
//! changed there; all others are made and changed here.

use crate::cli::Global;
use crate::cmd::app;
use crate::cmd::queue::act;
use crate::error_code::ErrorCode;
use crate::exit::{Exit, Failure};
use crate::output;
use crate::session::{Act, Session};
use archive::config::{Config, check_name};
use archive::model::profile::Profile;
use archive::registry::collection::{self, Collection};
use clap::Subcommand;
use serde_json::json;

#[derive(clap::Args)]
#[command(after_help = "Examples:
  accession collection create maps owner='Map department'
  accession collection list
  accession collection hold maps --reason 'an audit'")]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Make a collection
    #[command(after_help = "Examples:
  accession collection create maps owner='Map department'
  accession collection create maps 'stores=[\"main\"]' local_ids=required

docs/configuration.md lists what can be set.")]
    Create {
        name: String,
        /// Settings of its profile
        #[arg(value_name = "KEY=VALUE")]
        settings: Vec<String>,
        #[command(flatten)]
        act: Act,
    },
    /// Change settings of a collection; all of them or none
    #[command(after_help = "Examples:
  accession collection set maps fixity_days=30 update_mode=add
  accession collection set maps 'notify.0={address = \"maps@example.org\"}'
  accession collection set maps callback.url=https://maps.example.org/deposits
  accession collection set maps bag_profile=          # back to the default")]
    Set {
        name: String,
        #[arg(value_name = "KEY=VALUE", required = true)]
        settings: Vec<String>,
        #[command(flatten)]
        act: Act,
    },
    /// Show a collection's profile, without secrets
    #[command(after_help = "Example:
  accession collection show maps")]
    Show { name: String },
    /// List the collections
    #[command(after_help = "Example:
  accession collection list --json")]
    List,
    /// Hold all jobs of a collection, and those to come
    #[command(
        alias = "freeze",
        after_help = "Running jobs finish their stage, and those that are being recorded go on to the end.

Example:
  accession collection hold maps --reason 'an audit'"
    )]
    Hold {
        name: String,
        #[command(flatten)]
        act: Act,
    },
    /// Let the jobs of a held collection go on
    #[command(
        alias = "thaw",
        after_help = "Examples:
  accession collection release maps --reason 'the audit is over'
  accession collection release maps --leave-jobs-held"
    )]
    Release {
        name: String,
        /// Lift the hold, and leave its jobs held for release one by one
        #[arg(long)]
        leave_jobs_held: bool,
        #[command(flatten)]
        act: Act,
    },
}

pub fn run(args: Args, global: &Global) -> Result<Exit, Failure> {
    let config = app::configuration(global)?.config;
    let session = Session::open(global)?;
    match args.command {
        Command::Create { name, settings, act } => {
            create(&session, &config, &name, &settings, &act)
        }
        Command::Set { name, settings, act } => set(&session, &config, &name, &settings, &act),
        Command::Show { name } => show(&session, &config, &name),
        Command::List => list(&session, &config),
        Command::Hold { name, act } => {
            find(&session, &config, &name)?;
            act::hold_collection(&session, &name, &act)?;
            told(&session, &name, "held", &format!("is {}", act::HELD_GROUP))
        }
        Command::Release { name, leave_jobs_held, act } => {
            find(&session, &config, &name)?;
            act::release_collection(&session, &name, &act, leave_jobs_held)?;
            let sentence = match leave_jobs_held {
                true => "is released; its jobs stay held until each is released",
                false => "goes on",
            };
            told(&session, &name, "released", sentence)
        }
    }
}

fn create(
    session: &Session,
    config: &Config,
    name: &str,
    settings: &[String],
    act: &Act,
) -> Result<Exit, Failure> {
    check_name(name).map_err(|why| Failure::refused(queue::ErrorCode::BadInput, why))?;
    let mut profile = Profile::default();
    change(&mut profile, config, settings)?;
    if config.collections.contains_key(name) {
        return Err(in_the_file(name));
    }
    let (it, who) = (name.to_string(), act.who());
    let made = session.db.write_blocking(move |tx| -> archive::Result<bool> {
        match collection::find(tx, &it)? {
            Some(_) => Ok(false),
            None => collection::put(tx, &it, &profile, &who),
        }
    })?;
    if !made {
        let why =
            format!("the collection {name} exists; change it with `accession collection set`");
        return Err(Failure::refused(ErrorCode::Exists, why));
    }
    told(session, name, "created", "is made")
}

fn set(
    session: &Session,
    config: &Config,
    name: &str,
    settings: &[String],
    act: &Act,
) -> Result<Exit, Failure> {
    if config.collections.contains_key(name) {
        return Err(in_the_file(name));
    }
    // Read and written in one transaction, so that two changes at once are both kept.
    let (it, who) = (name.to_string(), act.who());
    let (config, settings) = (config.clone(), settings.to_vec());
    let found = session.db.write_blocking(move |tx| -> archive::Result<bool> {
        let Some(mut profile) = collection::find(tx, &it)? else { return Ok(false) };
        apply(&mut profile, &config, &settings)?;
        collection::put(tx, &it, &profile, &who)?;
        Ok(true)
    })?;
    if !found {
        return Err(unknown(name));
    }
    told(session, name, "changed", "is changed")
}

fn show(session: &Session, config: &Config, name: &str) -> Result<Exit, Failure> {
    let found = find(session, config, name)?;
    let held = held(session)?.contains(&name.to_string());
    if session.json {
        let mut shown = json!(found.profile.masked());
        shown["name"] = json!(name);
        shown["held"] = json!(held);
        output::json(&shown)?;
        return Ok(Exit::Yes);
    }
    let serde_json::Value::Object(values) = json!(found.profile.masked()) else {
        return Err(Failure::unable(ErrorCode::Internal, "a profile is not a table"));
    };
    let mut rows = vec![
        vec!["name".to_string(), name.to_string()],
        vec!["held".to_string(), held.to_string()],
    ];
    rows.extend(values.into_iter().map(|(key, value)| {
        let value = match value {
            serde_json::Value::String(text) => text,
            serde_json::Value::Null => "-".to_string(),
            value => value.to_string(),
        };
        vec![key, value]
    }));
    output::table(&["setting", "value"], rows)?;
    Ok(Exit::Yes)
}

fn list(session: &Session, config: &Config) -> Result<Exit, Failure> {
    let (all, held) = (all(session, config)?, held(session)?);
    if session.json {
        let shown: Vec<_> = all
            .iter()
            .map(|c| {
                let required = c.profile.required_stores(config.stores.keys());
                json!({"name": c.name, "owner": c.profile.owner, "stores": required, "held": held.contains(&c.name)})
            })
            .collect();
        output::json_list("collections", &shown, None)?;
        return Ok(Exit::Yes);
    }
    let rows = all.iter().map(|c| {
        let required = c.profile.required_stores(config.stores.keys()).join(", ");
        let state = if held.contains(&c.name) { "held" } else { "" };
        vec![c.name.clone(), state.to_string(), required, c.profile.owner.clone()]
    });
    output::table(&["name", "state", "stores", "owner"], rows)?;
    Ok(Exit::Yes)
}

/// Collections of the database, with those of the file as they are there.
fn all(session: &Session, config: &Config) -> Result<Vec<Collection>, Failure> {
    let mut all = session.db.read_blocking(collection::list)?;
    for (name, profile) in &config.collections {
        match all.iter_mut().find(|c| c.name == *name) {
            Some(kept) => kept.profile = profile.clone(),
            None => all.push(Collection {
                name: name.clone(),
                profile: profile.clone(),
                created_at: 0,
                created_by: "configuration".to_string(),
                updated_at: 0,
            }),
        }
    }
    let default = archive::config::DEFAULT_COLLECTION;
    if !all.iter().any(|c| c.name == default) {
        all.push(Collection {
            name: default.to_string(),
            profile: Profile::default(),
            created_at: 0,
            created_by: "accession".to_string(),
            updated_at: 0,
        });
    }
    all.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(all)
}

fn find(session: &Session, config: &Config, name: &str) -> Result<Collection, Failure> {
    all(session, config)?.into_iter().find(|c| c.name == name).ok_or_else(|| unknown(name))
}

fn held(session: &Session) -> Result<Vec<String>, Failure> {
    let held = session.read(|tx, _, _| queue::rules::operator::hold::held_names(tx))?;
    Ok(held.collections().map(str::to_string).collect())
}

fn change(profile: &mut Profile, config: &Config, settings: &[String]) -> Result<(), Failure> {
    Ok(apply(profile, config, settings)?)
}

fn apply(profile: &mut Profile, config: &Config, settings: &[String]) -> archive::Result<()> {
    for setting in settings {
        let (key, value) = setting.split_once('=').ok_or_else(|| {
            queue::Error::BadInput(format!("`{setting}` has no `=`; write KEY=VALUE"))
        })?;
        profile.set(key.trim(), value)?;
    }
    match config.problems_here(profile).into_iter().next() {
        Some(p) => Err(archive::Error::permanent(
            archive::ErrorCode::ProfileValue,
            format!("{} {}", p.key, p.message),
        )),
        None => Ok(()),
    }
}

fn told(session: &Session, name: &str, what: &str, sentence: &str) -> Result<Exit, Failure> {
    if session.json {
        output::json(&json!({what: name}))?;
    } else if !session.quiet {
        output::line(&format!("the collection {} {sentence}", output::printable(name)))?;
    }
    Ok(Exit::Yes)
}

fn unknown(name: &str) -> Failure {
    Failure::refused(
        archive::ErrorCode::UnknownCollection,
        format!("there is no collection {name}; `accession collection list` shows those there are"),
    )
}

fn in_the_file(name: &str) -> Failure {
    Failure::refused(
        ErrorCode::Configured,
        format!(
            "the collection {name} is defined in the configuration file; change [collections.{name}] there"
        ),
    )
}
