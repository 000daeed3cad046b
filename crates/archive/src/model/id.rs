//! The ids of what the registry keeps. Those of jobs and batches are the queue's.

db::ids! {
    /// The id of an object's row.
    pub struct ObjectId;

    /// The id of a message to a depositor, an operator or a program.
    pub struct MessageId;
}
