//! A web server for the demo: files of one directory, to this machine only.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};

pub struct Server {
    pub address: String,
}

/// Serves until the process ends.
pub fn serve(directory: PathBuf) -> std::io::Result<Server> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?.to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let directory = directory.clone();
            // A visitor that goes away is no matter of the others.
            std::thread::spawn(move || answer(stream, &directory));
        }
    });
    Ok(Server { address })
}

fn answer(stream: TcpStream, directory: &Path) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut request = String::new();
    reader.read_line(&mut request)?;
    let mut line = String::new();
    while reader.read_line(&mut line)? > 2 {
        line.clear();
    }
    let mut words = request.split_whitespace();
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    // Only plain names: nothing leads out of the directory.
    let name = path.trim_start_matches('/');
    let plain = !name.is_empty() && !name.contains(['/', '\\', '%']) && !name.starts_with('.');
    let content = plain.then(|| std::fs::read(directory.join(name)).ok()).flatten();
    let (status, body) = match content {
        Some(content) => ("200 OK", content),
        None => ("404 Not Found", b"not here\n".to_vec()),
    };
    let mut out = stream;
    write!(
        out,
        "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    )?;
    if method != "HEAD" {
        out.write_all(&body)?;
    }
    out.flush()
}
