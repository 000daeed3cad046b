//! Brings the members of a package from the copies of an object to the thread that writes it.

use super::writer::{PackageWriter, WriteError};
use super::{Content, Member, SMALL_BYTES};
use crate::model::error::{Error, Result};
use crate::stores::copies::{Copies, StoredFile};
use crate::stores::reading::{Piece, ReadError};
use bytes::Bytes;
use futures_util::stream::{self, BoxStream};
use futures_util::{Stream, StreamExt, TryStreamExt};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

/// Small files are read in groups of at most so many files and bytes, and so many groups ahead of the
/// one that is written.
const GROUP: usize = 64;
const GROUP_BYTES: u64 = 4 << 20;
const GROUPS_AHEAD: usize = 3;
/// Parts that wait for the writer; each is at most a few mebibytes.
const PARTS_WAITING: usize = 4;

/// What the writer is told.
enum Part {
    /// Files that were read whole and compared.
    Whole(Vec<(Member, Bytes)>),
    Begin(Member),
    Bytes(Bytes),
    Restart,
    Abandon,
    End,
    /// Every member was fed.
    Finish,
}

/// What the run that writes a package is told and asked.
pub trait Observer: Sync {
    /// So many bytes were handed to the writer.
    fn bytes(&self, _bytes: u64) {}
    /// So many were taken back.
    fn taken_back(&self, _bytes: u64) {}
    /// Whether to stop.
    fn is_stopped(&self) -> bool {
        false
    }
    /// Whether a member was written, and compared, by an earlier run.
    fn is_there(&self, _member: &Member) -> bool {
        false
    }
}

/// An observer that asks for nothing.
impl Observer for () {}

/// A file that no copy has intact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MissingFile {
    /// Its path in the object.
    pub path: String,
    pub bytes: u64,
    pub why: String,
}

/// How writing a package ended.
#[derive(Debug)]
pub enum Written {
    /// It is complete, but for the files that are missing.
    Complete(Vec<MissingFile>),
    /// Files are missing that the package promises: it has to be planned again without them.
    Incomplete(Vec<MissingFile>),
    /// Something that was sent has to be taken back, and cannot be: the package is begun again.
    BeginAgain,
    /// A file is in cold storage, and has to be thawed first.
    Frozen(String),
}

/// Writes a package. With `needs_all`, one that lacks a file is not completed.
pub async fn write(
    copies: &Copies,
    members: BoxStream<'static, Result<Member>>,
    writer: Box<dyn PackageWriter>,
    needs_all: bool,
    observer: &dyn Observer,
) -> Result<Written, PackageError> {
    let (to, parts) = mpsc::channel(PARTS_WAITING);
    let writing = tokio::task::spawn_blocking(move || drain(parts, writer));
    let mut feed = Feed { copies, to, observer, missing: Vec::new() };
    let mut fed = feed.all(members).await;
    let Feed { to, missing, .. } = feed;
    if fed.is_ok() && (missing.is_empty() || !needs_all) && to.send(Part::Finish).await.is_err() {
        fed = Err(FeedError::WriterEnded);
    }
    drop(to);
    let wrote = match writing.await {
        Ok(wrote) => wrote,
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        Err(_) => return Err(Error::Stopped.into()),
    };
    match (fed, wrote) {
        (_, Err(WriteError::CannotRewind)) => Ok(Written::BeginAgain),
        (_, Err(WriteError::Io(error))) => Err(PackageError::Write(error)),
        (Err(FeedError::Frozen(message)), _) => Ok(Written::Frozen(message)),
        (Err(FeedError::Failed(error)), _) => Err(error.into()),
        (Err(FeedError::WriterEnded), _) => Err(Error::Stopped.into()),
        (Ok(()), Ok(())) if needs_all && !missing.is_empty() => Ok(Written::Incomplete(missing)),
        (Ok(()), Ok(())) => Ok(Written::Complete(missing)),
    }
}

/// Why a package could not be written.
#[derive(Debug)]
pub enum PackageError {
    /// A store, the database, or a request to stop.
    Source(Error),
    /// The destination.
    Write(std::io::Error),
}

impl From<Error> for PackageError {
    fn from(error: Error) -> PackageError {
        PackageError::Source(error)
    }
}

enum FeedError {
    Failed(Error),
    Frozen(String),
    /// The writer has given up; it says why.
    WriterEnded,
}

impl From<Error> for FeedError {
    fn from(error: Error) -> FeedError {
        FeedError::Failed(error)
    }
}

/// Writes what arrives. Parts that end without [`Part::Finish`] leave an unfinished package.
fn drain(
    mut parts: mpsc::Receiver<Part>,
    mut writer: Box<dyn PackageWriter>,
) -> Result<(), WriteError> {
    let mut current: Option<Member> = None;
    while let Some(part) = parts.blocking_recv() {
        match (part, &current) {
            (Part::Whole(files), _) => {
                for (member, bytes) in files {
                    writer.begin(&member)?;
                    writer.write(&bytes)?;
                    writer.end(&member)?;
                }
            }
            (Part::Begin(member), _) => {
                writer.begin(&member)?;
                current = Some(member);
            }
            (Part::Bytes(bytes), _) => writer.write(&bytes)?,
            (Part::Restart, Some(member)) => writer.restart(member)?,
            (Part::Abandon, Some(member)) => writer.abandon(member)?,
            (Part::End, Some(member)) => writer.end(member)?,
            (Part::Finish, _) => return writer.finish(),
            (Part::Restart | Part::Abandon | Part::End, None) => {}
        }
    }
    Ok(())
}

/// Members that are read together.
enum Group {
    Small(Vec<Member>),
    One(Member),
}

/// A group with what was read of it.
enum Read {
    Small(Vec<(Member, Result<Bytes, ReadError>)>),
    One(Member),
}

fn stored(member: &Member) -> Option<StoredFile> {
    match &member.content {
        Content::Stored(file) => Some(file.clone()),
        _ => None,
    }
}

/// Groups neighbours that are small.
fn groups(
    members: impl Stream<Item = Result<Member>> + Send,
) -> impl Stream<Item = Result<Group>> + Send {
    let is_small = |member: &Member| matches!(&member.content, Content::Stored(file) if file.size <= SMALL_BYTES);
    let state = (Box::pin(members), None);
    stream::try_unfold(state, move |(mut members, next): (_, Option<Member>)| async move {
        let first = match next {
            Some(member) => member,
            None => match members.try_next().await? {
                Some(member) => member,
                None => return Ok(None),
            },
        };
        if !is_small(&first) {
            return Ok(Some((Group::One(first), (members, None))));
        }
        let (mut bytes, mut group) = (first.size(), vec![first]);
        let mut next = None;
        while group.len() < GROUP {
            let Some(member) = members.try_next().await? else { break };
            if !is_small(&member) || bytes + member.size() > GROUP_BYTES {
                next = Some(member);
                break;
            }
            bytes += member.size();
            group.push(member);
        }
        Ok(Some((Group::Small(group), (members, next))))
    })
}

struct Feed<'a> {
    copies: &'a Copies,
    to: mpsc::Sender<Part>,
    observer: &'a dyn Observer,
    missing: Vec<MissingFile>,
}

impl Feed<'_> {
    async fn send(&self, part: Part) -> Result<(), FeedError> {
        self.to.send(part).await.map_err(|_| FeedError::WriterEnded)
    }

    async fn all(&mut self, members: BoxStream<'static, Result<Member>>) -> Result<(), FeedError> {
        let (copies, observer) = (self.copies, self.observer);
        let wanted = members.try_filter(|member| {
            let is_there = observer.is_there(member);
            if is_there {
                observer.bytes(member.size());
            }
            std::future::ready(!is_there)
        });
        let ahead = groups(wanted).map(|group| async move {
            Ok::<_, Error>(match group? {
                Group::Small(members) => {
                    let files: Vec<StoredFile> = members.iter().filter_map(stored).collect();
                    let read = copies.read_small(&files).await;
                    Read::Small(members.into_iter().zip(read).collect())
                }
                Group::One(member) => Read::One(member),
            })
        });
        let mut ahead = std::pin::pin!(ahead.buffered(GROUPS_AHEAD));
        while let Some(read) = ahead.try_next().await? {
            if self.observer.is_stopped() {
                return Err(Error::Stopped.into());
            }
            match read {
                Read::Small(files) => self.small(files).await?,
                Read::One(member) => self.large(member).await?,
            }
        }
        Ok(())
    }

    async fn small(
        &mut self,
        files: Vec<(Member, Result<Bytes, ReadError>)>,
    ) -> Result<(), FeedError> {
        let mut whole = Vec::with_capacity(files.len());
        for (member, read) in files {
            match read {
                Ok(bytes) => {
                    self.observer.bytes(bytes.len() as u64);
                    whole.push((member, bytes));
                }
                Err(error) => self.missing(&member, error)?,
            }
        }
        self.send(Part::Whole(whole)).await
    }

    /// A file that is damaged everywhere is left out and named; anything else ends the run.
    fn missing(&mut self, member: &Member, error: ReadError) -> Result<(), FeedError> {
        match (error, &member.content) {
            (ReadError::Damaged(why), Content::Stored(file)) => {
                self.missing.push(MissingFile { path: file.path.clone(), bytes: file.size, why });
                Ok(())
            }
            (ReadError::Frozen(message), _) => Err(FeedError::Frozen(message)),
            (error, _) => Err(Error::from(error).into()),
        }
    }

    async fn large(&mut self, member: Member) -> Result<(), FeedError> {
        match &member.content {
            Content::Directory => {
                self.send(Part::Begin(member)).await?;
                self.send(Part::End).await
            }
            Content::Made(file) => {
                let file = file.clone();
                self.send(Part::Begin(member)).await?;
                let mut at = 0;
                loop {
                    let bytes = file.read_at(at).map_err(Error::Output)?;
                    if bytes.is_empty() {
                        return self.send(Part::End).await;
                    }
                    at += bytes.len() as u64;
                    self.observer.bytes(bytes.len() as u64);
                    self.send(Part::Bytes(bytes)).await?;
                }
            }
            Content::Stored(file) => {
                let file = file.clone();
                let mut reader = self.copies.read(&file);
                let (mut has_begun, mut fed) = (false, 0);
                loop {
                    if self.observer.is_stopped() {
                        return Err(Error::Stopped.into());
                    }
                    let piece = match reader.next().await {
                        Ok(piece) => piece,
                        Err(error) => {
                            self.observer.taken_back(fed);
                            self.missing(&member, error)?;
                            return match has_begun {
                                true => self.send(Part::Abandon).await,
                                false => Ok(()),
                            };
                        }
                    };
                    if !has_begun {
                        self.send(Part::Begin(member.clone())).await?;
                        has_begun = true;
                    }
                    match piece {
                        Piece::Bytes(bytes) => {
                            fed += bytes.len() as u64;
                            self.observer.bytes(bytes.len() as u64);
                            self.send(Part::Bytes(bytes)).await?;
                        }
                        Piece::Restart => {
                            self.observer.taken_back(fed);
                            fed = 0;
                            self.send(Part::Restart).await?;
                        }
                        Piece::End => return self.send(Part::End).await,
                    }
                }
            }
        }
    }
}
