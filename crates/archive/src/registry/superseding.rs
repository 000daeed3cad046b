//! What a success supersedes, compared with it: the earlier failed deposits of the same thing. Their
//! batches count them as preserved only if every file is the same.

use crate::model::error::Result;
use crate::model::item::Item;
use crate::model::place::is_same_place;
use crate::registry::ingest::Summary;
use db::{Statement, Tx, statement};
use queue::rules::replacing;
use queue::{Content, JobId};

/// A failed job, whether its data were discarded, its payload and that of the job that succeeds, and
/// the failed job's summary.
type Failed = (JobId, bool, Option<Vec<u8>>, Option<Vec<u8>>, Option<String>);

/// Compares a job whose content is safe with the failed jobs that its success supersedes. Call it
/// before the files of the job are forgotten.
pub fn compare(tx: &mut Tx<'_>, job: JobId) -> Result<()> {
    const FAILED: Statement = statement!(superseding::failed_before);
    const COMPARE: Statement = statement!(superseding::compare_deposits);
    let failed: Vec<Failed> = tx.query(&FAILED, &db::params![job])?;
    for (earlier, discarded, its_payload, payload, summary) in failed {
        let (files, unread, differ): (i64, i64, i64) =
            tx.one(&COMPARE, &db::params![earlier, job])?;
        let mut content = verdict(discarded, files, unread, differ);
        let summary = summary.and_then(|text| serde_json::from_str::<Summary>(&text).ok());
        let (its, own) = (Item::parse(its_payload.as_deref())?, Item::parse(payload.as_deref())?);
        if content != Some(Content::Same) && is_another(&its, &summary.unwrap_or_default(), &own) {
            content = Some(Content::Unrelated);
        }
        replacing::compared(tx, earlier, job, content)?;
    }
    Ok(())
}

/// Whether nothing but its name makes a failed deposit the same as one from another place. See
/// [`crate::registry::derived`]: a name alone replaces nothing.
fn is_another(failed: &Item, known: &Summary, own: &Item) -> bool {
    let only_named =
        failed.identifier.is_none() && failed.local_ids.is_empty() && known.of_package.is_empty();
    only_named && !is_same_place(&failed.place(), &own.place())
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
