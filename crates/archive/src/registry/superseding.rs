//! What a success supersedes, compared with it: the earlier failed deposits of the same thing. Their
//! batches count them as preserved only if every file is the same.

use crate::model::error::Result;
use db::{Statement, Tx, statement};
use queue::Content;
use queue::rules::replacing;

/// Compares a job whose content is safe with the failed jobs that its success supersedes. Call it
/// before the files of the job are forgotten.
pub fn compare(tx: &mut Tx<'_>, job: i64) -> Result<()> {
    const FAILED: Statement = statement!(superseding::failed_before);
    const COMPARE: Statement = statement!(superseding::compare_deposits);
    let failed: Vec<(i64, bool)> = tx.query(&FAILED, &db::params![job])?;
    for (earlier, discarded) in failed {
        let (files, unread, differ): (i64, i64, i64) =
            tx.one(&COMPARE, &db::params![earlier, job])?;
        replacing::compared(tx, earlier, job, verdict(discarded, files, unread, differ))?;
    }
    Ok(())
}

fn verdict(discarded: bool, files: i64, unread: i64, differ: i64) -> Option<Content> {
    match (files, unread, differ) {
        _ if discarded => None,
        (0, ..) => Some(Content::Unread),
        (_, 1.., _) => Some(Content::Unread),
        (.., 0) => Some(Content::Same),
        _ => Some(Content::Different),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_read_completely_is_compared() {
        assert_eq!(verdict(false, 0, 0, 3), Some(Content::Unread));
        assert_eq!(verdict(false, 3, 1, 0), Some(Content::Unread));
        assert_eq!(verdict(false, 3, 0, 0), Some(Content::Same));
        assert_eq!(verdict(false, 3, 0, 1), Some(Content::Different));
        assert_eq!(verdict(true, 0, 0, 0), None);
    }
}
