//! `accession check`: the registry and the stores, compared both ways.

use super::site;
use crate::cli::Global;
use crate::exit::{Exit, Failure};
use crate::output;
use archive::registry::compare::{Finding, What, compare};

#[derive(clap::Args)]
#[command(after_help = "Examples:
  accession check
  accession check ark:/99999/fk4c9k31
  accession check --content

Without --content inventories are compared, which is quick; with it every byte is read. Ends with 1
if anything is missing, extra, different or damaged.")]
pub struct Args {
    /// Only this object (default: everything, and what stores have beside it)
    object: Option<String>,
    /// Read all content and compare its digests
    #[arg(long)]
    content: bool,
}

pub fn run(args: Args, global: &Global) -> Result<Exit, Failure> {
    let (site, _) = site::open_small(global)?;
    let what = What { object: args.object, content: args.content };
    let bar = output::count_bar(None, "objects");
    if global.json || global.quiet {
        bar.set_draw_target(indicatif::ProgressDrawTarget::hidden());
    }
    let mut found: Vec<Finding> = Vec::new();
    let json = global.json;
    let looked = site::block_on(async {
        compare(&site, &what, &mut |looked, finding| {
            bar.set_position(looked.objects);
            if let Some(finding) = finding {
                if json {
                    // A reader that went away is noticed at the end.
                    let _ = output::json(&finding);
                }
                found.push(finding);
            }
        })
        .await
    })??;
    bar.finish_and_clear();
    if json {
        output::json(&serde_json::json!({"looked": looked, "findings": found.len()}))?;
    } else {
        if !found.is_empty() {
            output::table(
                &["what", "store", "object", "file", "finding"],
                found.iter().map(|f| {
                    vec![
                        f.kind.to_string(),
                        f.store.clone(),
                        f.identifier.clone(),
                        f.path.clone().unwrap_or_default(),
                        f.message.clone(),
                    ]
                }),
            )?;
        }
        output::line(&format!(
            "{}, {} and {} compared; {}",
            output::count(looked.objects, "object"),
            if looked.copies == 1 {
                "1 copy".to_string()
            } else {
                format!("{} copies", looked.copies)
            },
            output::count(looked.files, "file"),
            match found.len() {
                0 => "registry and stores agree".to_string(),
                n => output::count(n, "finding"),
            }
        ))?;
    }
    Ok(if found.is_empty() { Exit::Yes } else { Exit::No })
}
