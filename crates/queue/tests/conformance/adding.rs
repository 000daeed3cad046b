//! "Adding" of the contract.

use crate::both;
use crate::support::worker::permanent;
use crate::support::{ANN, SECOND, World};
use queue::rules::operator::hold::{self, Group};
use queue::rules::operator::pause::{self, Scope};
use queue::rules::{add, running};
use queue::{Added, Error, JobError, JobId, NewJob, Outcome, State, Status};

/// "With coalescing, adding a subject that already waits (queued or held, not started) is one job,
/// not two: the add returns its id and says so; the payload becomes the newer one, the priority the
/// more urgent, the due time the earlier."
fn a_subject_that_waits_is_one_job(w: &World) {
    let files = w.queue("files");
    let first = NewJob {
        payload: Some(b"old".to_vec()),
        priority: Some(40),
        due: Some(w.now() + 60 * SECOND),
        ..NewJob::new("a.fits")
    };
    let job = w.add_job(&files, first);
    assert_eq!(w.state(job), Some(State::Delayed));
    let again =
        NewJob { payload: Some(b"new".to_vec()), priority: Some(70), ..NewJob::new("a.fits") };
    assert_eq!(w.try_add(&files, again).unwrap(), Added { job, coalesced: true });
    let claimed = w.worker("a").next(&files).expect("the earlier due time has come");
    assert_eq!(claimed.lease.job, job);
    assert_eq!(claimed.payload.as_deref(), Some(&b"new"[..]));
    assert_eq!(claimed.priority, 40);
}

/// The same for a held job: the add merges and the job stays held.
fn a_held_subject_is_one_job(w: &World) {
    let files = w.queue("files");
    let job = w.add(&files, "a.fits");
    w.hold(job).unwrap();
    let again = NewJob { payload: Some(b"new".to_vec()), ..NewJob::new("a.fits") };
    assert_eq!(w.try_add(&files, again).unwrap(), Added { job, coalesced: true });
    assert_eq!(w.status(job), Status::Held);
    assert_eq!(w.worker("a").ids(&files), Vec::<JobId>::new());
    w.release(job).unwrap();
    let claimed = w.worker("b").next(&files).unwrap();
    assert_eq!(claimed.payload.as_deref(), Some(&b"new"[..]));
}

/// In one bulk add, too, a subject given twice is one job with the last payload.
fn a_subject_twice_in_one_add_is_one_job(w: &World) {
    let files = w.queue("files");
    let name = files.name.clone();
    let added = w
        .rule(move |tx, now, c| {
            let job = |payload: &[u8]| NewJob {
                payload: Some(payload.to_vec()),
                ..NewJob::new("a.fits")
            };
            let jobs = [job(b"1"), NewJob::new("b.fits"), job(b"2")];
            add::add(tx, now, c.named(&name)?, "ann", &jobs)
        })
        .unwrap();
    assert_eq!(added[0].job, added[2].job);
    assert!(!added[0].coalesced && !added[1].coalesced && added[2].coalesced);
    let claimed = w.worker("a").claim(&files, 10);
    assert_eq!(claimed.len(), 2);
    assert_eq!(claimed[0].payload.as_deref(), Some(&b"2"[..]));
}

/// "Coalescing is … off for ingest, restore and delete, where each add is its own job and jobs of
/// one lock run in the order they were accepted."
fn without_coalescing_each_add_is_a_job_and_they_run_in_order(w: &World) {
    let ingest = w.staged("ingest", &["storing"]);
    let delete = w.staged("delete", &["deleting"]);
    let of = |subject: &str| NewJob { lock: Some("object/1".to_string()), ..NewJob::new(subject) };
    let first = w.add_job(&ingest, of("box"));
    let second = w.add_job(&ingest, of("box"));
    let third = w.add_job(&delete, of("box"));
    let fourth = w.add_job(&ingest, NewJob { priority: Some(1), ..of("box") });
    let a = w.worker("a");
    let mut order = Vec::new();
    for _ in 0..4 {
        let claimed: Vec<_> = [&ingest, &delete].iter().flat_map(|p| a.claim(p, 10)).collect();
        assert_eq!(claimed.len(), 1, "one job of a lock at a time");
        order.push(claimed[0].lease.job);
        a.settle(&claimed[0], Outcome::success());
    }
    assert_eq!(order, [first, second, third, fourth]);
}

/// "Jobs of different batches never coalesce."
fn batches_never_share_a_job(w: &World) {
    let files = w.queue("files");
    let one = crate::batches::batch_of(w, &files, &["a.fits"]);
    let two = crate::batches::batch_of(w, &files, &["a.fits"]);
    let alone = w.add(&files, "a.fits");
    let jobs: Vec<JobId> =
        w.rows::<(JobId,)>("select id from jobs order by id").iter().map(|r| r.0).collect();
    assert_eq!(jobs.len(), 3);
    assert!(jobs.contains(&alone) && one != two);
    let a = w.worker("a");
    let mut done = Vec::new();
    while let Some(claimed) = a.next(&files) {
        done.push(claimed.lease.job);
        a.settle(&claimed, Outcome::success());
    }
    done.sort_unstable();
    assert_eq!(done, jobs);
}

/// "Adding while another job owns the lock is accepted: the new job waits its turn."
fn adding_beside_a_running_job_waits_its_turn(w: &World) {
    let files = w.queue("files");
    let first = w.add(&files, "a.fits");
    let (a, b) = (w.worker("a"), w.worker("b"));
    let running = a.next(&files).unwrap();
    let second = w.add(&files, "a.fits");
    assert_ne!(first, second);
    assert_eq!(w.state(second), Some(State::Parked));
    assert_eq!(b.ids(&files), Vec::<JobId>::new());
    assert_eq!(w.try_add(&files, NewJob::new("a.fits")).unwrap().job, second, "it waits already");
    a.settle(&running, Outcome::success());
    assert_eq!(b.ids(&files), [second]);
}

/// "Adding beside failed jobs is accepted; it is the 're-added after a fix' case."
fn adding_beside_failed_jobs_is_accepted(w: &World) {
    let files = w.queue("files");
    let a = w.worker("a");
    w.add(&files, "a.fits");
    let failed = a.work(&files, permanent("bad header"));
    let fixed = w.add(&files, "a.fits");
    assert_ne!(failed, fixed);
    assert_eq!(a.ids(&files), [fixed]);
}

/// "Adding to a paused stage is accepted."
fn adding_to_a_paused_stage_is_accepted(w: &World) {
    let files = w.queue("files");
    let stage = files.first().id;
    w.rule(move |tx, now, c| pause::pause(tx, now, c, ANN, Scope::Stage(stage))).unwrap();
    let job = w.add(&files, "a.fits");
    assert_eq!(w.status(job), Status::Queued);
    assert_eq!(w.worker("a").ids(&files), Vec::<JobId>::new());
}

/// "Adding to a held collection is accepted as `held`."
fn adding_to_a_held_collection_is_held(w: &World) {
    let files = w.queue("files");
    w.rule(|tx, now, _| hold::hold_group(tx, now, ANN, Group::Collection("maps"))).unwrap();
    let of = |c: &str| NewJob { collection: Some(c.to_string()), ..NewJob::new(c) };
    let (held, free) = (w.add_job(&files, of("maps")), w.add_job(&files, of("photos")));
    assert_eq!(w.status(held), Status::Held);
    assert_eq!(w.worker("a").ids(&files), [free]);
}

/// "A job may be added as failed …: recorded and reported, marked *not recoverable*; requeue is
/// refused."
fn a_job_added_as_failed_cannot_be_requeued(w: &World) {
    let files = w.queue("files");
    let name = files.name.clone();
    let job = w
        .rule(move |tx, now, c| {
            let error = JobError::new("digest", "its digest is wrong");
            add::add_failed(tx, now, c.named(&name)?, "ann", &NewJob::new("a.fits"), &error)
        })
        .unwrap();
    assert_eq!(w.status(job), Status::Failed);
    assert!(matches!(w.requeue(job, None), Err(Error::Refused(_))));
    assert_eq!(w.status(job), Status::Failed, "the refusal changed nothing");
    let fixed = w.add(&files, "a.fits");
    assert_eq!(w.worker("a").ids(&files), [fixed]);
}

/// "A subject that is empty or over 4 KiB …; a payload over its limit": refused, and all or none of
/// an add is done.
fn bad_input_adds_nothing(w: &World) {
    let files = w.queue("files");
    let name = files.name.clone();
    let long = NewJob { payload: Some(vec![0; 65 * 1024]), ..NewJob::new("long") };
    let wrong =
        |job: NewJob| w.try_add(&files, job).is_err_and(|e| e.code() == queue::ErrorCode::BadInput);
    assert!(wrong(NewJob::new("")));
    assert!(wrong(long.clone()));
    assert!(wrong(NewJob { priority: Some(100), ..NewJob::new("late") }));
    assert!(wrong(NewJob { targets: vec!["a\nb".to_string()], ..NewJob::new("target") }));
    let all = w.rule(move |tx, now, c| {
        add::add(tx, now, c.named(&name)?, "ann", &[NewJob::new("good"), long.clone()])
    });
    assert!(all.is_err());
    assert_eq!(w.number("select count(*) from jobs where id > $1", 0), 0);
}

/// What a run marked is found by the next run, and a subject may be any text of Unicode.
fn subjects_are_kept_as_they_are(w: &World) {
    let files = w.queue("files");
    let subject = queue::subject::encode("Größe/\n 'quoted\" 🗺.tif".as_bytes()).unwrap();
    w.add(&files, &subject);
    let a = w.worker("a");
    let claimed = a.next(&files).unwrap();
    assert_eq!(claimed.subject, subject);
    assert!(a.checkpoint(&claimed, "half"));
    let (job, stage) = (claimed.lease.job, claimed.stage);
    let marks = w.rule(move |tx, _, _| running::checkpoints(tx, job, stage)).unwrap();
    assert_eq!(marks, [("half".to_string(), "done".to_string())]);
}

both!(
    a_subject_that_waits_is_one_job,
    a_held_subject_is_one_job,
    a_subject_twice_in_one_add_is_one_job,
    without_coalescing_each_add_is_a_job_and_they_run_in_order,
    batches_never_share_a_job,
    adding_beside_a_running_job_waits_its_turn,
    adding_beside_failed_jobs_is_accepted,
    adding_to_a_paused_stage_is_accepted,
    adding_to_a_held_collection_is_held,
    a_job_added_as_failed_cannot_be_requeued,
    bad_input_adds_nothing,
    subjects_are_kept_as_they_are,
);
