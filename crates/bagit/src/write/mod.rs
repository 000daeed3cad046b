//! Making bags: in place, as a new directory, or as a tar stream; and bringing manifests up to
//! date. The same input gives the same bytes.

mod archive;
mod copy;
mod in_place;
mod ledger;
mod tag_files;
mod tar;
pub mod tar_blocks;
mod update;

pub use archive::create_tar;
pub use copy::create;
pub use in_place::create_in_place;
pub use tar::TarBag;
pub use update::{UpdateOptions, update};

use crate::info::{Oxum, Tags};
use digest::{Algorithm, Algorithms};
use serde::Serialize;

/// How a new bag is made.
#[derive(Debug, Clone)]
pub struct WriteOptions {
    /// Algorithms of payload and tag manifests.
    pub algorithms: Algorithms,
    /// What bag-info.txt says beside Payload-Oxum, in order.
    pub tags: Tags,
    /// `Bagging-Date` as YYYY-MM-DD; without it the bag says nothing of the day.
    pub date: Option<String>,
    /// `Bag-Software-Agent`.
    pub agent: Option<String>,
    /// Threads that hash.
    pub workers: usize,
}

impl Default for WriteOptions {
    fn default() -> WriteOptions {
        WriteOptions {
            algorithms: [Algorithm::Sha512].into_iter().collect(),
            tags: Tags::default(),
            date: None,
            agent: None,
            workers: std::thread::available_parallelism().map_or(1, usize::from),
        }
    }
}

/// What was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Written {
    pub payload: Oxum,
    pub algorithms: Vec<Algorithm>,
}

impl WriteOptions {
    /// bag-info.txt of the finished bag.
    fn info(&self, payload: Oxum) -> Tags {
        let mut tags = self.tags.clone();
        if let Some(date) = &self.date {
            tags.set("Bagging-Date", date);
        }
        if let Some(agent) = &self.agent {
            tags.set("Bag-Software-Agent", agent);
        }
        tags.set("Payload-Oxum", payload.to_string());
        tags
    }

    fn check(&self) -> Result<(), crate::Error> {
        if self.algorithms.is_empty() {
            return Err(crate::Error::Refused(
                "a bag needs at least one manifest algorithm".into(),
            ));
        }
        for tag in &self.tags.0 {
            let wrong = tag.label.is_empty()
                || tag.label.trim() != tag.label
                || tag.label.contains([':', '\n', '\r']);
            if wrong {
                let message = format!("{:?} cannot be a label of bag-info.txt", tag.label);
                return Err(crate::Error::Refused(message));
            }
        }
        Ok(())
    }
}
