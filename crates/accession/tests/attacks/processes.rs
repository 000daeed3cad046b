//! Workers, guards and databases that die or start at the wrong moment.

use crate::support::packages::{manifest, small};
use crate::support::web;
use crate::support::world::{Worker, World, database_of_its_own};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// A server that answers 503 until it is fixed, and then with the content of a file.
fn broken_server(file: &Path) -> (String, Arc<AtomicBool>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let fixed = Arc::new(AtomicBool::new(false));
    let (file, works) = (file.to_path_buf(), fixed.clone());
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
    (base, fixed)
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
        let (server, fixed) = broken_server(&list);
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

        fixed.store(true, Ordering::SeqCst);
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
    let job = jobs[0]["jobs"][0]["id"].as_i64().unwrap().to_string();
    world.done(&["jobs", "cancel", &job, "--as", "ann", "--reason", "a mistake"]);
    world.work();
    let shown = world.batch(batch);
    assert_eq!(shown["state"], "failed", "{shown:#}");
    let error = shown["error"].as_str().unwrap_or_default();
    assert!(error.contains("was cancelled by ann: a mistake"), "{error}");
}

/// A second signal ends the worker at once, and the programs that look at files with it.
#[test]
fn programs_that_check_files_end_with_their_worker() {
    let world = World::local(1);
    let begun = world.path("begun");
    world.configure(&format!(
        "[[collections.maps.checks]]\nname = 'scan'\n\
         program = ['sh', '-c', 'echo $$ > \"{}\"; exec sleep 600', 'scan']\n",
        begun.display()
    ));
    let path = world.path("one.txt");
    std::fs::write(&path, "one").unwrap();
    world.deposit(&path, &["--collection", "maps"]);
    let mut worker = world.worker();
    let program = world.until_some("the program runs", || {
        std::fs::read_to_string(&begun).ok()?.trim().parse::<i32>().ok()
    });
    let ended = world.until_some("the worker ends at the second signal", || {
        kill(Pid::from_raw(worker.0.id() as i32), Signal::SIGTERM).ok();
        worker.0.try_wait().unwrap()
    });
    assert_eq!(ended.code(), Some(130));
    world.until_some("the program is gone", || (!lives(program)).then_some(()));
}

/// Watching is work of its own: it goes on until it is stopped.
#[test]
fn a_worker_that_only_watches_goes_on() {
    let world = World::local(1);
    let folder = world.path("in");
    std::fs::create_dir(&folder).unwrap();
    let refused = world.run(&["work", "--stages", "watching"]);
    assert_eq!(refused.status.code(), Some(2), "{}", refused.stderr);
    assert!(refused.stderr.contains("[[watch]]"), "{}", refused.stderr);
    world.configure(&format!(
        "[[watch]]\npath = \"{}\"\ncollection = \"default\"\nstill_seconds = 1\npoll_seconds = 1\n",
        folder.display()
    ));
    let refused = world.run(&["work", "--stages", "watching", "--until-empty"]);
    assert_eq!(refused.status.code(), Some(2), "{}", refused.stderr);
    assert!(refused.stderr.contains("--until-empty"), "{}", refused.stderr);

    let mut command = world.command(&["work", "--stages", "watching", "--lease", "1"]);
    let mut watcher = Worker(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    for name in ["one.txt", "two.txt"] {
        // The second arrives after the first was taken in.
        std::fs::write(folder.join(name), name).unwrap();
        world.until_some(name, || {
            let jobs = world.json(&["jobs", "list", "batch"]);
            let named = |j: &&serde_json::Value| j["subject"].as_str().unwrap().ends_with(name);
            jobs[0]["jobs"].as_array()?.iter().find(named).map(|_| ())
        });
    }
    kill(Pid::from_raw(watcher.0.id() as i32), Signal::SIGTERM).unwrap();
    assert!(watcher.0.wait().unwrap().success());
}

/// The processes that `root` started and that are still below it, with their command lines.
fn descendants(root: u32) -> Vec<(i32, String)> {
    let mut found: Vec<(i32, String)> = Vec::new();
    let mut parents = vec![root as i32];
    while let Some(parent) = parents.pop() {
        for entry in std::fs::read_dir("/proc").unwrap().flatten() {
            let Ok(pid) = entry.file_name().to_string_lossy().parse::<i32>() else { continue };
            let stat = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
            let after = stat.rsplit(')').next().unwrap_or_default();
            if after.split_whitespace().nth(1) == Some(&parent.to_string()) {
                let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
                found.push((pid, String::from_utf8_lossy(&line).replace('\0', " ")));
                parents.push(pid);
            }
        }
    }
    found
}

fn lives(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // One that has ended and waits for its parent does nothing any more.
    stat.rsplit(')').next().is_some_and(|s| !s.is_empty() && !s.trim_start().starts_with('Z'))
}

/// Starts a worker, and waits until its program says that it runs; the worker and what it started.
fn running(world: &World, program: &str, log: &Path) -> (Worker, Vec<(i32, String)>) {
    let args = ["queue", "work", "files", "--exec", program, "--lease", "1", "--no-output"];
    let mut command = world.command(&args);
    let worker = Worker(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    world.until_some("the program runs", || {
        let said = std::fs::read_to_string(log).unwrap_or_default();
        (said == "began\n").then_some(())
    });
    let processes = descendants(worker.0.id());
    (worker, processes)
}

/// A worker and its guard that die at one moment take the program with them, and all that it started.
#[test]
fn a_program_dies_with_its_worker_and_its_guard() {
    let world = World::local(1);
    world.done(&["queue", "create", "files"]);
    world.done(&["queue", "add", "files", "a"]);
    let log = world.path("log");
    let program = format!("(echo began >> {0}; sleep 600; true); true", log.display());
    let (mut worker, processes) = running(&world, &program, &log);
    let guard = processes.iter().find(|(_, line)| line.contains(" queue guard ")).unwrap().0;
    assert!(processes.iter().any(|(_, line)| line.starts_with("sleep ")), "{processes:?}");
    // Stopped first, so that neither sees the other die.
    kill(Pid::from_raw(guard), Signal::SIGSTOP).unwrap();
    worker.kill();
    kill(Pid::from_raw(guard), Signal::SIGKILL).unwrap();
    world.until_some("the program is gone", || {
        processes.iter().all(|(pid, _)| !lives(*pid)).then_some(())
    });
}

/// Where nothing is left that could end a program, the next run of its job on this machine waits.
#[test]
fn a_program_that_cannot_be_ended_is_waited_for() {
    let world = World::local(1);
    world.done(&["queue", "create", "files"]);
    world.done(&["queue", "add", "files", "a"]);
    let log = world.path("log");
    let program = format!("echo began >> {0}; sleep 4; echo ended >> {0}", log.display());
    let (mut worker, processes) = running(&world, &program, &log);
    let ours = |line: &str| line.contains(" queue guard ") || line.contains(" queue keeper ");
    let ours: Vec<i32> = processes.iter().filter(|p| ours(&p.1)).map(|p| p.0).collect();
    assert_eq!(ours.len(), 2, "{processes:?}");
    kill(Pid::from_raw(worker.0.id() as i32), Signal::SIGSTOP).unwrap();
    ours.iter().for_each(|pid| kill(Pid::from_raw(*pid), Signal::SIGSTOP).unwrap());
    ours.iter().for_each(|pid| kill(Pid::from_raw(*pid), Signal::SIGKILL).unwrap());
    worker.kill();
    let again = ["queue", "work", "files", "--exec", &program, "--lease", "1", "--until-empty"];
    world.done(&again);
    assert_eq!(std::fs::read_to_string(log).unwrap(), "began\nended\nbegan\nended\n");
}

/// A PostgreSQL that is starting up: it refuses the first connections as such a server does, and then
/// passes them on. Where it is, and how many it refused.
fn starting_server(server: &str, refusals: u32) -> (String, Arc<AtomicU32>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (user, rest) = server.split_once('@').unwrap();
    let (host, name) = rest.split_once('/').unwrap();
    let address = listener.local_addr().unwrap();
    let url = format!("{user}@{address}/{name}?sslmode=disable");
    let refused = Arc::new(AtomicU32::new(0));
    let (count, host) = (refused.clone(), host.to_string());
    std::thread::spawn(move || {
        for mut client in listener.incoming().flatten() {
            if count.fetch_add(1, Ordering::SeqCst) < refusals {
                let mut length = [0; 4];
                let _ = client.read_exact(&mut length);
                let mut message = vec![0; u32::from_be_bytes(length) as usize - 4];
                let _ = client.read_exact(&mut message);
                let fields = b"SFATAL\0C57P03\0Mthe database system is starting up\0\0";
                let size = (fields.len() as u32 + 4).to_be_bytes();
                let _ = client.write_all(&[b"E", &size[..], fields].concat());
                continue;
            }
            let server = TcpStream::connect(&host).unwrap();
            for (mut from, mut to) in [
                (client.try_clone().unwrap(), server.try_clone().unwrap()),
                (server.try_clone().unwrap(), client.try_clone().unwrap()),
            ] {
                std::thread::spawn(move || {
                    let _ = std::io::copy(&mut from, &mut to);
                    let _ = to.shutdown(std::net::Shutdown::Both);
                });
            }
        }
    });
    (url, refused)
}

#[test]
fn a_command_waits_for_a_database_that_is_starting_up() {
    let Some(database) = database_of_its_own() else {
        testing::skip("ACCESSION_TEST_POSTGRES is not set");
        return;
    };
    let (url, refused) = starting_server(&database, 4);
    let world = World::new(tempfile::tempdir().unwrap(), url, Vec::new());
    world.done(&["queue", "create", "files"]);
    assert!(refused.load(Ordering::SeqCst) > 4);
}

#[test]
fn a_mistyped_address_does_not_show_its_password() {
    let world = World::local(1);
    for url in ["postgres:/ann:s3cret@db/x", "postgres://ann:12/s3cret@db/x"] {
        for args in [["--database", url, "queue", "stats"], ["--database", url, "doctor", "-q"]] {
            let ended = world.run(&args);
            assert!(!ended.status.success());
            let said = format!("{}{}", ended.stdout, ended.stderr);
            assert!(!said.contains("s3cret"), "{args:?}: {said}");
        }
    }
}

/// The database holds what was deposited, and secrets: it is its owner's alone, whichever command made it.
#[test]
fn what_commands_make_is_their_users_alone() {
    use std::os::unix::fs::PermissionsExt;
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let commands: [&[&str]; 4] =
        [&["queue", "create", "files"], &["work", "--until-empty"], &["doctor"], &["status"]];
    for args in commands {
        let world = World::local(0);
        let data = world.path("new/data");
        let mut command = world.command(args);
        command.env("ACCESSION_DATA", &data).env_remove("ACCESSION_DATABASE");
        crate::support::world::finish(command, &format!("{args:?}"));
        assert_eq!(mode(&data), 0o700, "{args:?}");
        let made = std::fs::read_dir(&data).unwrap().flatten().filter(|e| e.path().is_file());
        let made: Vec<_> = made.map(|e| (mode(&e.path()), e.file_name())).collect();
        assert!(made.iter().any(|(_, name)| name == "accession.db"), "{args:?}: {made:?}");
        assert!(made.iter().all(|(mode, _)| *mode == 0o600), "{args:?}: {made:?}");
    }
}

/// A name with an escape sequence in it does not reach the terminal or the spreadsheet as such.
#[test]
fn csv_shows_control_characters() {
    let world = World::local(1);
    let files = [("a\u{1b}[31m\nb.txt", "one")];
    let path = crate::support::packages::directory(&world.path("box"), &files);
    let report = world.ingest(&path, &[]);
    assert_eq!(report["state"], "completed", "{report:#}");
    let said = world.done(&["objects", "files", "box", "--csv"]);
    assert!(said.contains("31m"), "{said:?}");
    assert!(!said.replace('\n', "").contains(char::is_control), "{said:?}");
    assert!(said.lines().all(|line| line.starts_with('"') && line.ends_with('"')), "{said:?}");
}
