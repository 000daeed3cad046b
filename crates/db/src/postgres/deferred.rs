//! Requests that wait to be sent with the next question, and the round trip that sends them all.
//!
//! `tokio-postgres` hands a request to the connection at the first poll of its future, so futures that
//! are polled one after the other are pipelined in that order.

use bytes::{Bytes, BytesMut};
use futures_util::future::{MaybeDone, maybe_done};
use std::error::Error as StdError;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::Poll;
use tokio_postgres::types::{IsNull, ToSql, Type, to_sql_checked};
use tokio_postgres::{Client, Error, Row, Statement};

/// The hook of [`crate::Options::step`].
type Hook = dyn Fn(&'static str) + Send + Sync;

/// A request that is deferred.
pub(super) enum Request {
    /// A command without parameters.
    Text(&'static str),
    /// A prepared statement with its parameters.
    Statement { name: &'static str, prepared: Statement, params: Vec<Encoded> },
}

/// An error, and the statement that it is about.
pub(super) struct Failed {
    pub statement: &'static str,
    pub error: Error,
}

type Answer<'a> = Pin<Box<dyn Future<Output = Result<Vec<Row>, Error>> + 'a>>;

impl Request {
    fn name(&self) -> &'static str {
        match self {
            Request::Text(name) | Request::Statement { name, .. } => name,
        }
    }

    fn run<'a>(&'a self, client: &'a Client) -> Answer<'a> {
        match self {
            Request::Text(text) => {
                Box::pin(async { client.batch_execute(text).await.map(|()| Vec::new()) })
            }
            Request::Statement { prepared, params, .. } => Box::pin(async {
                let params: Vec<&(dyn ToSql + Sync)> =
                    params.iter().map(|param| param as &(dyn ToSql + Sync)).collect();
                client.query(prepared, &params).await
            }),
        }
    }
}

/// Sends the deferred requests and then the question, and waits for the answers to all of them.
///
/// A hook is called before each statement that is a step, and each one is then waited for before the
/// next: the server does the same in the same order, at the pace of the schedule.
pub(super) async fn pipeline<T>(
    client: &Client,
    deferred: &[Request],
    (name, is_step): (&'static str, bool),
    asked: impl Future<Output = Result<T, Error>>,
    hook: Option<&Hook>,
) -> Result<(Vec<Vec<Row>>, T), Failed> {
    let mut sent = Vec::with_capacity(deferred.len());
    let mut has_failed = false;
    for request in deferred {
        if let (Some(hook), Request::Statement { name, .. }) = (hook, request) {
            hook(name);
        }
        let mut answer = Box::pin(maybe_done(request.run(client)));
        match hook {
            Some(_) => answer.as_mut().await,
            None => start(answer.as_mut()).await,
        }
        has_failed = matches!(answer.as_ref().get_ref(), MaybeDone::Done(Err(_)));
        sent.push((request.name(), answer));
        if has_failed {
            break;
        }
    }
    let mut asked = pin!(maybe_done(asked));
    if !has_failed {
        if let (Some(hook), true) = (hook, is_step) {
            hook(name);
        }
        start(asked.as_mut()).await;
    }
    let mut answers = Vec::with_capacity(sent.len());
    for (statement, mut answer) in sent {
        answer.as_mut().await;
        match answer.as_mut().take_output() {
            Some(Ok(rows)) => answers.push(rows),
            Some(Err(error)) => return Err(Failed { statement, error }),
            None => {}
        }
    }
    asked.as_mut().await;
    match asked.take_output() {
        Some(Ok(answer)) => Ok((answers, answer)),
        Some(Err(error)) => Err(Failed { statement: name, error }),
        // `maybe_done` has an output once it was waited for.
        None => unreachable!("an answer was taken twice"),
    }
}

/// Polls a future once, which hands its request to the connection.
async fn start<F: Future>(mut future: Pin<&mut MaybeDone<F>>) {
    poll_fn(|cx| {
        _ = future.as_mut().poll(cx);
        Poll::Ready(())
    })
    .await;
}

/// A parameter as the server gets it; `None` is null.
#[derive(Debug)]
pub(super) struct Encoded(Option<Bytes>);

impl Encoded {
    /// Encodes parameters for the types that a statement has.
    pub fn all(params: &[&(dyn ToSql + Sync)], types: &[Type]) -> Result<Vec<Encoded>, String> {
        if params.len() != types.len() {
            return Err(format!("{} parameters for {}", params.len(), types.len()));
        }
        let encode = |(param, kind): (&&(dyn ToSql + Sync), &Type)| {
            let mut out = BytesMut::new();
            Ok(Encoded(match param.to_sql_checked(kind, &mut out)? {
                IsNull::Yes => None,
                IsNull::No => Some(out.freeze()),
            }))
        };
        let encoded: Result<_, Box<dyn StdError + Sync + Send>> =
            params.iter().zip(types).map(encode).collect();
        encoded.map_err(|error| error.to_string())
    }

    pub fn len(&self) -> usize {
        self.0.as_ref().map_or(0, Bytes::len)
    }
}

impl ToSql for Encoded {
    fn to_sql(
        &self,
        _: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn StdError + Sync + Send>> {
        let Some(bytes) = &self.0 else { return Ok(IsNull::Yes) };
        out.extend_from_slice(bytes);
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}
