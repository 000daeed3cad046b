//! `accession objects cat`: one file to standard output, compared with its digest on the way.

use super::{app, find};
use crate::error_code::ErrorCode;
use crate::exit::{Exit, Failure};
use crate::session::os_user;
use archive::app::App;
use archive::registry::view;
use archive::stores::copies::{Copies, StoredFile};
use archive::stores::reading::{Piece, ReadError};
use std::io::Write;
use std::sync::Arc;

#[derive(clap::Args)]
#[command(after_help = "Examples:
  accession objects cat box-17 data/letters/1842-03-01.txt
  accession objects cat box-17 data/letters/1842-03-01.txt --version 1 > letter.txt

The file is read from the best copy and compared with its digest. A file of up to 16 MiB is compared
before any of it is written, and read from another copy if one is damaged. A larger one is written as it
is read: if the exit status is 3, do not trust what was written, and try again.")]
pub struct Args {
    /// The object's identifier or local identifier
    object: String,
    /// The file's path, as `accession objects files` lists it
    path: String,
    /// Of this version (default: the current one)
    #[arg(long)]
    version: Option<i64>,
}

/// Files up to this size are compared before any of their bytes is written.
const HELD_BACK_BYTES_MAX: u64 = 16 << 20;

pub fn run(app: &Arc<App>, args: &Args) -> Result<Exit, Failure> {
    let object = find(app, &args.object)?;
    let version = view::check_version(&object, args.version)?;
    let (id, path) = (object.id, args.path.clone());
    let found: archive::Result<_> = app.db.read_blocking(move |tx| {
        match view::file(tx, id, version, &path)? {
            // The paths of files in a folder that was deposited, as their depositor knows them.
            None => view::file(tx, id, version, &format!("data/{path}")),
            found => Ok(found),
        }
    });
    let Some(file) = found? else {
        return Err(Failure::not_found(
            ErrorCode::UnknownFile,
            format!(
                "version {version} of {} has no file {}; `accession objects files {} --version {version}` lists those it has",
                object.identifier, args.path, object.identifier
            ),
        ));
    };
    let file = StoredFile::of_view(&file);
    app::block_on(write(app, object, &file))??;
    Ok(Exit::Yes)
}

async fn write(app: &Arc<App>, object: view::ObjectView, file: &StoredFile) -> Result<(), Failure> {
    let copies = Copies::of(app, object, &os_user()).await?;
    let mut out = std::io::stdout().lock();
    if file.size <= HELD_BACK_BYTES_MAX {
        out.write_all(&copies.read_whole(file).await.map_err(failed)?)?;
        out.flush()?;
        return Ok(());
    }
    let mut reader = copies.read(file);
    loop {
        match reader.next().await.map_err(failed)? {
            Piece::Bytes(bytes) => out.write_all(&bytes)?,
            Piece::Restart => {
                return Err(Failure::unable(
                    ErrorCode::CopyDamaged,
                    format!(
                        "a copy of {} could not be read to its end as it should be, so what was written is not the file; try again: another copy is read then",
                        file.path
                    ),
                ));
            }
            Piece::End => break,
        }
    }
    out.flush()?;
    Ok(())
}

/// A file that cannot be read gives the exit status 3: the request itself was right.
fn failed(error: ReadError) -> Failure {
    let status = 3;
    Failure { status, ..archive::Error::from(error).into() }
}
