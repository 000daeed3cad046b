//! A small web server that misbehaves as it is told.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

#[derive(Debug, Clone)]
pub struct Request {
    pub method: String,
    pub path: String,
    pub headers: HashMap<String, String>,
}

impl Request {
    /// Where the range that is asked for starts.
    pub fn range(&self) -> Option<usize> {
        self.headers.get("range")?.strip_prefix("bytes=")?.split('-').next()?.parse().ok()
    }
}

/// What to answer: the text of the head without its last line, the body, and how it ends.
pub struct Reply {
    pub head: String,
    pub body: Vec<u8>,
    pub end: End,
}

pub enum End {
    /// As announced.
    Well,
    /// The connection is closed after so many bytes of the body.
    Cut(usize),
    /// Nothing more comes after so many bytes of the body, until the other side goes.
    Hang(usize),
    /// One byte at a time, with a pause before each.
    Crawl(Duration),
}

impl Reply {
    pub fn new(head: impl Into<String>, body: impl Into<Vec<u8>>) -> Reply {
        Reply { head: head.into(), body: body.into(), end: End::Well }
    }

    pub fn ok(body: &[u8], etag: &str) -> Reply {
        Reply::new(format!("200 OK\r\nContent-Length: {}\r\nETag: \"{etag}\"", body.len()), body)
    }

    /// As a good server answers a range.
    pub fn ranged(request: &Request, body: &[u8], etag: &str) -> Reply {
        let same = request.headers.get("if-range").is_none_or(|e| *e == format!("\"{etag}\""));
        match request.range().filter(|_| same) {
            Some(start) => Reply::new(
                format!(
                    "206 Partial Content\r\nContent-Length: {}\r\nContent-Range: bytes {start}-{}/{}\r\nETag: \"{etag}\"",
                    body.len() - start,
                    body.len() - 1,
                    body.len()
                ),
                &body[start..],
            ),
            None => Reply::ok(body, etag),
        }
    }

    pub fn ending(mut self, end: End) -> Reply {
        self.end = end;
        self
    }
}

pub struct Server {
    pub address: SocketAddr,
    pub seen: Arc<Mutex<Vec<Request>>>,
}

impl Server {
    /// Answers each request by its number, beginning with 0. Lives as long as the test process.
    pub fn start(answer: impl Fn(usize, &Request) -> Reply + Send + Sync + 'static) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let seen: Arc<Mutex<Vec<Request>>> = Arc::default();
        let (log, answer) = (seen.clone(), Arc::new(answer));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (log, answer) = (log.clone(), answer.clone());
                // A client that went away is part of some tests.
                std::thread::spawn(move || drop(serve(stream, &log, &*answer)));
            }
        });
        Server { address, seen }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub fn count(&self) -> usize {
        self.seen.lock().unwrap().len()
    }
}

fn serve(
    mut stream: TcpStream,
    log: &Mutex<Vec<Request>>,
    answer: &dyn Fn(usize, &Request) -> Reply,
) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    let first = lines.next().unwrap_or_else(|| Err(std::io::Error::other("nothing")))?;
    let mut words = first.split(' ').map(str::to_string);
    let mut request = Request {
        method: words.next().unwrap_or_default(),
        path: words.next().unwrap_or_default(),
        headers: HashMap::new(),
    };
    for line in lines {
        let line = line?;
        let Some((name, value)) = line.split_once(':') else { break };
        request.headers.insert(name.to_ascii_lowercase(), value.trim().to_string());
    }
    let number = {
        let mut log = log.lock().unwrap();
        log.push(request.clone());
        log.len() - 1
    };
    let reply = answer(number, &request);
    write!(stream, "HTTP/1.1 {}\r\nConnection: close\r\n\r\n", reply.head)?;
    let body: &[u8] = if request.method == "HEAD" { &[] } else { &reply.body };
    match reply.end {
        End::Well => stream.write_all(body),
        End::Cut(count) => stream.write_all(&body[..count]),
        End::Crawl(pause) => body.iter().try_for_each(|byte| {
            std::thread::sleep(pause);
            stream.write_all(&[*byte])
        }),
        End::Hang(count) => {
            stream.write_all(&body[..count])?;
            stream.set_read_timeout(Some(Duration::from_secs(30)))?;
            let mut rest = [0; 1];
            std::io::Read::read(&mut stream, &mut rest).map(drop)
        }
    }
}
