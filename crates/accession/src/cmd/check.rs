//! `accession check`: the registry and the stores, compared both ways.

use super::app;
use crate::cli::Global;
use crate::error_code::ErrorCode;
use crate::exit::{Exit, Failure};
use crate::output;
use crate::session::os_user;
use archive::registry::compare::{Depth, Finding, Looked, What, compare};
use archive::registry::view;
use indicatif::{ProgressBar, ProgressStyle};

#[derive(clap::Args)]
#[command(after_help = "Examples:
  accession check
  accession check ark:/99999/fk4c9k31
  accession check --content

Without --content the stores are asked what they have: inventories are read and compared, and every
content file of every version must be there with its size. Its bytes are not read. With --content
every byte is read and compared with its digest, and what was found is recorded: when each copy was
verified, whether it is good, and an event.

Ends with 1 if anything is missing, extra, different or damaged; with 3 if something could not be
looked at, and nothing else was found.")]
pub struct Args {
    /// Only this object (default: everything, and what stores have beside it)
    object: Option<String>,
    /// Read all content and compare its digests
    #[arg(long)]
    content: bool,
}

/// Fits a line whatever has been counted.
const BAR: &str = "{bar:20} {pos}/{len} objects {elapsed} {wide_msg}";
/// Findings that are shown; all of them are printed as JSON.
const SHOWN_MAX: usize = 1000;

pub fn run(args: Args, global: &Global) -> Result<Exit, Failure> {
    let (app, _) = app::open_small(global)?;
    let depth = if args.content { Depth::Reading } else { Depth::Listing };
    let is_all = args.object.is_none();
    let what = What { object: args.object, depth, operator: os_user() };
    let objects: archive::Result<(i64, i64, i64)> = app.db.read_blocking(view::totals);
    let total = if is_all { objects?.0 } else { 1 };
    let bar = output::count_bar(Some(total.unsigned_abs()), "");
    if let Ok(style) = ProgressStyle::with_template(BAR) {
        bar.set_style(style);
    }
    if global.json || global.quiet {
        bar.set_draw_target(indicatif::ProgressDrawTarget::hidden());
    }
    let mut shown: Vec<Finding> = Vec::new();
    let mut judged = 0;
    let json = global.json;
    let looked = app::block_on(async {
        compare(&app, &what, &mut |looked, finding| {
            show_progress(&bar, &looked);
            let Some(finding) = finding else { return };
            judged += u64::from(finding.is_judgement());
            if json {
                // A reader that went away is noticed at the end.
                let _ = output::json(&finding);
            } else if shown.len() < SHOWN_MAX {
                shown.push(finding);
            }
        })
        .await
    })??;
    bar.finish_and_clear();
    if json {
        output::json(&serde_json::json!({
            "looked": looked,
            "content": if args.content { "read" } else { "listed" },
            "findings": judged,
        }))?;
    } else {
        table(&shown)?;
        if shown.len() == SHOWN_MAX {
            output::line(&format!("these are the first {SHOWN_MAX}; --json prints all"))?;
        }
        summary(&looked, depth, judged)?;
    }
    if judged > 0 {
        return Ok(Exit::No);
    }
    match looked.unfinished {
        0 => Ok(Exit::Yes),
        unfinished => Err(Failure::unable(
            ErrorCode::CheckUnfinished,
            format!(
                "{} could not be looked at, or not to the end; check again when the stores answer",
                output::count(unfinished, "place")
            ),
        )),
    }
}

fn show_progress(bar: &ProgressBar, looked: &Looked) {
    bar.set_position(looked.objects);
    let files = output::count(looked.files, "file");
    bar.set_message(match looked.read {
        0 => format!("{files} listed"),
        read => format!("{read} of {files} read, {}", output::size(looked.bytes_read)),
    });
}

fn table(findings: &[Finding]) -> Result<(), Failure> {
    if findings.is_empty() {
        return Ok(());
    }
    let row = |f: &Finding| {
        vec![
            f.kind.to_string(),
            f.store.clone(),
            f.identifier.clone(),
            f.path.clone().unwrap_or_default(),
            f.message.clone(),
        ]
    };
    output::table(&["what", "store", "object", "file", "finding"], findings.iter().map(row))?;
    Ok(())
}

/// Says what was looked at and what was not, and only then what that shows.
fn summary(looked: &Looked, depth: Depth, judged: u64) -> Result<(), Failure> {
    let copies = match looked.copies {
        1 => "1 copy".to_string(),
        copies => format!("{copies} copies"),
    };
    output::line(&format!(
        "{} and {copies}: inventories read, {}",
        output::count(looked.objects, "object"),
        content(looked, depth)
    ))?;
    if looked.unfinished > 0 {
        let places = output::count(looked.unfinished, "place");
        output::line(&format!("{places} could not be looked at, or not to the end"))?;
    }
    output::line(&match (judged, depth) {
        (0, _) if looked.unfinished > 0 => "no findings in what was looked at".to_string(),
        (0, Depth::Reading) if looked.cold > 0 => {
            "registry and stores agree, but for the content that was not read".to_string()
        }
        (0, Depth::Reading) => "registry and stores agree, byte for byte".to_string(),
        (0, Depth::Listing) => {
            "registry and stores agree as far as listings show; --content reads the content"
                .to_string()
        }
        (judged, _) => output::count(judged, "finding"),
    })?;
    Ok(())
}

fn content(looked: &Looked, depth: Depth) -> String {
    let files = output::count(looked.files, "content file");
    match depth {
        Depth::Listing => format!("{files} listed with the size, not read"),
        Depth::Reading => {
            let size = output::size(looked.bytes_read);
            let cold = match looked.cold {
                0 => String::new(),
                cold => format!("; {cold} in cold storage listed, not read"),
            };
            format!("{} of {files} ({size}) read and compared{cold}", looked.read)
        }
    }
}
