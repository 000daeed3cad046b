//! The examples run, and do what they say.
#![allow(dead_code)]

#[path = "../../examples/batch_report.rs"]
mod batch_report;
#[path = "../../examples/plain_queue.rs"]
mod plain_queue;
#[path = "../../examples/two_stages.rs"]
mod two_stages;

#[test]
fn a_plain_queue() {
    plain_queue::main().unwrap();
}

#[test]
fn a_pipeline_of_two_stages_with_a_state() {
    two_stages::main().unwrap();
}

#[test]
fn a_batch_with_a_report() {
    batch_report::main().unwrap();
}
