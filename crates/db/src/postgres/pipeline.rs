//! A connection's wire, driven by the thread that uses it. What is asked is waited for; what is
//! only sent goes to the server together with the next thing that is asked, and so costs no round
//! trip of its own. The server does everything in the order in which it was said.

use crate::address::Server;
use crate::error::{Error, Result};
use crate::postgres::tls;
use std::collections::VecDeque;
use std::future::{poll_fn, ready};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::runtime::{Builder, Runtime};
use tokio_postgres::error::SqlState;
use tokio_postgres::{AsyncMessage, Client, Connection, NoTls, Notification};

type WireError = tokio_postgres::Error;
/// Reads and writes what can be read and written now.
type Driver =
    Box<dyn FnMut(&mut Context<'_>) -> Poll<Option<Result<AsyncMessage, WireError>>> + Send>;
pub(super) type Answer = Pin<Box<dyn Future<Output = Result<(), WireError>> + Send>>;

/// How long a server may take over the end of a connection.
const GOODBYE: Duration = Duration::from_millis(500);

/// What went wrong, and with which of the statements that had only been sent, if it was one.
pub(super) struct Wrong {
    pub sent: Option<&'static str>,
    pub error: WireError,
}

impl Wrong {
    /// True if the server refused what was sent under this name for the lack of a value.
    pub fn is_null_in(&self, name: &'static str) -> bool {
        self.sent == Some(name) && self.error.code() == Some(&SqlState::NOT_NULL_VIOLATION)
    }
}

pub(super) struct Pipeline {
    client: Arc<Client>,
    /// What was sent and is not answered yet, oldest first.
    sent: VecDeque<(&'static str, Answer)>,
    // After the client: without one, the wire says goodbye to the server.
    wire: Wire,
}

struct Wire {
    runtime: Runtime,
    line: Line,
}

struct Line {
    /// None once the connection is closed: what waits for an answer then hears so.
    driver: Option<Driver>,
    notifications: VecDeque<Notification>,
}

impl Line {
    /// Moves what can be moved; an error is the connection's end.
    fn drive(&mut self, cx: &mut Context<'_>) -> Result<(), WireError> {
        while let Some(driver) = &mut self.driver {
            match driver(cx) {
                Poll::Ready(Some(Ok(AsyncMessage::Notification(notification)))) => {
                    self.notifications.push_back(notification);
                }
                Poll::Ready(Some(Ok(_))) => {}
                Poll::Ready(Some(Err(error))) => {
                    self.driver = None;
                    return Err(error);
                }
                Poll::Ready(None) => self.driver = None,
                Poll::Pending => break,
            }
        }
        Ok(())
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        let Wire { runtime, line } = self;
        let goodbye = poll_fn(|cx| match line.drive(cx) {
            Ok(()) if line.driver.is_some() => Poll::Pending,
            _ => Poll::Ready(()),
        });
        // A server that does not take it notices that the connection is gone.
        let _ = runtime.block_on(async { tokio::time::timeout(GOODBYE, goodbye).await });
    }
}

impl Pipeline {
    pub fn open(server: &Server) -> Result<Pipeline> {
        let connector = tls::connector(server)?;
        let shown = server.shown();
        let runtime = Builder::new_current_thread().enable_all().build().map_err(|e| {
            Error::Other("starting a database connection".to_string(), e.to_string())
        })?;
        let connected = runtime.block_on(async {
            Ok(match connector {
                None => {
                    let (client, connection) = server.config.connect(NoTls).await?;
                    (client, driver(connection))
                }
                Some(connector) => {
                    let (client, connection) = server.config.connect(connector).await?;
                    (client, driver(connection))
                }
            })
        });
        let (client, driver) = connected.map_err(|e| match Error::from_postgres(shown, e) {
            // Nothing but the server's own refusal is final before a connection stands.
            Error::Other(context, text) => Error::Unavailable(context, text),
            error => error,
        })?;
        let line = Line { driver: Some(driver), notifications: VecDeque::new() };
        let wire = Wire { runtime, line };
        Ok(Pipeline { client: Arc::new(client), sent: VecDeque::new(), wire })
    }

    pub fn client(&self) -> Arc<Client> {
        self.client.clone()
    }

    pub fn is_closed(&self) -> bool {
        self.wire.line.driver.is_none() || self.client.is_closed()
    }

    /// How much was sent and is not answered yet.
    pub fn unanswered(&self) -> usize {
        self.sent.len()
    }

    /// Asks, and waits for this answer and those to all that was sent before. The first error of
    /// them counts: in a transaction everything after it fails because of it.
    pub fn ask<T>(
        &mut self,
        question: impl Future<Output = Result<T, WireError>>,
    ) -> Result<T, Wrong> {
        self.ask_and_send(question, None)
    }

    /// As `ask`, with something sent right behind the question that nobody waits for here.
    pub fn ask_and_send<T>(
        &mut self,
        question: impl Future<Output = Result<T, WireError>>,
        mut behind: Option<(&'static str, Answer)>,
    ) -> Result<T, Wrong> {
        let mut question = pin!(question);
        let (Wire { runtime, line }, sent) = (&mut self.wire, &mut self.sent);
        let mut to_come = None;
        let (mut answer, mut wrong) = (None, None);
        let asked = runtime.block_on(poll_fn(|cx| {
            // Polled for the first time, it puts itself behind all that was sent.
            if answer.is_none()
                && let Poll::Ready(ready) = question.as_mut().poll(cx)
            {
                answer = Some(ready);
            }
            if let Some((name, statement)) = behind.take() {
                to_come = Some((name, begun(statement)));
            }
            if let Err(error) = line.drive(cx) {
                return Poll::Ready(Err(error));
            }
            while let Some((name, one)) = sent.front_mut() {
                match one.as_mut().poll(cx) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(Ok(())) => {}
                    Poll::Ready(Err(error)) => {
                        wrong.get_or_insert(Wrong { sent: Some(*name), error });
                    }
                }
                sent.pop_front();
            }
            if answer.is_none()
                && let Poll::Ready(ready) = question.as_mut().poll(cx)
            {
                answer = Some(ready);
            }
            answer.take().map_or(Poll::Pending, |answer| Poll::Ready(Ok(answer)))
        }));
        sent.extend(to_come);
        match (asked, wrong) {
            (Err(error), _) => Err(Wrong { sent: None, error }),
            (Ok(_), Some(wrong)) => Err(wrong),
            (Ok(answer), None) => answer.map_err(|error| Wrong { sent: None, error }),
        }
    }

    /// Sends what nobody waits for. Its error, if it has one, is that of whoever asks next.
    pub fn send(
        &mut self,
        name: &'static str,
        statement: impl Future<Output = Result<(), WireError>> + Send + 'static,
    ) {
        self.sent.push_back((name, begun(Box::pin(statement))));
    }

    /// Writes what was sent to the wire now, without waiting for answers.
    pub fn flush(&mut self) {
        let Wire { runtime, line } = &mut self.wire;
        // A broken connection is noticed by whoever asks next.
        let _ = runtime.block_on(poll_fn(|cx| Poll::Ready(line.drive(cx))));
    }

    /// The next notification, if one comes in time.
    pub fn notification(&mut self, time: Duration) -> Option<Notification> {
        let Wire { runtime, line } = &mut self.wire;
        let arrival = poll_fn(|cx| {
            let broken = line.drive(cx).is_err() || line.driver.is_none();
            match line.notifications.pop_front() {
                None if !broken => Poll::Pending,
                found => Poll::Ready(found),
            }
        });
        runtime.block_on(async { tokio::time::timeout(time, arrival).await.ok().flatten() })
    }
}

/// Polled once, it is in the connection's line; whoever asks next polls it again.
fn begun(mut statement: Answer) -> Answer {
    match statement.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Pending => statement,
        Poll::Ready(done) => Box::pin(ready(done)),
    }
}

fn driver<S, T>(mut connection: Connection<S, T>) -> Driver
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    Box::new(move |cx| connection.poll_message(cx))
}
