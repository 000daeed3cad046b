//! `accession ocfl`: OCFL storage roots and what is in them.

mod content;
mod list;
mod manage;
pub mod named;
mod show;
mod validate;

use crate::cli::Global;
use crate::error_code::ErrorCode;
use crate::exit::{Code, Exit, Failure};
use ocfl::{StorageRoot, VersionName};
use std::future::Future;
use std::path::Path;
use std::sync::Arc;
use store::{LocalOptions, LocalStore, Store};

/// When a version was made, as JSON has times; `None` if the inventory says something that is no time.
fn time(text: &str) -> Option<String> {
    text.parse::<jiff::Timestamp>().ok().map(|at| at.to_string())
}

#[derive(clap::Args)]
#[command(after_help = "Examples:
  accession ocfl init /srv/archive
  accession ocfl ls /srv/archive
  accession ocfl log /srv/archive ark:/12345/bcd987
  accession ocfl show --store main box-17
  accession ocfl validate /srv/archive
  accession ocfl validate s3://bucket/archive --no-fixity

A storage root is a directory, s3://bucket/prefix, or the name of a store of the configuration.
Objects are named by their identifiers, by local identifiers where the registry is at hand, or with
--path by where they are in the root.")]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Make a storage root in an empty place
    Init(manage::InitArgs),
    /// List the objects of a root
    #[command(after_help = "Examples:
  accession ocfl ls /srv/archive
  accession ocfl ls --store main
  accession ocfl ls s3://bucket/store --paths")]
    Ls(list::LsArgs),
    /// Show the versions of an object: when, by whom, why, and how much changed
    #[command(
        override_usage = "accession ocfl log [OPTIONS] ROOT OBJECT\n       accession ocfl log [OPTIONS] --store NAME OBJECT",
        after_help = "Examples:
  accession ocfl log /srv/archive ark:/99999/fk4abc
  accession ocfl log --store main box-17"
    )]
    Log(list::LogArgs),
    /// Show an object's latest or another version with its files
    #[command(
        override_usage = "accession ocfl show [OPTIONS] ROOT OBJECT\n       accession ocfl show [OPTIONS] --store NAME OBJECT",
        after_help = "Examples:
  accession ocfl show /srv/archive ark:/99999/fk4abc --at v1
  accession ocfl show --store main box-17"
    )]
    Show(show::ShowArgs),
    /// Show what changed between two versions
    #[command(
        override_usage = "accession ocfl diff [OPTIONS] ROOT OBJECT\n       accession ocfl diff [OPTIONS] --store NAME OBJECT",
        after_help = "Examples:
  accession ocfl diff /srv/archive ark:/99999/fk4abc --from v1 --to v3
  accession ocfl diff --store main box-17"
    )]
    Diff(show::DiffArgs),
    /// Write a file of an object to standard output
    #[command(
        override_usage = "accession ocfl cat [OPTIONS] ROOT OBJECT FILE\n       accession ocfl cat [OPTIONS] --store NAME OBJECT FILE",
        after_help = "Examples:
  accession ocfl cat /srv/archive ark:/99999/fk4abc letter.txt > letter.txt
  accession ocfl cat --store main box-17 data/letter.txt > letter.txt"
    )]
    Cat(content::CatArgs),
    /// Copy the files of a version into a directory
    #[command(
        override_usage = "accession ocfl export [OPTIONS] ROOT OBJECT DIRECTORY\n       accession ocfl export [OPTIONS] --store NAME OBJECT DIRECTORY",
        after_help = "Examples:
  accession ocfl export /srv/archive ark:/99999/fk4abc letters
  accession ocfl export --store main box-17 letters"
    )]
    Export(content::ExportArgs),
    /// Validate a root, some of its objects, or an object by itself
    Validate(validate::Args),
    /// Find and remove what interrupted writes have left behind
    Sweep(manage::SweepArgs),
    /// Remove an object with all its versions
    #[command(
        override_usage = "accession ocfl purge [OPTIONS] ROOT OBJECT\n       accession ocfl purge [OPTIONS] --store NAME OBJECT",
        after_help = "Examples:
  accession ocfl purge /srv/archive ark:/99999/fk4abc --yes
  accession ocfl purge --store main box-17 --yes
  accession ocfl purge s3://bucket/archive ark:/99999/fk4abc --yes --versions"
    )]
    Purge(manage::PurgeArgs),
}

pub fn run(args: Args, global: &Global) -> Result<Exit, Failure> {
    let runtime = tokio::runtime::Runtime::new()?;
    runtime.block_on(async {
        match args.command {
            Command::Init(args) => manage::init(args, global).await,
            Command::Ls(args) => list::ls(args, global).await,
            Command::Log(args) => list::log(args, global).await,
            Command::Show(args) => show::show(args, global).await,
            Command::Diff(args) => show::diff(args, global).await,
            Command::Cat(args) => content::cat(args, global).await,
            Command::Export(args) => content::export(args, global).await,
            Command::Validate(args) => validate::run(args, global).await,
            Command::Sweep(args) => manage::sweep(args, global).await,
            Command::Purge(args) => manage::purge(args, global).await,
        }
    })
}

/// Opens the store that a person names.
async fn open_store(location: &str, create: bool) -> Result<Arc<dyn Store>, Failure> {
    if location.starts_with("s3://") {
        return store::open(location).await.map_err(|error| failure(error.into()));
    }
    let path = location.strip_prefix("file://").unwrap_or(location);
    let temporaries = StorageRoot::TEMPORARIES.to_owned();
    let options = LocalOptions { temporaries, create, ..LocalOptions::default() };
    let store = LocalStore::open_with(Path::new(path), &options);
    store.map(|store| Arc::new(store) as Arc<dyn Store>).map_err(|error| failure(error.into()))
}

async fn open_root(location: &str) -> Result<StorageRoot, Failure> {
    let store = open_store(location, false).await?;
    StorageRoot::open(store).await.map_err(failure)
}

/// Opens the object that a command's names mean.
async fn open_object(
    naming: &named::Naming,
    names: &[String],
    global: &Global,
) -> Result<ocfl::Object, Failure> {
    let (root, rest) = naming.divide(names, &["OBJECT"], global)?;
    naming.open(&open_root(&root).await?, &rest[0], global).await
}

/// What an error of the library means for a person at the command line.
fn failure(error: ocfl::Error) -> Failure {
    use ocfl::Error as E;
    let message = error.to_string();
    let no = |code: Code| Failure::not_found(code, message.clone());
    match &error {
        E::NoSuchObject(_) | E::NoSuchVersion { .. } | E::NoSuchFile { .. } => {
            no(ErrorCode::NotFound.into())
        }
        E::NotARoot(_) => no(ErrorCode::NotARoot.into()),
        E::Invalid { .. } => no(archive::ErrorCode::Invalid.into()),
        E::NotEmpty(_) => Failure::refused(ErrorCode::NotEmpty, message),
        E::Layout(_) | E::NoLayout { .. } => Failure::refused(ErrorCode::Layout, message),
        E::BadPath(..) | E::BadId(_) => Failure::refused(ErrorCode::BadName, message),
        E::Conflict { .. } | E::UnfinishedWrite { .. } => {
            Failure::refused(ErrorCode::Conflict, message)
        }
        E::Limit { .. } => Failure::refused(ErrorCode::Limit, message),
        E::Store(error) if error.kind() == store::ErrorKind::Corrupt => {
            no(ErrorCode::Corrupt.into())
        }
        _ => Failure::unable(ErrorCode::Store, message),
    }
}

/// A version as a person writes it: `v3`, or just `3`.
fn version(text: &str) -> Result<VersionName, String> {
    let named = if text.starts_with('v') { text.to_owned() } else { format!("v{text}") };
    named.parse().map_err(|error: ocfl::BadVersionName| error.to_string())
}

/// Ends the work when the person does: nothing is visible of what was not finished.
async fn until_interrupted<T>(
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    tokio::select! {
        done = work => done,
        _ = tokio::signal::ctrl_c() => {
            Err(Failure { status: 130, code: ErrorCode::Interrupted.into(), message: "interrupted".to_owned() })
        }
    }
}
