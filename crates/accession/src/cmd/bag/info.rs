//! `accession bag info BAG…`

use crate::cli::Global;
use crate::exit::{Exit, Failure};
use crate::output;
use bagit::{Algorithm, Summary};
use std::path::PathBuf;

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  accession bag info deposit.tar
  accession bag info --json *.zip | jq '.tags[] | select(.label==\"Title\").value'")]
pub struct Args {
    /// Directories, tar (also .gz, .bz2, .zst) or zip files; `-` is standard input
    #[arg(required = true, value_name = "BAG")]
    bags: Vec<PathBuf>,
}

pub fn run(args: Args, global: &Global) -> Result<Exit, Failure> {
    let mut exit = Exit::Yes;
    for (index, path) in args.bags.iter().enumerate() {
        let bag = super::open(path).map_err(super::failure)?;
        let summary = bag.summary().map_err(super::failure)?;
        if summary.version.is_none() {
            exit = Exit::No;
        }
        if global.json {
            output::json(&summary)?;
            continue;
        }
        if index > 0 {
            output::line("")?;
        }
        output::table(&["tag", "value"], rows(&summary))?;
        for problem in &summary.problems {
            anstream::eprintln!("{}", output::printable(&format!("{}: {problem}", summary.bag)));
        }
    }
    Ok(exit)
}

fn rows(summary: &Summary) -> Vec<Vec<String>> {
    let names = |all: &[Algorithm]| match all {
        [] => "none".to_owned(),
        all => all.iter().map(|a| a.name()).collect::<Vec<_>>().join(" "),
    };
    let version = summary.version.map_or("not a bag".to_owned(), |v| v.to_string());
    let mut rows = vec![
        vec!["Bag".into(), summary.bag.clone()],
        vec!["Container".into(), summary.serialization.to_string()],
        vec!["BagIt-Version".into(), version],
        vec!["Encoding".into(), summary.encoding.clone().unwrap_or_default()],
        vec!["Payload manifests".into(), names(&summary.payload_manifests)],
        vec!["Tag manifests".into(), names(&summary.tag_manifests)],
        vec!["Files to fetch".into(), if summary.has_fetch { "yes" } else { "no" }.into()],
    ];
    rows.extend(summary.tags.0.iter().map(|tag| vec![tag.label.clone(), tag.value.clone()]));
    rows
}
