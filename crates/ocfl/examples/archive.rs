//! Keeps the files of a directory as a new version of an object, and shows its history.
//!
//! `cargo run -p ocfl --example archive -- ROOT ID DIRECTORY`

use ocfl::{About, DraftOptions, Layout, Spec, Start, StorageRoot};
use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use store::{Body, LocalOptions, LocalStore};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [root, id, directory] = arguments.as_slice() else {
        return Err("usage: archive ROOT ID DIRECTORY".into());
    };
    let temporaries = StorageRoot::TEMPORARIES.to_owned();
    let options = LocalOptions { temporaries, create: true, ..LocalOptions::default() };
    let store = Arc::new(LocalStore::open_with(root, &options)?);
    let root = match StorageRoot::open(store.clone()).await {
        Err(ocfl::Error::NotARoot(_)) => {
            StorageRoot::init(store, Spec::V1_1, Layout::default()).await?
        }
        root => root?,
    };
    let about = About { message: Some(format!("From {directory}")), ..About::default() };
    let options = DraftOptions { start: Start::Empty, ..DraftOptions::default() };
    let draft = root.begin(id, about, &options).await?;
    let mut waiting = vec![Path::new(directory).to_owned()];
    while let Some(place) = waiting.pop() {
        for entry in std::fs::read_dir(&place)? {
            let path = entry?.path();
            if path.is_dir() {
                waiting.push(path);
                continue;
            }
            let name = path.strip_prefix(directory)?.to_str().ok_or("a name is not UTF-8")?;
            let file = tokio::fs::File::open(&path).await?;
            let length = file.metadata().await?.len();
            draft.put(name, Body::from_reader(file, Some(length))).await?;
        }
    }
    root.seal(&draft.write().await?).await?;
    let object = root.object(id).await?;
    for version in object.inventory().versions() {
        let about = version.about();
        println!("{}  {}  {} files", version.name(), about.created, version.file_count());
    }
    Ok(())
}
