//! Wake-ups between processes by LISTEN and NOTIFY, outside of working transactions: NOTIFY inside
//! one would make all commits queue behind one lock. News after a lull goes right behind its COMMIT,
//! on the same connection; what comes close behind other news is gathered and sent on a connection
//! for it, so that whoever adds a thousand jobs one by one does not notify a thousand times. Whoever
//! hears of something is about to ask for it, so a connection is made ready meanwhile.

use crate::address::Server;
use crate::error::{Error, Result};
use crate::operation::Inbox;
use crate::postgres::PostgresConnection;
use crate::wakes::Wakes;
use std::collections::BTreeSet;
use std::sync::{Arc, Condvar, Mutex, Once, PoisonError, Weak};
use std::time::{Duration, Instant};

const CHANNEL: &str = "accession_wake";
/// NOTIFY refuses payloads of 8,000 bytes; past this many topics the news is "all".
const TOPICS_MAX: usize = 200;
/// So long after the last there has been a lull in the news.
const LULL: Duration = Duration::from_millis(5);

#[derive(Default)]
struct Outbox {
    topics: BTreeSet<i64>,
    closed: bool,
}

pub(super) struct News {
    server: Server,
    outbox: Arc<(Mutex<Outbox>, Condvar)>,
    /// By which this process knows its own news.
    tag: String,
    last: Mutex<Option<Instant>>,
    listening: Once,
}

impl News {
    pub fn start(server: &Server) -> Result<News> {
        let news = News {
            server: server.clone(),
            outbox: Arc::default(),
            tag: format!("{:016x}", rand::random::<u64>()),
            last: Mutex::default(),
            listening: Once::new(),
        };
        let (server, outbox, tag) = (server.clone(), news.outbox.clone(), news.tag.clone());
        spawn("db-notify", move || send_loop(&server, &outbox, &tag))?;
        Ok(news)
    }

    /// Listens from now on. A process in which nobody waits for news, such as one that only adds a
    /// job, has no connection for it and is not woken by every other process's.
    pub fn listen(&self, wakes: &Arc<Wakes>, inbox: &Arc<Inbox>, threads: usize) {
        self.listening.call_once(|| {
            let listener = Listener {
                server: self.server.clone(),
                tag: self.tag.clone(),
                wakes: Arc::downgrade(wakes),
                inbox: inbox.clone(),
                threads,
            };
            if let Err(error) = spawn("db-listen", move || listener.run()) {
                tracing::warn!(%error, "other processes' news is not heard; work is found by polling");
            }
        });
    }

    /// What tells others of the topics, if it should go with the transaction itself.
    pub fn at_once(&self, topics: &[i64]) -> Option<String> {
        if topics.is_empty() {
            return None;
        }
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let lull = last.replace(Instant::now()).is_none_or(|last| last.elapsed() > LULL);
        lull.then(|| payload(&self.tag, topics.iter()))
    }

    /// Hands topics over; those that come close together are sent together.
    pub fn send(&self, topics: &[i64]) {
        let (state, arrived) = &*self.outbox;
        state.lock().unwrap_or_else(PoisonError::into_inner).topics.extend(topics);
        arrived.notify_one();
    }
}

impl Drop for News {
    fn drop(&mut self) {
        let (state, arrived) = &*self.outbox;
        state.lock().unwrap_or_else(PoisonError::into_inner).closed = true;
        arrived.notify_one();
    }
}

fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> Result<std::thread::JoinHandle<()>> {
    std::thread::Builder::new()
        .name(name.to_string())
        .spawn(body)
        .map_err(|e| Error::Other("starting a database thread".to_string(), e.to_string()))
}

fn send_loop(server: &Server, outbox: &(Mutex<Outbox>, Condvar), tag: &str) {
    let (state, arrived) = outbox;
    let mut connection: Option<PostgresConnection> = None;
    loop {
        let mut waiting = state.lock().unwrap_or_else(PoisonError::into_inner);
        while waiting.topics.is_empty() && !waiting.closed {
            waiting = arrived.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
        if waiting.topics.is_empty() {
            return;
        }
        let topics = std::mem::take(&mut waiting.topics);
        drop(waiting);
        // A lost wake-up costs one polling interval, no more; so one try on a fresh connection.
        if connection.as_ref().is_none_or(PostgresConnection::is_closed) {
            connection = PostgresConnection::open(server).ok();
        }
        if let Some(sender) = connection.as_mut()
            && let Err(error) = sender.notify(&payload(tag, topics.iter()))
        {
            tracing::debug!(%error, "a wake-up was not sent; others find the work by polling");
            connection = None;
        }
    }
}

/// Which process it is that tells, and what is new.
fn payload<'t>(tag: &str, topics: impl ExactSizeIterator<Item = &'t i64>) -> String {
    let list = match topics.len() {
        0..=TOPICS_MAX => topics.map(i64::to_string).collect::<Vec<_>>().join(","),
        _ => "all".to_string(),
    };
    format!("{tag}:{list}")
}

struct Listener {
    server: Server,
    tag: String,
    /// Gone once the database is closed.
    wakes: Weak<Wakes>,
    inbox: Arc<Inbox>,
    /// How many take from it.
    threads: usize,
}

impl Listener {
    fn run(&self) {
        while self.wakes.strong_count() > 0 {
            if let Ok(mut connection) = PostgresConnection::open(&self.server)
                && connection.raw(&format!("LISTEN {CHANNEL}")).is_ok()
            {
                // What was said while nobody listened is not known.
                if let Some(wakes) = self.wakes.upgrade() {
                    wakes.ring_all();
                }
                self.listen(&mut connection);
            }
            std::thread::sleep(Duration::from_secs(1));
        }
    }

    /// Passes notifications on until the connection breaks or the database is closed.
    fn listen(&self, connection: &mut PostgresConnection) {
        while !connection.is_closed() && self.wakes.strong_count() > 0 {
            while let Some(notification) = connection.notification(Duration::from_secs(1)) {
                let Some(wakes) = self.wakes.upgrade() else { return };
                match notification.split_once(':') {
                    Some((sender, _)) if sender == self.tag => {}
                    Some((_, list)) if list != "all" => {
                        let topics: Vec<i64> =
                            list.split(',').filter_map(|topic| topic.parse().ok()).collect();
                        if wakes.ring(&topics) {
                            self.inbox.expect(self.threads);
                        }
                    }
                    _ => wakes.ring_all(),
                }
            }
        }
    }
}
