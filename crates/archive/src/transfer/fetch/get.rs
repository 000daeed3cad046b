//! One download: tries until the file is whole, each going on where the last one stopped.

use super::http::Answer;
use super::partial::{Partial, Source};
use super::rate::Meter;
use super::{Downloaded, Expect, Fetcher, Progress, Sink, error, facts, length, local};
use crate::ErrorCode;
use crate::{Error, Result};
use ::http::header::{
    CONTENT_RANGE, ETAG, HeaderValue, IF_RANGE, LAST_MODIFIED, RANGE, RETRY_AFTER,
};
use ::http::{HeaderMap, Method};
use std::path::Path;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncSeekExt};
use url::Url;

/// A server that cuts off every connection after a few bytes is given up in the end.
const TRIES_IN_ALL_MAX: u32 = 100;
const PAUSE_MAX: Duration = Duration::from_secs(10);
/// A server that asks for a longer wait is left to the job's own waits, which hold no worker.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(30);
const READ_BYTES: usize = 256 * 1024;

pub(super) struct Get<'a> {
    pub fetcher: &'a Fetcher,
    pub url: Url,
    pub expect: &'a Expect<'a>,
    pub sink: &'a mut dyn Sink,
    pub progress: &'a Progress<'a>,
    pub meter: Meter,
}

/// Why a try did not bring the whole file, and how long its server asks to be left alone.
struct Failed {
    error: Error,
    wait: Option<Duration>,
}

impl From<Error> for Failed {
    fn from(error: Error) -> Failed {
        Failed { error, wait: None }
    }
}

impl Get<'_> {
    pub(super) async fn run(mut self, into: &Path) -> Result<Downloaded> {
        let wanted = Source::of(self.url.as_str(), self.expect);
        let mut partial = Partial::open(into, wanted).await?;
        self.give_back(&mut partial);
        let there = partial.length;
        let (mut kept, mut furthest) = (there, there);
        let (mut tries, mut in_all) = (0, 0);
        if partial.is_whole() {
            self.check_size(Some(partial.length))?;
            partial.go_on(self.sink, self.progress).await?;
            return Ok(Downloaded { bytes: partial.finish().await?, resumed_from: there });
        }
        loop {
            let failed = match self.attempt(&mut partial, &mut kept).await {
                Ok(()) => break,
                Err(failed) => failed,
            };
            partial.flush().await?;
            let got_further = partial.length > furthest;
            furthest = furthest.max(partial.length);
            partial.keep_resumable().await?;
            self.give_back(&mut partial);
            (tries, in_all) = (if got_further { 1 } else { tries + 1 }, in_all + 1);
            let patient = failed.wait.is_none_or(|wait| wait <= RETRY_AFTER_MAX);
            // A server that crawls, and a work space that is full, are left to the job's own waits.
            let not_now = matches!(
                failed.error.own_code(),
                Some(ErrorCode::NoSpace | ErrorCode::WorkSpace | ErrorCode::HostSlow)
            );
            if !failed.error.is_transient()
                || not_now
                || !patient
                || tries >= self.fetcher.tries
                || in_all >= TRIES_IN_ALL_MAX
            {
                return Err(failed.error);
            }
            tracing::debug!(url = %error::shown(&self.url), got = partial.length, "{}; trying again", failed.error);
            let pause = failed.wait.unwrap_or_else(|| self.pause(tries));
            tokio::time::sleep(pause).await;
            self.meter.paused(pause);
        }
        Ok(Downloaded { bytes: partial.finish().await?, resumed_from: kept })
    }

    /// Doubles with each try, and is different each time so that many do not come back at once.
    fn pause(&self, tries: u32) -> Duration {
        let longest =
            (self.fetcher.pause * 2u32.saturating_pow(tries.saturating_sub(1))).min(PAUSE_MAX);
        longest.mul_f64(0.5 + fastrand::f64() / 2.0)
    }

    async fn attempt(&mut self, partial: &mut Partial, kept: &mut u64) -> Result<(), Failed> {
        if self.url.scheme() == "file" {
            return Ok(self.copy(partial, kept).await?);
        }
        let mut answer = self.ask(partial).await?;
        match answer.status.as_u16() {
            206 if partial.length > 0 => self.check_rest(&answer, partial)?,
            200 => {
                *kept = 0;
                self.start_over(&answer, partial).await?;
            }
            status => {
                let wait = answer.header(RETRY_AFTER).and_then(|text| text.trim().parse().ok());
                let error = match status {
                    206 => error::bad_answer(
                        &answer.url,
                        "a part was sent though the whole was asked for",
                    ),
                    _ => error::of_status(&answer.url, answer.status),
                };
                return Err(Failed { error, wait: wait.map(Duration::from_secs) });
            }
        }
        *kept = (*kept).min(partial.length);
        partial.go_on(self.sink, self.progress).await?;
        let url = self.url.clone();
        while let Some(chunk) = self.meter.watch(&url, answer.next()).await? {
            self.meter.arrived(chunk.len());
            self.check_more(partial, chunk.len()).await?;
            partial.append(&chunk, self.sink).await?;
            (self.progress)(partial.length);
        }
        Ok(self.check_end(partial)?)
    }

    /// Asks for the file, or for what is missing of it if it is still the same. A server that
    /// cannot go on (416, or a part that does not fit) is asked for the whole.
    async fn ask(&mut self, partial: &Partial) -> Result<Answer> {
        let version = partial.source.as_ref().and_then(Source::version);
        if let (Some(version), true) = (version, partial.length > 0)
            && let Ok(version) = HeaderValue::from_str(version)
        {
            let mut headers = HeaderMap::new();
            // A number and a dash are always a good header.
            if let Ok(range) = HeaderValue::from_str(&format!("bytes={}-", partial.length)) {
                headers.insert(RANGE, range);
                headers.insert(IF_RANGE, version);
            }
            let answer = self.send(&headers).await?;
            let fits = answer.status.as_u16() != 206 || part_of(&answer, partial).is_some();
            if fits && answer.status.as_u16() != 416 {
                return Ok(answer);
            }
        }
        self.send(&HeaderMap::new()).await
    }

    async fn send(&mut self, headers: &HeaderMap) -> Result<Answer> {
        self.fetcher.http.send(&Method::GET, &self.url, headers, &mut self.meter).await
    }

    /// What was given up takes no room any more.
    fn give_back(&self, partial: &mut Partial) {
        let bytes = std::mem::take(&mut partial.dropped);
        if let Some(room) = self.expect.room {
            room.give(bytes);
        }
    }

    fn check_rest(&self, answer: &Answer, partial: &Partial) -> Result<()> {
        match part_of(answer, partial) {
            Some(size) => self.check_size(size),
            None => Err(error::bad_answer(&answer.url, "the part does not fit what is there")),
        }
    }

    async fn start_over(&mut self, answer: &Answer, partial: &mut Partial) -> Result<()> {
        let head = facts(&answer.headers, false, length(&answer.headers));
        self.check_size(head.size)?;
        partial.begin(head.etag, head.last_modified, head.size).await?;
        self.give_back(partial);
        Ok(())
    }

    /// The most bytes that the file may have.
    fn bytes_max(&self) -> u64 {
        self.expect.bytes_max.unwrap_or(u64::MAX).min(self.fetcher.bytes_max)
    }

    /// Refuses a file of the wrong size before its bytes are fetched.
    fn check_size(&self, size: Option<u64>) -> Result<()> {
        match (size, self.expect.size) {
            (Some(found), Some(expected)) if found != expected => {
                Err(error::size_mismatch(&self.url, expected, found))
            }
            (Some(found), _) if found > self.bytes_max() => {
                Err(error::too_large(&self.url, self.bytes_max()))
            }
            _ => Ok(()),
        }
    }

    /// Refuses bytes beyond what was expected or announced, and takes room for the others.
    async fn check_more(&self, partial: &Partial, more: usize) -> Result<()> {
        let length = partial.length + more as u64;
        let announced = partial.source.as_ref().and_then(|source| source.size);
        match self.expect.size {
            Some(expected) if length > expected => {
                Err(error::size_mismatch(&self.url, expected, length))
            }
            _ if length > self.bytes_max() => Err(error::too_large(&self.url, self.bytes_max())),
            // The connection sends what was announced; a range can say one total and hold more.
            _ if announced.is_some_and(|size| length > size) => {
                Err(error::bad_answer(&self.url, "more bytes came than it announced"))
            }
            _ => match self.expect.room {
                Some(room) => room.take(more as u64).await,
                None => Ok(()),
            },
        }
    }

    fn check_end(&self, partial: &Partial) -> Result<()> {
        let announced = partial.source.as_ref().and_then(|source| source.size);
        match self.expect.size.or(announced) {
            Some(size) if size != partial.length => {
                let why = format!("it ended after {} of {size} bytes", partial.length);
                Err(error::lost(&self.url, &why))
            }
            _ => Ok(()),
        }
    }

    /// Copies a file of this machine.
    async fn copy(&mut self, partial: &mut Partial, kept: &mut u64) -> Result<()> {
        let (url, roots) = (self.url.clone(), self.fetcher.file_roots.clone());
        let opened = tokio::task::spawn_blocking(move || local::open(&url, &roots)).await;
        let found = opened.map_err(|_| Error::Stopped)??;
        self.check_size(Some(found.size))?;
        let version = Some(format!("\"{}\"", found.version));
        let same = |s: &Source| s.etag == version && s.size == Some(found.size);
        if !partial.source.as_ref().is_some_and(same) {
            *kept = 0;
            partial.begin(version, None, Some(found.size)).await?;
            self.give_back(partial);
        }
        partial.go_on(self.sink, self.progress).await?;
        let fail = |e: std::io::Error| local::unreadable(&self.url, &e);
        let mut file = tokio::fs::File::from_std(found.file);
        file.seek(std::io::SeekFrom::Start(partial.length)).await.map_err(fail)?;
        let mut buffer = vec![0; READ_BYTES];
        loop {
            let count = file.read(&mut buffer).await.map_err(fail)?;
            if count == 0 {
                return self.check_end(partial);
            }
            self.check_more(partial, count).await?;
            partial.append(&buffer[..count], self.sink).await?;
            (self.progress)(partial.length);
        }
    }
}

/// The size of the whole, if an answer is the rest of exactly what is there.
fn part_of(answer: &Answer, partial: &Partial) -> Option<Option<u64>> {
    let text = answer.header(CONTENT_RANGE)?;
    let (range, total) = text.strip_prefix("bytes ")?.split_once('/')?;
    let start: u64 = range.split_once('-')?.0.trim().parse().ok()?;
    let total = if total == "*" { None } else { Some(total.trim().parse::<u64>().ok()?) };
    let known = partial.source.as_ref().and_then(|source| source.size);
    let same = known.is_none() || total.is_none() || known == total;
    // A server that ignores If-Range shows by these that it sends another file's rest.
    let source = partial.source.as_ref()?;
    let other = |header, known: &Option<String>| {
        answer.header(header).zip(known.as_deref()).is_some_and(|(now, then)| now != then)
    };
    let same = same && !other(ETAG, &source.etag) && !other(LAST_MODIFIED, &source.last_modified);
    (start == partial.length && same).then_some(total.or(known))
}
