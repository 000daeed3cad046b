//! Many small files made durable together: one flush for their contents, one for their names,
//! which may be left to whoever flushes next.

use super::Shared;
use super::root::os_error;
use super::temporary::{Temporary, in_the_way};
use crate::error::{Error, Result};
use crate::store::SmallFile;
use std::io::Write;

/// Whether names are durable at the end, or by the next flush.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Names {
    Now,
    Later,
}

pub(super) fn put_batch(shared: &Shared, files: Vec<SmallFile>, names: Names) -> Result<()> {
    for file in &files {
        shared.check_key(&file.key)?;
    }
    let together = cfg!(target_os = "linux") && files.len() > 1;
    let mut written = Vec::with_capacity(files.len());
    for file in files {
        let created = Temporary::create(&shared.root, &shared.temporaries);
        let (temporary, mut opened) = created.map_err(|errno| in_the_way(&file.key, errno))?;
        let wrote = opened.write_all(&file.content);
        wrote.map_err(|error| Error::from_io(&file.key, error))?;
        if !together {
            rustix::fs::fsync(&opened).map_err(|errno| os_error(&file.key, errno))?;
        }
        written.push((file.key, temporary));
    }
    // The contents have to be durable before the names: after a crash a file is whole or absent.
    if together {
        shared.flush()?;
    }
    for (key, temporary) in written {
        temporary.publish(&key, true, !together)?;
    }
    match together && names == Names::Now {
        true => shared.flush(),
        false => Ok(()),
    }
}
