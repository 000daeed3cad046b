//! `why`: one asserted wording for each reason a job is not running, and it agrees with the claim.

use db::{Memory, Micros, Tx};
use queue::rules::add::add;
use queue::rules::budget::set_total;
use queue::rules::claim::{Request, claim};
use queue::rules::lease::{NewWorker, register};
use queue::rules::operator::hold::{self, Group};
use queue::rules::operator::pause::{self, Scope};
use queue::rules::operator::{Actor, cancel};
use queue::rules::pipelines::{PipelineSpec, create};
use queue::rules::settle::settle;
use queue::{
    Catalog, Claimed, JobError, JobId, NewJob, Outcome, Result, Settlement, WorkerId, view,
};

const NOW: Micros = 1_700_000_000_000_000;
const ANN: Actor<'static> = Actor { who: "ann", reason: "a reason" };

struct Queue {
    memory: Memory,
    worker: WorkerId,
}

impl Queue {
    fn new() -> Queue {
        let mut memory = Memory::open(queue::MIGRATIONS, Vec::new()).unwrap();
        let worker = memory
            .write(NOW, |tx| -> Result<WorkerId> {
                let mut spec = PipelineSpec::queue("files");
                spec.coalesces = false;
                create(tx, NOW, "ann", &spec)?;
                let new = NewWorker {
                    name: "a3".to_string(),
                    stages: vec!["files/files".to_string()],
                    ..NewWorker::default()
                };
                register(tx, NOW, &new, 3_600_000_000)
            })
            .unwrap();
        Queue { memory, worker }
    }

    fn act<T>(&mut self, work: impl FnOnce(&mut Tx<'_>, &Catalog) -> Result<T>) -> T {
        self.memory
            .write(NOW, |tx| {
                let catalog = Catalog::load(tx)?;
                work(tx, &catalog)
            })
            .unwrap()
    }

    fn add(&mut self, job: NewJob) -> JobId {
        self.act(|tx, catalog| add(tx, NOW, catalog.named("files")?, "ann", &[job]))[0].job
    }

    fn claim(&mut self) -> Vec<Claimed> {
        let worker = self.worker;
        self.act(|tx, catalog| {
            let stage = catalog.named("files")?.first().id;
            claim(tx, NOW, catalog, Request { worker, who: "a3", stage, limit: 10, start: 10 })
        })
    }

    fn settle(&mut self, job: &Claimed, outcome: Outcome) {
        let worker = self.worker;
        let item = Settlement::new(job.lease.clone(), outcome);
        self.act(|tx, catalog| settle(tx, NOW, catalog, worker, "a3", &[item]));
    }

    fn why(&mut self, job: JobId) -> String {
        self.act(|tx, catalog| view::why(tx, NOW, catalog, job))
    }
}

#[test]
fn nobody_works_on_the_stage() {
    let mut q = Queue::new();
    let job = q.add(NewJob::new("a"));
    let worker = q.worker;
    q.act(|tx, catalog| queue::rules::lease::deregister(tx, NOW, catalog, worker, "a3"));
    assert_eq!(q.why(job), "no worker is running for files/files; start one");
}

#[test]
fn its_place_in_line() {
    let mut q = Queue::new();
    let jobs: Vec<JobId> = ["a", "b", "c"].map(|s| q.add(NewJob::new(s))).to_vec();
    assert_eq!(q.why(jobs[0]), "it is next in line");
    assert_eq!(q.why(jobs[2]), "3rd in line behind 2 other jobs of files/files");
    assert_eq!(q.claim().iter().map(|c| c.lease.job).collect::<Vec<_>>(), jobs);
}

#[test]
fn it_runs_and_others_of_its_lock_wait() {
    let mut q = Queue::new();
    let first = q.add(NewJob::new("a"));
    let behind = q.add(NewJob::new("a"));
    assert_eq!(
        q.why(behind),
        format!("job {first} has the same lock `queue/files/a` and goes first")
    );
    assert_eq!(q.claim().len(), 1, "and the claim agrees");
    assert_eq!(q.why(first), "it is running files on worker a3 since 2023-11-14 22:13:20Z (0 ms)");
    assert_eq!(
        q.why(behind),
        format!(
            "job {first} on worker a3 owns the same lock `queue/files/a` since 2023-11-14 22:13:20Z"
        )
    );
    q.act(|tx, catalog| cancel::cancel(tx, NOW, catalog, ANN, first));
    assert!(q.why(first).ends_with(", and has been asked to stop"));
}

#[test]
fn it_is_not_due() {
    let mut q = Queue::new();
    let job = q.add(NewJob { due: Some(NOW + 90_000_000), ..NewJob::new("a") });
    assert_eq!(q.why(job), "it is not due before 2023-11-14 22:14:50Z (in 1 min 30 s)");
    assert!(q.claim().is_empty());
}

#[test]
fn it_waits_after_an_error_or_at_its_own_wish() {
    let mut q = Queue::new();
    q.add(NewJob::new("a"));
    let claimed = q.claim();
    q.settle(
        &claimed[0],
        Outcome::Wait { due: NOW + 20_000_000, why: "the tape is not mounted".to_string() },
    );
    assert_eq!(
        q.why(claimed[0].lease.job),
        "it waits until 2023-11-14 22:13:40Z (in 20 s): the tape is not mounted"
    );
}

#[test]
fn it_is_held_by_itself_with_its_batch_or_with_its_collection() {
    let mut q = Queue::new();
    let alone = q.add(NewJob::new("a"));
    let member = q.add(NewJob { collection: Some("maps".to_string()), ..NewJob::new("b") });
    q.act(|tx, catalog| hold::hold_job(tx, NOW, catalog, ANN, alone));
    q.act(|tx, _| hold::hold_group(tx, NOW, ANN, Group::Collection("maps")));
    assert_eq!(q.why(alone), "it is held by ann since 2023-11-14 22:13:20Z: a reason");
    let sentence = "collection `maps` is held by ann since 2023-11-14 22:13:20Z: a reason";
    assert_eq!(q.why(member), sentence, "before its row is flipped");
    assert!(q.claim().is_empty());
    assert_eq!(q.why(member), sentence, "and after");
}

#[test]
fn something_above_it_is_paused() {
    let mut q = Queue::new();
    let job = q.add(NewJob::new("a"));
    let (pipeline, stage) = q.act(|_, catalog| {
        let pipeline = catalog.named("files")?;
        Ok((pipeline.id, pipeline.first().id))
    });
    for (scope, what) in [
        (Scope::Everything, "everything"),
        (Scope::Pipeline(pipeline), "`files`"),
        (Scope::Stage(stage), "stage `files`"),
    ] {
        q.act(|tx, catalog| pause::pause(tx, NOW, catalog, ANN, scope));
        assert_eq!(
            q.why(job),
            format!("{what} is paused by ann since 2023-11-14 22:13:20Z: a reason")
        );
        assert!(q.claim().is_empty());
        q.act(|tx, catalog| pause::unpause(tx, catalog, scope));
    }
    assert_eq!(q.claim().len(), 1);
}

#[test]
fn a_target_it_needs_is_down() {
    let mut q = Queue::new();
    for n in 0..5 {
        q.add(NewJob::new(format!("s{n}")));
    }
    let job = q.add(NewJob {
        targets: vec!["s3-west".to_string()],
        due: Some(NOW),
        priority: Some(99),
        ..NewJob::new("a")
    });
    for claimed in q.claim().iter().take(5) {
        q.settle(
            claimed,
            Outcome::Transient(JobError::new("down", "no route to host").at("s3-west")),
        );
    }
    let running = q.why(job);
    assert!(running.starts_with("it is running"), "it was claimed with the others: {running}");
    let again = q.add(NewJob { targets: vec!["s3-west".to_string()], ..NewJob::new("b") });
    assert!(q.claim().is_empty());
    assert_eq!(
        q.why(again),
        "`s3-west` is down since 2023-11-14 22:13:20Z (no route to host), next probe in 10 s"
    );
}

#[test]
fn a_resource_it_needs_is_used_up() {
    let mut q = Queue::new();
    q.act(|tx, _| set_total(tx, NOW, "space_bytes", Some(10)));
    q.add(NewJob { needs: [("space_bytes".to_string(), 8)].into(), ..NewJob::new("a") });
    let second =
        q.add(NewJob { needs: [("space_bytes".to_string(), 4)].into(), ..NewJob::new("b") });
    let third =
        q.add(NewJob { needs: [("space_bytes".to_string(), 40)].into(), ..NewJob::new("c") });
    assert_eq!(q.claim().len(), 1);
    assert_eq!(q.why(second), "it needs 4 of `space_bytes`; 2 free of 10");
    assert_eq!(
        q.why(third),
        "it needs 40 of `space_bytes`; 2 free of 10; it can never fit: raise the budget or cancel it"
    );
}

#[test]
fn no_worker_reaches_its_work_space() {
    let mut q = Queue::new();
    let job = q.add(NewJob { workspace: Some("nas".to_string()), ..NewJob::new("a") });
    assert_eq!(q.why(job), "no running worker of files/files reaches its work space `nas`");
    assert!(q.claim().is_empty());
}

#[test]
fn it_has_ended() {
    let mut q = Queue::new();
    let [good, bad, gone] = ["good", "bad", "gone"].map(|s| q.add(NewJob::new(s)));
    let claimed = q.claim();
    q.settle(&claimed[0], Outcome::Skip("unchanged".to_string()));
    q.settle(&claimed[1], Outcome::Permanent(JobError::new("torn", "page 3 is missing")));
    q.act(|tx, catalog| cancel::cancel(tx, NOW, catalog, ANN, gone));
    q.settle(&claimed[2], Outcome::Cancelled);
    assert_eq!(q.why(good), "it succeeded at 2023-11-14 22:13:20Z: unchanged");
    assert_eq!(
        q.why(bad),
        "it failed in files at 2023-11-14 22:13:20Z: page 3 is missing (permanent error: trying again changes nothing before its cause is fixed); requeue it once the cause is gone, or cancel it"
    );
    assert_eq!(q.why(gone), "it was cancelled by ann at 2023-11-14 22:13:20Z: a reason");
}
