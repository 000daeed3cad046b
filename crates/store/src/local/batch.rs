//! Many small files made durable together: one flush for their contents, one for their names.

use super::Shared;
use super::root::os_error;
use super::temporary::{Temporary, in_the_way};
use crate::error::{Error, Result};
use crate::store::SmallFile;
use std::io::Write;

/// Up to so many files, flushing each is cheaper than flushing everything.
const FEW: usize = 2;

pub(super) fn put_batch(shared: &Shared, files: Vec<SmallFile>) -> Result<()> {
    for file in &files {
        shared.check_key(&file.key)?;
    }
    let together = cfg!(target_os = "linux") && files.len() > FEW;
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
        shared.flusher.flush(shared.root.fd())?;
    }
    for (key, temporary) in written {
        temporary.publish(&key, true, !together)?;
    }
    if together { shared.flusher.flush(shared.root.fd()) } else { Ok(()) }
}
