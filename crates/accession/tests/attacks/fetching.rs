//! Servers that lie, crawl or never stop sending.

use crate::support::disk::SmallDisk;
use crate::support::packages::{archive, directory, noise};
use crate::support::world::World;
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::time::Duration;

/// A server that answers each request with `send`, in a thread of its own. HEAD is not allowed, so
/// that sizes are not known before.
fn server(send: impl Fn(&mut TcpStream) -> std::io::Result<()> + Clone + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let send = send.clone();
            std::thread::spawn(move || {
                let lines = BufReader::new(stream.try_clone().unwrap()).lines();
                let request: Vec<String> =
                    lines.map_while(Result::ok).take_while(|line| !line.is_empty()).collect();
                let sent = match request.first() {
                    Some(line) if line.starts_with("GET") => send(&mut stream),
                    _ => stream.write_all(
                        b"HTTP/1.1 405 No\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
                    ),
                };
                // The client has gone: that is what some of these servers are for.
                drop(sent);
            });
        }
    });
    base
}

/// Announces a megabyte and sends ten bytes a second.
fn crawl(stream: &mut TcpStream) -> std::io::Result<()> {
    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n")?;
    loop {
        stream.write_all(b"a")?;
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Answers nothing.
fn hang(_: &mut TcpStream) -> std::io::Result<()> {
    std::thread::sleep(Duration::from_secs(600));
    Ok(())
}

/// Announces nothing and sends without end.
fn send_without_end(stream: &mut TcpStream) -> std::io::Result<()> {
    stream.write_all(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n")?;
    let chunk = noise(64 * 1024, 1);
    loop {
        stream.write_all(&chunk)?;
    }
}

fn in_stage(jobs: &[Value], stage: &str) -> usize {
    jobs.iter().filter(|job| job["stage"] == stage).count()
}

#[test]
fn slow_servers_do_not_stop_deposits_that_need_no_download() {
    let world = World::local(1);
    world.configure("[stages.downloading]\nworkers = 2\n");
    let base = server(crawl);
    for name in ["one.bin", "two.bin", "three.bin"] {
        world.deposit(&format!("{base}/{name}"), &[]);
    }
    let mut worker = world.worker();
    world.until("all slots of downloading are taken", |jobs| in_stage(jobs, "downloading") == 3);
    let letters = directory(&world.path("letters"), &[("a.txt", "a")]);
    let batch = world.deposit(&letters, &[]);
    world.until_some("the local deposit is preserved", || {
        (world.batch(batch)["state"] == "completed").then_some(())
    });
    assert_eq!(in_stage(&world.jobs(), "downloading"), 3);
    worker.kill();
}

/// Every deposit is examined and estimated: manifests and packages whose servers do not answer take
/// no more than their share of the places there.
#[test]
fn silent_servers_do_not_stop_deposits_of_local_files() {
    let world = World::local(1);
    let base = server(hang);
    for extension in ["checkm", "bin"] {
        let urls: Vec<String> = (0..20).map(|n| format!("{base}/{n}.{extension}")).collect();
        let mut args = vec!["deposit"];
        args.extend(urls.iter().map(String::as_str));
        world.done(&args);
    }
    let letters = directory(&world.path("letters"), &[("a.txt", "a")]);
    let batch = world.deposit(&letters, &[]);
    let mut worker = world.worker();
    world.until_some("the local deposit is preserved", || {
        (world.batch(batch)["state"] == "completed").then_some(())
    });
    let waiting = world.jobs();
    assert_eq!(in_stage(&waiting, "estimating"), 20, "{waiting:#?}");
    // And one that comes when all places of the share are taken.
    let maps = directory(&world.path("maps"), &[("b.txt", "b")]);
    let batch = world.deposit(&maps, &[]);
    world.until_some("the next one is preserved", || {
        (world.batch(batch)["state"] == "completed").then_some(())
    });
    worker.kill();
}

/// The bytes below a directory.
fn bytes_below(directory: &Path) -> u64 {
    std::fs::read_dir(directory)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| match entry.metadata() {
            Ok(meta) if meta.is_dir() => bytes_below(&entry.path()),
            Ok(meta) => meta.len(),
            Err(_) => 0,
        })
        .sum()
}

#[test]
fn a_download_without_end_stops_before_the_work_space_is_full() {
    let mut world = World::local(1);
    let Some(disk) = SmallDisk::mount(64) else { return };
    world.env.push(("ACCESSION_WORK_SPACE_PATH".into(), disk.path().display().to_string()));
    world.env.push(("ACCESSION_WORK_SPACE_ADMIT_PERCENT".into(), "70".into()));
    world.env.push(("ACCESSION_WORK_SPACE_STOP_PERCENT".into(), "80".into()));
    world.configure("[stages.downloading]\nmax_attempts = 1\n");
    let batch = world.deposit(&format!("{}/endless.bin", server(send_without_end)), &[]);
    world.work();
    let report = world.batch(batch);
    assert_eq!(report["state"], "failed", "{report:#}");
    let code = report["failures"][0]["code"].as_str().unwrap_or_default();
    assert!(["no_space", "work_space_too_small"].contains(&code), "{report:#}");
    assert!(bytes_below(disk.path()) <= (64 << 20) * 70 / 100, "more than was admitted");

    // Its data counts against the work space until a person discards it, or its retention ends.
    let job = world.jobs()[0]["id"].to_string();
    world.done(&["jobs", "discard", &job, "--reason", "the server never stops"]);
    let mut worker = world.worker();
    world.until_some("the room is free again", || (bytes_below(disk.path()) == 0).then_some(()));
    worker.kill();
}

/// Work space for four times the package is reserved; one that grows by more must get more, or stop.
#[test]
fn a_package_that_expands_further_stops_before_the_work_space_is_full() {
    let mut world = World::local(1);
    let Some(disk) = SmallDisk::mount(64) else { return };
    world.env.push(("ACCESSION_WORK_SPACE_PATH".into(), disk.path().display().to_string()));
    world.env.push(("ACCESSION_WORK_SPACE_ADMIT_PERCENT".into(), "70".into()));
    world.env.push(("ACCESSION_WORK_SPACE_STOP_PERCENT".into(), "80".into()));
    let zeros = vec![0; 30 << 20];
    let fits = archive(&directory(&world.path("fits"), &[("zeros", &zeros)]), "tar.gz");
    assert_eq!(world.ingest(&fits, &[])["state"], "completed");
    let more = directory(&world.path("box"), &[("a", &zeros), ("b", &zeros)]);
    let package = archive(&more, "tar.gz");
    assert!(std::fs::metadata(&package).unwrap().len() < 1 << 20);
    let report = world.ingest(&package, &[]);
    assert_eq!(report["state"], "failed", "{report:#}");
    assert_eq!(report["failures"][0]["code"], "work_space_too_small", "{report:#}");
    assert_eq!(bytes_below(disk.path()), 0, "what cannot be gone on with takes no room");
}

/// A program that looks at the members of an archive gets copies of them, in room that was reserved.
#[test]
fn copies_for_programs_stop_before_the_work_space_is_full() {
    let mut world = World::local(1);
    let Some(disk) = SmallDisk::mount(64) else { return };
    world.env.push(("ACCESSION_WORK_SPACE_PATH".into(), disk.path().display().to_string()));
    world.env.push(("ACCESSION_WORK_SPACE_ADMIT_PERCENT".into(), "70".into()));
    world.env.push(("ACCESSION_WORK_SPACE_STOP_PERCENT".into(), "80".into()));
    world.configure(
        "[[collections.maps.checks]]\nname = 'scan'\nper = 'file'\nprogram = ['true']\n",
    );
    for (name, mebibytes, state) in [("fits", 20, "completed"), ("large", 60, "failed")] {
        let content = noise(mebibytes << 20, 1);
        let files = [("one", &content), ("two", &content)];
        let package = archive(&directory(&world.path(name), &files), "tar");
        let report = world.ingest(&package, &["--collection", "maps"]);
        assert_eq!(report["state"], state, "{name}: {report:#}");
        if state == "failed" {
            assert_eq!(report["failures"][0]["code"], "work_space_too_small", "{report:#}");
        }
        assert_eq!(bytes_below(disk.path()), 0, "{name}: copies that nobody looks at take no room");
    }
}

#[test]
fn a_deposit_that_is_refused_leaves_no_payload() {
    let world = World::local(1);
    let list = world.path("list.checkm");
    std::fs::write(&list, "#%checkm_0.7\nhttp://127.0.0.1:9/a.bin | | | 1 | | a.bin\n").unwrap();
    let (list, missing) = (list.to_str().unwrap(), world.path("missing").display().to_string());
    for args in [&["deposit", list, &missing][..], &["deposit", list, "--collection", "nowhere"]] {
        assert!(!world.run(args).status.success(), "{args:?}");
        let left: Vec<_> =
            std::fs::read_dir(world.path("data/payloads")).into_iter().flatten().collect();
        assert!(left.is_empty(), "{args:?}: {left:?}");
    }
}

#[test]
fn a_url_with_a_password_is_refused_before_it_is_recorded() {
    const PASSWORD: &str = "correct-horse";
    let world = World::local(1);
    let url = format!("http://ada:{PASSWORD}@127.0.0.1:9/a.bin");
    let refused = world.run(&["deposit", &url]);
    assert!(!refused.status.success());
    assert!(refused.stderr.contains("[url_credentials]"), "{}", refused.stderr);
    assert!(!refused.stderr.contains(PASSWORD), "{}", refused.stderr);
    let list = world.path("list.checkm");
    std::fs::write(&list, format!("#%checkm_0.7\n{url} | | | 1 | | a.bin\n")).unwrap();
    let batch = world.deposit(&list, &["--kind", "manifest"]);
    world.work();
    let report = world.batch(batch);
    assert_eq!(report["state"], "failed", "{report:#}");
    assert!(report.to_string().contains("password"), "{report:#}");
    assert!(!report.to_string().contains(PASSWORD), "{report:#}");
    for file in ["data/accession.db", "data/accession.db-wal"] {
        let content = std::fs::read(world.path(file)).unwrap_or_default();
        let found = content.windows(PASSWORD.len()).any(|part| part == PASSWORD.as_bytes());
        assert!(!found, "the password is in {file}");
    }
}
