//! Depositors are told: by mail to a real SMTP server, and by signed callbacks.

use crate::support::packages::{bag, directory};
use crate::support::world::World;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

type Kept = Arc<Mutex<Vec<String>>>;

/// A server that keeps what it is sent; for SMTP or HTTP.
fn serve(answer: fn(TcpStream, &Kept) -> std::io::Result<()>) -> (u16, Kept) {
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

fn smtp(stream: TcpStream, kept: &Kept) -> std::io::Result<()> {
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
        let word = if line.starts_with("QUIT") { "221 bye" } else { "250 fine" };
        write!(out, "{word}\r\n")?;
    }
    Ok(())
}

fn http(stream: TcpStream, kept: &Kept) -> std::io::Result<()> {
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

fn header<'t>(request: &'t str, name: &str) -> &'t str {
    let line =
        request.lines().find(|l| l.to_ascii_lowercase().starts_with(&name.to_ascii_lowercase()));
    line.unwrap().split_once(':').unwrap().1.trim()
}

/// A report says which file failed, in each of its forms.
fn names_the_file(world: &World, batch: i64) {
    let number = batch.to_string();
    for (format, shown) in [
        ("json", "\"file\":\"data/page.txt\""),
        ("csv", ",data/page.txt,"),
        ("html", "<td>data/page.txt</td>"),
        ("text", "failed in validating, data/page.txt"),
    ] {
        let report = world.run(&["batches", "report", &number, "--format", format]).stdout;
        assert!(report.contains(shown), "{format}: {report}");
    }
}

/// The use cases of seed 001: a batch that succeeds, one that fails, one that fails and is mended;
/// each is reported, and the last one again.
#[test]
fn reports_reach_the_depositor_and_callbacks_are_signed() {
    World::both(told);
}

fn told(world: &World) {
    let ((mail_port, mails), (http_port, calls)) = (serve(smtp), serve(http));
    world.configure(&format!(
        "[mail]\nhost = \"127.0.0.1\"\nport = {mail_port}\nsecurity = \"none\"\nfrom = \"archive@example.org\"\n\
         [collections.maps]\nnotify = [{{ address = \"curator@example.org\", formats = [\"text\", \"csv\", \"html\"] }}]\n\
         [collections.maps.callback]\nurl = \"http://127.0.0.1:{http_port}/done\"\nsecret = \"hush\"\n"
    ));
    let to_maps = ["--collection", "maps", "--notify", "ada@example.org"];
    world.deposit(&directory(&world.path("good"), &[("a.txt", "good")]), &to_maps);
    world.work();
    bag(&world.path("torn"), &[("page.txt", "whole")]);
    std::fs::write(world.path("torn/data/page.txt"), "whxle").unwrap();
    let failed = world.deposit(&world.path("torn"), &to_maps);
    world.work();
    let job = world.batch(failed)["failures"][0]["job"].to_string();
    names_the_file(world, failed);
    std::fs::write(world.path("torn/data/page.txt"), "whole").unwrap();
    assert!(world.run(&["jobs", "requeue", &job]).status.success());
    world.work();

    let mails = mails.lock().unwrap().clone();
    assert_eq!(mails.len(), 6, "three reports, two readers each: {mails:#?}");
    let told = |what: &str| mails.iter().filter(|m| m.replace("=\n", "").contains(what)).count();
    assert_eq!(told("To: ada@example.org"), 3);
    assert!(told("bag_digest_mismatch") >= 2, "the cause is in the mail: {mails:#?}");
    assert!(told("failed in validating, data/page.txt") >= 2, "and the file: {mails:#?}");
    assert!(mails.iter().all(|m| m.len() < 32 * 1024));
    assert_eq!(told("batch-1-report-1.csv"), 1, "the curator has it as a table, too: {mails:#?}");

    let calls = calls.lock().unwrap().clone();
    let mut ids = std::collections::HashSet::new();
    for call in &calls {
        let (head, body) =
            call.split_once("\n\n").unwrap_or_else(|| call.split_once("\r\n\n").unwrap());
        let timestamp: i64 = header(head, "Accession-Timestamp").parse().unwrap();
        let expected = archive::outbox::callback::sign(b"hush", timestamp, body.as_bytes());
        assert_eq!(header(head, "Accession-Signature"), expected, "{call}");
        assert!(ids.insert(header(head, "Accession-Id").to_string()), "each is sent once: {call}");
    }
    assert_eq!(calls.len(), 5, "two objects and three reports: {calls:#?}");
    assert!(calls.iter().any(|c| c.contains("\"status\":\"succeeded\"")));
    let told = calls.iter().find(|c| c.contains("\"status\":\"failed\"")).unwrap();
    assert!(told.contains("\"file\":\"data/page.txt\""), "{told}");
    world.check();
}
