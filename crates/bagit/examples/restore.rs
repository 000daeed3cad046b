//! Streams a bag as tar to standard output, straight from the files named:
//! `cargo run --example restore -- FILE… > restored.tar`

use bagit::{Algorithm, Error, TarBag, WriteOptions};
use std::fs::File;
use std::path::Path;

fn main() -> Result<(), Error> {
    let options = WriteOptions {
        algorithms: [Algorithm::Md5, Algorithm::Sha256].into_iter().collect(),
        ..WriteOptions::default()
    };
    let mut bag = TarBag::new(std::io::stdout(), "restored", options)?;
    for name in std::env::args().skip(1) {
        let mut file = File::open(&name).map_err(|e| Error::io(&name, e))?;
        let size = file.metadata().map_err(|e| Error::io(&name, e))?.len();
        let short = Path::new(&name).file_name().map(|n| n.to_string_lossy().into_owned());
        bag.add_payload(&short.unwrap_or(name), size, &mut file)?;
    }
    bag.finish()?;
    Ok(())
}
