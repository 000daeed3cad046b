//! The configuration: one TOML file, environment variables over it, flags over those, and for
//! every value where it came from.

mod allow;
pub mod bytes;
mod check;
mod load;
mod origin;
mod place;
mod secret;
mod sections;
mod settings;
mod variables;

pub use allow::AllowList;
pub use check::{Problem, check_bounds, check_name};
pub use load::{FILE_NAME, Flags, Loaded};
pub use origin::{Entry, Origin};
pub(crate) use place::{place, readings};
pub use secret::read_secret;
pub use sections::ThawTier;
pub use sections::{
    AllowPrivate, Config, EzidSection, FetchSection, IdentifiersSection, LimitsSection,
    MailSection, MailSecurity, StageSection, StoreSection, UploadSection, WatchSection,
    WorkSpaceSection,
};
pub use settings::{SETTINGS, Setting, setting};

/// The store and the collection there are when none is configured.
pub const DEFAULT_STORE: &str = "main";
pub const DEFAULT_COLLECTION: &str = "default";
