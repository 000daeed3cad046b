//! `accession bench …`: medians, beside the machine's own floor measured in the same run.

mod bag;
mod driver;
mod identify;
mod ingest;
mod load;
mod manifest;
mod ocfl;
mod pickup;
mod queue;
mod s3;
mod timing;

use crate::cli::Global;
use crate::exit::{Exit, Failure};
use clap::Subcommand;

#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// The queue: adds, drain, pick-up latency, claims in large queues
    Queue(queue::Args),
    /// Validation of bags: many small files, few large ones, as directory and as tar
    Bag(bag::Args),
    /// Checking of manifests, Checkm and JSON, beside reading them
    Manifest(manifest::Args),
    /// Identification of formats: many small files, and whole large ones, beside siegfried
    Identify(identify::Args),
    /// Whole ingests, beside copying and hashing the same bytes
    Ingest(ingest::Args),
    /// Reading and writing of large OCFL inventories, and the memory they take
    Ocfl(ocfl::Args),
    /// Ingests into an S3 bucket with and without latency, beside rclone
    S3(s3::Args),
    /// Answer a harness that compares job queues
    #[command(hide = true)]
    Driver(driver::Args),
}

pub fn run(args: Args, global: &Global) -> Result<Exit, Failure> {
    match args.command {
        Command::Queue(args) => queue::run(args, global),
        Command::Bag(args) => bag::run(args, global),
        Command::Manifest(args) => manifest::run(args, global),
        Command::Identify(args) => identify::run(args, global),
        Command::Ingest(args) => ingest::run(args, global),
        Command::Ocfl(args) => ocfl::run(args, global),
        Command::S3(args) => s3::run(args, global),
        Command::Driver(args) => driver::run(args),
    }
}
