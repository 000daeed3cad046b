//! What is in a watched place now: one entry for each package, with a fingerprint of everything in
//! it. Links are never followed, and a place with too many files is not half-read.

use super::decide::Present;
use super::names::{is_unfinished, place};
use super::poll::root;
use crate::ErrorCode;
use crate::config::WatchSection;
use crate::{Error, Result};
use bagit::beneath::{EntryInfo, EntryKind, Folder, Refused};
use digest::{Sha256, to_hex};
use futures_util::TryStreamExt;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::sync::Arc;
use std::time::UNIX_EPOCH;
use store::{Entry, Kind, Store};

/// Directories deeper than this are a mistake.
const DEPTH_MAX: usize = 100;

/// What was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listing {
    /// By name: `name`, or `collection/name`.
    pub packages: BTreeMap<String, Found>,
    /// What was passed over though someone may wait for it, and why.
    pub strays: Vec<Stray>,
    /// All of them: only the first are listed.
    pub strays_total: usize,
}

/// So many names that are no packages are listed.
const STRAYS_MAX: usize = 1000;

impl Listing {
    fn pass_over(&mut self, name: impl Into<String>, why: impl Into<String>) {
        self.strays_total += 1;
        if self.strays.len() < STRAYS_MAX {
            self.strays.push(Stray { name: name.into(), why: why.into() });
        }
    }
}

/// A name that is no package.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Stray {
    pub name: String,
    pub why: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    pub collection: String,
    /// More than one file.
    pub directory: bool,
    pub bytes: u64,
    pub present: Present,
    /// Why it is unfinished, if it is.
    pub unfinished_why: Option<String>,
}

/// A package while its files are counted.
struct Draft {
    collection: String,
    directory: bool,
    /// In a bucket a key and what lies below it can both be there.
    both: bool,
    bytes: u64,
    files: u64,
    /// The first file in it that says that it is not whole.
    unfinished: Option<String>,
    hash: Sha256,
}

impl Draft {
    fn new(collection: String, directory: bool) -> Draft {
        let hash = Sha256::new();
        Draft { collection, directory, both: false, bytes: 0, files: 0, unfinished: None, hash }
    }

    fn add(&mut self, path: &str, size: u64, modified: &str) {
        self.bytes += size;
        self.files += 1;
        if self.unfinished.is_none() && is_unfinished(path) {
            self.unfinished = Some(path.to_string());
        }
        // Lengths keep two names from being read as one.
        let line = format!("{}:{path}:{size}:{modified}\n", path.len());
        self.hash.update(line.as_bytes());
    }

    fn finish(self) -> Found {
        let fingerprint = to_hex(&self.hash.finish());
        let unfinished_why = match self.unfinished {
            Some(path) => Some(format!(
                "`{path}` in it has a name that says it is not whole; it is taken when that file is renamed or gone"
            )),
            // A directory that was only just made has nothing in it yet.
            None if self.files == 0 => {
                Some("there is no file in it; it is taken when there is one".to_string())
            }
            None => None,
        };
        Found {
            collection: self.collection,
            directory: self.directory,
            bytes: self.bytes,
            present: Present { fingerprint, unfinished: unfinished_why.is_some() },
            unfinished_why,
        }
    }
}

fn too_many(watch: &WatchSection) -> Error {
    Error::transient(ErrorCode::WatchTooMany, format!("{} has more than {} files, so nothing is taken from it; move some away or raise files_max", watch.path, watch.files_max)).at(format!("watch {}", watch.path))
}

/// A name as text: what is not UTF-8 is percent-encoded.
fn shown(name: &OsStr) -> String {
    let encoded = |_| queue::subject::encode(name.as_encoded_bytes());
    name.to_str().map(str::to_string).ok_or(()).or_else(encoded).unwrap_or_default()
}

fn unreadable(path: &Path, error: &std::io::Error) -> Error {
    Error::transient(
        ErrorCode::WatchUnreadable,
        format!("{} cannot be read: {error}; make it readable for the archive", path.display()),
    )
    .at(format!("watch {}", path.display()))
}

/// Lists a drop folder. Blocking.
pub fn folder(watch: &WatchSection) -> Result<Listing> {
    let path = root(watch).to_path_buf();
    let mut walk = Walk { watch, left: watch.files_max, listing: Listing::default() };
    let top = Folder::open(&path).map_err(|e| unreadable(&path, &e))?;
    for (name, info) in walk.read(&top, &path)? {
        let Some(name) = walk.text("", &name) else { continue };
        let spread = watch.prefix_is_collection && info.kind == EntryKind::Directory;
        if !spread {
            walk.package(&[&name], &top, &path, &info)?;
            continue;
        }
        let path = path.join(&name);
        let Some(collection) = enter(&top, name.as_ref(), &path)? else { continue };
        for (below, info) in walk.read(&collection, &path)? {
            if let Some(below) = walk.text(&format!("{name}/"), &below) {
                walk.package(&[&name, &below], &collection, &path, &info)?;
            }
        }
    }
    Ok(walk.listing)
}

/// Opens a directory that was listed. What has gone or was replaced since is not there.
fn enter(folder: &Folder, name: &OsStr, path: &Path) -> Result<Option<Folder>> {
    match folder.folder(Path::new(name)) {
        Ok(folder) => Ok(Some(folder)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) if Refused::of(&error).is_some() => Ok(None),
        Err(error) => Err(unreadable(path, &error)),
    }
}

struct Walk<'a> {
    watch: &'a WatchSection,
    left: usize,
    listing: Listing,
}

impl Walk<'_> {
    /// What is in a directory, by name. What vanishes during the listing is left out.
    fn read(&mut self, folder: &Folder, path: &Path) -> Result<Vec<(OsString, EntryInfo)>> {
        let mut found = Vec::new();
        let mut entries = folder.entries().map_err(|e| unreadable(path, &e))?;
        while let Some(entry) = entries.next() {
            let (name, _) = entry.map_err(|e| unreadable(path, &e))?;
            self.left = self.left.checked_sub(1).ok_or_else(|| too_many(self.watch))?;
            let info = entries.info(&name);
            match info {
                Ok(info) => found.push((name, info)),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => return Err(unreadable(&path.join(name), &error)),
            }
        }
        found.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(found)
    }

    /// The name of what may be a package; one that is not UTF-8 is passed over.
    fn text(&mut self, above: &str, name: &OsStr) -> Option<String> {
        let text = name.to_str().map(str::to_string);
        if text.is_none() {
            let why = "its name is not UTF-8; rename it";
            self.listing.pass_over(format!("{above}{}", shown(name)), why);
        }
        text
    }

    /// Takes the package of a name in `folder`, which is at `path`.
    fn package(
        &mut self,
        parts: &[&str],
        folder: &Folder,
        path: &Path,
        info: &EntryInfo,
    ) -> Result<()> {
        let name = parts.join("/");
        let placed = match place(self.watch, parts) {
            Ok(placed) => placed,
            Err(no) => {
                if let Some(why) = no.why() {
                    self.listing.pass_over(name, why);
                }
                return Ok(());
            }
        };
        let here = parts.last().copied().unwrap_or_default();
        let is_directory = match info.kind {
            EntryKind::Directory => true,
            EntryKind::File => false,
            EntryKind::Link | EntryKind::Special => {
                // A link could lead anywhere.
                let why = "it is neither a file nor a directory; put the file itself there";
                self.listing.pass_over(name, why);
                return Ok(());
            }
        };
        let mut draft = Draft::new(placed.collection, is_directory);
        if is_directory {
            let path = path.join(here);
            let Some(package) = enter(folder, here.as_ref(), &path)? else { return Ok(()) };
            self.inside(&package, &path, "", &mut draft, 0)?;
        } else {
            draft.add("", info.bytes, &time(info));
        }
        self.listing.packages.insert(name, draft.finish());
        Ok(())
    }

    fn inside(
        &mut self,
        folder: &Folder,
        path: &Path,
        above: &str,
        draft: &mut Draft,
        depth: usize,
    ) -> Result<()> {
        if depth > DEPTH_MAX {
            return Err(unreadable(
                path,
                &std::io::Error::other(format!("it is deeper than {DEPTH_MAX} directories")),
            ));
        }
        for (name, info) in self.read(folder, path)? {
            // An ingest keeps names that are not UTF-8, so that they count as any others.
            let below = format!("{above}{}", shown(&name));
            if info.kind != EntryKind::Directory {
                draft.add(&below, info.bytes, &time(&info));
                continue;
            }
            // So that an empty directory that comes or goes is a change as well.
            draft.hash.update(format!("{}:{below}/\n", below.len()).as_bytes());
            let path = path.join(&name);
            if let Some(folder) = enter(folder, &name, &path)? {
                self.inside(&folder, &path, &format!("{below}/"), draft, depth + 1)?;
            }
        }
        Ok(())
    }
}

/// When it changed, and which file it is: a file put in the place of another is another.
fn time(info: &EntryInfo) -> String {
    let (seconds, nanos) = info.modified;
    format!("{seconds}.{nanos:09}.{}", info.inode)
}

/// Lists a receiving bucket.
pub async fn bucket(watch: &WatchSection, store: Arc<dyn Store>) -> Result<Listing> {
    let wrong = |error: store::Error| {
        Error::transient(
            ErrorCode::WatchUnreadable,
            format!("{} cannot be listed: {error}", watch.path),
        )
        .at(format!("watch {}", watch.path))
    };
    let mut drafts: BTreeMap<String, Draft> = BTreeMap::new();
    let mut left = watch.files_max;
    let mut listing = Listing::default();
    let mut keys = store::list_all(store, "", true);
    while let Some(entry) = keys.try_next().await.map_err(wrong)? {
        if entry.kind != Kind::File {
            continue;
        }
        left = left.checked_sub(1).ok_or_else(|| too_many(watch))?;
        let parts: Vec<&str> = entry.key.split('/').collect();
        let placed = match place(watch, &parts) {
            Ok(placed) => placed,
            Err(no) => {
                // Keys below a name that is passed over are passed over with it.
                let name = parts[..parts.len().min(2)].join("/");
                if let Some(why) = no.why()
                    && listing.strays.last().is_none_or(|last| last.name != name)
                {
                    listing.pass_over(name, why);
                }
                continue;
            }
        };
        let (name, below) = parts.split_at(placed.depth.min(parts.len()));
        let directory = !below.is_empty();
        let draft = drafts
            .entry(name.join("/"))
            .or_insert_with(|| Draft::new(placed.collection, directory));
        draft.both |= draft.directory != directory;
        draft.add(&below.join("/"), entry.size, &key_time(&entry));
    }
    for (name, draft) in drafts {
        match draft.both {
            true => listing.pass_over(
                name,
                "there is a file of this name and files below it; rename the file",
            ),
            false => drop(listing.packages.insert(name, draft.finish())),
        }
    }
    Ok(listing)
}

fn key_time(entry: &Entry) -> String {
    let since = entry.modified.and_then(|t| t.duration_since(UNIX_EPOCH).ok());
    format!("{:?}", since.map(|s| s.as_micros()))
}

/// A directory of a receiving bucket as it is put together while it is read.
pub(super) struct Reread(Draft);

impl Reread {
    pub fn new() -> Reread {
        Reread(Draft::new(String::new(), true))
    }

    /// Takes the next key of the listing, which is `below` the package's.
    pub fn add(&mut self, entry: &Entry, below: &str) {
        self.0.add(below, entry.size, &key_time(entry));
    }

    pub fn fingerprint(self) -> String {
        self.0.finish().present.fingerprint
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn watch(path: &Path, more: &str) -> WatchSection {
        toml::from_str(&format!("path = '{}'\n{more}", path.display())).unwrap()
    }

    fn names(listing: &Listing) -> Vec<&str> {
        listing.packages.keys().map(String::as_str).collect()
    }

    #[test]
    fn files_and_directories_are_packages_and_links_are_not() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        std::fs::write(root.join("a.zip"), "abc").unwrap();
        std::fs::write(root.join(".hidden"), "x").unwrap();
        std::fs::write(root.join("b.zip.part"), "x").unwrap();
        std::fs::create_dir_all(root.join("bag/data")).unwrap();
        symlink("/etc", root.join("link")).unwrap();
        symlink("/etc", root.join("bag/data/link")).unwrap();
        let watch = watch(root, "collection = 'c'");
        let first = folder(&watch).unwrap();
        assert_eq!(names(&first), ["a.zip", "bag"]);
        let strays: Vec<&str> = first.strays.iter().map(|stray| stray.name.as_str()).collect();
        assert_eq!(strays, [".hidden", "b.zip.part", "link"]);
        let bag = |listing: &Listing| listing.packages["bag"].present.clone();
        assert!(!bag(&first).unfinished, "a link is something");
        assert_eq!(first.packages["a.zip"].bytes, 3);
        assert_eq!(folder(&watch).unwrap(), first, "nothing changed");
        std::fs::write(root.join("bag/data/deep.part"), "x").unwrap();
        let second = folder(&watch).unwrap();
        assert!(bag(&second).unfinished);
        std::fs::rename(root.join("bag/data/deep.part"), root.join("bag/data/deep")).unwrap();
        let third = folder(&watch).unwrap();
        assert!(!bag(&third).unfinished && bag(&third) != bag(&first));
        std::fs::create_dir(root.join("bag/empty")).unwrap();
        assert_ne!(bag(&folder(&watch).unwrap()), bag(&third));
        assert_eq!(third.packages["a.zip"], first.packages["a.zip"]);
    }

    #[test]
    fn an_empty_directory_is_not_finished() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("new")).unwrap();
        let listing = folder(&watch(dir.path(), "collection = 'c'")).unwrap();
        let new = &listing.packages["new"];
        assert!(new.present.unfinished);
        assert!(new.unfinished_why.as_ref().is_some_and(|why| why.starts_with("there is no file")));
    }

    #[test]
    fn collections_have_directories_of_their_own() {
        let dir = tempfile::tempdir().unwrap();
        for path in ["maps/a", "maps/b.zip", "photos/c"] {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "x").unwrap();
        }
        std::fs::write(dir.path().join("stray"), "x").unwrap();
        let listing = folder(&watch(dir.path(), "prefix_is_collection = true")).unwrap();
        assert_eq!(names(&listing), ["maps/a", "maps/b.zip", "photos/c"]);
        assert_eq!(listing.packages["photos/c"].collection, "photos");
    }

    #[test]
    fn too_many_files_and_no_folder_are_errors_not_empty_folders() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["a", "b", "c"] {
            std::fs::write(dir.path().join(name), "x").unwrap();
        }
        let error = folder(&watch(dir.path(), "collection = 'c'\nfiles_max = 2")).unwrap_err();
        assert_eq!(error.code(), "watch_too_many");
        let gone = dir.path().join("gone");
        assert_eq!(
            folder(&watch(&gone, "collection = 'c'")).unwrap_err().code(),
            "watch_unreadable"
        );
    }

    #[tokio::test]
    async fn a_bucket_is_listed_by_package() {
        let store: Arc<dyn Store> = Arc::new(store::MemoryStore::new());
        for key in ["a.zip", "bag/bagit.txt", "bag/data/x", "b.zip.part", "a.zip.receipt.json"] {
            store.put(key, "abc".into(), &store::PutOptions::default()).await.unwrap();
        }
        let watch = watch(Path::new("s3://b"), "collection = 'c'");
        let first = bucket(&watch, store.clone()).await.unwrap();
        assert_eq!(names(&first), ["a.zip", "bag"]);
        assert!(first.packages["bag"].directory && !first.packages["a.zip"].directory);
        assert_eq!(first.packages["bag"].bytes, 6);
        store.put("bag/data/y", "abc".into(), &store::PutOptions::default()).await.unwrap();
        let second = bucket(&watch, store).await.unwrap();
        assert_ne!(first.packages["bag"], second.packages["bag"]);
        assert_eq!(first.packages["a.zip"], second.packages["a.zip"]);
    }
}
