//! A small HTTP server for tests: it answers as the test says, or breaks off.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub method: String,
    pub path: String,
    pub headers: Vec<(String, String)>,
    pub body: String,
}

impl Seen {
    pub fn header(&self, name: &str) -> &str {
        let found = self.headers.iter().find(|(own, _)| own.eq_ignore_ascii_case(name));
        found.map_or("", |(_, value)| value)
    }
}

pub(crate) enum Reply {
    Answer(u16, String),
    /// A redirect to this address.
    Elsewhere(String),
    /// Says nothing until the other side gives up.
    Silence,
    /// Closes at once.
    HangUp,
}

pub(crate) struct StandIn {
    pub url: String,
    pub seen: Arc<Mutex<Vec<Seen>>>,
}

/// Starts a server on a free port; it ends with the test process.
pub(crate) fn serve(answer: impl Fn(&Seen) -> Reply + Send + Sync + 'static) -> StandIn {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = seen.clone();
    let answer = Arc::new(answer);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (log, answer) = (log.clone(), answer.clone());
            std::thread::spawn(move || one(stream, &log, &*answer));
        }
    });
    StandIn { url, seen }
}

fn one(stream: TcpStream, log: &Mutex<Vec<Seen>>, answer: &dyn Fn(&Seen) -> Reply) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut words = line.split_whitespace();
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim().split_once(':') else { break };
        headers.push((name.to_owned(), value.trim().to_owned()));
    }
    let mut seen = Seen { method, path, headers, body: String::new() };
    let length = seen.header("content-length").parse().unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    seen.body = String::from_utf8(body).ok()?;
    log.lock().unwrap().push(seen.clone());
    let mut stream = stream;
    match answer(&seen) {
        Reply::Answer(status, body) => {
            let length = body.len();
            write!(
                stream,
                "HTTP/1.1 {status} x\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
            )
            .ok()
        }
        Reply::Elsewhere(to) => write!(
            stream,
            "HTTP/1.1 302 x\r\nLocation: {to}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        )
        .ok(),
        // Reading ends when the client closes.
        Reply::Silence => reader.read_to_end(&mut Vec::new()).ok().map(|_| ()),
        Reply::HangUp => None,
    }
}

/// A port on which nobody listens.
pub(crate) fn nobody() -> std::net::SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}
