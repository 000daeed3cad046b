//! `accession formats`: the sets of signatures that files are identified by.

use crate::cli::Global;
use crate::error_code::ErrorCode;
use crate::exit::{Exit, Failure};
use crate::output;
use pronom::{
    Error, Format, Http, Installed, LATEST_PAGE, Library, NewFile, SignatureSet, fetch_latest,
};
use serde_json::{Value, json};
use std::path::PathBuf;

#[derive(clap::Args)]
#[command(after_help = "Examples:\n  accession formats list\n  \
accession formats install DROID_SignatureFile_V122.xml container-signature-20260119.xml\n  \
accession formats install --latest\n  accession formats use essential-2\n  \
accession formats show fmt/412\n  accession formats show docx")]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Install official signature files of The National Archives and use them
    #[command(after_help = "Examples:
  accession formats install DROID_SignatureFile_V122.xml container-signature-20260119.xml
  accession formats install --latest")]
    Install(Install),
    /// Which sets of signatures there are, and which one is in use
    #[command(after_help = "Example:
  accession formats list")]
    List,
    /// Use another installed set
    #[command(after_help = "Example:
  accession formats use essential-2")]
    Use {
        /// Its name, as `accession formats list` shows it
        name: String,
    },
    /// What is known about a format
    #[command(after_help = "Examples:
  accession formats show fmt/412
  accession formats show docx")]
    Show {
        /// A PUID such as `fmt/412`, or an extension such as `docx`; all formats if left out
        what: Option<String>,
        /// The set to look in instead of the one in use
        #[arg(long, value_name = "NAME")]
        set: Option<String>,
    },
}

#[derive(clap::Args)]
struct Install {
    /// DROID_SignatureFile_V….xml and container-signature-….xml, or one of them
    #[arg(required_unless_present = "latest", value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Fetch the newest files from The National Archives
    #[arg(long, conflicts_with = "files")]
    latest: bool,
    /// The page that lists the newest files
    #[arg(long, value_name = "URL", default_value = LATEST_PAGE, requires = "latest")]
    from: String,
}

pub fn run(args: Args, global: &Global) -> Result<Exit, Failure> {
    let library = library(global)?;
    match args.command {
        Command::Install(args) => install(&library, args, global),
        Command::List => list(&library, global),
        Command::Use { name } => {
            let set = library.choose(&name).map_err(failure)?;
            say(&set, "in use", global)
        }
        Command::Show { what, set } => {
            let set = library.load(set.as_deref()).map_err(failure)?;
            show(&set, what.as_deref(), global)
        }
    }
}

/// The installed sets, in the data directory.
pub fn library(global: &Global) -> Result<Library, Failure> {
    Ok(Library::new(crate::session::data_directory(global)?.join("formats")))
}

/// What an error of the crate means for the exit status.
pub fn failure(error: Error) -> Failure {
    match error {
        Error::UnknownFile(_)
        | Error::SignatureFile { .. }
        | Error::Pattern { .. }
        | Error::ContainerAlone
        | Error::NoSuchSet { .. } => Failure::refused(ErrorCode::Formats, error.to_string()),
        Error::Fetch { .. } => Failure::unable(ErrorCode::Fetch, error.to_string()),
        _ => Failure::unable(archive::ErrorCode::Io, error.to_string()),
    }
}

fn install(library: &Library, args: Install, global: &Global) -> Result<Exit, Failure> {
    let files = if args.latest {
        fetch_latest(&Http::default(), &args.from).map_err(failure)?
    } else {
        args.files
            .iter()
            .map(|path| NewFile::read(path))
            .collect::<Result<_, _>>()
            .map_err(failure)?
    };
    let set = library.install(files).map_err(failure)?;
    say(&set, "installed and in use", global)
}

fn say(set: &Installed, what: &str, global: &Global) -> Result<Exit, Failure> {
    if global.json {
        output::json(set)?;
        return Ok(Exit::Yes);
    }
    output::line(&format!(
        "{} {what}: {} formats, {} byte signatures, {} container signatures",
        set.origin.name, set.formats, set.signatures, set.containers
    ))?;
    for skipped in &set.skipped {
        output::line(&format!("  not used: {}", output::printable(skipped)))?;
    }
    output::line(&set.origin.attribution)?;
    Ok(Exit::Yes)
}

fn list(library: &Library, global: &Global) -> Result<Exit, Failure> {
    let sets = library.list().map_err(failure)?;
    if global.json {
        output::json_list("sets", &sets, None)?;
        return Ok(Exit::Yes);
    }
    let row = |set: &Installed| {
        let mark = if set.in_use { "in use" } else { "" };
        vec![
            set.origin.name.clone(),
            mark.to_owned(),
            set.formats.to_string(),
            set.signatures.to_string(),
            set.containers.to_string(),
            set.origin.created.clone(),
        ]
    };
    let headers = ["set", "", "formats", "byte signatures", "container signatures", "made"];
    output::table(&headers, sets.iter().map(row))?;
    for set in sets.iter().filter(|set| set.in_use) {
        output::line(&set.origin.attribution)?;
    }
    Ok(Exit::Yes)
}

/// Other formats are named by their PUIDs: their places in the set mean nothing outside of it.
fn as_json(set: &SignatureSet, format: &Format) -> Value {
    let mut value = json!(format);
    let lesser: Vec<&str> = set.lesser(format).map(|other| other.puid.as_str()).collect();
    value["priority_over"] = json!(lesser);
    value
}

fn show(set: &SignatureSet, what: Option<&str>, global: &Global) -> Result<Exit, Failure> {
    let extension = what.map(|what| what.trim_start_matches('.').to_lowercase());
    let wanted = |format: &&Format| match (what, &extension) {
        (Some(what), Some(extension)) => {
            format.puid == what || format.extensions.contains(extension)
        }
        _ => true,
    };
    let found: Vec<&Format> = set.formats().iter().filter(wanted).collect();
    let name = &set.origin().name;
    if global.json {
        let found: Vec<Value> = found.iter().map(|format| as_json(set, format)).collect();
        output::json(&json!({"set": name, "formats": found}))?;
    } else if found.is_empty() {
        let what = output::printable(what.unwrap_or_default());
        output::line(&format!("{name} knows no format `{what}`"))?;
    } else {
        let row = |format: &&Format| {
            vec![
                format.puid.clone(),
                format.name.clone(),
                format.version.clone(),
                format.mime.join(", "),
                format.extensions.join(" "),
                if format.has_signature { "bytes" } else { "extension only" }.to_owned(),
                set.preferred_to(format).collect::<Vec<_>>().join(" "),
            ]
        };
        let headers = ["puid", "name", "version", "mime", "extensions", "found by", "preferred to"];
        output::table(&headers, found.iter().map(row))?;
    }
    Ok(if found.is_empty() { Exit::No } else { Exit::Yes })
}
