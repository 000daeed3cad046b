//! `accession ocfl ls` and `log`.

use super::named::{Naming, root_address};
use super::{failure, open_object, open_root};
use crate::cli::Global;
use crate::exit::{Exit, Failure};
use crate::output;
use futures_util::StreamExt;
use ocfl::{Change, Object};
use serde_json::json;

#[derive(clap::Args)]
pub struct LsArgs {
    /// The storage root: a directory, s3://bucket/prefix, or a store's name
    #[arg(required_unless_present = "store")]
    root: Option<String>,
    /// A store of the configuration, instead of ROOT
    #[arg(long, value_name = "NAME", conflicts_with = "root")]
    store: Option<String>,
    /// Only the paths of objects, without reading their inventories
    #[arg(long)]
    paths: bool,
}

/// So many inventories are read at once where waiting for a network is not most of it.
const PARALLEL: usize = 8;

pub async fn ls(args: LsArgs, global: &Global) -> Result<Exit, Failure> {
    let root = open_root(&root_address(args.root, args.store, global)?).await?;
    let mut paths = root.object_paths();
    if args.paths {
        let mut exit = Exit::Yes;
        while let Some(path) = paths.next().await {
            match path {
                Ok(path) if global.json => output::json(&json!({"path": path}))?,
                Ok(path) => output::line(&output::printable(&path))?,
                Err(error) => {
                    exit = Exit::No;
                    let (path, why) = unreadable(error)?;
                    match global.json {
                        true => output::json(&json!({"path": path, "error": why}))?,
                        false => anstream::eprintln!("{}", output::printable(&why)),
                    }
                }
            }
        }
        return Ok(exit);
    }
    let opened = paths.map(|path| async {
        match path {
            Ok(path) => root.object_at(&path).await.map_err(|error| (Some(path), error)),
            Err(error) => Err((None, error)),
        }
    });
    let mut objects = opened.buffered(root.store().at_once().max(PARALLEL));
    let (mut rows, mut exit) = (Vec::new(), Exit::Yes);
    while let Some(object) = objects.next().await {
        match object {
            Ok(object) if global.json => output::json(&summary(&object))?,
            Ok(object) => rows.push(row(&object)),
            Err((path, error)) => {
                // One object or directory that cannot be read does not hide the others.
                exit = Exit::No;
                let (place, why) = unreadable(error)?;
                let path = path.unwrap_or(place);
                match global.json {
                    true => output::json(&json!({"path": path, "error": why}))?,
                    false => rows.push(vec!["?".into(), why, String::new(), path]),
                }
            }
        }
    }
    if !global.json {
        output::table(&["head", "id", "files", "path"], rows)?;
    }
    Ok(exit)
}

/// What cannot be read, and why. An error of the store as a whole ends the listing: everything
/// that follows would meet it too.
fn unreadable(error: ocfl::Error) -> Result<(String, String), Failure> {
    match &error {
        ocfl::Error::Store(cause) if cause.is_retryable() => Err(failure(error)),
        ocfl::Error::Store(cause) => Ok((cause.key().to_owned(), error.to_string())),
        _ => Ok((String::new(), error.to_string())),
    }
}

fn files_of_head(object: &Object) -> usize {
    object.version(None).map(|version| version.file_count()).unwrap_or_default()
}

fn row(object: &Object) -> Vec<String> {
    let head = object.inventory().head().to_string();
    vec![head, object.id().to_owned(), files_of_head(object).to_string(), object.path().to_owned()]
}

fn summary(object: &Object) -> serde_json::Value {
    json!({
        "id": object.id(),
        "path": object.path(),
        "head": object.inventory().head().to_string(),
        "files": files_of_head(object),
    })
}

#[derive(clap::Args)]
pub struct LogArgs {
    /// The root (a directory, s3://bucket/prefix or a store's name) and the object (its identifier,
    /// or a local identifier)
    #[arg(required = true, value_name = "ROOT OBJECT")]
    names: Vec<String>,
    #[command(flatten)]
    naming: Naming,
}

pub async fn log(args: LogArgs, global: &Global) -> Result<Exit, Failure> {
    let object = open_object(&args.naming, &args.names, global).await?;
    let inventory = object.inventory();
    let mut rows = Vec::new();
    let mut before = None;
    for version in inventory.versions() {
        let changes = inventory.diff(before, version);
        before = Some(version);
        let count = |wanted: fn(&Change) -> bool| changes.iter().filter(|c| wanted(c)).count();
        let added = count(|change| matches!(change, Change::Added(_)));
        let removed = count(|change| matches!(change, Change::Removed(_)));
        let modified = count(|change| matches!(change, Change::Modified(_)));
        let renamed = count(|change| matches!(change, Change::Renamed { .. }));
        let about = version.about();
        if global.json {
            let user = about.user.as_ref().map(|u| json!({"name": u.name, "address": u.address}));
            output::json(&json!({
                "version": version.name().to_string(),
                "created_at": super::time(&about.created),
                "message": about.message,
                "user": user,
                "files": version.file_count(),
                "added": added,
                "changed": modified,
                "renamed": renamed,
                "removed": removed,
            }))?;
            continue;
        }
        let user = about.user.as_ref().map(|user| user.name.clone()).unwrap_or_default();
        rows.push(vec![
            version.name().to_string(),
            about.created.clone(),
            user,
            version.file_count().to_string(),
            format!("+{added} ~{modified} >{renamed} -{removed}"),
            about.message.clone().unwrap_or_default(),
        ]);
    }
    if !global.json {
        output::table(&["version", "created", "user", "files", "changes", "message"], rows)?;
    }
    Ok(Exit::Yes)
}
