//! The rules: plain functions over a transaction and an explicit `now`. Everything that decides is
//! here, written once for both engines, and can be run by a simulator with a clock of its own. What the
//! engines do differently is below them, in `engine`.

pub mod add;
pub mod batch;
pub mod breaker;
pub mod budget;
pub mod claim;
pub mod clock;
mod counts;
pub(crate) mod draft;
pub mod ending;
pub mod history;
pub mod lease;
pub mod line;
pub mod moving;
pub mod operator;
pub mod pipelines;
pub mod preparing;
pub mod prune;
pub mod replacing;
pub mod report;
pub mod running;
pub mod settle;
pub mod state;
