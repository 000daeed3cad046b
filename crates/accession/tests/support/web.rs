//! A small web server: serves a directory, with HEAD and ranges.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};

/// Serves until the process ends.
pub fn serve(directory: &Path) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let directory = directory.to_path_buf();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let directory = directory.clone();
            std::thread::spawn(move || while answer(&stream, &directory).unwrap_or(false) {});
        }
    });
    base
}

/// Answers one request; false when the client is gone.
fn answer(stream: &TcpStream, directory: &Path) -> std::io::Result<bool> {
    let mut reader = BufReader::new(stream);
    let mut first = String::new();
    if reader.read_line(&mut first)? == 0 {
        return Ok(false);
    }
    let mut from = None;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let line = line.trim().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(range) = line.strip_prefix("range: bytes=") {
            from = range.split('-').next().and_then(|n| n.parse::<usize>().ok());
        }
    }
    let mut words = first.split(' ');
    let (method, path) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
    let path: PathBuf = directory.join(path.trim_start_matches('/'));
    let mut stream = stream;
    let Ok(content) = std::fs::read(path) else {
        stream.write_all(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n")?;
        return Ok(true);
    };
    let (start, status) = match from {
        Some(from) if from < content.len() => (from, "206 Partial Content"),
        _ => (0, "200 OK"),
    };
    let mut head = format!(
        "HTTP/1.1 {status}\r\ncontent-length: {}\r\naccept-ranges: bytes\r\netag: \"{}\"\r\n",
        content.len() - start,
        content.len()
    );
    if from.is_some() && start > 0 {
        let (last, all) = (content.len() - 1, content.len());
        head.push_str(&format!("content-range: bytes {start}-{last}/{all}\r\n"));
    }
    stream.write_all(format!("{head}\r\n").as_bytes())?;
    if method != "HEAD" {
        stream.write_all(&content[start..])?;
    }
    Ok(true)
}
