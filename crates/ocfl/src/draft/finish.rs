//! The end of a version's first half: its inventory.

use super::Draft;
use crate::error::{Error, Result};
use crate::inventory::{INVENTORY, Inventory};
use crate::sidecar;
use crate::unsealed::Unsealed;
use bytes::Bytes;
use digest::{Algorithm, SingleHasher};
use futures_util::{TryStreamExt, stream};
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use store::{Body, PutOptions, Store, join, list_all};
use tokio::sync::mpsc;

impl Draft {
    /// Writes the version's inventory. The version is complete then, and waits to be sealed.
    pub async fn write(self) -> Result<Unsealed> {
        let store = self.root.store.clone();
        let (id, (inventory, unused)) = {
            let mut contents = self.contents();
            (contents.id().to_owned(), contents.finish(self.about.clone())?)
        };
        for content in unused {
            store.delete(&join(&self.waiting.object, &content)).await?;
        }
        if self.adopting || self.on_the_way.load(Ordering::SeqCst) > 0 {
            self.remove_strays(inventory.content_directory()).await?;
        }
        if !self.waiting.aside {
            self.ensure_noted().await?;
        }
        let inventory_digest = self.put_inventories(&id, inventory).await?;
        let (path, version, algorithm) = (self.path, self.version, self.algorithm);
        Ok(Unsealed { id, path, version, inventory_digest, algorithm })
    }

    /// Puts the version's inventory and, where the version waits aside, everything else that lies
    /// in the root of an object, so that one step makes it visible. Then the note can say that the
    /// version is complete. Returns the digest.
    async fn put_inventories(&self, id: &str, inventory: Inventory) -> Result<String> {
        let store = &self.root.store;
        let (spec, algorithm) = (inventory.spec, inventory.algorithm);
        let mut places = vec![&self.waiting.version];
        places.extend(self.waiting.aside.then_some(&self.waiting.object));
        let mut files = Vec::new();
        let digest = match is_small(&inventory) {
            true => {
                let (content, digest) = in_memory(inventory).await?;
                let inventories = places.iter().map(|place| join(place, INVENTORY));
                files.extend(inventories.map(|key| self.root.own_file(key, content.clone())));
                digest
            }
            false => {
                let key = join(&self.waiting.version, INVENTORY);
                let digest = put_inventory(store, &key, inventory, &self.root.own()).await?;
                for place in &places[1..] {
                    store.copy(&key, &join(place, INVENTORY)).await?;
                }
                digest
            }
        };
        let content = Bytes::from(sidecar::write(&digest));
        let sidecars = places.iter().map(|place| join(place, &sidecar::name(algorithm)));
        files.extend(sidecars.map(|key| self.root.own_file(key, content.clone())));
        if self.waiting.aside && self.base.is_none() {
            let name = spec.object_declaration();
            let content = format!("{}\n", name.strip_prefix("0=").unwrap_or_default());
            files.push(self.root.own_file(join(&self.waiting.object, &name), content));
        }
        let note = self.note(id, Some(digest.clone()));
        if self.waiting.aside {
            // One flush for all: before sealing it is checked that the others are there.
            files.push(note.file(&self.root));
            store.put_batch(files).await?;
        } else {
            store.put_batch(files).await?;
            self.root.put_note(&note).await?;
        }
        Ok(digest)
    }

    /// Removes content that nothing names: of an earlier attempt that this one did not take over,
    /// or of a put that did not end well.
    async fn remove_strays(&self, content_directory: &str) -> Result<()> {
        self.root.abort_uploads(&self.waiting.version).await?;
        let prefix = join(&self.waiting.version, content_directory);
        let cut = self.waiting.object.len() + 1;
        let mut entries = list_all(self.root.store.clone(), &prefix, true);
        while let Some(entry) = entries.try_next().await? {
            let content_path = entry.key.get(cut..).unwrap_or_default();
            if !self.contents().is_reserved(content_path) {
                self.root.store.delete(&entry.key).await?;
            }
        }
        Ok(())
    }
}

/// Whether an inventory is written in memory rather than as a stream.
fn is_small(inventory: &Inventory) -> bool {
    const ENTRIES_MAX: usize = 5000;
    let states: usize = inventory.versions.iter().map(|version| version.state.len()).sum();
    inventory.manifest.len() + states <= ENTRIES_MAX
}

/// An inventory as a small file, and its digest.
async fn in_memory(inventory: Inventory) -> Result<(Bytes, String)> {
    let place = inventory.id.clone();
    let failed = |source: io::Error| Error::Io { place, source };
    let written = tokio::task::spawn_blocking(move || {
        let mut content = Vec::new();
        inventory.write(&mut content)?;
        let digest = inventory.algorithm.hex(&content);
        Ok((content.into(), digest))
    });
    written.await.unwrap_or_else(|error| Err(error.into())).map_err(failed)
}

/// Writes an inventory as a stream; returns its digest.
async fn put_inventory(
    store: &Arc<dyn Store>,
    key: &str,
    inventory: Inventory,
    options: &PutOptions,
) -> Result<String> {
    const CHUNKS_WAITING: usize = 4;
    let (sender, receiver) = mpsc::channel(CHUNKS_WAITING);
    let algorithm = inventory.algorithm;
    let writing = tokio::task::spawn_blocking(move || {
        let mut writer = ChunkWriter::new(sender, algorithm);
        inventory.write(&mut writer)?;
        writer.finish()
    });
    let chunks = stream::try_unfold(receiver, |mut receiver| async move {
        Ok::<_, io::Error>(receiver.recv().await.map(|chunk| (chunk, receiver)))
    });
    // A panic of the writer would end the stream early; the writer's result tells, and the
    // caller notes the inventory only after that.
    let put = store.put(key, Body::from_stream(chunks, None), options).await;
    let failed = |source: io::Error| Error::Io { place: key.to_owned(), source };
    let written = writing.await.map_err(|error| failed(error.into()))?;
    put?;
    written.map_err(failed)
}

/// Cuts what is written into chunks and takes the digest on the way.
struct ChunkWriter {
    sender: mpsc::Sender<Bytes>,
    buffer: Vec<u8>,
    hasher: SingleHasher,
}

const CHUNK_BYTES: usize = 256 * 1024;

impl ChunkWriter {
    fn new(sender: mpsc::Sender<Bytes>, algorithm: Algorithm) -> ChunkWriter {
        let buffer = Vec::with_capacity(CHUNK_BYTES);
        ChunkWriter { sender, buffer, hasher: SingleHasher::new(algorithm) }
    }

    fn send(&mut self) -> io::Result<()> {
        let chunk = std::mem::replace(&mut self.buffer, Vec::with_capacity(CHUNK_BYTES));
        self.hasher.update(&chunk);
        self.sender.blocking_send(chunk.into()).map_err(io::Error::other)
    }

    fn finish(mut self) -> io::Result<String> {
        if !self.buffer.is_empty() {
            self.send()?;
        }
        Ok(self.hasher.finish().to_string())
    }
}

impl Write for ChunkWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.buffer.len() + bytes.len() > CHUNK_BYTES && !self.buffer.is_empty() {
            self.send()?;
        }
        self.buffer.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
