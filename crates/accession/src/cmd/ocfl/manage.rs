//! `accession ocfl init`, `sweep` and `purge`.

use super::named::{Naming, root_address};
use super::{failure, open_root, open_store};
use crate::cli::Global;
use crate::error_code::ErrorCode;
use crate::exit::{Exit, Failure};
use crate::output;
use crate::session::parse_duration;
use ocfl::{Layout, Leftover, LeftoverKind as Kind, Outcome, Spec, StorageRoot, Sweep};
use serde_json::json;
use std::time::Duration;

#[derive(clap::Args)]
#[command(after_help = "Examples:
  accession ocfl init /srv/archive
  accession ocfl init s3://bucket/archive
  accession ocfl init /srv/archive --layout 0003
  accession ocfl init /srv/archive --layout 0006 --layout-config '{\"delimiter\": \":\"}'")]
pub struct InitArgs {
    /// Where to make it: an empty or new directory, or s3://bucket/prefix
    root: String,
    /// The layout: 0002, 0003, 0004, 0006, 0007, or its full name
    #[arg(long, default_value = "0004", value_name = "NAME")]
    layout: String,
    /// The layout's parameters, as JSON
    #[arg(long, default_value = "{}", value_name = "JSON")]
    layout_config: String,
    /// The version of the specification
    #[arg(long, default_value = "1.1", value_parser = ["1.0", "1.1"], value_name = "VERSION")]
    spec: String,
}

pub async fn init(args: InitArgs, global: &Global) -> Result<Exit, Failure> {
    let config = serde_json::from_str(&args.layout_config).map_err(|error| {
        Failure::refused(ErrorCode::Layout, format!("--layout-config is not JSON: {error}"))
    })?;
    let layout = Layout::from_config(&args.layout, &config).map_err(|e| failure(e.into()))?;
    let spec = if args.spec == "1.0" { Spec::V1_0 } else { Spec::V1_1 };
    let store = open_store(&args.root, true).await?;
    let name = layout.name();
    StorageRoot::init(store.clone(), spec, layout).await.map_err(failure)?;
    match global.json {
        true => output::json(&json!({"root": store.url(), "spec": args.spec, "layout": name}))?,
        false => output::line(&format!("{}: OCFL {}, {name}", store.url(), args.spec))?,
    }
    Ok(Exit::Yes)
}

#[derive(clap::Args)]
#[command(after_help = "Examples:
  accession ocfl sweep /srv/archive --dry-run
  accession ocfl sweep /srv/archive --older-than 14d
  accession ocfl sweep --store main

Objects stay as they are: only versions that no inventory names are removed. Do not sweep what a
writer is still at work on; --older-than leaves alone what is younger.")]
pub struct SweepArgs {
    /// The storage root: a directory, s3://bucket/prefix, or a store's name
    #[arg(required_unless_present = "store")]
    root: Option<String>,
    /// A store of the configuration, instead of ROOT
    #[arg(long, value_name = "NAME", conflicts_with = "root")]
    store: Option<String>,
    /// Leave alone what is younger: 30m, 24h, 14d, or 0
    #[arg(long, default_value = "24h", value_parser = parse_duration, value_name = "TIME")]
    older_than: Duration,
    /// Only tell what would be done
    #[arg(long)]
    dry_run: bool,
}

pub async fn sweep(args: SweepArgs, global: &Global) -> Result<Exit, Failure> {
    let root = open_root(&root_address(args.root, args.store, global)?).await?;
    let sweep = Sweep { older_than: args.older_than, dry_run: args.dry_run };
    let leftovers = root.sweep(&sweep).await.map_err(failure)?;
    if global.json {
        let mut list = output::JsonList::begin("leftovers")?;
        for leftover in &leftovers {
            list.push(&json!({
                "kind": kind(leftover.kind),
                "id": leftover.id,
                "path": leftover.path,
                "version": leftover.version.map(|version| version.to_string()),
                "complete": leftover.complete,
                "modified": leftover.modified.map(ocfl::rfc3339),
                "outcome": outcome(leftover, args.dry_run),
            }))?;
        }
        list.end()?;
        return Ok(Exit::Yes);
    }
    let (unlisted, leftovers): (Vec<Leftover>, Vec<Leftover>) =
        leftovers.into_iter().partition(|leftover| leftover.outcome == Outcome::Unlisted);
    if leftovers.is_empty() {
        output::line("nothing was left behind")?;
        return tell_unlisted(&unlisted);
    }
    let rows = leftovers.iter().map(|leftover| {
        vec![
            if is_nameless(leftover) { leftover.path.clone() } else { leftover.id.clone() },
            match leftover.version {
                Some(version) => version.to_string(),
                None => kind(leftover.kind).to_owned(),
            },
            match leftover.kind {
                Kind::Directory => "empty",
                _ if leftover.complete => "complete",
                _ => "unfinished",
            }
            .to_owned(),
            leftover.modified.map(ocfl::rfc3339).unwrap_or_default(),
            outcome(leftover, args.dry_run).to_owned(),
        ]
    });
    output::table(&["id", "what", "state", "modified", "outcome"], rows)?;
    output::line(&counts(&leftovers, args.dry_run))?;
    tell_unlisted(&unlisted)
}

/// Says what could not be looked for.
fn tell_unlisted(unlisted: &[Leftover]) -> Result<Exit, Failure> {
    if !unlisted.is_empty() {
        output::line(
            "unfinished uploads could not be looked for: the store does not list them, or not to \
             us; let a lifecycle rule of the bucket abort those older than a week",
        )?;
    }
    Ok(Exit::Yes)
}

/// How many were removed, finished, kept and left, without those that are none.
fn counts(leftovers: &[Leftover], dry_run: bool) -> String {
    let told = [
        (Outcome::Removed, if dry_run { "would be removed" } else { "removed" }),
        (Outcome::Finished, if dry_run { "would be finished" } else { "finished" }),
        (Outcome::Kept, "kept"),
        (Outcome::Blocked, "left"),
    ];
    let counted = told.into_iter().filter_map(|(outcome, word)| {
        match leftovers.iter().filter(|leftover| leftover.outcome == outcome).count() {
            0 => None,
            count => Some(format!("{count} {word}")),
        }
    });
    counted.collect::<Vec<_>>().join(", ")
}

fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Version => "version",
        Kind::Purge => "purge",
        Kind::Files => "files",
        Kind::Note => "note",
        Kind::Directory => "directory",
        Kind::Upload => "upload",
    }
}

/// Whether no note tells which object it belongs to.
fn is_nameless(leftover: &Leftover) -> bool {
    leftover.id.is_empty()
}

fn outcome(leftover: &Leftover, dry_run: bool) -> &'static str {
    match (leftover.outcome, dry_run) {
        (Outcome::Kept, _) => "kept",
        (Outcome::Blocked, _) if is_nameless(leftover) => "left: it is no note of ours",
        (Outcome::Blocked, _) => "left: the object is damaged",
        (Outcome::Unlisted, _) => "not listed by the store",
        (Outcome::Finished, false) => "finished",
        (Outcome::Finished, true) => "would be finished",
        (Outcome::Removed, false) => "removed",
        (Outcome::Removed, true) => "would be removed",
    }
}

#[derive(clap::Args)]
pub struct PurgeArgs {
    /// The root (a directory, s3://bucket/prefix or a store's name) and the object (its identifier,
    /// or a local identifier)
    #[arg(required = true, value_name = "ROOT OBJECT")]
    names: Vec<String>,
    #[command(flatten)]
    naming: Naming,
    /// Really remove it: nothing brings it back
    #[arg(long)]
    yes: bool,
    /// Remove the versions that a versioned bucket keeps of its files, too
    #[arg(long)]
    versions: bool,
}

pub async fn purge(args: PurgeArgs, global: &Global) -> Result<Exit, Failure> {
    let (root, rest) = args.naming.divide(&args.names, &["OBJECT"], global)?;
    let root = open_root(&root).await?;
    let id = match args.naming.open(&root, &rest[0], global).await {
        Ok(object) => object.id().to_string(),
        // What is left of an object that cannot be opened is removed by its identifier.
        Err(failure) if failure.status == 1 && !args.naming.path => rest[0].clone(),
        Err(failure) => return Err(failure),
    };
    if !args.yes {
        let object = root.object(&id).await.map_err(failure)?;
        let head = object.inventory().head();
        let message = format!("{id} has versions v1 to {head}; add --yes to remove them all");
        return Err(Failure::refused(ErrorCode::PurgeNotConfirmed, message));
    }
    match root.purge(&id).await {
        // It may have been purged before, and its versions kept.
        Err(ocfl::Error::NoSuchObject(_)) if args.versions => {}
        purged => purged.map_err(failure)?,
    }
    let removed = match args.versions {
        true => Some(root.remove_versions(&id).await.map_err(failure)?),
        false => None,
    };
    let kept = root.versions_kept(&id).await.map_err(failure)?;
    if global.json {
        let told = json!({"purged": id, "versions_removed": removed, "versions_kept": kept});
        output::json(&told)?;
        return Ok(Exit::Yes);
    }
    output::line(&format!("{} is gone", output::printable(&id)))?;
    if let Some(removed) = removed.filter(|removed| *removed > 0) {
        output::line(&format!("{removed} versions of its files were removed from the bucket"))?;
    }
    if let Some(kept) = kept.filter(|kept| *kept > 0) {
        output::line(&format!(
            "the bucket is versioned and keeps {kept} versions of its files and marks of their \
             deletion; remove them with --versions"
        ))?;
    }
    Ok(Exit::Yes)
}
