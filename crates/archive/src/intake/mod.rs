//! The one way in: what is deposited by command, drop folder, bucket or program becomes a batch with
//! a receipt.

pub mod accept;
pub mod cancelling;
pub mod early;
pub mod pending;
pub mod precheck;
pub mod received;
pub mod restoring;
