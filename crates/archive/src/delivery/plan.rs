//! What goes into a package, in an order that is the same for every run.
//!
//! The files of a version come from the registry, page by page, in the order of their paths; what is made
//! for the package comes before or after them. So a plan takes little memory, and a run that goes on
//! after a kill finds the members where the run before has put them.

use super::{Content, MadeFile, Member};
use crate::app::App;
use crate::model::error::{Error, Result};
use crate::model::glob::Patterns;
use crate::model::id::ObjectId;
use crate::registry::restoring;
use crate::registry::view::FileView;
use crate::stores::copies::StoredFile;
use db::Micros;
use futures_util::stream::{self, BoxStream};
use futures_util::{StreamExt, TryStreamExt};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::sync::Arc;

/// How paths of the object become paths of the package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Naming {
    /// As they are.
    Whole,
    /// Without `data/`, which all of them begin with.
    Payload,
    /// As in a bag, below this directory of the package; with a slash at its end, or empty.
    Bag(String),
    /// The last part of the path: one file by itself.
    Last,
}

impl Naming {
    fn name(&self, path: &str) -> String {
        match self {
            Naming::Whole => path.to_string(),
            Naming::Payload => path.strip_prefix("data/").unwrap_or(path).to_string(),
            Naming::Bag(base) => {
                format!("{base}{}", path.strip_prefix("tags/").unwrap_or(path))
            }
            Naming::Last => path.rsplit('/').next().unwrap_or(path).to_string(),
        }
    }
}

/// Which files of which version.
#[derive(Clone)]
pub struct Selection {
    pub app: Arc<App>,
    pub object: ObjectId,
    pub version: i64,
    pub patterns: Patterns,
    /// Files that no store has intact, and files that a made one takes the place of.
    pub without: Arc<BTreeSet<String>>,
}

/// Files of one page.
const PAGE: i64 = 1000;

impl Selection {
    fn wants(&self, path: &str) -> bool {
        self.patterns.matches(path) && !self.without.contains(path)
    }

    /// The files, in the order of their paths.
    pub fn files(&self) -> BoxStream<'static, Result<FileView>> {
        let selection = self.clone();
        let pages = stream::try_unfold(Some(String::new()), move |after| {
            let selection = selection.clone();
            async move {
                let Some(after) = after else { return Ok(None) };
                let (object, version) = (selection.object, selection.version);
                let read = move |tx: &mut db::Tx<'_>| {
                    crate::registry::view::files(tx, object, version, &after, PAGE)
                };
                let page: Vec<FileView> = selection.app.db.read(read).await?;
                let Some(last) = page.last().map(|file| file.path.clone()) else { return Ok(None) };
                let wanted: Vec<Result<FileView>> =
                    page.into_iter().filter(|file| selection.wants(&file.path)).map(Ok).collect();
                Ok::<_, Error>(Some((stream::iter(wanted), Some(last))))
            }
        });
        pages.try_flatten().boxed()
    }

    /// The empty directories.
    pub async fn directories(&self) -> Result<Vec<(String, Option<Micros>)>> {
        let (object, version) = (self.object, self.version);
        let mut found = Vec::new();
        let mut after = String::new();
        loop {
            let from = after.clone();
            let read = move |tx: &mut db::Tx<'_>| {
                restoring::empty_directories(tx, object, version, &from, PAGE)
            };
            let page: Vec<(String, Option<Micros>)> = self.app.db.read(read).await?;
            let Some(last) = page.last() else { return Ok(found) };
            after = last.0.clone();
            found.extend(page.into_iter().filter(|(path, _)| self.wants(path)));
        }
    }
}

/// What is counted of the files of an object in a package.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    pub files: u64,
    pub bytes: u64,
}

/// The members of a package.
#[derive(Clone)]
pub struct Plan {
    pub selection: Selection,
    pub naming: Naming,
    /// Members before and after the files of the object.
    pub head: Vec<Member>,
    pub tail: Vec<Member>,
    pub totals: Totals,
    /// All members, where they are not files of a version.
    pub listed: Option<Arc<Vec<Member>>>,
}

/// A made file as it is kept between two stages, which compare it and need not make it again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MadeRecord {
    pub path: String,
    pub size: u64,
    pub sha512: String,
}

impl Plan {
    /// The files by themselves.
    pub async fn files(selection: Selection, naming: Naming) -> Result<Plan> {
        let mut directories = selection.directories().await?;
        if matches!(naming, Naming::Bag(_)) {
            // A bag without files still has a payload directory.
            directories.insert(0, ("data".to_string(), None));
        }
        let head = directories.into_iter().map(|(path, modified)| Member {
            path: naming.name(&path),
            modified,
            content: Content::Directory,
        });
        let head = head.collect();
        let mut totals = Totals::default();
        let mut files = selection.files();
        while let Some(file) = files.try_next().await? {
            totals.files += 1;
            totals.bytes += u64::try_from(file.size).unwrap_or(0);
        }
        Ok(Plan { selection, naming, head, tail: Vec::new(), totals, listed: None })
    }

    /// All members, in their order.
    pub fn members(&self) -> BoxStream<'static, Result<Member>> {
        if let Some(listed) = self.listed.clone() {
            let members = (0..listed.len()).map(move |at| Ok(listed[at].clone()));
            return stream::iter(members).boxed();
        }
        let naming = self.naming.clone();
        let stored = self.selection.files().map_ok(move |file| Member {
            path: naming.name(&file.path),
            modified: file.modified,
            content: Content::Stored(StoredFile::of_view(&file)),
        });
        let all = |members: &[Member]| {
            stream::iter(members.iter().cloned().map(Ok).collect::<Vec<Result<Member>>>())
        };
        all(&self.head).chain(stored).chain(all(&self.tail)).boxed()
    }

    /// The bytes of all members.
    pub fn bytes(&self) -> u64 {
        let made = self.head.iter().chain(&self.tail).map(Member::size);
        self.totals.bytes + made.sum::<u64>()
    }

    /// The made files before and after the files of the object.
    pub fn made(&self) -> (Vec<MadeRecord>, Vec<MadeRecord>) {
        let records = |members: &[Member]| {
            let made = members.iter().filter_map(|member| match &member.content {
                Content::Made(file) => Some(MadeRecord {
                    path: member.path.clone(),
                    size: file.size,
                    sha512: file.sha512.clone(),
                }),
                _ => None,
            });
            made.collect()
        };
        (records(&self.head), records(&self.tail))
    }

    /// The plan of a package that is written, to be compared with it.
    pub async fn of_record(
        mut selection: Selection,
        naming: Naming,
        (head, tail): (Vec<MadeRecord>, Vec<MadeRecord>),
    ) -> Result<Plan> {
        if let Naming::Bag(base) = &naming {
            // Tag files that a made one takes the place of.
            let mut without = BTreeSet::clone(&selection.without);
            let replaced = tail.iter().filter_map(|record| record.path.strip_prefix(base.as_str()));
            without.extend(replaced.map(|path| format!("tags/{path}")));
            selection.without = Arc::new(without);
        }
        let made = |record: MadeRecord| Member {
            path: record.path,
            modified: None,
            content: Content::Made(MadeFile::known(record.size, record.sha512)),
        };
        let mut plan = Plan::files(selection, naming).await?;
        plan.head = head.into_iter().map(made).chain(plan.head).collect();
        plan.tail = tail.into_iter().map(made).collect();
        Ok(plan)
    }
}
