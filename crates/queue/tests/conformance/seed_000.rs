//! The tables of seed 000: which of several entries for one file is selected.

use crate::both;
use crate::support::worker::permanent;
use crate::support::{ANN, World};
use queue::rules::operator::pause::{self, Scope};
use queue::{JobId, NewJob, Outcome, Status};

/// "inprogress=False failed=False - new entry awaiting processing;
///  inprogress=True failed=False - during processing;
///  inprogress=True failed=True - there was an error in processing, but we are still doing stuff;
///  inprogress=False failed=True - there was an error in processing and we have stopped trying."
fn lifecycle_of_an_entry(w: &World) {
    let files = w.queue("files");
    let (a, b) = (w.worker("a"), w.worker("b"));
    let entry = w.add(&files, "a.fits");
    assert_eq!(w.status(entry), Status::Queued);
    let claimed = a.next(&files).unwrap();
    assert_eq!(w.status(entry), Status::Running);
    assert!(a.error_seen(&claimed, "header missing"));
    assert_eq!(w.status(entry), Status::Running);
    let seen: Vec<(Option<String>,)> = w.rows("select error_seen from leases");
    assert_eq!(seen, [(Some("header missing".to_string()),)]);
    // Still in progress, so the file is not available, re-added or not.
    w.add(&files, "a.fits");
    assert!(b.next(&files).is_none());
    a.settle(&claimed, permanent("header missing"));
    assert_eq!(w.status(entry), Status::Failed);
}

/// "inprogress=True failed=ANY; inprogress=False failed=False - NO, this is the 'avoid the race
/// condition' case".
fn an_entry_beside_one_in_progress_is_not_selected(w: &World) {
    let files = w.queue("files");
    let (a, b) = (w.worker("a"), w.worker("b"));
    w.add(&files, "a.fits");
    let claimed = a.next(&files).unwrap();
    let again = w.add(&files, "a.fits");
    assert!(b.next(&files).is_none());
    // "we need to let that complete before we re-process the new version".
    a.settle(&claimed, Outcome::success());
    assert_eq!(b.next(&files).unwrap().lease.job, again);
}

/// "inprogress=False failed=True; inprogress=False failed=False <- Select this one - YES, this is
/// the re-try the readded one".
fn the_readded_entry_beside_a_failed_one_is_selected(w: &World) {
    let files = w.queue("files");
    let a = w.worker("a");
    w.add(&files, "a.fits");
    let failed = a.work(&files, permanent("bad"));
    let readded = w.add(&files, "a.fits");
    assert_eq!(a.next(&files).unwrap().lease.job, readded);
    assert_eq!(w.status(failed), Status::Failed);
}

/// "inprogress=False failed=True - NO, don't re-try unless it gets re-added. We can trigger re-try
/// on this by setting failed=False. If it re-fails, failed will go back to True at that point."
fn a_failed_entry_is_not_selected_until_requeued(w: &World) {
    let files = w.queue("files");
    let a = w.worker("a");
    w.add(&files, "a.fits");
    let failed = a.work(&files, permanent("bad"));
    w.advance(1_000_000_000_000);
    let b = w.worker("b");
    assert!(b.next(&files).is_none());
    w.requeue(failed, None).unwrap();
    assert_eq!(b.work(&files, permanent("still bad")), failed);
    assert_eq!(w.status(failed), Status::Failed);
}

/// "when we successfully process a given filename, we should remove any failed queue entries for
/// that filename." Here they are resolved as cancelled and kept in history.
fn success_resolves_the_failed_entries_of_the_file(w: &World) {
    let files = w.queue("files");
    let a = w.worker("a");
    w.add(&files, "a.fits");
    let first = a.work(&files, permanent("bad"));
    w.add(&files, "a.fits");
    let second = a.work(&files, permanent("bad again"));
    w.add(&files, "b.fits");
    let other = a.work(&files, permanent("another file"));
    let third = w.add(&files, "a.fits");
    assert_eq!(a.work(&files, Outcome::success()), third);
    for resolved in [first, second] {
        assert_eq!(w.status(resolved), Status::Cancelled);
        assert_eq!(w.ended_why(resolved), format!("superseded by job {third}, which succeeded"));
        assert_eq!(w.history(resolved).last().unwrap().from.1, Some(Status::Failed));
    }
    assert_eq!(w.status(other), Status::Failed);
}

/// The same by the slow way, with records written in the transaction of the success.
fn success_with_records_resolves_them_too(w: &World) {
    let files = w.queue("files");
    let a = w.worker("a");
    w.add(&files, "a.fits");
    let failed = a.work(&files, permanent("bad"));
    w.add(&files, "a.fits");
    let claimed = a.next(&files).unwrap();
    let item = queue::Settlement {
        records: Some(std::sync::Arc::new(|_| Ok(()))),
        ..queue::Settlement::new(claimed.lease, Outcome::success())
    };
    assert_eq!(a.settle_all(vec![item]), [queue::Settled::Now(Status::Succeeded)]);
    assert_eq!(w.status(failed), Status::Cancelled);
}

/// "There is never any point having the same file queued up twice but not in progress at all. We
/// prevent this by having a uniqueness constraint on the table."
fn a_file_is_queued_once(w: &World) {
    let files = w.queue("files");
    let first = w.add(&files, "a.fits");
    for _ in 0..5 {
        let added = w.try_add(&files, NewJob::new("a.fits")).unwrap();
        assert_eq!((added.job, added.coalesced), (first, true));
    }
    assert_eq!(w.number("select count(*) from waiting where id > $1", 0), 1);
    // The constraint itself, not only the rule, refuses a second row.
    let key: Vec<(String,)> = w.rows("select coalesce_key from waiting");
    assert_eq!(key.len(), 1);
    let double =
        "insert into waiting select id + 1000, stage, state, priority, due, lock, coalesce_key,
        begun, batch, collection, targets, workspace, needs, blocked_on, why, since from waiting
        where true on conflict do nothing";
    let statement = db::Statement { name: "double", sqlite: double, postgres: double };
    let inserted = w.db.write_blocking::<_, db::Error, _>(move |tx| tx.execute(&statement, &[]));
    assert_eq!(inserted.unwrap(), 0, "a row that no constraint refuses would be there");
}

/// "the highest priority item": the lower number is the more urgent, then the one due first, then
/// the one added first.
fn the_most_urgent_is_selected_first(w: &World) {
    let files = w.queue("files");
    let with =
        |subject: &str, priority: i64| NewJob { priority: Some(priority), ..NewJob::new(subject) };
    let low = w.add_job(&files, with("low", 80));
    let first = w.add_job(&files, with("first", 50));
    let second = w.add_job(&files, with("second", 50));
    let earlier = w.add_job(&files, NewJob { due: Some(w.now() - 1), ..with("earlier", 50) });
    let urgent = w.add_job(&files, with("urgent", 10));
    assert_eq!(w.worker("a").ids(&files), [urgent, earlier, first, second, low]);
}

/// "There can be multiple jobs servicing the queue": no entry is handed out twice.
fn several_workers_never_share_an_entry(w: &World) {
    let files = w.queue("files");
    let mut all: Vec<JobId> = (0..20).map(|n| w.add(&files, &n.to_string())).collect();
    let (a, b, c) = (w.worker("a"), w.worker("b"), w.worker("c"));
    let mut got: Vec<JobId> = Vec::new();
    for worker in [&a, &b, &c, &a, &b] {
        got.extend(worker.claim(&files, 4).iter().map(|j| j.lease.job));
    }
    got.sort_unstable();
    all.sort_unstable();
    assert_eq!(got, all);
    assert!(a.next(&files).is_none());
}

/// A paused queue hands out nothing and an unpaused one goes on where it was.
fn a_locked_queue_hands_out_nothing(w: &World) {
    let files = w.queue("files");
    let job = w.add(&files, "a.fits");
    let a = w.worker("a");
    for scope in [Scope::Everything, Scope::Pipeline(files.id), Scope::Stage(files.first().id)] {
        w.rule(move |tx, now, c| pause::pause(tx, now, c, ANN, scope)).unwrap();
        assert!(a.next(&files).is_none());
        w.rule(move |tx, _, c| pause::unpause(tx, c, scope)).unwrap();
    }
    assert_eq!(a.next(&files).unwrap().lease.job, job);
}

both!(
    lifecycle_of_an_entry,
    an_entry_beside_one_in_progress_is_not_selected,
    the_readded_entry_beside_a_failed_one_is_selected,
    a_failed_entry_is_not_selected_until_requeued,
    success_resolves_the_failed_entries_of_the_file,
    success_with_records_resolves_them_too,
    a_file_is_queued_once,
    the_most_urgent_is_selected_first,
    several_workers_never_share_an_entry,
    a_locked_queue_hands_out_nothing,
);
