//! A connection's bytes, plain or encrypted. The thread that uses it waits on it: there is one for every
//! connection, so nothing would be won by not waiting.

use rustls::{ClientConnection, StreamOwned};
use socket2::{SockRef, TcpKeepalive};
use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;
use tokio_postgres::Config;

pub(super) enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Socket {
    /// Tries every address that a name has.
    pub fn connect_tcp(host: &str, port: u16, config: &Config) -> io::Result<Socket> {
        let mut failed = io::Error::new(io::ErrorKind::NotFound, "its name has no address");
        for address in (host, port).to_socket_addrs()? {
            let stream = match config.get_connect_timeout() {
                Some(time) => TcpStream::connect_timeout(&address, *time),
                None => TcpStream::connect(address),
            };
            match stream.and_then(|stream| tuned(stream, config)) {
                Ok(stream) => return Ok(Socket::Tcp(stream)),
                Err(error) => failed = error,
            }
        }
        Err(failed)
    }

    pub fn connect_unix(directory: &Path, port: u16) -> io::Result<Socket> {
        UnixStream::connect(directory.join(format!(".s.PGSQL.{port}"))).map(Socket::Unix)
    }

    /// How long to wait for something to read: for ever without a time.
    pub fn set_patience(&self, time: Option<Duration>) -> io::Result<()> {
        match self {
            Socket::Tcp(stream) => stream.set_read_timeout(time),
            Socket::Unix(stream) => stream.set_read_timeout(time),
        }
    }
}

fn tuned(stream: TcpStream, config: &Config) -> io::Result<TcpStream> {
    stream.set_nodelay(true)?;
    let socket = SockRef::from(&stream);
    if let Some(time) = config.get_tcp_user_timeout() {
        socket.set_tcp_user_timeout(Some(*time))?;
    }
    if config.get_keepalives() {
        let mut alive = TcpKeepalive::new().with_time(config.get_keepalives_idle());
        if let Some(interval) = config.get_keepalives_interval() {
            alive = alive.with_interval(interval);
        }
        if let Some(retries) = config.get_keepalives_retries() {
            alive = alive.with_retries(retries);
        }
        socket.set_tcp_keepalive(&alive)?;
    }
    Ok(stream)
}

impl Read for Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Socket::Tcp(stream) => stream.read(buffer),
            Socket::Unix(stream) => stream.read(buffer),
        }
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Socket::Tcp(stream) => stream.write(bytes),
            Socket::Unix(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

pub(super) enum Stream {
    Plain(Socket),
    Tls(Box<StreamOwned<ClientConnection, Socket>>),
}

impl Stream {
    pub fn socket(&self) -> &Socket {
        match self {
            Stream::Plain(socket) => socket,
            Stream::Tls(stream) => stream.get_ref(),
        }
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Plain(socket) => socket.read(buffer),
            Stream::Tls(stream) => stream.read(buffer),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Plain(socket) => socket.write(bytes),
            Stream::Tls(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Stream::Plain(socket) => socket.flush(),
            Stream::Tls(stream) => stream.flush(),
        }
    }
}
