//! Skipping: a run that succeeds may name a later stage, past those that have nothing to do for its
//! job. And pipelines that get a stage more.

use crate::both;
use crate::support::World;
use queue::rules::moving::FreeSlots;
use queue::rules::pipelines::{self, PipelineSpec};
use queue::{Handover, JobId, Outcome, Pipeline, Settled, Settlement, StageId, Status};

fn ingest(w: &World) -> Pipeline {
    let stages = ["estimating", "downloading", "validating", "recording", "cleaning"];
    let mut spec = PipelineSpec::staged("ingest", &stages);
    spec.settings.forward_from = Some("recording".to_string());
    w.make(spec)
}

fn to(stage: &str) -> Outcome {
    Outcome::Success(Handover { note: Some("it is here".to_string()), ..Handover::to(stage) })
}

/// "Success moves the job to the next stage", or to a later one that the run names; history says
/// from where to where, and what was skipped (I8).
fn it_goes_on_with_the_stage_that_is_named(w: &World) {
    let ingest = ingest(w);
    let job = w.add(&ingest, "box");
    let a = w.worker("a");
    let claimed = a.next(&ingest).unwrap();
    assert_eq!(a.settle(&claimed, to("validating")), Settled::Now(Status::Queued));
    assert_eq!(w.stage(job), "validating");
    let moved = w.history(job).into_iter().find(|e| e.event == "moved").unwrap();
    let name = |id: Option<StageId>| w.catalog().stage_name(id.unwrap());
    assert_eq!((name(moved.from.0), name(moved.to.0)), ("estimating".into(), "validating".into()));
    assert_eq!(moved.why.as_deref(), Some("it is here; nothing to do in downloading"));
    assert!(a.claim_in(&ingest, "validating").is_some(), "it waits there");
}

/// The place that is taken is one of the stage that is named.
fn it_is_carried_on_to_the_stage_that_is_named(w: &World) {
    let ingest = ingest(w);
    let job = w.add(&ingest, "box");
    let a = w.worker("a");
    let claimed = a.next(&ingest).unwrap();
    let id = |name: &str| ingest.stage_named(name).unwrap().id;
    let places = FreeSlots::from([(id("downloading"), 1), (id("validating"), 1)]);
    let item = Settlement::new(claimed.lease.clone(), to("validating"));
    let settled = a.settle_and_carry(vec![item], places).remove(0);
    let next = settled.carried().expect("there was a place");
    assert_eq!(next.stage, id("validating"));
    assert_eq!((w.stage(job).as_str(), w.status(job)), ("validating", Status::Running));
    assert_eq!(a.settle(next, Outcome::success()), Settled::Now(Status::Queued));
}

/// Never back, never past the stage from which a job only goes forward, never to a stage that is
/// not there: such a run is in error, and its job waits for a person.
fn no_other_stage_is_gone_to(w: &World) {
    let ingest = ingest(w);
    let a = w.worker("a");
    for (number, stage) in ["cleaning", "estimating", "nowhere"].into_iter().enumerate() {
        let job = w.add(&ingest, &format!("box {number}"));
        let claimed = a.next(&ingest).unwrap();
        assert_eq!(a.settle(&claimed, to(stage)), Settled::Now(Status::Failed), "{stage}");
        let failed = w.history(job).pop().unwrap();
        assert_eq!(failed.code.as_deref(), Some("bad_next_stage"), "{stage}");
    }
    let job = w.add(&ingest, "box at the barrier");
    let claimed = a.next(&ingest).unwrap();
    assert_eq!(a.settle(&claimed, to("recording")), Settled::Now(Status::Queued));
    let claimed = a.claim_in(&ingest, "recording").unwrap();
    assert_eq!(a.settle(&claimed, to("cleaning")), Settled::Now(Status::Queued));
    let claimed = a.claim_in(&ingest, "cleaning").unwrap();
    assert_eq!(a.settle(&claimed, to("cleaning")), Settled::Now(Status::Failed), "at the end");
    assert_eq!(w.stage(job), "cleaning");
}

/// A stage that was skipped can be requeued to, as any earlier one.
fn a_skipped_stage_can_be_requeued_to(w: &World) {
    let ingest = ingest(w);
    let job = w.add(&ingest, "box");
    let a = w.worker("a");
    let claimed = a.next(&ingest).unwrap();
    a.settle(&claimed, to("validating"));
    w.requeue(job, Some("downloading")).unwrap();
    assert_eq!(w.stage(job), "downloading");
}

/// A pipeline that is there gets the stages it lacks; jobs stay in their stages.
fn a_pipeline_gets_a_stage_more(w: &World) {
    let old = PipelineSpec {
        restart: Some("validating".to_string()),
        ..PipelineSpec::staged("ingest", &["estimating", "validating", "cleaning"])
    };
    let ingest = w.make(old.clone());
    let (first, second) = (w.add(&ingest, "a"), w.add(&ingest, "b"));
    let a = w.worker("a");
    let claimed = a.next(&ingest).unwrap();
    a.settle(&claimed, Outcome::success());
    let names = ["estimating", "locating", "validating", "cleaning"];
    let new =
        PipelineSpec { restart: old.restart.clone(), ..PipelineSpec::staged("ingest", &names) };
    for _ in 0..2 {
        let new = new.clone();
        w.rule(move |tx, _, catalog| pipelines::extend(tx, catalog, &new)).unwrap();
    }
    let catalog = w.catalog();
    let ingest = catalog.named("ingest").unwrap();
    assert_eq!(ingest.stages.iter().map(|s| s.name.as_str()).collect::<Vec<_>>(), names);
    assert_eq!(ingest.restart_position, 2);
    assert_eq!((w.stage(first).as_str(), w.stage(second).as_str()), ("validating", "estimating"));
    let claimed = a.next(ingest).unwrap();
    a.settle(&claimed, Outcome::success());
    assert_eq!(w.stage(second), "locating");
    let other = PipelineSpec::staged("ingest", &["estimating", "validating"]);
    let refused = w.rule(move |tx, _, catalog| pipelines::extend(tx, catalog, &other));
    assert!(refused.unwrap_err().to_string().contains("newer program"));
}

/// Waits and retries do not move a job: one that comes back to its stage again and again is seen
/// as stuck, while it waits and while it runs.
fn a_job_that_only_comes_back_is_stuck(w: &World) {
    let ingest = ingest(w);
    let job = w.add(&ingest, "box");
    let a = w.worker("a");
    let claimed = a.next(&ingest).unwrap();
    a.settle(&claimed, to("downloading"));
    let moved = w.rule(|_, now, _| Ok(now)).unwrap() + 1;
    let stuck = |before: i64| -> Vec<JobId> {
        let found = w.rule(move |tx, now, c| queue::view::stuck(tx, now, c, None, before, 10));
        found.unwrap().into_iter().map(|s| s.job).collect()
    };
    let entered = w.history(job).pop().unwrap().at;
    assert_eq!(stuck(entered), Vec::<JobId>::new(), "it has just come");
    for _ in 0..2 {
        let claimed = a.claim_in(&ingest, "downloading").unwrap();
        assert_eq!(stuck(moved), [job], "while it runs");
        a.settle(&claimed, Outcome::Wait { due: 0, why: "no space".to_string() });
        assert_eq!(stuck(moved), [job], "while it waits");
    }
}

both!(
    a_job_that_only_comes_back_is_stuck,
    it_goes_on_with_the_stage_that_is_named,
    it_is_carried_on_to_the_stage_that_is_named,
    no_other_stage_is_gone_to,
    a_skipped_stage_can_be_requeued_to,
    a_pipeline_gets_a_stage_more,
);
