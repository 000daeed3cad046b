//! The configuration that a command runs with.

use crate::cli::Global;
use crate::exit::Failure;
use crate::session;
use archive::config::{Config, Flags, Loaded};

impl From<archive::Error> for Failure {
    fn from(error: archive::Error) -> Failure {
        match error {
            archive::Error::Queue(error) => error.into(),
            archive::Error::Permanent { code, message } => Failure::refused(code, message),
            archive::Error::Transient { code, message, .. } => Failure::unable(code, message),
            archive::Error::Stopped => Failure::unable("stopped", "stopped before it was done"),
        }
    }
}

/// The file, the environment and the flags, for the data directory of this command.
pub fn load(global: &Global) -> Result<Loaded, Failure> {
    let flags = Flags { config: global.config.clone(), set: global.set.clone() };
    // Variables that are not text are none of ours.
    let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
        Some((name.into_string().ok()?, value.into_string().ok()?))
    };
    let env = std::env::vars_os().filter_map(text);
    Ok(Config::load(&flags, env, &session::data_directory(global)?)?)
}
