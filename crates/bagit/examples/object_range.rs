//! Validates a bag inside an object of a store, of which only ranges are read.
//!
//! `Store` stands for a client: `read_at` would be one GET with a `Range` header.

use bagit::source::read_at::{Range, ReadAt};
use bagit::{Bag, Options, TarBag};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

struct Store {
    object: Vec<u8>,
    requests: AtomicU64,
}

impl ReadAt for Store {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.object.read_at(buffer, offset)
    }

    fn size(&self) -> io::Result<u64> {
        self.object.size()
    }
}

fn main() -> Result<(), bagit::Error> {
    let mut bag = TarBag::new(Vec::new(), "bag", Default::default())?;
    bag.add_payload("hello.txt", 6, &mut &b"hello\n"[..])?;
    let (tar, _) = bag.finish()?;
    let len = tar.len() as u64;
    let object = [b"something before the bag".to_vec(), tar].concat();

    let store = std::sync::Arc::new(Store { object, requests: AtomicU64::new(0) });
    let range = Range::new(store.clone(), 24, len).map_err(|e| bagit::Error::io("object", e))?;
    let report = Bag::from_read_at(range, "bag")?.validate(&Options::default())?;
    let requests = store.requests.load(Ordering::Relaxed);
    println!("valid: {}, with {requests} requests", report.valid);
    Ok(())
}
