//! The ids of what the queue keeps.

db::ids! {
    /// The id of a job.
    pub struct JobId;

    /// The id of a batch.
    pub struct BatchId;

    /// The id of a pipeline.
    pub struct PipelineId;

    /// The id of a stage.
    pub struct StageId;

    /// The id of a registered worker.
    pub struct WorkerId;
}
