//! Passes connections on to a server, counts what is sent, and can cut everything off: a network that
//! fails between a program and a server that is well.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

pub struct Relay {
    pub endpoint: String,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    cut: AtomicBool,
    sent: AtomicU64,
    /// Everything is cut off once so much was sent.
    cut_after: AtomicU64,
    open: Mutex<Vec<TcpStream>>,
}

impl Relay {
    pub fn to(endpoint: &str) -> Relay {
        let target = endpoint.trim_start_matches("http://").trim_end_matches('/').to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let state = Arc::new(State { cut_after: AtomicU64::new(u64::MAX), ..State::default() });
        let shared = state.clone();
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                // Closed without a word, as by a host that is going down.
                if shared.cut.load(Ordering::SeqCst) {
                    continue;
                }
                let Ok(server) = TcpStream::connect(&target) else { continue };
                for socket in [&client, &server] {
                    socket.set_nodelay(true).ok();
                    shared.open.lock().unwrap().push(socket.try_clone().unwrap());
                }
                let (up, down) = (shared.clone(), shared.clone());
                let (from, to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
                std::thread::spawn(move || pump(from, to, &up, true));
                std::thread::spawn(move || pump(server, client, &down, false));
            }
        });
        Relay { endpoint, state }
    }

    /// Bytes sent to the server so far.
    pub fn sent(&self) -> u64 {
        self.state.sent.load(Ordering::SeqCst)
    }

    /// Cuts everything off when so much more was sent.
    pub fn cut_after(&self, bytes: u64) {
        self.state.cut_after.store(self.sent() + bytes, Ordering::SeqCst);
    }

    pub fn is_cut(&self) -> bool {
        self.state.cut.load(Ordering::SeqCst)
    }

    pub fn restore(&self) {
        self.state.cut_after.store(u64::MAX, Ordering::SeqCst);
        self.state.cut.store(false, Ordering::SeqCst);
    }
}

impl State {
    fn cut(&self) {
        self.cut.store(true, Ordering::SeqCst);
        for socket in self.open.lock().unwrap().drain(..) {
            socket.shutdown(Shutdown::Both).ok();
        }
    }
}

fn pump(mut from: TcpStream, mut to: TcpStream, state: &State, counts: bool) {
    let mut buffer = vec![0; 1 << 16];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        if counts {
            let sent = state.sent.fetch_add(count as u64, Ordering::SeqCst);
            if sent + count as u64 > state.cut_after.load(Ordering::SeqCst) {
                state.cut();
            }
        }
        if to.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    from.shutdown(Shutdown::Both).ok();
    to.shutdown(Shutdown::Both).ok();
}
