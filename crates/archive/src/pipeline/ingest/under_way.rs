//! Work on several files at once, in their order: as many as a store is worth asking at a time, and
//! no more than there is memory for.

use crate::registry::ingest::JobFile;
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesOrdered;

/// How much of large files may be under way at once. A file counts at most as one part of it and
/// what is read ahead, since a store bounds what it has in memory beyond that.
const BYTES_MAX: u64 = 64 * 1024 * 1024;
const FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// What a file takes however small it is.
const FILE_BYTES_MIN: u64 = 1024 * 1024;

/// Files under way.
pub struct UnderWay<'a, T> {
    futures: FuturesOrdered<BoxFuture<'a, (T, u64)>>,
    at_once: usize,
    bytes: u64,
}

impl<'a, T: 'a> UnderWay<'a, T> {
    pub fn new(at_once: usize) -> UnderWay<'a, T> {
        UnderWay { futures: FuturesOrdered::new(), at_once, bytes: 0 }
    }

    /// Whether another file may be begun; one always may.
    pub fn has_room(&self, file: &JobFile) -> bool {
        let fits = self.bytes + weight(file) <= BYTES_MAX;
        self.futures.is_empty() || (self.futures.len() < self.at_once && fits)
    }

    /// Begins work on a file.
    pub fn push(&mut self, file: &JobFile, work: impl Future<Output = T> + Send + 'a) {
        let weight = weight(file);
        self.bytes += weight;
        self.futures.push_back(Box::pin(async move { (work.await, weight) }));
    }

    /// What became of the first file that is under way.
    pub async fn next(&mut self) -> Option<T> {
        let (done, weight) = self.futures.next().await?;
        self.bytes -= weight;
        Some(done)
    }
}

/// What a file takes of the memory: it is read a little ahead.
fn weight(file: &JobFile) -> u64 {
    let size = u64::try_from(file.size.unwrap_or(0)).unwrap_or(0);
    size.saturating_mul(3).clamp(FILE_BYTES_MIN, FILE_BYTES_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::codes::Change;

    fn file(size: i64) -> JobFile {
        JobFile {
            number: 1,
            path: "a".to_string(),
            size: Some(size),
            locator: b"a".to_vec(),
            source: None,
            sha512: None,
            digests: None,
            puid: None,
            format: None,
            modified: None,
            change: Change::Unknown,
        }
    }

    #[tokio::test]
    async fn files_end_in_their_order_within_bounds() {
        let mut under_way = UnderWay::new(3);
        let small = file(1000);
        for number in 0..3 {
            assert!(under_way.has_room(&small));
            under_way.push(&small, async move { number });
        }
        assert!(!under_way.has_room(&small), "three at once");
        assert_eq!(under_way.next().await, Some(0));
        assert!(under_way.has_room(&small));
        let mut under_way = UnderWay::new(100);
        let large = file(1 << 40);
        let mut begun = 0;
        while under_way.has_room(&large) {
            under_way.push(&large, async {});
            begun += 1;
        }
        assert_eq!(begun, 4, "as many as there is memory for");
        while under_way.next().await.is_some() {}
        assert_eq!(under_way.bytes, 0);
    }
}
