//! A job's state: what a stage leaves for those that follow, in the transaction that settles its run.

use crate::both;
use crate::support::worker::transient;
use crate::support::{ANN, World};
use queue::rules::pipelines::{self, PipelineSpec};
use queue::rules::prune::prune;
use queue::rules::state;
use queue::{Error, Handover, JobId, JobState, Outcome, Pipeline, Settled, Status};

const STAGES: &[&str] = &["measure", "scale", "store"];

fn thumbs(w: &World) -> Pipeline {
    w.make(PipelineSpec::staged("thumbs", STAGES))
}

fn of(key: &str, value: i64) -> JobState {
    JobState::from_iter([(key.to_string(), value.into())])
}

fn leaves(key: &str, value: i64) -> Outcome {
    Outcome::Success(Handover::with_state(of(key, value)))
}

/// What a stage gets.
fn got(w: &World, pipeline: &Pipeline, job: JobId, stage: &str) -> JobState {
    let stage = pipeline.stage_named(stage).unwrap().id;
    w.rule(move |tx, _, _| state::before(tx, job, stage)).unwrap()
}

fn each_stage_gets_what_the_nearest_before_it_left(w: &World) {
    let thumbs = thumbs(w);
    let job = w.add(&thumbs, "a");
    let a = w.worker("a");
    assert_eq!(got(w, &thumbs, job, "measure"), JobState::new());
    a.work(&thumbs, leaves("width", 80));
    assert_eq!(got(w, &thumbs, job, "scale"), of("width", 80));
    // A stage that leaves nothing passes on what it got.
    a.work_in(&thumbs, "scale", Outcome::success());
    assert_eq!(got(w, &thumbs, job, "store"), of("width", 80));
    a.work_in(&thumbs, "store", leaves("stored", 1));
    assert_eq!(w.status(job), Status::Succeeded);
    let all = w.rule(move |tx, _, _| state::all(tx, job)).unwrap();
    let all: Vec<JobState> = all.into_iter().map(|(_, _, state)| state).collect();
    assert_eq!(all, [of("width", 80), of("stored", 1)], "the last one stays to be seen");
}

/// An error leaves nothing: what a stage got before is what its next run gets.
fn only_a_success_leaves_a_state(w: &World) {
    let thumbs = thumbs(w);
    let job = w.add(&thumbs, "a");
    let a = w.worker("a");
    a.work(&thumbs, leaves("width", 80));
    a.work_in(&thumbs, "scale", transient("no answer"));
    assert_eq!(got(w, &thumbs, job, "store"), of("width", 80));
    // A stale run leaves nothing either (I4).
    let other = w.add(&thumbs, "b");
    let claimed = a.next(&thumbs).unwrap();
    a.deregister();
    assert_eq!(w.worker("b").settle(&claimed, leaves("width", 99)), Settled::Stale);
    assert_eq!(got(w, &thumbs, other, "scale"), JobState::new());
}

/// "Going back discards the checkpoints of the stages that will run again": and what they left.
fn going_back_keeps_the_state_as_each_stage_got_it(w: &World) {
    let thumbs = thumbs(w);
    let job = w.add(&thumbs, "a");
    let a = w.worker("a");
    a.work(&thumbs, leaves("width", 80));
    a.work_in(&thumbs, "scale", leaves("scaled", 1));
    a.work_in(&thumbs, "store", crate::support::worker::permanent("store is full"));
    w.requeue(job, None).unwrap();
    assert_eq!(got(w, &thumbs, job, "store"), of("scaled", 1), "it resumes where it failed");
    a.work_in(&thumbs, "store", crate::support::worker::permanent("store is full"));
    w.requeue(job, Some("scale")).unwrap();
    assert_eq!(got(w, &thumbs, job, "scale"), of("width", 80));
    assert_eq!(got(w, &thumbs, job, "store"), of("width", 80), "scale has not run again");
    a.work_in(&thumbs, "scale", leaves("scaled", 2));
    assert_eq!(got(w, &thumbs, job, "store"), of("scaled", 2));
}

fn a_state_over_the_limit_fails_the_job(w: &World) {
    let thumbs = thumbs(w);
    let set = vec![("state_bytes_max".to_string(), "16".to_string())];
    w.rule(move |tx, _, c| pipelines::set(tx, c, "thumbs", None, &set)).unwrap();
    let job = w.add(&thumbs, "a");
    let a = w.worker("a");
    let settled = a.work(&thumbs, leaves("a name that is long", 80));
    assert_eq!((settled, w.status(job)), (job, Status::Failed));
    assert!(w.ended_why(job).contains("state_bytes_max"), "{}", w.ended_why(job));
    assert_eq!(w.number("select count(*) from states where job = $1", job), 0);
    let most = vec![("state_bytes_max".to_string(), "1000000".to_string())];
    let refused = w.rule(move |tx, _, c| pipelines::set(tx, c, "thumbs", None, &most));
    assert!(matches!(refused, Err(Error::BadInput(_))));
}

/// It is gone with its job.
fn a_state_is_pruned_with_its_job(w: &World) {
    let thumbs = thumbs(w);
    let job = w.add(&thumbs, "a");
    let a = w.worker("a");
    a.work(&thumbs, leaves("width", 80));
    w.rule(move |tx, now, c| queue::rules::operator::cancel::cancel(tx, now, c, ANN, job)).unwrap();
    w.advance(10);
    let now = w.now();
    w.rule(move |tx, at, c| prune(tx, at, c, Some(now), JobId::default(), 100)).unwrap();
    assert_eq!(w.number("select count(*) from states where job > $1", 0), 0);
}

both!(
    each_stage_gets_what_the_nearest_before_it_left,
    only_a_success_leaves_a_state,
    going_back_keeps_the_state_as_each_stage_got_it,
    a_state_over_the_limit_fails_the_job,
    a_state_is_pruned_with_its_job,
);
