//! The end of a version's first half: its inventory.

use super::Draft;
use crate::digest::{Algorithm, Hasher};
use crate::error::{Error, Result};
use crate::inventory::{INVENTORY, Inventory};
use crate::sidecar;
use crate::unsealed::Unsealed;
use bytes::Bytes;
use futures_util::{TryStreamExt, stream};
use std::io::{self, Write};
use std::sync::Arc;
use store::{Body, PutOptions, SmallFile, Store, join, list_all};
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
        if self.adopting {
            self.remove_strays(inventory.content_directory()).await?;
        }
        let spec = inventory.spec;
        let key = join(&self.waiting.version, INVENTORY);
        let inventory_digest = put_inventory(&store, &key, inventory).await?;
        let name = sidecar::name(self.algorithm);
        let content = Bytes::from(sidecar::write(&inventory_digest));
        let mut files =
            vec![SmallFile { key: join(&self.waiting.version, &name), content: content.clone() }];
        if self.waiting.aside && self.base.is_none() {
            // A new object waits whole, so that one rename makes it visible.
            store.copy(&key, &join(&self.waiting.object, INVENTORY)).await?;
            let declaration = spec.object_declaration();
            let value = format!("{}\n", declaration.strip_prefix("0=").unwrap_or_default());
            files.push(SmallFile { key: join(&self.waiting.object, &name), content });
            let key = join(&self.waiting.object, &declaration);
            files.push(SmallFile { key, content: value.into() });
        }
        store.put_batch(files).await?;
        self.root.put_note(&self.note(&id, Some(inventory_digest.clone()))).await?;
        let (path, version, algorithm) = (self.path, self.version, self.algorithm);
        Ok(Unsealed { id, path, version, inventory_digest, algorithm })
    }

    /// Removes content of an earlier attempt that this one did not take over.
    async fn remove_strays(&self, content_directory: &str) -> Result<()> {
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

/// Writes an inventory as a stream; returns its digest.
async fn put_inventory(store: &Arc<dyn Store>, key: &str, inventory: Inventory) -> Result<String> {
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
    let put = store.put(key, Body::from_stream(chunks, None), &PutOptions::default()).await;
    let failed = |source: io::Error| Error::Io { place: key.to_owned(), source };
    let written = writing.await.map_err(|error| failed(error.into()))?;
    put?;
    written.map_err(failed)
}

/// Cuts what is written into chunks and takes the digest on the way.
struct ChunkWriter {
    sender: mpsc::Sender<Bytes>,
    buffer: Vec<u8>,
    hasher: Hasher,
}

const CHUNK_BYTES: usize = 256 * 1024;

impl ChunkWriter {
    fn new(sender: mpsc::Sender<Bytes>, algorithm: Algorithm) -> ChunkWriter {
        let buffer = Vec::with_capacity(CHUNK_BYTES);
        ChunkWriter { sender, buffer, hasher: Hasher::new(algorithm) }
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
        Ok(self.hasher.finish())
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
