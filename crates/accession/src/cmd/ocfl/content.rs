//! `accession ocfl cat` and `export`.

use super::{Target, failure, open_store, until_interrupted, version};
use crate::cli::Global;
use crate::exit::{Exit, Failure};
use crate::output;
use futures_util::TryStreamExt;
use ocfl::VersionName;
use serde_json::json;
use std::io::Write;
use store::ListOptions;

#[derive(clap::Args)]
pub struct CatArgs {
    #[command(flatten)]
    target: Target,
    /// The file's path in the object
    file: String,
    /// Another version than the latest: v2, or 2
    #[arg(long, value_parser = version, value_name = "VERSION")]
    at: Option<VersionName>,
}

pub async fn cat(args: CatArgs) -> Result<Exit, Failure> {
    let object = args.target.open().await?;
    let file = object.file(args.at, &args.file).map_err(failure)?;
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
    #[command(flatten)]
    target: Target,
    /// The directory to copy into; it is made if needed, and must be empty
    directory: String,
    /// Another version than the latest: v2, or 2
    #[arg(long, value_parser = version, value_name = "VERSION")]
    at: Option<VersionName>,
}

pub async fn export(args: ExportArgs, global: &Global) -> Result<Exit, Failure> {
    let object = args.target.open().await?;
    let count = object.version(args.at).map_err(failure)?.file_count();
    let target = open_store(&args.directory, true).await?;
    let options = ListOptions { recursive: false, limit: 1, ..ListOptions::default() };
    let there = target.list("", &options).await.map_err(|error| failure(error.into()))?;
    if !there.entries.is_empty() {
        let message = format!("{} is not empty; name a new or empty directory", args.directory);
        return Err(Failure::refused("not-empty", message));
    }
    let bar = match global.quiet {
        true => indicatif::ProgressBar::hidden(),
        false => output::count_bar(Some(count as u64), "exporting"),
    };
    let progress = |_: &str, _: u64| bar.inc(1);
    let exporting =
        async { object.export(args.at, &*target, "", &progress).await.map_err(failure) };
    let exported = until_interrupted(exporting).await?;
    bar.finish_and_clear();
    match global.json {
        true => output::json(&json!({"files": exported.files, "bytes": exported.bytes}))?,
        false => {
            let size = output::size(exported.bytes);
            output::line(&format!("{} files, {size}, each with its digest", exported.files))?;
        }
    }
    Ok(Exit::Yes)
}
