//! Prints a manifest of the files in a directory: `cargo run --example make -- some/directory`

use checkm::{Algorithm, Format, Header, Profile, Scan, ScanError, Scanned, WriteError, Writer};
use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
enum Error {
    #[error(transparent)]
    Scan(#[from] ScanError),
    #[error(transparent)]
    Write(#[from] WriteError),
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let directory = PathBuf::from(std::env::args().nth(1).ok_or("name a directory")?);
    let header = Header::new(Profile::General);
    let mut writer = Writer::new(std::io::stdout().lock(), Format::Checkm, header)?;
    let scan = Scan {
        profile: Profile::General,
        algorithm: Algorithm::Sha256,
        base_url: None,
        has_times: true,
        except: Vec::new(),
        threads: 2,
    };
    scan.run::<Error>(&directory, |scanned| match scanned {
        Scanned::Row(row) => Ok(writer.write(&row)?),
        Scanned::Skipped(why) => {
            eprintln!("skipped: {why}");
            Ok(())
        }
    })?;
    drop(writer.finish()?);
    Ok(())
}
