//! `accession ocfl show` and `diff`.

use super::named::Naming;
use super::{failure, open_object, version};
use crate::cli::Global;
use crate::exit::{Exit, Failure};
use crate::output;
use ocfl::{Change, VersionName};
use serde_json::json;

#[derive(clap::Args)]
pub struct ShowArgs {
    /// The root (a directory, s3://bucket/prefix or a store's name) and the object (its identifier,
    /// or a local identifier)
    #[arg(required = true, value_name = "ROOT OBJECT")]
    names: Vec<String>,
    #[command(flatten)]
    naming: Naming,
    /// Another version than the latest: v2, or 2
    #[arg(long, value_parser = version, value_name = "VERSION")]
    at: Option<VersionName>,
}

pub async fn show(args: ShowArgs, global: &Global) -> Result<Exit, Failure> {
    let object = open_object(&args.naming, &args.names, global).await?;
    let inventory = object.inventory();
    let version = object.version(args.at).map_err(failure)?;
    let about = version.about();
    if global.json {
        let user = about.user.as_ref().map(|u| json!({"name": u.name, "address": u.address}));
        output::json(&json!({
            "id": object.id(),
            "path": object.path(),
            "spec": inventory.spec().as_str(),
            "digest_algorithm": inventory.algorithm().name(),
            "head": inventory.head().to_string(),
            "version": version.name().to_string(),
            "created_at": super::time(&about.created),
            "message": about.message,
            "user": user,
        }))?;
        // One line a file: an object may have a great many.
        for file in inventory.sorted_files(version) {
            output::json(&json!({
                "file": file.path,
                "digest": file.digest,
                "content": file.content_path,
            }))?;
        }
        return Ok(Exit::Yes);
    }
    let user = about.user.as_ref().map(|user| user.name.clone()).unwrap_or_default();
    let facts = [
        ("id", object.id().to_owned()),
        ("path", object.path().to_owned()),
        ("OCFL", format!("{}, {}", inventory.spec(), inventory.algorithm())),
        ("version", format!("{} of {}", version.name(), inventory.head())),
        ("created", about.created.clone()),
        ("user", user),
        ("message", about.message.clone().unwrap_or_default()),
        ("files", version.file_count().to_string()),
    ];
    for (name, fact) in facts {
        output::line(&format!("{name:<8} {}", output::printable(&fact)))?;
    }
    output::line("")?;
    let short = |digest: &str| digest.chars().take(12).collect::<String>();
    let rows = inventory
        .sorted_files(version)
        .map(|file| vec![short(&file.digest), file.path.to_owned(), file.content_path.to_owned()]);
    output::table(&["digest", "file", "content"], rows)?;
    Ok(Exit::Yes)
}

#[derive(clap::Args)]
pub struct DiffArgs {
    /// The root (a directory, s3://bucket/prefix or a store's name) and the object (its identifier,
    /// or a local identifier)
    #[arg(required = true, value_name = "ROOT OBJECT")]
    names: Vec<String>,
    #[command(flatten)]
    naming: Naming,
    /// The version to compare with (default: the one before)
    #[arg(long, value_parser = version, value_name = "VERSION")]
    from: Option<VersionName>,
    /// The version to compare (default: the latest)
    #[arg(long, value_parser = version, value_name = "VERSION")]
    to: Option<VersionName>,
}

pub async fn diff(args: DiffArgs, global: &Global) -> Result<Exit, Failure> {
    let object = open_object(&args.naming, &args.names, global).await?;
    let to = object.version(args.to).map_err(failure)?;
    let from = match args.from {
        Some(from) => Some(object.version(Some(from)).map_err(failure)?),
        None => object.inventory().version(to.name().number() - 1),
    };
    for change in object.inventory().diff(from, to) {
        let (what, mark) = match change {
            Change::Added(_) => ("added", '+'),
            Change::Removed(_) => ("removed", '-'),
            Change::Modified(_) => ("modified", '~'),
            Change::Renamed { .. } => ("renamed", '>'),
        };
        let before = match change {
            Change::Renamed { from, .. } => Some(from),
            _ => None,
        };
        if global.json {
            let mut line = json!({"change": what, "path": change.path()});
            if let Some(from) = before {
                line["from"] = from.into();
            }
            output::json(&line)?;
            continue;
        }
        let before = before.map(|from| format!("{} > ", output::printable(from)));
        let path = output::printable(change.path());
        output::line(&format!("{mark} {}{path}", before.unwrap_or_default()))?;
    }
    Ok(Exit::Yes)
}
