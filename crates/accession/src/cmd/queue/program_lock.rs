//! A lock that a program holds for as long as any of its processes lives.
//!
//! The guard locks one byte of a file and lets the program inherit the open file. The kernel keeps the
//! lock until the last process that inherited the file is gone, whatever was killed before. So a worker
//! of the same machine can tell that the program of an earlier run still works on the subject. A program
//! that closes the files it inherited gives the lock up.

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::libc;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

pub struct ProgramLock {
    file: File,
    byte: i64,
}

/// The byte of the lock file that stands for a lock of a database.
pub fn byte_of(database: &str, lock: &str) -> i64 {
    // FNV-1a: the same in every version of the program. Two locks of one byte wait for each other,
    // which is rare and harmless.
    let mix = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    let bytes = database.as_bytes().iter().chain(&[0]).chain(lock.as_bytes());
    i64::try_from(bytes.fold(0xcbf2_9ce4_8422_2325, mix) >> 2).unwrap_or(0)
}

impl ProgramLock {
    pub fn open(path: &Path, byte: i64) -> io::Result<ProgramLock> {
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create(true).truncate(false).mode(0o600);
        Ok(ProgramLock { file: file.open(path)?, byte })
    }

    /// Whether the program of an earlier run still holds the lock.
    pub fn is_held(&self) -> io::Result<bool> {
        let mut found = self.range(libc::F_WRLCK);
        match fcntl(&self.file, FcntlArg::F_OFD_GETLK(&mut found)) {
            Ok(_) => Ok(i32::from(found.l_type) != libc::F_UNLCK),
            Err(error) if is_unsupported(error) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Takes the lock for the processes that this one starts from now on; false if it is held.
    pub fn take(&self) -> io::Result<bool> {
        match fcntl(&self.file, FcntlArg::F_OFD_SETLK(&self.range(libc::F_WRLCK))) {
            Ok(_) => {}
            Err(Errno::EAGAIN | Errno::EACCES) => return Ok(false),
            Err(error) if is_unsupported(error) => return Ok(true),
            Err(error) => return Err(error.into()),
        }
        fcntl(&self.file, FcntlArg::F_SETFD(FdFlag::empty()))?;
        Ok(true)
    }

    /// Gives the lock up, also for processes that inherited it.
    pub fn release(&self) {
        // Fails where locks are not supported; then there is nothing to give up.
        let _ = fcntl(&self.file, FcntlArg::F_OFD_SETLK(&self.range(libc::F_UNLCK)));
    }

    fn range(&self, kind: i32) -> libc::flock {
        libc::flock {
            l_type: i16::try_from(kind).unwrap_or(0),
            l_whence: i16::try_from(libc::SEEK_SET).unwrap_or(0),
            l_start: self.byte,
            l_len: 1,
            l_pid: 0,
        }
    }
}

/// The file system has no locks; then programs of earlier runs are not waited for.
fn is_unsupported(error: Errno) -> bool {
    matches!(error, Errno::ENOLCK | Errno::EOPNOTSUPP | Errno::ENOSYS)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One test: a process inherits what any thread of its parent has locked at that moment.
    #[test]
    fn a_lock_lives_as_long_as_what_inherited_it() {
        let dir = tempfile::tempdir().unwrap();
        let open = |byte| ProgramLock::open(&dir.path().join("programs"), byte).unwrap();
        let (mine, others, next) = (open(7), open(7), open(8));
        assert!(mine.take().unwrap());
        assert!(others.is_held().unwrap() && !others.take().unwrap());
        assert!(!next.is_held().unwrap(), "other locks are free");
        let start = || std::process::Command::new("sleep").arg("600").spawn().unwrap();
        let end =
            |mut child: std::process::Child| child.kill().and_then(|()| child.wait()).unwrap();
        let child = start();
        drop(mine);
        assert!(others.is_held().unwrap(), "a process that inherited it lives");
        end(child);
        assert!(!others.is_held().unwrap());

        let mine = open(7);
        assert!(mine.take().unwrap());
        let child = start();
        mine.release();
        assert!(!others.is_held().unwrap(), "given up for all");
        end(child);
    }

    #[test]
    fn locks_of_different_databases_differ() {
        assert_ne!(byte_of("a", "bc"), byte_of("ab", "c"));
        assert!(byte_of("postgres://h/x", "queue/files/a") >= 0);
    }
}
