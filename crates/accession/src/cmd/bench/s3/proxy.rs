//! A proxy that delays what passes between a client and a server, as a network of some round trip
//! does: half of it in each direction, and a whole one for making a connection. More bytes may be
//! under way than any of the programs sends ahead.

use crate::exit::Failure;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::time::Instant;

/// Runs as long as this value lives.
pub struct Proxy {
    pub endpoint: String,
    _runtime: tokio::runtime::Runtime,
}

const READ_BYTES: usize = 256 * 1024;
/// Chunks under way in one direction of a connection; a server that is slower holds up its client.
const CHUNKS_MAX: usize = 256;

impl Proxy {
    pub fn start(target: &str, round_trip: Duration) -> Result<Proxy, Failure> {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0"))?;
        let endpoint = format!("http://{}", listener.local_addr()?);
        let target = target.to_owned();
        runtime.spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(connect(client, target.clone(), round_trip));
            }
        });
        Ok(Proxy { endpoint, _runtime: runtime })
    }
}

/// Connects to the server; a client sees its connection closed where that fails.
async fn connect(client: TcpStream, target: String, round_trip: Duration) {
    tokio::time::sleep(round_trip).await;
    let Ok(server) = TcpStream::connect(&target).await else { return };
    for socket in [&client, &server] {
        // Without it, what is measured is the operating system's wait for more.
        socket.set_nodelay(true).ok();
    }
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    tokio::spawn(pass_on(from_client, to_server, round_trip / 2));
    pass_on(from_server, to_client, round_trip / 2).await;
}

/// Passes chunks on, each so long after it arrived.
async fn pass_on(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, delay: Duration) {
    let (send, mut due) = mpsc::channel::<(Instant, Vec<u8>)>(CHUNKS_MAX);
    tokio::spawn(async move {
        let mut buffer = vec![0; READ_BYTES];
        while let Ok(count @ 1..) = from.read(&mut buffer).await {
            if send.send((Instant::now() + delay, buffer[..count].to_vec())).await.is_err() {
                return;
            }
        }
    });
    while let Some((when, chunk)) = due.recv().await {
        tokio::time::sleep_until(when).await;
        if to.write_all(&chunk).await.is_err() {
            return;
        }
    }
    // The other end sees that nothing more comes; if it is gone already, it needs no word.
    to.shutdown().await.ok();
}
