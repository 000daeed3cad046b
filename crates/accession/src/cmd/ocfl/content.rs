//! `accession ocfl cat` and `export`.

use super::named::Naming;
use super::{failure, open_root, open_store, until_interrupted, version};
use crate::cli::Global;
use crate::error_code::ErrorCode;
use crate::exit::{Exit, Failure};
use crate::output;
use futures_util::TryStreamExt;
use ocfl::VersionName;
use serde_json::json;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use store::{ListOptions, LocalOptions, LocalStore, Store};

#[derive(clap::Args)]
pub struct CatArgs {
    /// The root (a directory, s3://bucket/prefix or a store's name), the object (its identifier, or
    /// a local identifier), and the file's path in it
    #[arg(required = true, value_name = "ROOT OBJECT FILE")]
    names: Vec<String>,
    #[command(flatten)]
    naming: Naming,
    /// Another version than the latest: v2, or 2
    #[arg(long, value_parser = version, value_name = "VERSION")]
    at: Option<VersionName>,
}

pub async fn cat(args: CatArgs, global: &Global) -> Result<Exit, Failure> {
    let (root, rest) = args.naming.divide(&args.names, &["OBJECT", "FILE"], global)?;
    let object = args.naming.open(&open_root(&root).await?, &rest[0], global).await?;
    let file = object.file(args.at, &rest[1]).map_err(failure)?;
    let mut content = object.content(&file).await.map_err(failure)?;
    let mut out = std::io::stdout().lock();
    while let Some(chunk) = content.try_next().await.map_err(|error| failure(error.into()))? {
        out.write_all(&chunk)?;
    }
    out.flush()?;
    Ok(Exit::Yes)
}

#[derive(clap::Args)]
pub struct ExportArgs {
    /// The root (a directory, s3://bucket/prefix or a store's name), the object (its identifier, or
    /// a local identifier), and the directory to copy
    /// into, which is made if needed and must be empty
    #[arg(required = true, value_name = "ROOT OBJECT DIRECTORY")]
    names: Vec<String>,
    #[command(flatten)]
    naming: Naming,
    /// Another version than the latest: v2, or 2
    #[arg(long, value_parser = version, value_name = "VERSION")]
    at: Option<VersionName>,
}

pub async fn export(args: ExportArgs, global: &Global) -> Result<Exit, Failure> {
    let (root, rest) = args.naming.divide(&args.names, &["OBJECT", "DIRECTORY"], global)?;
    let directory = &rest[1];
    let object = args.naming.open(&open_root(&root).await?, &rest[0], global).await?;
    let count = object.version(args.at).map_err(failure)?.file_count();
    let (target, temporaries) = open_target(directory).await?;
    let options = ListOptions { recursive: false, limit: 1, ..ListOptions::default() };
    let there = target.list("", &options).await.map_err(|error| failure(error.into()))?;
    if !there.entries.is_empty() {
        let message = format!("{directory} is not empty; name a new or empty directory");
        return Err(Failure::refused(ErrorCode::NotEmpty, message));
    }
    let bar = match global.quiet {
        true => indicatif::ProgressBar::hidden(),
        false => output::count_bar(Some(count as u64), "exporting"),
    };
    let progress = |_: &str, _: u64| bar.inc(1);
    let exporting =
        async { object.export(args.at, &*target, "", &progress).await.map_err(failure) };
    let exported = until_interrupted(exporting).await?;
    drop(target);
    if let Some(temporaries) = temporaries {
        // Where it is not empty, an interrupted export before this one has left something.
        let _ = std::fs::remove_dir(temporaries);
    }
    bar.finish_and_clear();
    match global.json {
        true => output::json(&json!({"files": exported.files, "bytes": exported.bytes}))?,
        false => {
            let size = output::size(exported.bytes);
            let files = output::count(exported.files, "file");
            output::line(&format!("{files}, {size}, each with its digest"))?;
        }
    }
    Ok(Exit::Yes)
}

/// Opens the place to copy into. A local one keeps its temporary files in a directory that is
/// removed in the end.
async fn open_target(place: &str) -> Result<(Arc<dyn Store>, Option<PathBuf>), Failure> {
    const TEMPORARIES: &str = ".accession-export";
    if place.starts_with("s3://") {
        return Ok((open_store(place, true).await?, None));
    }
    // What an object calls its files is for the file system to take or refuse.
    let options =
        LocalOptions { temporaries: TEMPORARIES.to_owned(), create: true, any_names: true };
    let store = LocalStore::open_with(place, &options).map_err(|error| failure(error.into()))?;
    let temporaries = store.path().join(TEMPORARIES);
    Ok((Arc::new(store), Some(temporaries)))
}
