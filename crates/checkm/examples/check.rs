//! Checks a manifest and prints everything that is wrong with it:
//! `cargo run --example check -- batch.checkm`

use checkm::Options;
use std::fs::File;
use std::io::BufReader;
use std::process::ExitCode;

fn main() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("name a manifest")?;
    let source = BufReader::with_capacity(256 << 10, File::open(&path)?);
    let report = checkm::check(source, &Options::default())?;
    for problem in report.problems() {
        println!("{path}: {problem}");
    }
    println!("{} rows, {} errors, {} warnings", report.rows(), report.errors(), report.warnings());
    if report.not_shown() > 0 {
        println!("{} problems are not shown", report.not_shown());
    }
    Ok(if report.is_valid() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
