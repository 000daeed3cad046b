//! Servers that an archive tells things: by mail, and by callbacks.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// What a server was sent.
pub type Kept = Arc<Mutex<Vec<String>>>;

/// A server that keeps what it is sent; for SMTP or HTTP.
pub fn serve(answer: fn(TcpStream, &Kept) -> std::io::Result<()>) -> (u16, Kept) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let kept = Kept::default();
    let keep = kept.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let keep = keep.clone();
            std::thread::spawn(move || answer(stream, &keep));
        }
    });
    (port, kept)
}

pub fn smtp(stream: TcpStream, kept: &Kept) -> std::io::Result<()> {
    conversation(stream, kept, "250 fine")
}

/// A server that knows no mailbox.
pub fn refusing_smtp(stream: TcpStream, kept: &Kept) -> std::io::Result<()> {
    conversation(stream, kept, "550 no such user")
}

fn conversation(stream: TcpStream, kept: &Kept, recipient: &str) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    let mut out = stream;
    write!(out, "220 here\r\n")?;
    while let Some(line) = lines.next() {
        let line = line?.to_ascii_uppercase();
        if line.starts_with("DATA") {
            write!(out, "354 go on\r\n")?;
            let mut mail = String::new();
            for line in lines.by_ref() {
                match line?.as_str() {
                    "." => break,
                    text => mail.push_str(&format!("{text}\n")),
                }
            }
            kept.lock().unwrap().push(mail);
        }
        let word = match line.get(..4).unwrap_or_default() {
            "QUIT" => "221 bye",
            "RCPT" => recipient,
            _ => "250 fine",
        };
        write!(out, "{word}\r\n")?;
    }
    Ok(())
}

pub fn http(stream: TcpStream, kept: &Kept) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if line.trim().is_empty() {
            break;
        }
        head.push_str(&line);
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    kept.lock().unwrap().push(format!("{head}\n{}", String::from_utf8_lossy(&body)));
    let mut out = stream;
    write!(out, "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
}

/// A mail as it was before it was folded and encoded for its way.
pub fn decoded(mail: &str) -> String {
    mail.replace("=\n", "").replace("\n ", " ").replace("=3D", "=")
}

pub fn header<'t>(request: &'t str, name: &str) -> &'t str {
    let line =
        request.lines().find(|l| l.to_ascii_lowercase().starts_with(&name.to_ascii_lowercase()));
    line.unwrap().split_once(':').unwrap().1.trim()
}
