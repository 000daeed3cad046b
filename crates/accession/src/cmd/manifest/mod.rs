//! `accession manifest`: Checkm manifests and their JSON form.

mod check;
mod convert;
mod make;

use crate::cli::Global;
use crate::error_code::ErrorCode;
use crate::exit::{Exit, Failure};
use checkm::Profile;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Check manifests and report everything that is wrong, by line
    Check(check::Args),
    /// Rewrite a manifest as Checkm or JSON, or in another profile
    Convert(convert::Args),
    /// Make a manifest of the files in a directory
    Make(make::Args),
}

pub fn run(args: Args, global: &Global) -> Result<Exit, Failure> {
    match args.command {
        Command::Check(args) => check::run(args, global),
        Command::Convert(args) => convert::run(args, global),
        Command::Make(args) => make::run(args, global),
    }
}

/// Checkm or JSON, as a person asks for it.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    Checkm,
    Json,
}

impl From<Format> for checkm::Format {
    fn from(format: Format) -> checkm::Format {
        match format {
            Format::Checkm => checkm::Format::Checkm,
            Format::Json => checkm::Format::Json,
        }
    }
}

impl Format {
    /// What was asked for, else what the name of the output says.
    fn choose(asked: Option<Format>, output: Option<&Path>) -> Option<Format> {
        let is_json =
            |path: &Path| path.extension().is_some_and(|e| e.eq_ignore_ascii_case("json"));
        let named = output.map(|path| if is_json(path) { Format::Json } else { Format::Checkm });
        asked.or(named)
    }
}

fn parse_profile(name: &str) -> Result<Profile, String> {
    Profile::from_name(name).or_else(|| Profile::from_uri(name)).ok_or_else(|| {
        let names: Vec<_> = Profile::ALL.iter().map(|p| p.as_str()).collect();
        format!("the profiles are {}", names.join(", "))
    })
}

/// Opens a manifest, `-` being standard input, with a progress bar over its bytes.
fn open(path: &Path, global: &Global) -> Result<BufReader<Box<dyn Read>>, Failure> {
    let unable = |e: std::io::Error| {
        let message =
            format!("cannot read {}: {e}; check the name and your rights", path.display());
        Failure::unable(ErrorCode::Read, message)
    };
    let (source, length): (Box<dyn Read>, _) = if path == Path::new("-") {
        (Box::new(std::io::stdin()), None)
    } else {
        let file = std::fs::File::open(path).map_err(unable)?;
        let meta = file.metadata().map_err(unable)?;
        if meta.is_dir() {
            let message = format!("{} is a directory; name a manifest in it", path.display());
            return Err(Failure::refused(ErrorCode::Directory, message));
        }
        (Box::new(file), meta.is_file().then_some(meta.len()))
    };
    let bar = if global.quiet {
        indicatif::ProgressBar::hidden()
    } else {
        crate::output::bytes_bar(length, &path.display().to_string())
            .with_finish(indicatif::ProgressFinish::AndClear)
    };
    let source: Box<dyn Read> = Box::new(bar.wrap_read(source));
    Ok(BufReader::with_capacity(256 << 10, source))
}

fn reading_failed(path: &Path, error: &checkm::Error) -> Failure {
    Failure::unable(ErrorCode::Read, format!("{}: {error}", path.display()))
}

/// A file that appears under its name only when it is complete.
struct Output {
    path: Option<PathBuf>,
    temporary: Option<tempfile::NamedTempFile>,
}

impl Output {
    fn new(path: Option<PathBuf>) -> Result<Output, Failure> {
        let temporary = match &path {
            None => None,
            Some(path) => {
                let parent = path.parent().filter(|p| !p.as_os_str().is_empty());
                let parent = parent.unwrap_or(Path::new("."));
                let file = new_in(parent).map_err(|e| {
                    let message =
                        format!("cannot write in {}: {e}; choose another output", parent.display());
                    Failure::unable(ErrorCode::Write, message)
                })?;
                Some(file)
            }
        };
        Ok(Output { path, temporary })
    }

    fn writer(&self) -> Result<Box<dyn std::io::Write>, Failure> {
        Ok(match &self.temporary {
            Some(file) => Box::new(std::io::BufWriter::with_capacity(256 << 10, file.reopen()?)),
            None => Box::new(std::io::BufWriter::new(std::io::stdout())),
        })
    }

    /// Gives the complete file its name.
    fn keep(self) -> Result<(), Failure> {
        let (Some(path), Some(temporary)) = (self.path, self.temporary) else { return Ok(()) };
        let unable = |e: std::io::Error| {
            Failure::unable(ErrorCode::Write, format!("cannot write {}: {e}", path.display()))
        };
        temporary.as_file().sync_all().map_err(unable)?;
        temporary.persist(&path).map(drop).map_err(|e| unable(e.error))
    }
}

/// Temporary files are for their owner's eyes only; a manifest is as open as any new file, which
/// the process's mask decides.
#[cfg(unix)]
fn new_in(directory: &Path) -> std::io::Result<tempfile::NamedTempFile> {
    use std::os::unix::fs::PermissionsExt;
    let usual = std::fs::Permissions::from_mode(0o666);
    tempfile::Builder::new().permissions(usual).tempfile_in(directory)
}

#[cfg(not(unix))]
fn new_in(directory: &Path) -> std::io::Result<tempfile::NamedTempFile> {
    tempfile::NamedTempFile::new_in(directory)
}

/// A summary is printed where the manifest is not.
fn refuse_mixed_output(global: &Global, output: Option<&Path>) -> Result<(), Failure> {
    if global.json && output.is_none() {
        let message = "--json prints a summary, and the manifest goes to standard output too; name a file with --output";
        return Err(Failure::refused(ErrorCode::Output, message));
    }
    Ok(())
}
