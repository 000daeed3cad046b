//! Validates a storage root, or an object by itself, in a local directory.
//!
//! `cargo run -p ocfl --example validate -- DIRECTORY`

use ocfl::{Validation, validate_object, validate_root};
use std::error::Error;
use std::sync::Arc;
use store::{LocalStore, Store};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let directory = std::env::args().nth(1).ok_or("usage: validate DIRECTORY")?;
    let store: Arc<dyn Store> = Arc::new(LocalStore::open(&directory)?);
    let validation = Validation::default();
    let is_object = std::fs::read_dir(&directory)?
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .any(|name| name.starts_with("0=ocfl_object_"));
    let findings = match is_object {
        true => validate_object(store, "", &validation).await?,
        false => validate_root(store, &validation).await?.findings,
    };
    for finding in findings.iter() {
        println!("{finding}\n     {}", finding.code.rule());
    }
    println!("{}", if findings.is_valid() { "valid" } else { "not valid" });
    Ok(())
}
