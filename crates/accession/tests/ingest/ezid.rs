//! Identifiers from EZID through whole ingests: whatever happens between minting and recording, an
//! object has one, and none is lost.

use crate::support::packages::directory;
use crate::support::world::World;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// How the stand-in answers when it has created an identifier.
#[derive(Clone, Copy, PartialEq)]
enum After {
    Well,
    /// Nothing, until the other side gives up.
    Silent,
    Unavailable,
}

#[derive(Default)]
struct Ezid {
    /// Identifiers and what was said of them.
    kept: BTreeMap<String, String>,
    created: usize,
    /// How the next answers to creations go; well when there are none left.
    next: Vec<After>,
}

/// Keeps identifiers as EZID does: a name is created once.
fn serve() -> (String, Arc<Mutex<Ezid>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let ezid: Arc<Mutex<Ezid>> = Arc::default();
    let shared = ezid.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let shared = shared.clone();
            std::thread::spawn(move || answer(stream, &shared));
        }
    });
    (url, ezid)
}

fn answer(mut stream: TcpStream, ezid: &Mutex<Ezid>) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let (mut first, mut length) = (String::new(), 0);
    reader.read_line(&mut first)?;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let line = line.trim().to_ascii_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if line.is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let mut words = first.split(' ');
    let (method, path) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
    let ark = path.trim_start_matches("/id/").to_string();
    let (status, text, after) = {
        let mut ezid = ezid.lock().unwrap();
        match (method, ezid.kept.get(&ark).cloned()) {
            ("PUT", Some(_)) => {
                (400, "error: bad request - identifier already exists".to_string(), After::Well)
            }
            ("PUT", None) => {
                ezid.kept.insert(ark.clone(), String::from_utf8_lossy(&body).into_owned());
                ezid.created += 1;
                (201, format!("success: {ark}"), ezid.next.pop().unwrap_or(After::Well))
            }
            (_, Some(body)) => (200, format!("success: {ark}\n{body}"), After::Well),
            _ => (400, "error: bad request - no such identifier".to_string(), After::Well),
        }
    };
    let (status, text) = match after {
        After::Well => (status, text),
        After::Unavailable => (503, "error: try later".to_string()),
        // Reading ends when the client has gone.
        After::Silent => return reader.read_to_end(&mut Vec::new()).map(drop),
    };
    let length = text.len();
    write!(
        stream,
        "HTTP/1.1 {status} x\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{text}"
    )
}

fn configure(world: &World, url: &str) {
    std::fs::write(world.path("password"), "p\n").unwrap();
    world.configure(&format!(
        "[identifiers.ezid]\nurl = \"{url}\"\nuser = \"u\"\npassword_file = \"{}\"\n\
         shoulder = \"ark:/99999/fk4\"\ntimeout_seconds = 1\n\
         [collections.maps]\nidentifiers = \"ezid\"\n",
        world.path("password").display()
    ));
}

/// The object's identifier is the one that was created, and it is the only one.
fn has_the_one(world: &World, ezid: &Mutex<Ezid>, batch: i64) -> String {
    let report = world.batch(batch);
    assert_eq!(report["state"], "completed", "{report:#}");
    let identifier = report["objects"][0]["identifier"].as_str().unwrap().to_string();
    assert!(ezid.lock().unwrap().kept.contains_key(&identifier), "{identifier}");
    identifier
}

fn ingests(world: &World) {
    let (url, ezid) = serve();
    configure(world, &url);
    let deposit = |name: &str| {
        let path = directory(&world.path(name), &[("a.txt", name)]);
        world.deposit(&path, &["--collection", "maps", "--what", name])
    };
    let mut seen = Vec::new();

    // Killed between minting and recording, twice.
    let killed = deposit("killed");
    assert!(world.work_until("resolving.minted"));
    assert!(world.work_until("resolving.minted"));
    assert_eq!(ezid.lock().unwrap().created, 1, "the second run found it again");
    world.work();
    seen.push(has_the_one(world, &ezid, killed));

    // An answer that never comes, or comes as an error, although the identifier was made.
    for (number, after) in [After::Silent, After::Unavailable].into_iter().enumerate() {
        ezid.lock().unwrap().next = vec![after];
        let batch = deposit(&format!("lost-{number}"));
        world.work();
        seen.push(has_the_one(world, &ezid, batch));
    }
    assert_eq!(ezid.lock().unwrap().created, 3, "one for each object");

    // Another archive with the same account and shoulder has jobs of the same numbers.
    let other = World::local(1);
    configure(&other, &url);
    let path = directory(&other.path("other"), &[("a.txt", "other")]);
    let batch = other.deposit(&path, &["--collection", "maps"]);
    other.work();
    seen.push(has_the_one(&other, &ezid, batch));
    seen.sort();
    seen.dedup();
    assert_eq!((seen.len(), ezid.lock().unwrap().created), (4, 4));
    world.check();
}

#[test]
fn an_object_has_one_identifier_whatever_happens_after_minting() {
    World::both(ingests);
}
