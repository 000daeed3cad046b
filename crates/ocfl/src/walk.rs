//! Walking through a storage root: levels of directories, several listed ahead; or, in an object
//! store with an even layout, one listing of all keys that leaps over what is in objects.

use crate::error::Result;
use crate::layout::Layout;
use futures_util::TryStreamExt;
use futures_util::stream::{self, BoxStream, StreamExt};
use std::collections::VecDeque;
use std::sync::Arc;
use store::{Entry, ErrorKind, Kind, ListOptions, Page, Store, list_all};
use tokio::task::JoinHandle;

/// What every declaration of an object is called.
const DECLARATION: &str = "0=ocfl_object_";

/// A listing that ends when it is not wanted any more.
struct Listing(JoinHandle<store::Result<Vec<Entry>>>);

impl Drop for Listing {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Directories to be listed, in the order in which they were found and each before what follows
/// it; the next ones are listed ahead.
pub(crate) struct Directories {
    store: Arc<dyn Store>,
    waiting: Vec<(String, Option<Listing>)>,
}

impl Directories {
    pub(crate) fn new(store: Arc<dyn Store>, first: &str) -> Directories {
        Directories { store, waiting: vec![(first.to_owned(), None)] }
    }

    /// The next directory, and what is directly in it.
    pub(crate) async fn next(&mut self) -> Option<(String, store::Result<Vec<Entry>>)> {
        let at_once = self.store.at_once();
        for (directory, listing) in self.waiting.iter_mut().rev().take(at_once) {
            if listing.is_none() {
                let entries = list_all(self.store.clone(), directory, false);
                *listing = Some(Listing(tokio::spawn(entries.try_collect())));
            }
        }
        let (directory, listing) = self.waiting.pop()?;
        let listed = match listing {
            Some(mut listing) => (&mut listing.0).await,
            None => return None,
        };
        let listed = listed.unwrap_or_else(|_| {
            let detail = "the runtime is shutting down";
            Err(store::Error::new(ErrorKind::Transient, directory.clone(), detail))
        });
        Some((directory, listed))
    }

    /// Adds directories that lie in the one that was listed last, in their order.
    pub(crate) fn descend(&mut self, directories: Vec<String>) {
        self.waiting.extend(directories.into_iter().rev().map(|directory| (directory, None)));
    }
}

/// The paths of all objects of a root.
pub(crate) fn object_paths(
    store: Arc<dyn Store>,
    layout: Option<&Layout>,
) -> BoxStream<'static, Result<String>> {
    // Where all names of a level have the same length, no store can have another order of them.
    let is_even = matches!(layout, Some(Layout::HashedNTuple(_)));
    match is_even && !store.capabilities().rename {
        true => by_leaps(store),
        false => by_levels(store),
    }
}

fn by_levels(store: Arc<dyn Store>) -> BoxStream<'static, Result<String>> {
    stream::unfold(Directories::new(store, ""), |mut directories| async move {
        while let Some((directory, listed)) = directories.next().await {
            let entries = match listed {
                Ok(entries) => entries,
                Err(error) => return Some((Err(error.into()), directories)),
            };
            let name = |entry: &Entry| entry.key.rsplit('/').next().unwrap_or_default().to_owned();
            let is_object = !directory.is_empty()
                && entries.iter().any(|e| e.kind == Kind::File && name(e).starts_with(DECLARATION));
            if is_object {
                return Some((Ok(directory), directories));
            }
            let is_root = directory.is_empty();
            let below = entries.into_iter().filter(|entry| {
                entry.kind == Kind::Directory && !(is_root && entry.key == "extensions")
            });
            directories.descend(below.map(|entry| entry.key).collect());
        }
        None
    })
    .boxed()
}

/// Where the next page starts.
enum Position {
    Start,
    Token(String),
    /// After everything below this; the token goes on where the page before ended, for stores
    /// that do not let themselves be told where to start.
    After(String, String),
    End,
}

struct Leaps {
    store: Arc<dyn Store>,
    position: Position,
    found: VecDeque<String>,
    /// What lies below this is of no interest: an object, or what is not for objects.
    inside: String,
    leaps: bool,
}

/// One listing of all keys. Small objects come many to a page, and of a large one the rest is
/// leapt over, so that neither costs more than a request.
fn by_leaps(store: Arc<dyn Store>) -> BoxStream<'static, Result<String>> {
    let leaps = Leaps {
        store,
        position: Position::Start,
        found: VecDeque::new(),
        inside: "extensions".to_owned(),
        leaps: true,
    };
    stream::try_unfold(leaps, |mut leaps| async move {
        loop {
            if let Some(path) = leaps.found.pop_front() {
                return Ok(Some((path, leaps)));
            }
            if matches!(leaps.position, Position::End) {
                return Ok(None);
            }
            leaps.turn().await?;
        }
    })
    .boxed()
}

impl Leaps {
    /// Reads the next page.
    async fn turn(&mut self) -> Result<()> {
        let page = match std::mem::replace(&mut self.position, Position::End) {
            Position::End => return Ok(()),
            Position::Start => self.page(None).await?,
            Position::Token(token) => self.page(Some(token)).await?,
            Position::After(inside, token) => match self.after(&inside).await? {
                Some(page) => page,
                None => self.page(Some(token)).await?,
            },
        };
        let mut last_is_inside = false;
        for entry in &page.entries {
            let below = entry.key.strip_prefix(&self.inside);
            last_is_inside = below.is_some_and(|rest| rest.starts_with('/'));
            if last_is_inside || entry.kind != Kind::File {
                continue;
            }
            let Some((directory, name)) = entry.key.rsplit_once('/') else { continue };
            if directory == "extensions" || directory.starts_with("extensions/") {
                self.inside = "extensions".to_owned();
                last_is_inside = true;
            } else if name.starts_with(DECLARATION) {
                self.found.push_back(directory.to_owned());
                self.inside = directory.to_owned();
                last_is_inside = true;
            }
        }
        if let Some(token) = page.next {
            self.position = match last_is_inside && self.leaps {
                true => Position::After(self.inside.clone(), token),
                false => Position::Token(token),
            };
        }
        Ok(())
    }

    async fn page(&self, after: Option<String>) -> Result<Page> {
        let options = ListOptions { recursive: true, after, ..ListOptions::default() };
        Ok(self.store.list("", &options).await?)
    }

    /// The page after everything that lies below a prefix; `None` if the store cannot do that.
    async fn after(&mut self, inside: &str) -> Result<Option<Page>> {
        // No key that begins with the prefix comes after this one.
        let start = format!("{inside}/{}", char::MAX);
        match self.store.list_after("", &start).await {
            Ok(page) if page.entries.first().is_none_or(|entry| entry.key > start) => {
                return Ok(Some(page));
            }
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::Unsupported => {}
            Err(error) => return Err(error.into()),
        }
        self.leaps = false;
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::version::Spec;
    use crate::{About, DraftOptions, StorageRoot};
    use store::{Body, MemoryStore, PutOptions};

    async fn root(store: Arc<dyn Store>, objects: usize) -> StorageRoot {
        let root = StorageRoot::init(store, Spec::V1_1, Layout::default()).await.unwrap();
        for number in 0..objects {
            let id = format!("urn:x:{number}");
            let about = About::default();
            let draft = root.begin(&id, about, &DraftOptions::default()).await.unwrap();
            draft.put("a", format!("{number}").into_bytes().into()).await.unwrap();
            root.seal(&draft.write().await.unwrap()).await.unwrap();
        }
        root
    }

    /// Leaps and levels find the same objects, in the same order, also past one that is larger
    /// than any page and beside files that are in no object.
    #[tokio::test]
    async fn leaps_and_levels_find_the_same() {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::like_s3());
        let root = root(store.clone(), 30).await;
        let large = root.object_path("urn:x:7").unwrap();
        for number in 0..2500 {
            let key = format!("{large}/v1/content/more/{number}");
            store.put(&key, Body::from_bytes("x"), &PutOptions::default()).await.unwrap();
        }
        for stray in ["zzz/stray", "000/stray", "extensions/more/file"] {
            store.put(stray, Body::from_bytes("x"), &PutOptions::default()).await.unwrap();
        }
        let levels: Vec<String> = by_levels(store.clone()).try_collect().await.unwrap();
        let leaps: Vec<String> = by_leaps(store).try_collect().await.unwrap();
        assert_eq!(levels.len(), 30);
        assert_eq!(leaps, levels);
    }
}
