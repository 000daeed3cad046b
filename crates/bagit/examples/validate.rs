//! Validates bags, and prints what is wrong with them: `cargo run --example validate -- BAG…`

use bagit::{Bag, Options};

fn main() -> Result<(), bagit::Error> {
    for path in std::env::args().skip(1) {
        let report = Bag::open(&path)?.validate(&Options::default())?;
        for problem in &report.problems {
            println!("{path}: {problem}");
        }
        let answer = if report.valid { "valid" } else { "not valid" };
        println!(
            "{path}: {answer}, {} files, {} bytes",
            report.payload.files, report.payload.octets
        );
    }
    Ok(())
}
