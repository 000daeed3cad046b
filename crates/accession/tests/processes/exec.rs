//! `accession queue work --exec`, `add` and their manners, as a script sees them.

use crate::cli::Accession;
use serde_json::Value;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;
use std::time::Duration;

fn fresh() -> (tempfile::TempDir, Accession) {
    let dir = tempfile::tempdir().unwrap();
    let accession = Accession::new(&format!("sqlite://{}", dir.path().join("q.db").display()));
    (dir, accession)
}

/// Works until nothing is left; jobs may fail, and then the status says so.
fn work(accession: &Accession, program: &str) -> Value {
    let args = ["queue", "work", "files", "--exec", program, "--until-empty", "--no-output"];
    let output = accession.output(&[&args[..], &["--json"]].concat());
    let counts: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|e| panic!("{e}: {}", String::from_utf8_lossy(&output.stderr)));
    let expected = if counts["failed"] == 0 { 0 } else { 1 };
    assert_eq!(output.status.code(), Some(expected), "{counts}");
    counts
}

fn job(accession: &Accession, id: i64) -> Value {
    accession.json(&["queue", "show", &id.to_string()])["job"].clone()
}

#[test]
fn how_a_program_ends_decides_what_becomes_of_its_job() {
    let (_dir, accession) = fresh();
    accession.json(&[
        "queue",
        "create",
        "files",
        "max_attempts=2",
        "backoff_seconds=0",
        "max_interruptions=1",
    ]);
    accession.json(&["queue", "add", "files", "ok", "later", "down", "shot", "broken"]);
    let program = "case {subject} in ok) ;; later) exit 75;; down) echo s3-west; exit 69;; shot) kill -9 $$;; *) echo 'bad tape' >&2; exit 4;; esac";
    assert_eq!(work(&accession, program)["failed"], 4);
    let facts = |id| {
        let job = job(&accession, id);
        (
            job["status"].as_str().unwrap().to_string(),
            job["error_code"].as_str().unwrap_or_default().to_string(),
        )
    };
    assert_eq!(facts(1), ("succeeded".into(), "".into()));
    assert_eq!(facts(2), ("failed".into(), "exit_75".into()));
    assert_eq!(facts(3), ("failed".into(), "exit_69".into()));
    assert_eq!(job(&accession, 3)["target"], "s3-west");
    assert_eq!(facts(4), ("failed".into(), "interrupted_too_often".into()));
    assert_eq!(facts(5), ("failed".into(), "exit_4".into()));
    assert_eq!(job(&accession, 5)["error"], "bad tape");
    let tries = accession.json(&["queue", "show", "4"])["tries"][0].clone();
    assert_eq!(
        (tries["attempts_ever"].as_i64(), tries["interruptions_ever"].as_i64()),
        (Some(0), Some(2))
    );
}

#[test]
fn a_program_that_does_not_exist_stops_the_worker_and_fails_no_job() {
    let (_dir, accession) = fresh();
    accession.json(&["queue", "create", "files"]);
    accession.json(&["queue", "add", "files", "a", "b"]);
    let (code, said) = accession.refused(&[
        "queue",
        "work",
        "files",
        "--exec",
        "/no/such/program {subject}",
        "--until-empty",
    ]);
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("no job was failed"), "{said}");
    assert_eq!(job(&accession, 1)["status"], "queued");
    assert_eq!(work(&accession, "true")["succeeded"], 2);
}

#[test]
fn a_program_over_its_time_is_stopped_and_tried_again() {
    let (_dir, accession) = fresh();
    accession.json(&["queue", "create", "files", "max_attempts=1"]);
    accession.json(&["queue", "add", "files", "slow"]);
    let (code, _) = accession.refused(&[
        "queue",
        "work",
        "files",
        "--exec",
        "sleep 60",
        "--timeout",
        "1",
        "--grace",
        "1",
        "--until-empty",
    ]);
    assert_eq!(code, 1, "a job failed");
    assert_eq!(job(&accession, 1)["error_code"], "timeout");
}

#[test]
fn the_program_gets_the_payload_the_subject_and_what_it_needs_to_know() {
    let (dir, accession) = fresh();
    let out = dir.path().join("out");
    accession.json(&["queue", "create", "files"]);
    accession.json(&["queue", "add", "files", "it's; a 'name'", "--payload", "the payload"]);
    let program = format!(
        "printf '%s|%s|%s|%s|%s|' {{subject}} \"$ACCESSION_SUBJECT\" $ACCESSION_JOB $ACCESSION_ATTEMPT $ACCESSION_QUEUE > {0}; cat >> {0}",
        out.display()
    );
    work(&accession, &program);
    assert_eq!(
        std::fs::read_to_string(out).unwrap(),
        "it's; a 'name'|it's; a 'name'|1|1|files|the payload"
    );
}

/// Subjects that a shell would run, or that a program would take for an option, are words.
#[test]
fn hostile_subjects_are_words_and_nothing_else() {
    let (dir, accession) = fresh();
    let (out, pwned) = (dir.path().join("out"), dir.path().join("pwned"));
    accession.json(&["queue", "create", "files"]);
    let touch = format!("touch {}", pwned.display());
    let subjects = [
        format!("$({touch})"),
        format!("`{touch}`"),
        format!("a\n{touch}"),
        format!("'; {touch}; '"),
        format!("\"; {touch}; \""),
        format!("$(( x[$({touch})] ))"),
        "-rf".to_string(),
        "a b*?".to_string(),
    ];
    let mut child = accession
        .command(&["queue", "add", "files", "--from", "-", "--format", "nul"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(subjects.join("\0").as_bytes()).unwrap();
    assert!(child.wait().unwrap().success());
    let program =
        format!("printf '%s\\0' -- {{subject}} \"$ACCESSION_SUBJECT\" >> {}", out.display());
    assert_eq!(work(&accession, &program)["succeeded"], subjects.len());
    let written = std::fs::read_to_string(&out).unwrap();
    let words: Vec<&str> = written.split('\0').collect();
    for subject in &subjects {
        assert_eq!(words.iter().filter(|word| *word == subject).count(), 2, "{subject}");
    }
    assert!(!pwned.exists(), "a subject was run");
}

/// What one stage's program writes is what the next stage's program gets, and what `show` shows.
#[test]
fn a_job_has_a_state_from_stage_to_stage() {
    let (dir, accession) = fresh();
    let out = dir.path().join("out");
    accession.json(&["queue", "create", "intake", "--stages", "measure,scale,store"]);
    accession.json(&["queue", "add", "intake", "a"]);
    let work = |stage: &str, program: &str| {
        let args = ["queue", "work", stage, "--exec", program, "--once", "--json"];
        accession.output(&args).status.code()
    };
    let program =
        "test \"$ACCESSION_STATE\" = '{}' && echo '{\"width\": 80}' > \"$ACCESSION_STATE_OUT\"";
    assert_eq!(work("intake/measure", program), Some(0));
    // A program that fails leaves nothing, whatever it wrote.
    accession.json(&["queue", "set", "intake", "--stage", "scale", "backoff_seconds=0"]);
    let fails = "echo '{\"width\": 1}' > \"$ACCESSION_STATE_OUT\"; exit 75";
    assert_eq!(work("intake/scale", fails), Some(0));
    assert_eq!(work("intake/scale", "true"), Some(0));
    let shows =
        format!("printf '%s %s' \"$ACCESSION_STAGE\" \"$ACCESSION_STATE\" > {}", out.display());
    assert_eq!(work("intake/store", &format!("{shows}; exit 4")), Some(1));
    assert_eq!(std::fs::read_to_string(&out).unwrap(), "store {\"width\":80}");
    let shown = accession.json(&["queue", "show", "1"]);
    assert_eq!(shown["states"][0]["stage"], "measure");
    assert_eq!(shown["states"][0]["state"]["width"], 80);
    // Back at the first stage there is none; what is no object fails the job.
    accession.json(&["queue", "requeue", "1", "--to", "intake/measure"]);
    assert_eq!(work("intake/measure", "echo 3 > \"$ACCESSION_STATE_OUT\""), Some(1));
    assert_eq!(job(&accession, 1)["error_code"], "bad_state");
    assert_eq!(accession.json(&["queue", "show", "1"])["states"].as_array().unwrap().len(), 0);
}

#[test]
fn a_subject_within_quotes_is_refused_before_anything_runs() {
    let (_dir, accession) = fresh();
    accession.json(&["queue", "create", "files"]);
    accession.json(&["queue", "add", "files", "$(true)"]);
    for program in ["echo \"got {subject}\"", "echo 'got {subject}'", "cat <<E\n{subject}\nE"] {
        let args = ["queue", "work", "files", "--exec", program, "--until-empty"];
        let (code, said) = accession.refused(&args);
        assert_eq!(code, 2, "{said}");
        assert!(said.contains("unsafe_template") && said.contains("ACCESSION_SUBJECT"), "{said}");
    }
    assert_eq!(job(&accession, 1)["status"], "queued");
}

/// `--once` runs one job, and says by its status whether that went well; with none it ends at once.
#[test]
fn once_ends_at_once_when_there_is_nothing() {
    let (_dir, accession) = fresh();
    accession.json(&["queue", "create", "files", "max_attempts=1"]);
    let once = |program| {
        let args = ["queue", "work", "files", "--exec", program, "--once", "--json"];
        let output = accession.output(&args);
        let counts: Value = serde_json::from_slice(&output.stdout).unwrap();
        (output.status.code(), counts["runs"].as_i64())
    };
    assert_eq!(once("true"), (Some(1), Some(0)), "the queue is empty");
    accession.json(&["queue", "add", "files", "later", "--after", "1h"]);
    assert_eq!(once("true"), (Some(1), Some(0)), "nothing is due");
    accession.json(&["queue", "add", "files", "a", "b"]);
    assert_eq!(once("true"), (Some(0), Some(1)));
    assert_eq!(once("exit 4"), (Some(1), Some(1)), "the job failed");
}

#[test]
fn subjects_may_be_any_bytes() {
    let (dir, accession) = fresh();
    let out = dir.path().join("out");
    accession.json(&["queue", "create", "files"]);
    let mut child = accession
        .command(&["queue", "add", "files", "--from", "-", "--format", "nul"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"new\nline\0\xff\xfe\0 %41 \0").unwrap();
    assert!(child.wait().unwrap().success());
    work(&accession, &format!("printf '%s.' {{subject}} >> {}", out.display()));
    let written = std::fs::read(out).unwrap();
    for subject in [&b"new\nline."[..], b"\xff\xfe.", b" %41 ."] {
        assert!(
            written.windows(subject.len()).any(|w| w == subject),
            "{}",
            String::from_utf8_lossy(&written)
        );
    }
}

#[test]
fn bad_input_is_refused_in_one_line_and_changes_nothing() {
    let (dir, accession) = fresh();
    accession.json(&["queue", "create", "files"]);
    let list = dir.path().join("list");
    std::fs::write(&list, "good\n\nalso good\n").unwrap();
    let list = list.display().to_string();
    let long = "x".repeat(4097);
    for (args, says) in [
        (vec!["queue", "add", "nope", "a"], "there is no queue `nope`"),
        (vec!["queue", "add", "files", ""], "a subject is empty"),
        (vec!["queue", "add", "files", &long], "4096"),
        (vec!["queue", "add", "files", "--from", &list], "line 2"),
        (vec!["queue", "add", "files", "a", "--priority", "100"], "0 (first) to 99"),
        (vec!["queue", "add", "files", "a", "--after", "soon"], "neither a time"),
        (vec!["queue", "create", "files", "workers=9"], "exists with other settings"),
        (vec!["queue", "create", "a/b"], "cannot be a name"),
        (vec!["queue", "create", "ingest"], "a pipeline of the archive itself"),
        (vec!["queue", "set", "files", "wrokers=1"], "no setting `wrokers`"),
        (vec!["queue", "set", "files", "workers=many"], "whole number"),
        (vec!["queue", "show", "99"], "there is no job `99`"),
        (vec!["queue", "list", "--status", "dead"], "there is no status"),
        (vec!["queue", "requeue", "99"], "there is no job"),
        (vec!["queue", "empty", "files"], "0 waiting jobs"),
        (vec!["--database", "mysql://x", "queue", "stats"], "sqlite:///path"),
    ] {
        let (code, said) = accession.refused(&args);
        // That something is not there is an answer; the rest are wrong requests.
        let status = if says.starts_with("there is no job") { 1 } else { 2 };
        assert_eq!(code, status, "{args:?}: {said}");
        assert!(said.contains(says), "{args:?}: {said}");
        assert_eq!(said.trim_end().lines().count(), 1, "{said}");
    }
    let (code, said) = accession.refused(&[
        "--database",
        "postgres://nobody:s3cret@127.0.0.1:1/x",
        "queue",
        "stats",
    ]);
    assert_eq!(code, 3, "{said}");
    assert!(!said.contains("s3cret"), "{said}");
    let mistyped = accession.output(&["queue", "why", "one", "--json"]);
    assert_eq!(mistyped.status.code(), Some(2));
    let said: serde_json::Value = serde_json::from_slice(&mistyped.stdout).unwrap();
    assert_eq!(said["error"]["code"], "usage");
    assert!(said["error"]["message"].as_str().unwrap().contains("numbers, such as 12"), "{said}");
    assert_eq!(
        accession.json(&["queue", "list"])["jobs"].as_array().unwrap().len(),
        0,
        "nothing was added"
    );
}

#[test]
fn emptying_names_the_count_of_what_it_would_empty() {
    let (_dir, accession) = fresh();
    accession.json(&["queue", "create", "intake", "--stages", "fetch,store"]);
    accession.json(&["queue", "add", "intake", "a"]);
    let said = |stage| accession.refused(&["queue", "empty", "intake", "--stage", stage]).1;
    assert!(said("fetch").contains("1 waiting job of intake"), "{}", said("fetch"));
    assert!(said("store").contains("0 waiting jobs of intake"), "{}", said("store"));
}

#[test]
fn a_batch_goes_from_file_to_report_and_its_failures_can_be_fixed() {
    let (dir, accession) = fresh();
    accession.json(&["queue", "create", "files"]);
    let list = dir.path().join("list");
    std::fs::write(&list, "a\nb\nc\n").unwrap();
    let batch = accession.json(&[
        "queue",
        "add",
        "files",
        "--from",
        &list.display().to_string(),
        "--batch",
        "Box 17",
    ]);
    assert_eq!(batch["submitted"], 3);
    work(&accession, "test {subject} != b");
    let report = || accession.json(&["queue", "batches", "1"]);
    let found = report();
    assert_eq!(
        (&found["batch"]["state"], &found["batch"]["failed"]),
        (&"failed".into(), &1.into()),
        "{found}"
    );
    assert_eq!(found["report"]["failures"][0]["subject"], "b");
    accession.json(&["queue", "retry", "files", "--reason", "fixed"]);
    work(&accession, "true");
    let found = report();
    assert_eq!(
        (&found["batch"]["state"], &found["report"]["version"]),
        (&"completed".into(), &2.into()),
        "{found}"
    );
    assert_eq!(found["report"]["changed"][0]["subject"], "b");
    let listed =
        |state: &str| accession.json(&["queue", "batches"])["batches"][0]["state"] == state;
    assert!(listed("completed"));
    let failed = accession.json(&["batches", "list", "--state", "failed"]);
    assert_eq!(failed["batches"].as_array().map(Vec::len), Some(0), "{failed}");
    assert_eq!(accession.json(&["batches", "list", "--state", "completed"])["batches"][0]["id"], 1);
}

/// What a person sees of a batch names who cancelled a row, and what superseded which.
#[test]
fn a_batch_shows_what_was_cancelled_and_what_was_superseded() {
    let (dir, accession) = fresh();
    accession.json(&["queue", "create", "files"]);
    let add = |lines: &str| {
        let list = dir.path().join("list");
        std::fs::write(&list, lines).unwrap();
        let list = list.display().to_string();
        accession.json(&["queue", "add", "files", "--from", &list, "--batch", "Box"]);
    };
    let shown = |batch: &str| {
        let ended = accession.output(&["queue", "batches", batch]);
        String::from_utf8(ended.stdout).unwrap()
    };
    add("a\nb\n");
    work(&accession, "false");
    accession.json(&["queue", "cancel", "1", "--as", "ann", "--reason", "sent by mistake"]);
    add("b\n");
    work(&accession, "true");
    let (first, second) = (shown("1"), shown("2"));
    assert!(first.contains("ann") && first.contains("sent by mistake"), "{first}");
    assert!(first.contains("superseded by job 3 of batch 2: content not compared"), "{first}");
    assert!(second.contains("replaces failed job 2 of batch 1: content not compared"), "{second}");
}

#[test]
fn a_backup_can_be_restored_and_worked() {
    let (dir, accession) = fresh();
    accession.json(&["queue", "create", "files"]);
    accession.json(&["queue", "add", "files", "a", "b", "c"]);
    let copy = dir.path().join("copy").display().to_string();
    accession.json(&["db", "backup", &copy]);
    let (_, said) = accession.refused(&["db", "backup", &copy]);
    assert!(said.contains("exists already"), "{said}");
    work(&accession, "true");
    let restored = Accession::new(&format!("sqlite://{}", dir.path().join("new.db").display()));
    restored.json(&["db", "restore", &copy]);
    assert_eq!(work(&restored, "true")["succeeded"], 3);
}

/// A guard whose lease ends after `lease`, and which is told its payload after `late`: by which
/// signal it ended, and what its program wrote.
fn guarded(lease: Duration, late: Duration) -> (Option<i32>, String) {
    let (dir, accession) = fresh();
    let said = dir.path().join("said");
    let clock = nix::time::clock_gettime(nix::time::ClockId::CLOCK_MONOTONIC).unwrap();
    let until = (Duration::from(clock) + lease).as_millis().to_string();
    let program = format!("echo began > {0}; sleep 2; echo ended >> {0}", said.display());
    let args = ["queue", "guard", "--grace-ms", "100", "--lease-until", &until, "--", &program];
    let mut guard = accession.command(&args).stdin(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(late);
    let mut input = guard.stdin.take().unwrap();
    input.write_all(b"payload 0\n").unwrap();
    let status = guard.wait().unwrap();
    (status.signal(), std::fs::read_to_string(said).unwrap_or_default())
}

#[test]
fn a_program_lives_within_its_lease_however_late_its_guard_hears_of_it() {
    let (none, long) = (Duration::ZERO, Duration::from_secs(600));
    assert_eq!(guarded(long, none), (None, "began\nended\n".to_string()));
    // A worker that was stopped while it began a run, and went on after its lease.
    assert_eq!(guarded(none, none), (Some(9), String::new()));
    let short = Duration::from_millis(700);
    assert_eq!(guarded(short, short + Duration::from_millis(200)), (Some(9), String::new()));
    // A worker that was stopped later.
    let (signal, said) = guarded(Duration::from_millis(1500), none);
    assert_eq!((signal, said.contains("ended")), (Some(9), false), "{said}");
}
