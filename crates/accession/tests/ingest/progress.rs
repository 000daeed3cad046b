//! How far an object has come is seen while it is worked on; and what a terminal is left with.

use crate::support::packages::directory;
use crate::support::world::World;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::sync::mpsc;

const WHOLE: usize = 4 << 20;
const PART: usize = 1 << 20;

/// Answers every question with a file, of which it sends a part, and the rest when it is told to.
fn slow_server() -> (String, mpsc::Sender<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/film.bin", listener.local_addr().unwrap());
    let (go_on, told) = mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut asked = [0; 4096];
            let count = stream.read(&mut asked).unwrap();
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Length: {WHOLE}\r\nETag: \"a\"\r\nConnection: close\r\n\r\n"
            );
            stream.write_all(head.as_bytes()).unwrap();
            if asked[..count].starts_with(b"HEAD") {
                continue;
            }
            stream.write_all(&vec![b'a'; PART]).unwrap();
            if told.recv().is_ok() {
                stream.write_all(&vec![b'a'; WHOLE - PART]).unwrap();
            }
        }
    });
    (address, go_on)
}

#[test]
fn a_running_job_says_how_many_bytes_of_how_many_it_has() {
    World::both(|world| {
        let (url, go_on) = slow_server();
        let batch = world.deposit(&url, &["--kind", "file"]);
        let mut worker = world.worker();
        let job = world.until_some("a job that counts its bytes", || {
            let job = world.jobs().into_iter().next()?;
            (job["done_bytes"].as_u64()? == PART as u64).then_some(job)
        });
        assert_eq!((&job["stage"], &job["total_bytes"]), (&"downloading".into(), &WHOLE.into()));
        assert_eq!(job["progress"], "fetching 1.0 MiB of 4.0 MiB (25%)");
        let why = world.done(&["jobs", "why", &job["id"].to_string()]);
        assert!(why.contains("fetching 1.0 MiB of 4.0 MiB (25%)"), "{why}");
        go_on.send(()).unwrap();
        world.until_some("the end", || (world.batch(batch)["state"] == "completed").then_some(()));
        worker.kill();
    });
}

/// Runs the binary on a terminal of 80 columns, and gives all that it wrote there.
fn on_a_terminal(world: &World, line: &str) -> Option<String> {
    let binary = env!("CARGO_BIN_EXE_accession");
    let mut command = Command::new("script");
    command
        .args(["-qec", &format!("stty cols 80; exec {binary} {line}"), "/dev/null"])
        .env("ACCESSION_DATA", world.path("data"))
        .env("ACCESSION_DATABASE", &world.database)
        .env("ACCESSION_WORK_SPACE_ADMIT_PERCENT", "95")
        .env("ACCESSION_WORK_SPACE_STOP_PERCENT", "99")
        .stdin(Stdio::null());
    match command.output() {
        Ok(output) => Some(String::from_utf8_lossy(&output.stdout).into_owned()),
        Err(error) => {
            testing::skip(&format!("no terminal can be had from `script`: {error}"));
            None
        }
    }
}

#[test]
fn a_terminal_is_told_each_error_once_and_no_bar_is_left_on_it() {
    let world = World::local(1);
    let broken = directory(&world.path("broken"), &[("bagit.txt", "no bag"), ("data/a", "a")]);
    let Some(text) = on_a_terminal(&world, &format!("ingest {}", broken.display())) else { return };
    assert!(text.contains("failed"), "{text}");
    assert!(!text.contains("0/0"), "{text}");
    let told = text.matches("no payload manifest of a known algorithm").count();
    assert_eq!(told, 1, "{text}");
    assert!(!text.contains("WARN"), "{text}");
    // Elsewhere the log has it.
    let again = directory(&world.path("again"), &[("bagit.txt", "no bag"), ("data/b", "b")]);
    let ended = world.run(&["ingest", again.to_str().unwrap()]);
    assert_eq!(ended.stderr.matches("run ended in an error").count(), 1, "{}", ended.stderr);
    let told = ended.stderr.matches("no payload manifest of a known algorithm").count();
    assert_eq!(told, 1, "{}", ended.stderr);
}
