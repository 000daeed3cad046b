//! `accession demo`: bags, a file and a manifest are taken in before your eyes, one of them is
//! wrong, one comes again with changes; then it says where to look.

mod samples;
mod web;

use super::deposit::{self, How};
use super::same_name::Asking;
use super::{app, ingest, notify};
use crate::cli::Global;
use crate::exit::{Exit, Failure};
use crate::output;
use archive::app::App;
use clap::Parser;
use queue::BatchState;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[derive(clap::Args)]
#[command(
    after_help = "The demo works in a fresh directory of its own and tells you where it is, so that you can look
around in it with the other commands.

Examples:
  accession demo
  accession demo --directory look-around"
)]
pub struct Args {
    /// Where to work (default: a fresh temporary directory, which is kept)
    #[arg(long, value_name = "DIR")]
    directory: Option<PathBuf>,
}

/// The options of a deposit, as if they had been typed.
#[derive(Parser)]
struct Typed {
    #[command(flatten)]
    how: How,
}

struct Show {
    app: Arc<App>,
    global: Global,
}

pub fn run(args: Args, global: &Global) -> Result<Exit, Failure> {
    let directory = match args.directory {
        Some(directory) => {
            std::fs::create_dir_all(&directory)?;
            directory
        }
        None => tempfile::Builder::new().prefix("accession-demo-").tempdir()?.keep(),
    };
    let (data, samples) = (directory.join("data"), directory.join("samples"));
    std::fs::create_dir_all(&samples)?;
    let server = web::serve(samples.clone())?;
    let global = Global {
        data: Some(data.clone()),
        database: None,
        config: None,
        // The web server of the demo is on this machine.
        set: vec!["fetch.allow_private=true".to_string()],
        quiet: true,
        ..global.clone()
    };
    let (app, _) = app::open(&global, db::Options::default())?;
    let show = Show { app, global };
    let steps = story(&show, &samples, &server)?;
    if show.global.json {
        output::json(&serde_json::json!({"data": data, "samples": samples, "steps": steps}))?;
    } else {
        where_to_look(&show, &data)?;
    }
    let expected = ["completed", "failed", "completed", "completed", "completed"];
    let told: Vec<&str> = steps.iter().filter_map(|s| s["state"].as_str()).collect();
    Ok(if told == expected { Exit::Yes } else { Exit::No })
}

fn story(
    show: &Show,
    samples: &Path,
    server: &web::Server,
) -> Result<Vec<serde_json::Value>, Failure> {
    let letters = samples::bag(
        samples,
        "letters-1842",
        &[("1.txt", "Dear Ada,\n"), ("2.txt", "Dear Charles,\n")],
    )?;
    let torn = samples::torn_bag(samples)?;
    let mut steps = Vec::new();
    steps.push(show.step(
        "1. A bag of letters, as a directory",
        &[letters.clone().into_os_string()],
        &["--what", "Letters of 1842", "--who", "Ada Lovelace"],
    )?);
    steps.push(show.step(
        "2. A bag in which a file was damaged on the way",
        &[torn.into()],
        &[],
    )?);
    samples::correct(&letters, "2.txt", "Dear Charles, I was mistaken.\n")?;
    samples::correct(&letters, "3.txt", "Dear all,\n")?;
    steps.push(show.step(
        "3. The letters again: one changed, one more",
        &[letters.into_os_string()],
        &["--what", "Letters of 1842", "--who", "Ada Lovelace"],
    )?);
    let manifest = samples::manifest(samples, &server.address)?;
    steps.push(show.step(
        "4. A manifest of files on a web server",
        &[manifest.into_os_string()],
        &["--local-id", "album-7"],
    )?);
    let note = samples.join("note.txt");
    std::fs::write(&note, "Kept as it is.\n")?;
    steps.push(show.step("5. A single file", &[note.into_os_string()], &[])?);
    Ok(steps)
}

/// A demonstration goes on by itself.
const ASKING: Asking<'static> = Asking { command: "ingest", never: true };

impl Show {
    /// Deposits, works until it is over, and says what became of it.
    fn step(
        &self,
        title: &str,
        sources: &[OsString],
        options: &[&str],
    ) -> Result<serde_json::Value, Failure> {
        let typed = Typed::try_parse_from(std::iter::once(&"deposit").chain(options))
            .map_err(|e| Failure::refused(queue::ErrorCode::BadInput, e.to_string()))?;
        self.say(&format!("\n{title}"))?;
        let shown: Vec<String> = sources
            .iter()
            .map(|s| s.to_string_lossy().into_owned())
            .chain(options.iter().map(|o| quoted(o)))
            .collect();
        self.say(&format!("$ accession ingest {}", shown.join(" ")))?;
        let receipts = deposit::accept(&self.app, sources, &typed.how, ASKING)?;
        let ids = receipts.iter().map(|r| r.batch).collect();
        let batches =
            app::block_on(ingest::work_on(&self.app, ids, notify::TIMEOUT, &self.global))??;
        let batch = &batches[0];
        let id = batch.id;
        let report: archive::Result<archive::report::BatchReport> =
            self.app.db.read_blocking(move |tx| {
                let catalog = queue::Catalog::load(tx)?;
                archive::registry::reports::short(tx, &catalog, id, 5)
            });
        let report = report?;
        for object in &report.objects {
            self.say(&format!(
                "  {} is version {} of {}: {} new, {} changed, {} unchanged files, verified in {}",
                object.subject,
                object.version,
                object.identifier,
                object.files_new,
                object.files_changed,
                object.files_unchanged,
                object.stores.join(", ")
            ))?;
        }
        for failure in &report.failures {
            let lines: Vec<&str> = failure.message.lines().collect();
            self.say(&format!(
                "  {} was refused in {}: {}",
                failure.subject,
                failure.stage,
                lines.join("\n    ")
            ))?;
        }
        Ok(serde_json::json!({
            "title": title, "batch": id, "state": state(batch.state),
            "objects": report.objects, "failures": report.failures,
        }))
    }

    fn say(&self, text: &str) -> Result<(), Failure> {
        if !self.global.json {
            output::line(&output::printable_lines(text))?;
        }
        Ok(())
    }
}

fn quoted(text: &str) -> String {
    if text.contains(' ') { format!("'{text}'") } else { text.to_string() }
}

fn state(state: BatchState) -> &'static str {
    state.name()
}

fn where_to_look(show: &Show, data: &Path) -> Result<(), Failure> {
    show.say("\nEverything is kept. Look around:\n")?;
    let data = data.display();
    for (command, what) in [
        ("status", "the whole at a glance"),
        ("objects list", "what is preserved"),
        ("objects show letters-1842", "one object, its versions and copies"),
        ("objects events letters-1842", "what has happened to it"),
        ("jobs failed", "what is wrong with the torn bag"),
        ("batches report 3", "what the depositor is told"),
        ("export premis letters-1842", "for other archives"),
        ("check --content", "compare the registry with the stores, byte by byte"),
    ] {
        show.say(&format!("  accession --data {data} {command:32} # {what}"))?;
    }
    Ok(())
}
