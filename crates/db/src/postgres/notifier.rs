//! Wake-ups between processes by LISTEN and NOTIFY.
//!
//! NOTIFY is never part of a transaction that does work: transactions that notify wait for each other
//! until they are on disk. After a pause, a notification goes right behind the COMMIT, on the same
//! connection. Those that follow closely are coalesced and sent by a thread with a connection of its
//! own, which also listens once something subscribes.

use crate::address::Server;
use crate::error::{Error, Result};
use crate::postgres::connect::{Link, connect};
use crate::postgres::connection::runtime;
use crate::statement::Statement;
use crate::wakes::Wakes;
use std::collections::BTreeSet;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio_postgres::{AsyncMessage, Client};

const CHANNEL: &str = "accession_wake";
const NOTIFY: Statement = statement!("sql/notify");
/// NOTIFY refuses payloads of 8,000 bytes; above this number of topics the payload is "all".
const TOPICS_MAX: usize = 200;
/// Notifications with less than this time between them are coalesced.
const COALESCE: Duration = Duration::from_millis(5);
const RECONNECT_AFTER: Duration = Duration::from_secs(1);

#[derive(Default)]
struct State {
    topics: BTreeSet<i64>,
    /// When a notification was last sent or coalesced.
    last: Option<Instant>,
    is_subscribed: bool,
    is_closed: bool,
}

struct Shared {
    state: Mutex<State>,
    changed: tokio::sync::Notify,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing panics while the lock is held, so a poisoned lock still guards whole data.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.lock());
        self.changed.notify_one();
    }
}

/// Sends and receives the wake-ups of this process.
pub(super) struct Notifier {
    shared: Arc<Shared>,
    /// By which this process knows its own notifications.
    tag: String,
}

impl Notifier {
    pub fn start(server: &Server, wakes: &Arc<Wakes>) -> Result<Notifier> {
        let shared =
            Arc::new(Shared { state: Mutex::default(), changed: tokio::sync::Notify::new() });
        let tag = format!("{:016x}", fastrand::u64(..));
        let session = Session {
            server: server.clone(),
            shared: shared.clone(),
            wakes: wakes.clone(),
            tag: tag.clone(),
        };
        let runtime = runtime()?;
        std::thread::Builder::new()
            .name("db-notify".to_string())
            .spawn(move || runtime.block_on(session.run()))
            .map_err(|e| Error::Other("starting a database thread".to_string(), e.to_string()))?;
        Ok(Notifier { shared, tag })
    }

    /// Listens from now on. A process in which nothing subscribes, such as one that only adds a job,
    /// does not listen and is not woken by others.
    pub fn listen(&self) {
        self.shared.change(|state| state.is_subscribed = true);
    }

    /// Returns the payload to send with the COMMIT itself, if no notification was sent just before.
    pub fn at_once(&self, topics: &[i64]) -> Option<String> {
        if topics.is_empty() {
            return None;
        }
        let last = self.shared.lock().last.replace(Instant::now());
        let is_pause = last.is_none_or(|last| last.elapsed() > COALESCE);
        is_pause.then(|| payload(&self.tag, topics.iter()))
    }

    /// Hands topics to the thread. Those that come closely together are sent together.
    pub fn send(&self, topics: &[i64]) {
        self.shared.change(|state| state.topics.extend(topics));
    }
}

impl Drop for Notifier {
    fn drop(&mut self) {
        self.shared.change(|state| state.is_closed = true);
    }
}

/// The tag of the process that notifies, and the topics.
fn payload<'t>(tag: &str, topics: impl ExactSizeIterator<Item = &'t i64>) -> String {
    let list = match topics.len() {
        0..=TOPICS_MAX => topics.map(i64::to_string).collect::<Vec<_>>().join(","),
        _ => "all".to_string(),
    };
    format!("{tag}:{list}")
}

struct Session {
    server: Server,
    shared: Arc<Shared>,
    wakes: Arc<Wakes>,
    tag: String,
}

impl Session {
    /// Connects when there is something to send or to hear, until the database is closed.
    async fn run(&self) {
        while self.is_wanted().await {
            let ended = match connect(&self.server).await {
                Ok(link) => self.serve(link).await,
                Err(error) => Err(error.to_string()),
            };
            if let Err(error) = ended {
                tracing::debug!(%error, "wake-ups were not sent or heard; work is found by polling");
                // A wake-up that is lost costs one interval of polling.
                self.shared.lock().topics.clear();
                _ = tokio::time::timeout(RECONNECT_AFTER, self.is_closed()).await;
            }
        }
    }

    /// Waits until there is something to send or to hear; false once the database is closed.
    async fn is_wanted(&self) -> bool {
        loop {
            {
                let state = self.shared.lock();
                if !state.topics.is_empty() || state.is_subscribed && !state.is_closed {
                    return true;
                }
                if state.is_closed {
                    return false;
                }
            }
            self.shared.changed.notified().await;
        }
    }

    async fn is_closed(&self) {
        while !self.shared.lock().is_closed {
            self.shared.changed.notified().await;
        }
    }

    /// Uses a connection until it breaks or the database is closed.
    async fn serve(&self, (client, mut connection): Link) -> Result<(), String> {
        let receive = async {
            loop {
                match poll_fn(|cx| connection.poll_message(cx)).await {
                    Some(Ok(AsyncMessage::Notification(notification))) => {
                        self.ring(notification.payload());
                    }
                    Some(Ok(_)) => {}
                    Some(Err(error)) => return Err(error.to_string()),
                    None => return Err("the connection was closed".to_string()),
                }
            }
        };
        tokio::select! {
            received = receive => received,
            sent = self.send(&client) => sent.map_err(|error| error.to_string()),
        }
    }

    /// Sends what comes, and begins to listen when something subscribes.
    async fn send(&self, client: &Client) -> Result<(), tokio_postgres::Error> {
        let notify = client.prepare(NOTIFY.postgres).await?;
        let mut listens = false;
        loop {
            let (topics, is_subscribed, is_closed) = {
                let mut state = self.shared.lock();
                (std::mem::take(&mut state.topics), state.is_subscribed, state.is_closed)
            };
            if !topics.is_empty() {
                client.execute(&notify, &[&payload(&self.tag, topics.iter())]).await?;
                continue;
            }
            if is_closed {
                return Ok(());
            }
            if is_subscribed && !listens {
                client.batch_execute(&format!("LISTEN {CHANNEL}")).await?;
                listens = true;
                // What was notified before is not known.
                self.wakes.ring_all();
            }
            self.shared.changed.notified().await;
        }
    }

    fn ring(&self, payload: &str) {
        match payload.split_once(':') {
            Some((sender, _)) if sender == self.tag => {}
            Some((_, list)) if list != "all" => {
                let topics: Vec<i64> =
                    list.split(',').filter_map(|topic| topic.parse().ok()).collect();
                self.wakes.ring(&topics);
            }
            _ => self.wakes.ring_all(),
        }
    }
}
