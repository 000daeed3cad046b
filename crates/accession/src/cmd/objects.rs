//! `accession objects …`: what is kept.

mod cat;

use super::app;
use crate::cli::Global;
use crate::exit::{Exit, Failure};
use crate::output;
use crate::session::{Edge, parse_moment};
use archive::app::App;
use archive::model::codes::{CopyState, ObjectState};
use archive::model::id::ObjectId;
use archive::registry::view::{self, EventView, FileView, Filter, NamedObject, ObjectView};
use clap::Subcommand;
use queue::view::show_time;
use std::io::Write;
use std::sync::Arc;

#[derive(clap::Args)]
#[command(after_help = "Examples:
  accession objects list --collection maps
  accession objects list letters
  accession objects list --format fmt/43 --from 2026-11-18 --csv
  accession objects show ark:/99999/fk4c9k31
  accession objects files box-17 --version 1
  accession objects events box-17
  accession objects cat box-17 data/letter.txt

An object is named by its identifier, or by a local identifier.")]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// List objects: all, or those with a part of a name
    #[command(after_help = "Examples:
  accession objects list
  accession objects list 'box 17'
  accession objects list --collection maps --from 2026-11-18
  accession objects list --from 2025 --until 2026-06
  accession objects list --format fmt/353 --csv

Times are UTC. A year, a month or a day begins with --from and ends with --until: `--from 2026-11
--until 2026-11` is all of November. Of ASCII letters, upper and lower case are the same.")]
    List(List),
    /// Show an object: what it is, its versions and copies
    #[command(after_help = "Example:\n  accession objects show box-17")]
    Show(One),
    /// List the files of a version
    #[command(
        after_help = "Examples:\n  accession objects files box-17 --version 1\n  accession objects files box-17 --csv"
    )]
    Files(Files),
    /// List what has happened to an object
    #[command(after_help = "Example:\n  accession objects events ark:/99999/fk4c9k31")]
    Events(Events),
    /// Write a file of an object to standard output
    Cat(cat::Args),
    /// List an object's versions
    #[command(after_help = "Example:\n  accession objects versions box-17")]
    Versions(One),
}

#[derive(clap::Args)]
struct List {
    /// Part of the title, of the identifier or of a local identifier
    #[arg(value_name = "PART")]
    part: Option<String>,
    /// Only objects of this collection
    #[arg(long, value_name = "NAME")]
    collection: Option<String>,
    /// Only the object with this identifier
    #[arg(long, value_name = "ARK")]
    id: Option<String>,
    /// Only objects with exactly this local identifier
    #[arg(long, value_name = "ID")]
    local_id: Option<String>,
    /// Only objects with a file of this format in their current version
    #[arg(long, value_name = "PUID")]
    format: Option<String>,
    /// active, reserved or deleted
    #[arg(long, default_value = "active")]
    state: String,
    /// Changed then or later: 2026, 2026-11, 2026-11-18 or 2026-11-18T10:00:00Z
    #[arg(long, value_name = "DATE|TIME")]
    from: Option<String>,
    /// Changed before the end of then: 2026, 2026-11, 2026-11-18; or before 2026-11-18T10:00:00Z
    #[arg(long, alias = "to", value_name = "DATE|TIME")]
    until: Option<String>,
    /// At most this many
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(i64).range(1..=10_000))]
    limit: i64,
    /// The number of the last object before: how to page on
    #[arg(long, default_value = "0", value_name = "NUMBER")]
    after: ObjectId,
    /// Print CSV
    #[arg(long)]
    csv: bool,
}

#[derive(clap::Args)]
struct One {
    /// The object's identifier or local identifier
    object: String,
}

#[derive(clap::Args)]
struct Files {
    /// The object's identifier or local identifier
    object: String,
    /// Of this version (default: the current one)
    #[arg(long)]
    version: Option<i64>,
    /// Print CSV
    #[arg(long)]
    csv: bool,
}

#[derive(clap::Args)]
struct Events {
    /// The object's identifier or local identifier
    object: String,
    /// Print CSV
    #[arg(long)]
    csv: bool,
}

pub fn run(args: Args, global: &Global) -> Result<Exit, Failure> {
    let (app, _) = app::open_small(global)?;
    match args.command {
        Command::Cat(args) => cat::run(&app, &args),
        Command::List(args) => list(&app, args, global),
        Command::Show(args) => show(&app, &args.object, global),
        Command::Files(args) => files(&app, &args, global),
        Command::Events(args) => events(&app, &args, global),
        Command::Versions(args) => versions(&app, &args.object, global),
    }
}

pub fn find(app: &Arc<App>, name: &str) -> Result<ObjectView, Failure> {
    let name = name.to_string();
    let found: archive::Result<ObjectView> = app.db.read_blocking(move |tx| view::find(tx, &name));
    Ok(found?)
}

/// Rows as CSV: every cell quoted, control characters shown and not obeyed, and nothing that a
/// spreadsheet would take for a formula.
fn csv(rows: impl IntoIterator<Item = Vec<String>>) -> Result<(), Failure> {
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    for row in rows {
        let cells: Vec<String> = row
            .iter()
            .map(|cell| {
                let risky = cell.starts_with(['=', '+', '-', '@', '\t', '\r']);
                let guard = if risky { "'" } else { "" };
                format!("\"{guard}{}\"", output::printable(cell).replace('"', "\"\""))
            })
            .collect();
        writeln!(out, "{}", cells.join(","))?;
    }
    out.flush()?;
    Ok(())
}

fn list(app: &Arc<App>, args: List, global: &Global) -> Result<Exit, Failure> {
    let state = ObjectState::from_name(&args.state).ok_or_else(|| {
        Failure::refused(
            queue::ErrorCode::Unknown,
            format!("there is no state `{}`; there are active, reserved and deleted", args.state),
        )
    })?;
    let time = |text: &Option<String>, edge| {
        text.as_deref().map(|text| parse_moment(text, edge)).transpose()
    };
    let filter = Filter {
        identifier: args.id.as_deref().map(archive::identifier::normalise).transpose()?,
        local_id: args.local_id.clone(),
        contains: args.part.clone(),
        collection: args.collection.clone(),
        state: Some(state),
        format: args.format.clone(),
        from: time(&args.from, Edge::From)?,
        to: time(&args.until, Edge::Until)?,
        after: args.after,
        limit: args.limit,
    };
    let found: archive::Result<_> = app.db.read_blocking(move |tx| view::page(tx, &filter));
    let (found, more) = found?;
    let next = found.last().filter(|_| more).map(|last| last.object.id);
    if global.json {
        output::json(&serde_json::json!({"objects": found, "next": next}))?;
        return Ok(Exit::Yes);
    }
    let headers =
        ["identifier", "local id", "collection", "version", "files", "bytes", "updated", "title"];
    let is_narrow = output::terminal_width().is_some_and(|width| width < WIDE);
    let rows = found.iter().map(|NamedObject { object: o, local_ids }| {
        vec![
            o.identifier.clone(),
            if args.csv { local_ids.join(" | ") } else { shown_ids(local_ids) },
            o.collection.clone(),
            o.version.to_string(),
            o.files.to_string(),
            if args.csv { o.bytes.to_string() } else { output::size(o.bytes.unsigned_abs()) },
            show_time(o.updated_at),
            o.title.clone().unwrap_or_default(),
        ]
    });
    if args.csv {
        csv(std::iter::once(headers.map(str::to_string).to_vec()).chain(rows))?;
    } else if found.is_empty() {
        anstream::eprintln!("no object fits");
    } else if is_narrow {
        let narrow = |mut row: Vec<String>| {
            // The day, and neither collection nor number of files: `show` has them.
            row[6].truncate(10);
            [0, 3, 6, 1, 7].map(|column| std::mem::take(&mut row[column])).to_vec()
        };
        let headers = ["identifier", "version", "updated", "local id", "title"];
        output::list(&headers, rows.map(narrow), &["local id", "title"])?;
    } else {
        output::list(&headers, rows, &["local id", "collection", "title"])?;
    }
    if let Some(next) = next {
        anstream::eprintln!("{} shown; for more add --after {next}", found.len());
    }
    Ok(Exit::Yes)
}

/// All columns of the list fit from here on.
const WIDE: u16 = 120;

/// Empty directories that are shown; the record of the version has all.
const EMPTY_SHOWN: i64 = 100;

/// The first name that a depositor gave, and how many others there are.
fn shown_ids(local_ids: &[String]) -> String {
    match local_ids {
        [] => String::new(),
        [only] => only.clone(),
        [first, others @ ..] => format!("{first} (+{})", others.len()),
    }
}

fn show(app: &Arc<App>, name: &str, global: &Global) -> Result<Exit, Failure> {
    let object = find(app, name)?;
    let (id, version) = (object.id, object.version);
    let seen: archive::Result<_> = app.db.read_blocking(move |tx| {
        Ok((
            view::versions(tx, id)?,
            view::copies(tx, id)?,
            archive::registry::resolve::local_ids(tx, id)?,
            view::empty_directories(tx, id, version, EMPTY_SHOWN)?,
        ))
    });
    let (versions, copies, local_ids, empty) = seen?;
    if global.json {
        output::json(&serde_json::json!({
            "object": object, "local_ids": local_ids, "versions": versions, "copies": copies,
            "empty_directories": empty,
        }))?;
        return Ok(Exit::Yes);
    }
    let field =
        |name: &str, value: &str| output::line(&format!("{name:12} {}", output::printable(value)));
    field("identifier", &object.identifier)?;
    field("local ids", &local_ids.join(", "))?;
    field("collection", &object.collection)?;
    field("state", object.state.name())?;
    field("title", object.title.as_deref().unwrap_or("(none)"))?;
    for (name, value) in [
        ("who", &object.metadata.who),
        ("when", &object.metadata.when),
        ("where", &object.metadata.where_),
    ] {
        if let Some(value) = value {
            field(name, value)?;
        }
    }
    field(
        "content",
        &format!(
            "{}, {}",
            output::count(object.files, "file"),
            output::size(object.bytes.unsigned_abs())
        ),
    )?;
    if !empty.is_empty() {
        field("empty dirs", &empty.join(", "))?;
    }
    output::line("")?;
    version_table(&versions)?;
    output::line("")?;
    output::table(
        &[
            "store",
            "state",
            "version",
            "files",
            "bytes",
            "stored",
            "verified",
            "fixity due",
            "place",
        ],
        copies.iter().map(|c| {
            vec![
                c.store.clone(),
                shown_state(c),
                c.version.to_string(),
                c.files.to_string(),
                output::size(c.bytes.unsigned_abs()),
                show_time(c.stored_at),
                match c.verified_at {
                    0 => "never".to_string(),
                    at => show_time(at),
                },
                show_time(c.fixity_due),
                c.key.clone(),
            ]
        }),
    )?;
    Ok(Exit::Yes)
}

/// A rebuilt registry has read no content: it does not know that a copy is good.
fn shown_state(copy: &view::CopyView) -> String {
    match (copy.state, copy.verified_at) {
        (CopyState::Good, 0) => "not read".to_string(),
        (state, _) => state.to_string(),
    }
}

fn version_table(versions: &[view::VersionView]) -> Result<(), Failure> {
    output::table(
        &[
            "version", "created", "by", "files", "bytes", "new", "changed", "removed", "job",
            "message",
        ],
        versions.iter().map(|v| {
            vec![
                v.version.to_string(),
                show_time(v.created_at),
                v.submitter.clone(),
                v.files.to_string(),
                output::size(v.bytes.unsigned_abs()),
                v.files_new.to_string(),
                v.files_changed.to_string(),
                v.files_absent.to_string(),
                v.job.to_string(),
                v.message.clone().unwrap_or_default(),
            ]
        }),
    )?;
    Ok(())
}

fn versions(app: &Arc<App>, name: &str, global: &Global) -> Result<Exit, Failure> {
    let id = find(app, name)?.id;
    let found: archive::Result<Vec<_>> = app.db.read_blocking(move |tx| view::versions(tx, id));
    let found = found?;
    if global.json {
        output::json_list("versions", &found, None)?;
    } else {
        version_table(&found)?;
    }
    Ok(Exit::Yes)
}

const PAGE: i64 = 1000;

fn files(app: &Arc<App>, args: &Files, global: &Global) -> Result<Exit, Failure> {
    let object = find(app, &args.object)?;
    let version = view::check_version(&object, args.version)?;
    let headers = ["path", "bytes", "format", "name", "since", "sha512"];
    let mut list = global.json.then(|| output::JsonList::begin("files")).transpose()?;
    let mut after = String::new();
    let mut first = true;
    loop {
        let (id, from) = (object.id, after.clone());
        let page: archive::Result<Vec<FileView>> =
            app.db.read_blocking(move |tx| view::files(tx, id, version, &from, PAGE));
        let page = page?;
        let Some(last) = page.last().map(|f| f.path.clone()) else { break };
        if let Some(list) = &mut list {
            page.iter().try_for_each(|one| list.push(one))?;
        } else {
            let rows = page.iter().map(|f| {
                let modified = f.modified.and_then(view::show_modified).unwrap_or_default();
                let name = f.format.as_ref().and_then(|v| v["name"].as_str()).unwrap_or_default();
                let mut row = vec![
                    f.path.clone(),
                    f.size.to_string(),
                    f.puid.clone().unwrap_or_else(|| "unknown".to_string()),
                    name.to_string(),
                    format!("v{}", f.since),
                    if args.csv {
                        f.sha512.clone()
                    } else {
                        format!("{}…", &f.sha512[..16.min(f.sha512.len())])
                    },
                ];
                row.extend(args.csv.then_some(modified));
                row
            });
            if args.csv {
                let all = headers.iter().chain(&["modified"]);
                let head = first.then(|| all.map(ToString::to_string).collect());
                csv(head.into_iter().chain(rows))?;
            } else {
                output::table(&headers, rows)?;
            }
        }
        first = false;
        after = last;
    }
    if let Some(list) = list {
        list.end()?;
    }
    Ok(Exit::Yes)
}

/// The people who had a part in an event, else the program.
fn by(event: &EventView) -> String {
    match event.people.as_slice() {
        [] => event.agent.clone(),
        people => people.iter().map(|p| p.name.as_str()).collect::<Vec<_>>().join(", "),
    }
}

fn events(app: &Arc<App>, args: &Events, global: &Global) -> Result<Exit, Failure> {
    let object = find(app, &args.object)?;
    let headers = ["when", "event", "outcome", "by", "version", "file", "detail", "note"];
    let mut list = global.json.then(|| output::JsonList::begin("events")).transpose()?;
    let mut after = (i64::MIN, String::new());
    let mut first = true;
    loop {
        let (id, from) = (object.id, after.clone());
        let page: archive::Result<Vec<EventView>> =
            app.db.read_blocking(move |tx| view::events(tx, id, (from.0, &from.1), PAGE));
        let page = page?;
        let Some(last) = page.last().map(|e| (e.at, e.id.clone())) else { break };
        if let Some(list) = &mut list {
            page.iter().try_for_each(|one| list.push(one))?;
        } else {
            let text = |t: &Option<String>| t.clone().unwrap_or_default();
            let rows = page.iter().map(|e| {
                vec![
                    show_time(e.at),
                    e.kind.clone(),
                    e.outcome.clone(),
                    by(e),
                    e.version.map(|v| v.to_string()).unwrap_or_default(),
                    text(&e.path),
                    text(&e.detail),
                    text(&e.note),
                ]
            });
            if args.csv {
                let head = first.then(|| headers.map(str::to_string).to_vec());
                csv(head.into_iter().chain(rows))?;
            } else {
                output::table(&headers, rows)?;
            }
        }
        first = false;
        after = last;
    }
    if let Some(list) = list {
        list.end()?;
    }
    Ok(Exit::Yes)
}
