//! Identifies the files named on the command line.
//!
//! `cargo run -p pronom --example identify -- FILE… [--signatures DROID.xml --containers C.xml]`

use pronom::{Identifier, SignatureSet};
use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (mut files, mut signatures, mut containers) = (Vec::new(), None, None);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--signatures" => signatures = arguments.next(),
            "--containers" => containers = arguments.next(),
            _ => files.push(argument),
        }
    }
    let set = match signatures {
        None => SignatureSet::essential().clone(),
        Some(path) => {
            let containers = containers.map(std::fs::read).transpose()?;
            SignatureSet::from_official(&std::fs::read(path)?, containers.as_deref())?
        }
    };
    let identifier = Identifier::new(set);
    for file in files {
        let found = identifier.identify_path(Path::new(&file))?;
        let puids: Vec<&str> = found.puids().collect();
        let warnings: Vec<String> = found.warnings.iter().map(ToString::to_string).collect();
        println!("{file}: {} {}", puids.join(", "), warnings.join("; "));
    }
    Ok(())
}
