//! Everything that a validation found, and what it could not look at.

use crate::code::{Code, Finding};
use crate::error::Error;
use crate::version::Spec;
use std::collections::BTreeMap;

/// Cuts a text that could fill the memory: names come from others.
fn clip(mut text: String) -> String {
    const LONGEST: usize = 1000;
    if text.len() > LONGEST {
        let cut = (0..=LONGEST).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default();
        text.truncate(cut);
        text.push('…');
        text.shrink_to_fit();
    }
    text
}

/// Something that could not be checked: a file that cannot be read, an inventory beyond the limits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unchecked {
    /// Where it is, relative to the object or storage root; empty for the whole.
    pub place: String,
    /// What prevented it, and what to do.
    pub why: String,
}

/// All findings of a validation. Each code is kept a bounded number of times and counted beyond.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Findings {
    list: Vec<Finding>,
    counts: BTreeMap<Code, u64>,
    unchecked: Vec<Unchecked>,
    unchecked_count: u64,
}

impl Findings {
    /// How many findings of one code are kept; the rest is only counted.
    pub const KEPT_PER_CODE: u64 = 100;

    pub(crate) fn add(&mut self, code: Code, place: impl Into<String>, message: impl Into<String>) {
        let (place, message) = (clip(place.into()), clip(message.into()));
        self.keep(Finding { code, place, message });
    }

    /// Adds without building the message where it would not be kept.
    pub(crate) fn add_with(&mut self, code: Code, place: &str, message: impl FnOnce() -> String) {
        if self.counts.get(&code).is_none_or(|count| *count < Findings::KEPT_PER_CODE) {
            self.add(code, place, message());
        } else {
            *self.counts.entry(code).or_default() += 1;
        }
    }

    fn keep(&mut self, finding: Finding) {
        let count = self.counts.entry(finding.code).or_default();
        *count += 1;
        if *count <= Findings::KEPT_PER_CODE {
            self.list.push(finding);
        }
    }

    /// Takes over what another validation found.
    pub(crate) fn extend(&mut self, other: Findings) {
        let kept: BTreeMap<Code, u64> =
            other.list.iter().fold(BTreeMap::new(), |mut kept, finding| {
                *kept.entry(finding.code).or_default() += 1;
                kept
            });
        other.list.into_iter().for_each(|finding| self.keep(finding));
        for (code, count) in &other.counts {
            *self.counts.entry(*code).or_default() +=
                count - kept.get(code).copied().unwrap_or_default();
        }
        let beyond = other.unchecked_count - other.unchecked.len() as u64;
        other.unchecked.into_iter().for_each(|unchecked| self.keep_unchecked(unchecked));
        self.unchecked_count += beyond;
    }

    /// Records that something could not be checked, and why.
    pub(crate) fn add_unchecked(&mut self, place: &str, why: &Error) {
        let (place, why) = (clip(place.to_owned()), clip(why.to_string()));
        self.keep_unchecked(Unchecked { place, why });
    }

    fn keep_unchecked(&mut self, unchecked: Unchecked) {
        self.unchecked_count += 1;
        if self.unchecked_count <= Findings::KEPT_PER_CODE {
            self.unchecked.push(unchecked);
        }
    }

    /// The same findings, by the codes of a version of the specification.
    pub(crate) fn in_terms_of(self, spec: Spec) -> Findings {
        if self.counts.keys().all(|code| code.is_of(spec)) {
            return self;
        }
        let mut translated = Findings {
            unchecked: self.unchecked,
            unchecked_count: self.unchecked_count,
            ..Findings::default()
        };
        let mut left = self.counts;
        for finding in self.list {
            if let Some(left) = left.get_mut(&finding.code) {
                *left -= 1;
            }
            if let Some(code) = finding.code.in_terms_of(spec) {
                let finding = Finding { code, ..finding };
                // The code of 1.1 may stand beside the one of 1.0 for the same fault.
                if !translated.list.contains(&finding) {
                    translated.keep(finding);
                }
            }
        }
        for (code, count) in left.into_iter().filter(|(_, count)| *count > 0) {
            if let Some(code) = code.in_terms_of(spec) {
                *translated.counts.entry(code).or_default() += count;
            }
        }
        translated
    }

    /// Takes over what was found in an object, with its places below `prefix`.
    pub fn merge(&mut self, other: Findings, prefix: &str) {
        self.extend(other.below(prefix));
    }

    /// The same findings, with their places below `prefix`.
    pub(crate) fn below(mut self, prefix: &str) -> Findings {
        let places = self.list.iter_mut().map(|finding| &mut finding.place);
        for place in places.chain(self.unchecked.iter_mut().map(|one| &mut one.place)) {
            *place = match place.as_str() {
                "" => prefix.to_owned(),
                place => format!("{prefix}/{place}"),
            };
        }
        self
    }

    /// The findings that were kept, in the order they were made.
    pub fn iter(&self) -> impl Iterator<Item = &Finding> {
        self.list.iter()
    }

    /// How often each code was found, also beyond those kept.
    pub fn counts(&self) -> &BTreeMap<Code, u64> {
        &self.counts
    }

    pub fn errors(&self) -> impl Iterator<Item = &Finding> {
        self.iter().filter(|finding| finding.code.is_error())
    }

    pub fn warnings(&self) -> impl Iterator<Item = &Finding> {
        self.iter().filter(|finding| !finding.code.is_error())
    }

    /// What could not be checked. At most [`Findings::KEPT_PER_CODE`] are kept.
    pub fn unchecked(&self) -> impl Iterator<Item = &Unchecked> {
        self.unchecked.iter()
    }

    /// How much could not be checked, also beyond what is kept.
    pub fn unchecked_count(&self) -> u64 {
        self.unchecked_count
    }

    /// Whether a rule is broken that makes the object or root invalid.
    pub fn has_errors(&self) -> bool {
        self.counts.keys().any(|code| code.is_error())
    }

    /// Everything was checked and there are no errors; there may be warnings.
    pub fn is_valid(&self) -> bool {
        !self.has_errors() && self.unchecked_count == 0
    }

    pub fn is_empty(&self) -> bool {
        self.counts.is_empty() && self.unchecked_count == 0
    }

    pub fn has(&self, code: Code) -> bool {
        self.counts.contains_key(&code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_are_counted_beyond_those_kept() {
        let mut one = Findings::default();
        (0..150).for_each(|n| one.add_with(Code::E092, "f", || n.to_string()));
        assert_eq!((one.iter().count(), one.counts()[&Code::E092]), (100, 150));
        let mut two = Findings::default();
        two.add(Code::E092, "", "first");
        two.extend(one.below("object"));
        assert_eq!((two.iter().count(), two.counts()[&Code::E092]), (100, 151));
        assert!(!two.is_valid());
    }

    #[test]
    fn warnings_do_not_make_invalid() {
        let mut findings = Findings::default();
        findings.add(Code::W004, "inventory.json", "sha256");
        assert!(findings.is_valid() && !findings.is_empty());
    }

    #[test]
    fn what_could_not_be_checked_is_not_valid_and_counted() {
        let mut findings = Findings::default();
        let why = Error::BadId("x".to_owned());
        (0..150).for_each(|_| findings.add_unchecked("f", &why));
        assert!(!findings.is_valid() && !findings.has_errors() && !findings.is_empty());
        let mut all = Findings::default();
        all.merge(findings, "object");
        assert_eq!((all.unchecked().count(), all.unchecked_count()), (100, 150));
        assert_eq!(all.unchecked().next().map(|one| one.place.as_str()), Some("object/f"));
    }

    #[test]
    fn findings_of_an_older_specification_have_its_codes_and_are_counted() {
        let mut findings = Findings::default();
        (0..150).for_each(|n| findings.add(Code::E112, "f", n.to_string()));
        findings.add(Code::E107, "", "unused");
        findings.add(Code::E037, "i", "another id");
        findings.add(Code::E110, "i", "another id");
        let old = findings.clone().in_terms_of(Spec::V1_0);
        let expected: BTreeMap<Code, u64> = [(Code::E086, 150), (Code::E037, 1)].into();
        assert_eq!(old.counts(), &expected);
        assert_eq!(findings.clone().in_terms_of(Spec::V1_1), findings);
    }
}
