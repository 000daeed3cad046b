//! Manifests that are deposited: what each row is to become.

use crate::metadata::Metadata;
use crate::model::deposit_kind::DepositKind;
use crate::model::item::{ExpectedDigest, Item, Mode, Source, Update};
use crate::model::problem::Problems;
use checkm::{Profile, Row, Severity};

/// The problems of a manifest among those of the deposit.
pub fn take_report(name: &str, report: &checkm::Report, problems: &mut Problems) {
    for problem in report.problems() {
        let place = match problem.line {
            0 => name.to_string(),
            line => format!("{name} line {line}"),
        };
        // Its code and its severity are told apart from the message.
        let column =
            problem.column.as_ref().map(|column| format!("{column}: ")).unwrap_or_default();
        let message = format!("{place}: {column}{}", problem.message);
        match problem.severity {
            Severity::Error => problems.error(problem.code, &place, message),
            _ => problems.warning(problem.code, &place, message),
        }
    }
    let listed = |severity| report.problems().iter().filter(|p| p.severity == severity).count();
    problems.errors += report.errors().saturating_sub(listed(Severity::Error) as u64);
}

/// What the rows of a manifest are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rows {
    /// Files of one object: the whole manifest is one job.
    OneObject,
    /// An object each.
    Each(DepositKind),
}

pub fn rows_of(profile: Profile) -> Rows {
    match profile {
        Profile::SingleFileBatch => Rows::Each(DepositKind::File),
        Profile::ContainerBatch => Rows::Each(DepositKind::Container),
        Profile::ManifestBatch => Rows::Each(DepositKind::Manifest),
        _ => Rows::OneObject,
    }
}

/// What a whole deposit says of each of its rows.
#[derive(Debug, Clone, Default)]
pub struct Common {
    pub mode: Mode,
    pub update: Option<Update>,
    pub metadata: Metadata,
    pub submitter: String,
}

/// The job of a row; `None` for a row without a source.
pub fn item_of(row: &Row<'_>, kind: DepositKind, common: &Common) -> Option<Item> {
    let source = Source::Url(row.source.as_deref()?.to_string());
    let text = |value: &Option<std::borrow::Cow<'_, str>>| value.as_deref().map(str::to_string);
    // An empty column says nothing.
    let column = |value| text(value).filter(|text| !text.trim().is_empty());
    let said = Metadata {
        who: column(&row.creator),
        what: column(&row.title),
        when: column(&row.date),
        ..Metadata::default()
    };
    let claimed = match (&row.algorithm, &row.digest) {
        (Some(algorithm), Some(digest)) => {
            Some(ExpectedDigest { algorithm: algorithm.to_string(), digest: digest.to_string() })
        }
        _ => None,
    };
    Some(Item {
        kind,
        name: row.file_name().map_or_else(|| source.file_name(), |n| n.to_string()),
        source,
        identifier: text(&row.primary_id),
        local_ids: row.local_ids.iter().map(ToString::to_string).collect(),
        claimed,
        size: row.size,
        mode: common.mode,
        update: common.update,
        metadata: common.metadata.clone().or(said),
        submitter: common.submitter.clone(),
        line: Some(row.place.line),
        place: None,
        fingerprint: None,
    })
}
