//! Content files compared with what must be there: by what the store lists, and by reading.

use super::{Counts, Depth};
use crate::model::error::Result;
use crate::stores::content::{ContentState, Fault, Method, Referred, look, look_at_all};
use crate::stores::{Place, store_error};
use std::collections::HashMap;
use store::ErrorKind;

/// Content that must be there: the file that refers to it, and the version that brought it.
#[derive(Debug, Clone)]
pub struct Wanted {
    pub file: Referred,
    pub since: Option<i64>,
    /// The size that the store listed.
    pub listed: Option<u64>,
    /// Whether the registry knows its size. It knows only that of deposited files.
    pub sized: bool,
}

/// Compares content; gives what is not as it must be. Fails if the store gives no answer.
pub async fn compare(
    place: &Place,
    depth: Depth,
    wanted: Vec<Wanted>,
    counts: &mut Counts,
) -> Result<Vec<(Wanted, Fault)>> {
    let mut suspects = Vec::new();
    let mut reading = HashMap::new();
    counts.files += wanted.len() as u64;
    for one in wanted {
        match Fault::of_size(one.listed, one.file.size) {
            Some(_) => suspects.push(one),
            None if depth == Depth::Listing => {}
            None => drop(reading.insert(one.file.key.clone(), one)),
        }
    }
    let files = reading.values().map(|one| one.file.clone()).collect();
    for (file, state) in look_at_all(place, files, Method::Reading).await? {
        match state {
            ContentState::Good => counts.count_read(file.size),
            ContentState::Listed => counts.cold += 1,
            ContentState::Damaged(_) => suspects.extend(reading.remove(&file.key)),
        }
    }
    let mut faulty = Vec::new();
    for mut suspect in suspects {
        if let Some(fault) = second_look(place, depth, &mut suspect, counts).await? {
            faulty.push((suspect, fault));
        }
    }
    Ok(faulty)
}

/// K3: what was wrong once is looked at again before it counts.
async fn second_look(
    place: &Place,
    depth: Depth,
    suspect: &mut Wanted,
    counts: &mut Counts,
) -> Result<Option<Fault>> {
    let file = &mut suspect.file;
    if depth == Depth::Listing || !suspect.sized {
        let found = match place.root.store().head(&file.key).await {
            Ok(meta) => meta.size,
            Err(error) if error.is_not_found() => return Ok(Some(Fault::Missing)),
            Err(error) if error.kind() == ErrorKind::NotPlain => return Ok(Some(Fault::NotAFile)),
            Err(error) => return Err(store_error(&place.name, error.into())),
        };
        if !suspect.sized {
            file.size = found;
        }
        if depth == Depth::Listing {
            return Ok(Fault::of_size(Some(found), file.size));
        }
    }
    match look(place, file, Method::Reading).await? {
        ContentState::Damaged(fault) => return Ok(Some(fault)),
        ContentState::Listed => counts.cold += 1,
        ContentState::Good => {
            tracing::warn!(store = place.name, key = file.key, "a second reading found it good");
            counts.count_read(file.size);
        }
    }
    Ok(None)
}

impl Counts {
    fn count_read(&mut self, bytes: u64) {
        self.read += 1;
        self.bytes_read += bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ocfl::{Algorithm, Layout, Spec, StorageRoot};
    use std::sync::Arc;
    use store::{FaultStore, MemoryStore, Misread, PutOptions, Store};

    const CONTENT: &str = "what was kept";

    /// A store whose gets go wrong, and a file in it.
    async fn place(misreads: &[Misread]) -> (Place, Vec<Wanted>) {
        let inner = Arc::new(MemoryStore::new());
        StorageRoot::init(inner.clone(), Spec::V1_1, Layout::default()).await.unwrap();
        inner.put("object/a", CONTENT.into(), &PutOptions::default()).await.unwrap();
        // Opening reads a few files.
        let store = Arc::new(FaultStore::misreading(inner, []));
        let root = StorageRoot::open(store.clone()).await.unwrap();
        store.misread_next(misreads.iter().copied());
        let size = CONTENT.len() as u64;
        let file = Referred {
            path: "data/a".to_string(),
            size,
            sha512: Algorithm::Sha512.hex(CONTENT.as_bytes()),
            sha256: None,
            key: "object/a".to_string(),
        };
        let wanted = Wanted { file, since: Some(1), listed: Some(size), sized: true };
        (Place { name: "main".to_string(), root, class: None, unverifiable: None }, vec![wanted])
    }

    #[tokio::test]
    async fn a_mismatch_counts_only_if_it_is_seen_twice() {
        for misread in [Misread::Flips, Misread::Ends] {
            let (store, wanted) = place(&[misread]).await;
            let mut counts = Counts::default();
            let faulty = compare(&store, Depth::Reading, wanted, &mut counts).await.unwrap();
            assert!(faulty.is_empty(), "{faulty:?}");
            assert_eq!((counts.files, counts.read), (1, 1));
            let (store, wanted) = place(&[misread, misread]).await;
            let mut counts = Counts::default();
            let faulty = compare(&store, Depth::Reading, wanted, &mut counts).await.unwrap();
            assert_eq!((faulty.len(), counts.read), (1, 0));
        }
    }

    #[tokio::test]
    async fn no_answer_is_no_mismatch() {
        for misreads in
            [&[Misread::Fails][..], &[Misread::Breaks], &[Misread::Flips, Misread::Fails]]
        {
            let (store, wanted) = place(misreads).await;
            let mut counts = Counts::default();
            let error = compare(&store, Depth::Reading, wanted, &mut counts).await.unwrap_err();
            assert!(error.is_transient(), "{error}");
            assert_eq!(counts.read, 0);
        }
    }

    #[tokio::test]
    async fn what_a_listing_missed_is_asked_for() {
        let (store, mut wanted) = place(&[]).await;
        wanted[0].listed = None;
        for depth in [Depth::Listing, Depth::Reading] {
            let mut counts = Counts::default();
            let faulty = compare(&store, depth, wanted.clone(), &mut counts).await.unwrap();
            assert!(faulty.is_empty(), "{faulty:?}");
        }
        wanted[0].file.key.push('b');
        let faulty = compare(&store, Depth::Listing, wanted, &mut Counts::default()).await.unwrap();
        assert_eq!(faulty[0].1, Fault::Missing);
    }
}
