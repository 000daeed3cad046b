//! HTTP connections that notice when nothing moves any more.

use super::connect::{Connecting, Connector, Lost, connector};
use crate::error::Result;
use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use http_body_util::BodyExt;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::Instant;

/// How much of a body is handed to the connection at once: what moves between two looks at it.
const FRAME_BYTES: usize = 64 * 1024;

/// When a body last moved, and whether it has all gone out.
#[derive(Debug, Clone)]
pub(super) struct Moment(Arc<Mutex<(Instant, bool)>>);

impl Moment {
    fn get(&self) -> (Instant, bool) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn moved(&self, ended: bool) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = (Instant::now(), ended);
    }
}

/// A body in memory that tells when it moves.
#[derive(Debug)]
pub(super) struct Watched {
    rest: Bytes,
    moment: Moment,
}

impl Watched {
    pub(super) fn new(body: Bytes) -> (Watched, Moment) {
        let moment = Moment(Arc::new(Mutex::new((Instant::now(), body.is_empty()))));
        (Watched { rest: body, moment: moment.clone() }, moment)
    }
}

impl Body for Watched {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.rest.is_empty() {
            return Poll::Ready(None);
        }
        let count = self.rest.len().min(FRAME_BYTES);
        let frame = self.rest.split_to(count);
        self.moment.moved(self.rest.is_empty());
        Poll::Ready(Some(Ok(Frame::data(frame))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.rest.len() as u64)
    }
}

/// An answer whose body is still to be read.
#[derive(Debug)]
pub(super) struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    body: Incoming,
    stall: Duration,
}

impl Answer {
    /// The next bytes of the body, or `None` at its end. A body that ends before the announced
    /// length is an error, as is one that stops moving.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, String> {
        loop {
            let frame = tokio::time::timeout(self.stall, self.body.frame()).await;
            let frame = frame.map_err(|_| "the answer stopped arriving".to_owned())?;
            let Some(frame) = frame else { return Ok(None) };
            let frame =
                frame.map_err(|error| format!("the answer broke off: {}", Lost::new(&error)))?;
            if let Ok(data) = frame.into_data()
                && !data.is_empty()
            {
                return Ok(Some(data));
            }
        }
    }

    /// The whole body, which may have at most `limit` bytes.
    pub(super) async fn read(&mut self, limit: usize) -> Result<Bytes, String> {
        let mut whole = bytes::BytesMut::new();
        while let Some(chunk) = self.next().await? {
            if whole.len() + chunk.len() > limit {
                return Err(format!("the answer has more than {limit} bytes"));
            }
            whole.extend_from_slice(&chunk);
        }
        Ok(whole.freeze())
    }
}

/// A pool of connections.
#[derive(Debug, Clone)]
pub(super) struct Http {
    client: Client<HttpsConnector<Connector>, Watched>,
    stall: Duration,
    answer: Duration,
}

impl Http {
    pub(super) fn new(stall: Duration, answer: Duration, how: &Connecting) -> Result<Http> {
        let https = connector(stall.min(Duration::from_secs(10)), how)?;
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(Duration::from_secs(20))
            .build(https);
        Ok(Http { client, stall, answer })
    }

    /// Sends one request; what went wrong says why there is no answer.
    pub(super) async fn send(
        &self,
        request: http::Request<Watched>,
        moment: Moment,
    ) -> Result<Answer, Lost> {
        let mut sending = std::pin::pin!(self.client.request(request));
        let answer = loop {
            let (moved, ended) = moment.get();
            let limit = if ended { self.answer } else { self.stall };
            tokio::select! {
                answer = &mut sending => break answer.map_err(|error| Lost::new(&error))?,
                () = tokio::time::sleep_until(moved + limit) => {}
            }
            if moment.get() == (moved, ended) {
                let what = if ended { "no answer" } else { "the request stopped moving" };
                return Err(format!("{what} for {} ms", limit.as_millis()).into());
            }
        };
        let (head, body) = answer.into_parts();
        Ok(Answer { status: head.status, headers: head.headers, body, stall: self.stall })
    }
}
