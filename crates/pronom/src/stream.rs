//! Identification in the same pass as hashing: fed with the bytes as they go by.

use crate::error::Result;
use crate::identify::{Identifier, Windows};
use crate::result::{Identification, Scope};
use crate::scan::Scan;
use crate::source::Source;

/// An identification under way. It keeps the beginning and the end of what it is fed, at most
/// [`Scope`] bytes of each, and nothing else.
#[derive(Debug)]
pub struct Stream<'i> {
    identifier: &'i Identifier,
    window: usize,
    head: Vec<u8>,
    /// The last bytes after the head; up to twice the window, then halved.
    tail: Vec<u8>,
    len: u64,
    scan: Option<Scan<'i>>,
}

impl<'i> Stream<'i> {
    pub(crate) fn new(identifier: &'i Identifier) -> Stream<'i> {
        let window = identifier.window_bytes();
        Stream { identifier, window, head: Vec::new(), tail: Vec::new(), len: 0, scan: None }
    }

    /// Takes the next bytes, in any portions.
    pub fn feed(&mut self, mut bytes: &[u8]) {
        self.len += bytes.len() as u64;
        if self.head.len() < self.window {
            let (now, later) = bytes.split_at(bytes.len().min(self.window - self.head.len()));
            self.head.extend_from_slice(now);
            bytes = later;
        }
        if bytes.is_empty() {
            return;
        }
        if self.identifier.scope() == Scope::Whole {
            let identifier = self.identifier;
            let scan = self.scan.get_or_insert_with(|| {
                let signatures = &identifier.set().signatures;
                Scan::begin(signatures, &identifier.index, &self.head, true, None)
            });
            scan.feed(bytes);
        }
        self.remember(bytes);
    }

    fn remember(&mut self, bytes: &[u8]) {
        let last = &bytes[bytes.len().saturating_sub(self.window)..];
        if self.tail.len() + last.len() > 2 * self.window {
            let keep = self.window.saturating_sub(last.len());
            self.tail.drain(..self.tail.len().saturating_sub(keep));
        }
        self.tail.extend_from_slice(last);
    }

    /// Says what it was. If the object can still be read by ranges, give it: containers larger
    /// than the two windows are then looked into, and a whole scan reaches as far back from the
    /// end as the signatures do. Without it a result may say that the container could not be
    /// looked into.
    ///
    /// # Errors
    /// When the object, if given, cannot be read.
    pub fn finish(
        mut self,
        name: Option<&str>,
        object: Option<&mut dyn Source>,
    ) -> Result<Identification> {
        // The end reaches back into the head if less than a window follows the head.
        let missing = self.window.saturating_sub(self.tail.len()).min(self.head.len());
        let mut tail = self.head[self.head.len() - missing..].to_vec();
        tail.append(&mut self.tail);
        let tail = &tail[tail.len().saturating_sub(self.window)..];
        let windows = Windows { head: &self.head, tail, len: self.len };
        let scan = self.scan.take().unwrap_or_else(|| {
            let signatures = &self.identifier.set().signatures;
            Scan::begin(signatures, &self.identifier.index, &self.head, false, None)
        });
        self.identifier.decide(scan, &windows, object, name)
    }
}
