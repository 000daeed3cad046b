//! Where the bytes of an archive go: a file, a stream to a store, or a compressor before either.

use super::writer::WriteError;
use bytes::{Bytes, BytesMut};
use digest::Sha256;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::mpsc;

/// Bytes that can be taken back to a mark, where what they go to allows it.
pub trait Sink: Write + Send {
    /// A place that can be gone back to.
    fn mark(&mut self) -> io::Result<u64>;

    /// Goes back to a mark.
    fn rewind(&mut self, mark: u64) -> Result<(), WriteError>;

    /// Says that nothing follows.
    fn finish(&mut self) -> io::Result<()>;
}

impl Sink for Box<dyn Sink> {
    fn mark(&mut self) -> io::Result<u64> {
        (**self).mark()
    }

    fn rewind(&mut self, mark: u64) -> Result<(), WriteError> {
        (**self).rewind(mark)
    }

    fn finish(&mut self) -> io::Result<()> {
        (**self).finish()
    }
}

const BUFFER_BYTES: usize = 1 << 20;

/// A file of this machine. It is made durable when it gets its name, so that the disk works while the
/// package is read again.
pub struct FileSink {
    file: File,
    buffer: Vec<u8>,
    /// How much of the file is written.
    at: u64,
    /// Takes the digest of what is written, while that is all that the file has.
    hasher: Option<Sha256>,
    written: Arc<Mutex<Option<Sent>>>,
}

impl FileSink {
    /// Goes on after the first `at` bytes of a file; what follows them is cut off.
    pub fn new(mut file: File, at: u64) -> io::Result<FileSink> {
        file.set_len(at)?;
        file.seek(SeekFrom::Start(at))?;
        let hasher = (at == 0).then(Sha256::new);
        let buffer = Vec::with_capacity(BUFFER_BYTES);
        Ok(FileSink { file, buffer, at, hasher, written: Arc::default() })
    }

    /// What was written once it is finished, if it was written from its beginning in one go.
    pub fn written(&self) -> Arc<Mutex<Option<Sent>>> {
        self.written.clone()
    }
}

impl Write for FileSink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.buffer.len() + bytes.len() > BUFFER_BYTES {
            self.flush()?;
        }
        match bytes.len() >= BUFFER_BYTES {
            true => {
                if let Some(hasher) = &mut self.hasher {
                    hasher.update(bytes);
                }
                self.file.write_all(bytes)?;
                self.at += bytes.len() as u64;
            }
            false => self.buffer.extend_from_slice(bytes),
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if let Some(hasher) = &mut self.hasher {
            hasher.update(&self.buffer);
        }
        self.file.write_all(&self.buffer)?;
        self.at += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }
}

impl Sink for FileSink {
    fn mark(&mut self) -> io::Result<u64> {
        Ok(self.at + self.buffer.len() as u64)
    }

    fn rewind(&mut self, mark: u64) -> Result<(), WriteError> {
        self.flush()?;
        self.file.set_len(mark)?;
        self.file.seek(SeekFrom::Start(mark))?;
        self.at = mark;
        // What was taken back is in the digest.
        self.hasher = (mark == 0).then(Sha256::new);
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        self.flush()?;
        let sha256 = self.hasher.take().map(|hasher| digest::to_hex(&hasher.finish()));
        let written = sha256.map(|sha256| Sent { bytes: self.at, sha256 });
        *self.written.lock().unwrap_or_else(PoisonError::into_inner) = written;
        Ok(())
    }
}

/// What was written or sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sent {
    pub bytes: u64,
    pub sha256: String,
}

/// A stream to a store. Its end is said: a stream whose writer is gone is cut off, not at its end.
pub struct ChannelSink {
    to: mpsc::Sender<Option<Bytes>>,
    buffer: BytesMut,
    hasher: Option<Sha256>,
    bytes: u64,
    sent: Arc<Mutex<Option<Sent>>>,
}

impl ChannelSink {
    /// The sink, the stream, and what was sent once it is finished.
    pub fn new() -> (ChannelSink, mpsc::Receiver<Option<Bytes>>, Arc<Mutex<Option<Sent>>>) {
        let (to, from) = mpsc::channel(8);
        let sent = Arc::new(Mutex::new(None));
        let sink = ChannelSink {
            to,
            buffer: BytesMut::with_capacity(BUFFER_BYTES),
            hasher: Some(Sha256::new()),
            bytes: 0,
            sent: sent.clone(),
        };
        (sink, from, sent)
    }

    fn send(&mut self, what: Option<Bytes>) -> io::Result<()> {
        self.to.blocking_send(what).map_err(|_| io::Error::other("the upload has ended"))
    }
}

impl Write for ChannelSink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(hasher) = &mut self.hasher {
            hasher.update(bytes);
        }
        self.bytes += bytes.len() as u64;
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= BUFFER_BYTES {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let bytes = self.buffer.split().freeze();
        match bytes.is_empty() {
            true => Ok(()),
            false => self.send(Some(bytes)),
        }
    }
}

impl Sink for ChannelSink {
    fn mark(&mut self) -> io::Result<u64> {
        Ok(self.bytes)
    }

    fn rewind(&mut self, mark: u64) -> Result<(), WriteError> {
        match mark == self.bytes {
            true => Ok(()),
            false => Err(WriteError::CannotRewind),
        }
    }

    fn finish(&mut self) -> io::Result<()> {
        self.flush()?;
        let sha256 = self.hasher.take().map(|hasher| digest::to_hex(&hasher.finish()));
        let sent = Sent { bytes: self.bytes, sha256: sha256.unwrap_or_default() };
        *self.sent.lock().unwrap_or_else(PoisonError::into_inner) = Some(sent);
        self.send(None)
    }
}

/// Forgets what is written, and counts it.
#[derive(Default)]
pub struct NullSink {
    bytes: u64,
}

impl Write for NullSink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Sink for NullSink {
    fn mark(&mut self) -> io::Result<u64> {
        Ok(self.bytes)
    }

    fn rewind(&mut self, mark: u64) -> Result<(), WriteError> {
        self.bytes = mark;
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Compresses. A mark begins a new gzip member, which every reader joins with the one before it.
pub struct GzipSink<S: Sink> {
    encoder: Option<GzEncoder<S>>,
    /// Nothing was written since the last mark.
    is_fresh: bool,
}

fn gzip<S: Sink>(inner: S) -> GzEncoder<S> {
    // No name and no time: the same input gives the same bytes.
    flate2::GzBuilder::new().write(inner, Compression::fast())
}

impl<S: Sink> GzipSink<S> {
    pub fn new(inner: S) -> GzipSink<S> {
        GzipSink { encoder: Some(gzip(inner)), is_fresh: true }
    }

    fn encoder(&mut self) -> io::Result<&mut GzEncoder<S>> {
        self.encoder.as_mut().ok_or_else(|| io::Error::other("the compressor has ended"))
    }

    /// Ends the gzip member.
    fn end_member(&mut self) -> io::Result<S> {
        let encoder = self.encoder.take();
        encoder.ok_or_else(|| io::Error::other("the compressor has ended"))?.finish()
    }
}

impl<S: Sink> Write for GzipSink<S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.is_fresh = false;
        self.encoder()?.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.encoder()?.flush()
    }
}

impl<S: Sink> Sink for GzipSink<S> {
    fn mark(&mut self) -> io::Result<u64> {
        let mut inner = self.end_member()?;
        let mark = inner.mark()?;
        self.encoder = Some(gzip(inner));
        self.is_fresh = true;
        Ok(mark)
    }

    fn rewind(&mut self, mark: u64) -> Result<(), WriteError> {
        let mut inner = self.end_member()?;
        inner.rewind(mark)?;
        self.encoder = Some(gzip(inner));
        self.is_fresh = true;
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        let mut inner = self.end_member()?;
        inner.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn a_compressed_stream_goes_back_to_its_mark() {
        let mut file = tempfile::tempfile().unwrap();
        let mut sink = GzipSink::new(FileSink::new(file.try_clone().unwrap(), 0).unwrap());
        sink.write_all(b"one ").unwrap();
        let mark = sink.mark().unwrap();
        sink.write_all(b"wrong").unwrap();
        sink.rewind(mark).unwrap();
        sink.write_all(b"two").unwrap();
        sink.finish().unwrap();
        file.seek(SeekFrom::Start(0)).unwrap();
        let mut text = String::new();
        flate2::read::MultiGzDecoder::new(file).read_to_string(&mut text).unwrap();
        assert_eq!(text, "one two");
    }
}
