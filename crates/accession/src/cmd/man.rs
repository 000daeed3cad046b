//! `accession man DIR`

use crate::cli::{Cli, Global};
use crate::exit::{Exit, Failure};
use clap::CommandFactory;
use std::path::PathBuf;

#[derive(clap::Args)]
#[command(after_help = "Example:\n  accession man ~/.local/share/man/man1")]
pub struct Args {
    /// Where the pages go; made if it is not there
    dir: PathBuf,
}

pub fn run(args: Args, global: &Global) -> Result<Exit, Failure> {
    let unable = |e: std::io::Error| {
        Failure::unable(
            archive::ErrorCode::Io,
            format!(
                "cannot write manual pages to {}: {e}; choose a directory you may write to",
                args.dir.display()
            ),
        )
    };
    std::fs::create_dir_all(&args.dir).map_err(unable)?;
    clap_mangen::generate_to(Cli::command(), &args.dir).map_err(unable)?;
    let pages = std::fs::read_dir(&args.dir).map_err(unable)?.count();
    if global.json {
        crate::output::json(&serde_json::json!({"directory": args.dir, "pages": pages}))?;
    } else {
        crate::output::line(&format!("{pages} manual pages in {}", args.dir.display()))?;
    }
    Ok(Exit::Yes)
}
