//! Connecting. `tokio-postgres` asks for encryption, says who we are and proves it; once the server is
//! ready the stream is ours.

use crate::address::Server;
use crate::error::{Error, Result};
use crate::postgres::socket::{Socket, Stream};
use crate::postgres::tls;
use rand::seq::SliceRandom;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};
use std::future::{Ready, ready};
use std::io::{self, Read, Write};
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::config::{Host, LoadBalanceHosts, SslMode};
use tokio_postgres::tls::{ChannelBinding, NoTls, TlsConnect, TlsStream};

/// Of a server that took the connection and left it at that.
const SILENT: &str = "it does not answer";

/// One of the servers that an address names.
pub(super) struct Place {
    host: Host,
    port: u16,
    /// For whom its certificate should be.
    name: String,
}

/// The places to try, in their order.
pub(super) fn places(server: &Server) -> Result<Vec<Place>> {
    let config = &server.config;
    let (hosts, addresses, ports) =
        (config.get_hosts(), config.get_hostaddrs(), config.get_ports());
    let count = hosts.len().max(addresses.len());
    let several = |len: usize| len > 1 && len != count;
    if several(hosts.len()) || several(addresses.len()) || several(ports.len()) {
        let why = "it does not have as many ports and addresses as hosts; name one for each";
        return Err(Error::BadAddress(server.shown().to_string(), why.to_string()));
    }
    let place = |i: usize| {
        let host = match addresses.get(i) {
            Some(address) => Host::Tcp(address.to_string()),
            None => hosts[i].clone(),
        };
        let name = match hosts.get(i).unwrap_or(&host) {
            Host::Tcp(name) => name.clone(),
            Host::Unix(_) => String::new(),
        };
        Place { host, port: ports.get(i).or(ports.first()).copied().unwrap_or(5432), name }
    };
    let mut places: Vec<Place> = (0..count).map(place).collect();
    if config.get_load_balance_hosts() == LoadBalanceHosts::Random {
        places.shuffle(&mut rand::rng());
    }
    Ok(places)
}

/// Connects to one of them.
pub(super) fn connect(server: &Server, place: &Place) -> Result<Stream> {
    let unavailable = |why: String| Error::Unavailable(server.shown().to_string(), why);
    let broken = |e: io::Error| unavailable(e.to_string());
    let socket = match &place.host {
        Host::Tcp(name) => Socket::connect_tcp(name, place.port, &server.config),
        Host::Unix(directory) => Socket::connect_unix(directory, place.port),
    }
    .map_err(broken)?;
    let time = server.config.get_connect_timeout().copied();
    socket.set_patience(time).map_err(broken)?;
    let lent = Lent(Arc::new(Mutex::new(Some(Stream::Plain(socket)))));
    // As in libpq, a socket of this machine is never encrypted, whatever the mode.
    let encryption = match place.host {
        Host::Unix(_) => None,
        Host::Tcp(_) => tls::client(server)?,
    };
    let introduced = match encryption {
        None => {
            let mut config = server.config.clone();
            config.ssl_mode(SslMode::Disable);
            finish(config.connect_raw(lent.clone(), NoTls), time).map(|done| done.map(drop))
        }
        Some(client) => {
            let name = ServerName::try_from(place.name.clone())
                .map_err(|e| Error::BadAddress(server.shown().to_string(), e.to_string()))?;
            let encrypting = Encrypting { client, name };
            finish(server.config.connect_raw(lent.clone(), encrypting), time)
                .map(|done| done.map(drop))
        }
    };
    // What `tokio-postgres` had of the connection is dropped, which says nothing to the server.
    match introduced {
        Some(Ok(())) => {}
        Some(Err(error)) => {
            return Err(match Error::from_connecting(server.shown(), error) {
                // Nothing but the server's own refusal is final before a connection stands.
                Error::Other(_, why) => unavailable(why),
                error => error,
            });
        }
        None => return Err(unavailable(SILENT.to_string())),
    }
    let stream = lent.take().map_err(broken)?;
    stream.socket().set_patience(None).map_err(broken)?;
    Ok(stream)
}

/// Runs a future whose stream is waited on to its end; None if time is up.
fn finish<T>(future: impl Future<Output = T>, time: Option<Duration>) -> Option<T> {
    let (mut future, began) = (pin!(future), Instant::now());
    loop {
        if let Poll::Ready(done) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            return Some(done);
        }
        if time.is_some_and(|time| began.elapsed() >= time) {
            return None;
        }
    }
}

/// Our stream in the hands of `tokio-postgres`, which expects one of an async runtime: it is always
/// ready, and pending only if nothing came in time.
#[derive(Clone)]
struct Lent(Arc<Mutex<Option<Stream>>>);

impl Lent {
    fn lock(&self) -> MutexGuard<'_, Option<Stream>> {
        // Nothing panics while the lock is held, so a poisoned lock still guards a whole stream.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self) -> io::Result<Stream> {
        self.lock().take().ok_or_else(|| io::ErrorKind::NotConnected.into())
    }

    fn with<T>(&self, mut act: impl FnMut(&mut Stream) -> io::Result<T>) -> Poll<io::Result<T>> {
        let mut stream = self.lock();
        let Some(stream) = stream.as_mut() else {
            return Poll::Ready(Err(io::ErrorKind::NotConnected.into()));
        };
        loop {
            match act(stream) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Poll::Pending,
                done => return Poll::Ready(done),
            }
        }
    }
}

impl AsyncRead for Lent {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = self.with(|stream| stream.read(buffer.initialize_unfilled()));
        read.map_ok(|length| buffer.advance(length))
    }
}

impl AsyncWrite for Lent {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.with(|stream| stream.write(bytes))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.with(Write::flush)
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

impl TlsStream for Lent {
    fn channel_binding(&self) -> ChannelBinding {
        match &*self.lock() {
            Some(Stream::Tls(stream)) => tls::channel_binding(&stream.conn),
            _ => ChannelBinding::none(),
        }
    }
}

/// Encrypts a stream for which the server has agreed to it.
struct Encrypting {
    client: Arc<ClientConfig>,
    name: ServerName<'static>,
}

impl Encrypting {
    fn shake_hands(self, lent: &Lent) -> io::Result<()> {
        let mut session =
            ClientConnection::new(self.client, self.name).map_err(io::Error::other)?;
        let mut stream = lent.take()?;
        while session.is_handshaking() {
            session.complete_io(&mut stream).map_err(|error| match error.kind() {
                io::ErrorKind::WouldBlock => io::Error::new(io::ErrorKind::TimedOut, SILENT),
                _ => error,
            })?;
        }
        if let Stream::Plain(socket) = stream {
            *lent.lock() = Some(Stream::Tls(Box::new(StreamOwned::new(session, socket))));
        }
        Ok(())
    }
}

impl TlsConnect<Lent> for Encrypting {
    type Stream = Lent;
    type Error = io::Error;
    type Future = Ready<io::Result<Lent>>;

    fn connect(self, lent: Lent) -> Self::Future {
        ready(self.shake_hands(&lent).map(|()| lent))
    }
}
