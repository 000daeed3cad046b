//! Copies everything below a prefix from one store to another, whatever they are.
//!
//! `cargo run -p store --example copy -- /srv/objects 's3://bucket/copy?endpoint=http://localhost:9000'`

use futures_util::TryStreamExt;
use store::{Kind, PutOptions, list_all};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(from), Some(to)) = (arguments.next(), arguments.next()) else {
        return Err("usage: copy FROM-URL TO-URL [PREFIX]".into());
    };
    let prefix = arguments.next().unwrap_or_default();
    let (from, to) = (store::open(&from).await?, store::open(&to).await?);
    let mut entries = list_all(from.clone(), &prefix, true);
    let mut count = 0;
    while let Some(entry) = entries.try_next().await? {
        if entry.kind != Kind::File {
            eprintln!("left out: {} is no file", entry.key);
            continue;
        }
        let object = from.get(&entry.key, None).await?;
        // The digest that the one store keeps is what the other has to find.
        let sha256 = object.meta.digest.and_then(|digest| digest.whole());
        let options = PutOptions { sha256, ..PutOptions::default() };
        to.put(&entry.key, object.into_body(), &options).await?;
        count += 1;
    }
    println!("{count} objects copied from {} to {}", from.url(), to.url());
    Ok(())
}
