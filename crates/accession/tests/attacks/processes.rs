//! Workers, guards and databases that die or start at the wrong moment.

use crate::support::packages::{manifest, small};
use crate::support::web;
use crate::support::world::World;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A server that answers 503 until it is mended, and then with the content of a file.
fn broken_server(file: &Path) -> (String, Arc<AtomicBool>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let mended = Arc::new(AtomicBool::new(false));
    let (file, works) = (file.to_path_buf(), mended.clone());
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
            lines.take_while(|line| !line.is_empty()).for_each(drop);
            let (status, body) = match works.load(Ordering::SeqCst) {
                true => ("200 OK", std::fs::read(&file).unwrap()),
                false => ("503 Service Unavailable", Vec::new()),
            };
            let head = format!(
                "HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                body.len()
            );
            let _ = stream.write_all(&[head.as_bytes(), &body].concat());
        }
    });
    (base, mended)
}

/// A batch ends with the job that examines it, says what failed and what to do, and goes on when the
/// job is requeued.
#[test]
fn a_batch_ends_with_the_job_that_examines_it() {
    World::both(|world| {
        let files = small(3, "batch");
        for (name, content) in &files {
            let path = world.path("web").join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, content).unwrap();
        }
        let list = manifest(&world.path("list.checkm"), &web::serve(&world.path("web")), &files);
        let (server, mended) = broken_server(&list);
        // Makes the pipelines.
        world.work();
        world.done(&["queue", "set", "batch", "--stage", "examining", "max_attempts=1"]);

        // It does not hang: `ingest` waits until the batch has ended.
        let report = world.ingest(&format!("{server}/list.checkm"), &[]);
        let batch = report["batch"].as_i64().unwrap();
        let error = report["error"].as_str().unwrap_or_default();
        assert_eq!(report["state"], "failed", "{report:#}");
        assert!(error.contains("which prepares the batch, failed: "), "{error}");
        assert!(error.contains("503"), "{error}");
        let command = error.split('`').nth(1).expect("a command to run").to_string();
        assert!(command.starts_with("accession jobs requeue "), "{error}");

        mended.store(true, Ordering::SeqCst);
        world.done(&command.split(' ').skip(1).collect::<Vec<_>>());
        assert_eq!(world.batch(batch)["state"], "pending");
        world.work();
        assert_eq!(world.batch(batch)["state"], "completed");
        let told = world.done(&["batches", "report", &batch.to_string()]);
        assert!(told.contains("completed") && !told.contains("which prepares"), "{told}");
        world.check();
    });
}

/// A batch whose job is cancelled ends too.
#[test]
fn a_batch_ends_with_the_job_that_was_cancelled() {
    let world = World::local(1);
    let path = world.path("one.txt");
    std::fs::write(&path, "one").unwrap();
    let batch = world.deposit(&path, &[]);
    let jobs = world.json(&["jobs", "list", "batch"]);
    let job = jobs[0][0]["id"].as_i64().unwrap().to_string();
    world.done(&["jobs", "cancel", &job, "--as", "ann", "--reason", "a mistake"]);
    world.work();
    let shown = world.batch(batch);
    assert_eq!(shown["state"], "failed", "{shown:#}");
    let error = shown["error"].as_str().unwrap_or_default();
    assert!(error.contains("was cancelled by ann: a mistake"), "{error}");
}
