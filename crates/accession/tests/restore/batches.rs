//! Many objects at once: reports, mail, callbacks, and what the archive takes away again.

use crate::damage::tree;
use crate::support::invariants::execute;
use crate::support::outside::{decoded, http, serve, smtp};
use crate::support::packages::directory;
use crate::support::world::World;

fn deposit(world: &World, names: &[&str], collection: &str) {
    for name in names {
        let package = directory(&world.path(name), &[("a.txt", name)]);
        let report = world.ingest(&package, &["--collection", collection]);
        assert_eq!(report["state"], "completed", "{report:#}");
    }
}

#[test]
fn a_list_of_objects_is_one_batch_with_a_report() {
    World::both(|world| {
        deposit(world, &["one", "two", "three"], "default");
        std::fs::write(world.path("list"), "one\n\n# not this one: three\ntwo\n").unwrap();
        let (list, out) = (world.path("list"), world.path("out"));
        let args = ["--from", list.to_str().unwrap(), "--to", out.to_str().unwrap()];
        let receipt = world.json(&[&["restore"], &args[..], &["--enqueue"]].concat()).remove(0);
        assert_eq!(receipt["objects"], 2, "{receipt:#}");
        let batch = receipt["batch"].to_string();
        let waiting = world.json(&["batches", "show", &batch]).remove(0);
        assert_eq!((&waiting["is_restore"], &waiting["submitted"]), (&true.into(), &2.into()));
        world.work();
        assert_eq!(tree(&out.join("one-v1")), tree(&world.path("one")));
        assert_eq!(tree(&out.join("two-v1")), tree(&world.path("two")));
        assert!(!out.join("three-v1").exists());
        let shown = world.json(&["batches", "show", &batch]).remove(0);
        assert_eq!(shown["state"], "completed", "{shown:#}");
        assert_eq!(shown["objects"][0]["state"], "delivered");
        let text = world.done(&["batches", "report", &batch]);
        assert!(text.contains("2 of 2 objects delivered"), "{text}");
        assert!(text.contains("DELIVERED OBJECTS") && text.contains("out/one-v1"), "{text}");
        for format in ["csv", "html"] {
            let report = world.done(&["batches", "report", &batch, "--format", format]);
            assert!(report.contains("out/two-v1"), "{format}: {report}");
        }
    });
}

#[test]
fn depositors_and_programs_hear_where_it_is_and_until_when() {
    World::both(|world| {
        let ((mail_port, mails), (http_port, calls)) = (serve(smtp), serve(http));
        let place = world.path("reading-room");
        let configuration = format!(
            "[mail]\nhost = \"127.0.0.1\"\nport = {mail_port}\nsecurity = \"none\"\nfrom = \"archive@example.org\"\n\
             [collections.maps]\nrestore_to = \"{}\"\nrestored_keep_days = 30\n\
             notify = [{{ address = \"curator@example.org\" }}]\n\
             [collections.maps.callback]\nurl = \"http://127.0.0.1:{http_port}/done\"\nsecret = \"hush\"\n",
            place.display()
        );
        world.configure(&configuration);
        deposit(world, &["one", "two"], "maps");
        mails.lock().unwrap().clear();
        calls.lock().unwrap().clear();
        let args = ["--collection", "maps", "--as", "tar", "--notify", "ada@example.org"];
        world.done(&[&["restore"], &args[..], &["-q"]].concat());
        let (one, two) = (place.join("one-v1.tar"), place.join("two-v1.tar"));
        assert!(one.is_file() && two.is_file());
        let mails = mails.lock().unwrap().clone();
        assert_eq!(mails.len(), 2, "{mails:#?}");
        for mail in &mails {
            let mail = decoded(mail);
            assert!(mail.contains("OK: 2 of 2 objects delivered"), "{mail}");
            assert!(mail.contains("one-v1.tar") && mail.contains("kept there until"), "{mail}");
        }
        let calls = calls.lock().unwrap().clone();
        assert_eq!(calls.len(), 3, "two objects and the report: {calls:#?}");
        let told = calls.iter().filter(|c| c.contains("\"status\":\"delivered\"")).count();
        assert_eq!(told, 2, "{calls:#?}");
        assert!(calls.iter().any(|c| c.contains("\"kept_until\":\"20")), "{calls:#?}");
        // When the time is over the archive takes away what is as it left it.
        std::fs::write(&two, "somebody's own").unwrap();
        execute(world, "update restores set kept_until = 1 where kept_until is not null");
        world.work();
        assert!(!one.exists());
        assert_eq!(std::fs::read_to_string(&two).unwrap(), "somebody's own");
    });
}

/// A restore that is cancelled leaves nothing at its destination.
#[test]
fn what_a_cancelled_restore_has_written_is_removed() {
    let world = World::local(1);
    deposit(&world, &["one"], "default");
    let out = world.path("rooms/out");
    world.done(&["restore", "one", "--to", out.to_str().unwrap(), "--enqueue", "-q"]);
    assert!(world.work_until("packaging.written"));
    assert_eq!(std::fs::read_dir(world.path("rooms")).unwrap().count(), 1, "what is not finished");
    let jobs = world.json(&["jobs", "list", "restore-object"]).remove(0);
    let job = jobs["jobs"][0]["id"].to_string();
    // The lease of the process that died has to end first.
    world.until_some("a job that can be cancelled", || {
        world
            .run(&["jobs", "cancel", &job, "--reason", "by mistake"])
            .status
            .success()
            .then_some(())
    });
    world.work();
    let cancelled = || {
        let jobs = world.json(&["jobs", "list", "restore-object"]).remove(0);
        jobs["jobs"][0]["status"] == "cancelled"
    };
    assert!(cancelled());
    world.until_some("a clean destination", || {
        world.work();
        (std::fs::read_dir(world.path("rooms")).unwrap().count() == 0).then_some(())
    });
}

/// A drill reads a whole object and delivers it nowhere; what it cannot read is for a person to see.
#[test]
fn drills_find_what_cannot_be_restored_before_it_is_needed() {
    World::both(|world| {
        deposit(world, &["one"], "default");
        world.configure("[collections.default]\nrestore_drill_days = 7\n");
        let drills = || {
            let jobs = world.json(&["jobs", "list", "restore-object"]).remove(0);
            jobs["jobs"].as_array().unwrap().clone()
        };
        let mut worker = world.worker();
        world.until_some("a drill", || {
            drills().first().filter(|job| job["status"] == "succeeded").map(|_| ())
        });
        worker.kill();
        let events = world.json(&["objects", "events", "one"]).remove(0);
        let told = events["events"].as_array().unwrap().iter();
        let told = told.filter_map(|event| event["detail"].as_str());
        let found = "restore drill: version 1 as tar: 1 file, 3 bytes";
        assert_eq!(told.filter(|detail| *detail == found).count(), 1, "{events:#?}");
        world.work();
        assert_eq!(drills().len(), 1, "not before a week is over");
        if world.s3.is_some() {
            return;
        }
        crate::damage::flip(&crate::damage::content(world, "s1", "a.txt"));
        execute(world, "update restore_drills set at = 1");
        let mut worker = world.worker();
        world.until_some("a drill that fails", || {
            drills().first().filter(|job| job["status"] == "failed").map(|_| ())
        });
        worker.kill();
        let failed = world.json(&["jobs", "failed"]).remove(0);
        assert_eq!(failed["jobs"][0]["error_code"], "no_intact_copy", "{failed:#}");
    });
}
