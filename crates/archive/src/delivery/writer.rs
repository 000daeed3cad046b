//! What a container does with the members that are fed to it.

use super::Member;
use std::io;

/// Why a member cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    #[error(transparent)]
    Io(#[from] io::Error),
    /// What was written has been sent on, and cannot be taken back: the package is begun again.
    #[error("what was written cannot be taken back")]
    CannotRewind,
}

/// A container that is being written: members one after the other, each between `begin` and `end`.
pub trait PackageWriter: Send {
    fn begin(&mut self, member: &Member) -> Result<(), WriteError>;

    fn write(&mut self, bytes: &[u8]) -> Result<(), WriteError>;

    /// Takes back what was written of the member's content: it follows again from its beginning.
    fn restart(&mut self, member: &Member) -> Result<(), WriteError>;

    /// Takes back the whole member.
    fn abandon(&mut self, member: &Member) -> Result<(), WriteError>;

    fn end(&mut self, member: &Member) -> Result<(), WriteError>;

    /// Completes the container.
    fn finish(self: Box<Self>) -> Result<(), WriteError>;
}
