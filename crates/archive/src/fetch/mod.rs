//! Downloading files that depositors name, safely and resumably.

mod allow;

pub use allow::{AllowList, Allowed};
