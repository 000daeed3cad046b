//! Depositors are told: by mail to a real SMTP server, and by signed callbacks.

use crate::support::outside::{decoded, header, http, refusing_smtp, serve, smtp};
use crate::support::packages::{bag, directory};
use crate::support::world::World;
use std::net::TcpListener;

/// A report says which file failed, in each of its forms.
fn names_the_file(world: &World, batch: i64) {
    let number = batch.to_string();
    for (format, shown) in [
        ("json", "\"file\":\"data/page.txt\""),
        ("csv", ",data/page.txt,"),
        ("html", "<span class=\"file\">data/page.txt</span>"),
        ("text", "failed in validating, data/page.txt"),
    ] {
        let report = world.run(&["batches", "report", &number, "--format", format]).stdout;
        assert!(report.contains(shown), "{format}: {report}");
    }
}

/// The use cases of seed 001: a batch that succeeds, one that fails, one that fails and is corrected;
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
    let told = |what: &str| mails.iter().filter(|m| decoded(m).contains(what)).count();
    assert_eq!(told("To: ada@example.org"), 3);
    assert!(told("bag_digest_mismatch") >= 2, "the cause is in the mail: {mails:#?}");
    assert!(told("failed in validating, data/page.txt") >= 2, "and the file: {mails:#?}");
    assert!(mails.iter().all(|m| m.len() < 64 * 1024));
    for address in ["ada@example.org", "curator@example.org"] {
        let files = |m: &&String| m.contains("batch-1-report-1.csv\"") && m.contains(address);
        assert_eq!(mails.iter().filter(files).count(), 1, "{address} has a table: {mails:#?}");
    }
    let subjects = [
        "Subject: OK: 1 of 1 object preserved: good (maps, batch 1)",
        "Subject: FAILED: 0 of 1 object preserved, 1 failed: torn (maps, batch 2)",
        "Subject: OK: 1 of 1 object preserved: torn (maps, batch 2, update)",
    ];
    for subject in subjects {
        assert_eq!(told(subject), 2, "{subject} in {mails:#?}");
    }
    assert_eq!(told("  good: ark:/99999/"), 2, "what was preserved has its identifier: {mails:#?}");
    let command = |m: &String| m.contains("accession batches") || m.contains("`accession");
    assert!(!mails.iter().any(|m| command(&decoded(m))), "a depositor has no commands: {mails:#?}");

    let calls = calls.lock().unwrap().clone();
    let mut ids = std::collections::HashSet::new();
    for call in &calls {
        let (head, body) =
            call.split_once("\n\n").unwrap_or_else(|| call.split_once("\r\n\n").unwrap());
        let timestamp: i64 = header(head, "Accession-Timestamp").parse().unwrap();
        let expected = archive::transfer::callback::sign(b"hush", timestamp, body.as_bytes());
        assert_eq!(header(head, "Accession-Signature"), expected, "{call}");
        assert!(ids.insert(header(head, "Accession-Id").to_string()), "each is sent once: {call}");
    }
    assert_eq!(calls.len(), 5, "two objects and three reports: {calls:#?}");
    assert!(calls.iter().any(|c| c.contains("\"status\":\"succeeded\"")));
    let told = calls.iter().find(|c| c.contains("\"status\":\"failed\"")).unwrap();
    assert!(told.contains("\"file\":\"data/page.txt\""), "{told}");
    world.check();
}

fn with_mail(world: &World, port: u16, more: &str) {
    world.configure(&format!(
        "[mail]\nhost = \"127.0.0.1\"\nport = {port}\nsecurity = \"none\"\nfrom = \"archive@example.org\"\n{more}"
    ));
}

/// A user of `ingest` may have no worker that sends the mail later.
#[test]
fn an_ingest_ends_when_its_mail_and_callbacks_are_sent() {
    World::both(|world| {
        let ((mail_port, mails), (http_port, calls)) = (serve(smtp), serve(http));
        let callback = format!(
            "[collections.maps.callback]\nurl = \"http://127.0.0.1:{http_port}/done\"\nsecret = \"hush\"\n"
        );
        with_mail(world, mail_port, &callback);
        let to_maps = ["--collection", "maps", "--notify", "ada@example.org"];
        // A name that would be a header of its own.
        let letter = world.path("letter\nBcc: eve@example.com\n");
        std::fs::write(&letter, "Dear Ann").unwrap();
        assert_eq!(world.ingest(&letter, &to_maps)["state"], "completed");
        let mails = mails.lock().unwrap().clone();
        let [mail] = mails.as_slice() else { panic!("one mail: {mails:#?}") };
        let head = mail.split("\n\n").next().unwrap();
        assert!(head.contains("OK: 1 of 1 object preserved: letter"), "{mail}");
        assert!(!head.lines().any(|line| line.starts_with("Bcc")), "{mail}");
        let calls = calls.lock().unwrap().clone();
        assert_eq!(calls.len(), 2, "the object and the report: {calls:#?}");
    });
}

/// Ingests something whose report goes to Ada; what was said on the way.
fn ingest_for_ada(world: &World) -> String {
    let path = directory(&world.path("box"), &[("a.txt", "a")]);
    let began = std::time::Instant::now();
    let path = path.to_str().unwrap();
    let ended =
        world.run(&["ingest", path, "--notify", "ada@example.org", "--notify-timeout", "3"]);
    assert_eq!(ended.status.code(), Some(0), "{}{}", ended.stdout, ended.stderr);
    assert!(began.elapsed().as_secs() < 40, "it waited {:?}", began.elapsed());
    ended.stderr
}

/// A mail server that is down fails nothing, and the wait for it has a limit.
#[test]
fn mail_that_cannot_be_sent_now_is_named_and_sent_later() {
    let world = World::local(1);
    // A port that nothing listens on.
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    with_mail(&world, nobody, "");
    let said = ingest_for_ada(&world);
    assert!(
        said.contains("1 mail is not sent yet: ") && said.contains("`accession work`"),
        "{said}"
    );
    assert!(said.contains("cannot be reached"), "the cause is said: {said}");
    let ended = world.run(&["work", "--until-empty", "--notify-timeout", "1"]);
    assert!(ended.stderr.contains("1 message is not sent"), "{}", ended.stderr);
    let (port, mails) = serve(smtp);
    with_mail(&world, port, "");
    world.work();
    let mails = mails.lock().unwrap().clone();
    assert_eq!(mails.len(), 1, "until-empty counts what waits to be sent: {mails:#?}");
}

#[test]
fn mail_that_is_refused_is_named_with_what_to_do() {
    let world = World::local(1);
    let (port, mails) = serve(refusing_smtp);
    with_mail(&world, port, "");
    let said = ingest_for_ada(&world);
    assert!(said.contains("1 mail is not sent: "), "{said}");
    assert!(said.contains("refused mail for ada@example.org"), "{said}");
    assert!(said.contains("`accession jobs requeue"), "{said}");
    assert!(mails.lock().unwrap().is_empty());
}

/// All rows of a batch are in its report, whatever has become of them.
#[test]
fn reports_name_rows_that_are_not_done_and_rows_that_were_cancelled() {
    World::both(|world| {
        let manifest = |name: &str, rows: &str| {
            let path = world.path(name);
            let profile =
                "http://uc3.cdlib.org/registry/ingest/manifest/mrt-single-file-batch-manifest";
            let head = format!("#%checkm_0.7\n#%profile | {profile}\n");
            std::fs::write(&path, format!("{head}{rows}#%eof\n")).unwrap();
            path
        };
        let rows = "http://127.0.0.1:1/a | | | | | a.txt\nhttp://127.0.0.1:1/b | | | | | b.txt\n";
        let batch = world.deposit(&manifest("two.checkm", rows), &[]).to_string();
        let csv = || world.done(&["batches", "report", &batch, "--format", "csv"]);
        world.done(&["batches", "hold", &batch, "--reason", "not yet"]);
        assert!(csv().contains(",a.txt,held,") && csv().contains(",b.txt,held,"), "{}", csv());
        let shown = world.json(&["batches", "show", &batch]).remove(0);
        assert_eq!((&shown["unfinished_total"], &shown["held"]), (&2.into(), &true.into()));
        let text = world.done(&["batches", "show", &batch]);
        assert!(text.contains("a.txt") && text.contains("b.txt"), "{text}");
        world.done(&["jobs", "pause", "ingest", "--reason", "not yet"]);
        world.done(&["batches", "release", &batch]);
        let mut worker = world.worker();
        world.until("jobs that wait", |jobs| jobs.len() == 2);
        worker.kill();
        let waiting = csv();
        assert_eq!(waiting.lines().count(), 3, "{waiting}");
        assert!(
            waiting.contains(",a.txt,queued,") && waiting.contains(",b.txt,queued,"),
            "{waiting}"
        );
        world.done(&["batches", "cancel", &batch, "--reason", "sent twice", "--as", "bert"]);
        world.done(&["jobs", "unpause", "ingest"]);
        world.work();
        let cancelled = csv();
        assert_eq!(cancelled.matches(",cancelled,").count(), 2, "{cancelled}");
        assert_eq!(cancelled.matches("sent twice,bert").count(), 2, "{cancelled}");
        let text = world.done(&["batches", "report", &batch]);
        assert!(text.contains("a.txt: cancelled by bert: sent twice"), "{text}");

        let broken = "http://127.0.0.1:1/a | sha256 | xyz | | | a.txt\nnonsense\n";
        let batch = world.deposit(&manifest("broken.checkm", broken), &[]).to_string();
        world.work();
        let csv = world.done(&["batches", "report", &batch, "--format", "csv"]);
        assert!(csv.lines().count() >= 3, "a row for each problem: {csv}");
        assert!(csv.lines().skip(1).all(|row| row.contains("broken.checkm")), "{csv}");
    });
}
