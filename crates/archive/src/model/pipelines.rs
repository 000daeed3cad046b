//! The names of the archive's pipelines. Their stages are named by the stages themselves.

/// A deposit is examined, and expanded into the jobs of its objects.
pub const BATCH: &str = "batch";
/// An object is brought into its stores, and recorded.
pub const INGEST: &str = "ingest";
/// A package of an object is delivered.
pub const RESTORE_OBJECT: &str = "restore-object";
/// One file of an object is delivered.
pub const RESTORE_FILE: &str = "restore-file";
/// What ended jobs left behind is removed.
pub const SWEEP: &str = "sweep";
/// Mail is sent.
pub const REPORT: &str = "report";
/// Collections' callbacks are called.
pub const CALLBACK: &str = "callback";
