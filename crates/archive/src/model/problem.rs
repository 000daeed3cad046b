//! What is wrong with a deposit: everything at once, capped, each with a stable code, where it
//! is, and what to do.

use crate::model::error_code::ErrorCode;
use crate::model::text::{plural, shortened};
use serde::{Deserialize, Serialize};

/// How many problems are kept; all are counted.
pub const PROBLEMS_MAX: usize = 100;
/// Of an object that is taken in all the same, so many warnings are told, and so much of each.
const WARNINGS_TOLD: usize = 20;
const WARNING_BYTES: usize = 1000;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    pub code: String,
    /// The file or the row it is about.
    pub place: String,
    pub message: String,
    pub is_error: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problems {
    pub listed: Vec<Problem>,
    pub errors: u64,
    pub warnings: u64,
}

impl Problem {
    /// True if it is filed under this code.
    pub fn is(&self, code: impl Into<ProblemCode>) -> bool {
        self.code == code.into().to_string()
    }
}

/// What a problem is filed under: a code of the archive, or what a validator found in a bag or a
/// manifest. In text, the latter begin with `bag_` and `manifest_`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProblemCode {
    Archive(ErrorCode),
    Bag(bagit::Code),
    Manifest(checkm::Code),
}

impl From<ErrorCode> for ProblemCode {
    fn from(code: ErrorCode) -> ProblemCode {
        ProblemCode::Archive(code)
    }
}

impl From<bagit::Code> for ProblemCode {
    fn from(code: bagit::Code) -> ProblemCode {
        ProblemCode::Bag(code)
    }
}

impl From<checkm::Code> for ProblemCode {
    fn from(code: checkm::Code) -> ProblemCode {
        ProblemCode::Manifest(code)
    }
}

impl std::fmt::Display for ProblemCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ProblemCode::Archive(code) => f.write_str(code.as_str()),
            ProblemCode::Bag(code) => write!(f, "bag_{}", code.as_str().replace('-', "_")),
            ProblemCode::Manifest(code) => {
                write!(f, "manifest_{}", code.as_str().replace('-', "_"))
            }
        }
    }
}

impl Problems {
    /// Adds an error.
    pub fn error(&mut self, code: impl Into<ProblemCode>, place: &str, message: impl Into<String>) {
        self.add(code.into(), place, message.into(), true);
    }

    /// Adds a warning.
    pub fn warning(
        &mut self,
        code: impl Into<ProblemCode>,
        place: &str,
        message: impl Into<String>,
    ) {
        self.add(code.into(), place, message.into(), false);
    }

    fn add(&mut self, code: ProblemCode, place: &str, message: String, is_error: bool) {
        let count = if is_error { &mut self.errors } else { &mut self.warnings };
        *count += 1;
        let kept = self.listed.iter().filter(|p| p.is_error == is_error).count();
        if kept < PROBLEMS_MAX {
            let (code, place) = (code.to_string(), place.to_string());
            self.listed.push(Problem { code, place, message, is_error });
        }
    }

    /// Takes over what was found elsewhere.
    pub fn take(&mut self, more: Problems) {
        self.errors += more.errors;
        self.warnings += more.warnings;
        self.listed.extend(more.listed);
    }

    /// Takes over what was found elsewhere, and does not make anything invalid.
    pub fn take_as_warnings(&mut self, more: Problems) {
        self.warnings += more.errors + more.warnings;
        let as_warning = |problem| Problem { is_error: false, ..problem };
        self.listed.extend(more.listed.into_iter().map(as_warning));
    }

    /// The first warnings, for reports. What is kept of them is small: reports read the objects of
    /// a batch a thousand at a time.
    pub fn warnings_told(&self) -> Vec<String> {
        let all = self.listed.iter().filter(|p| !p.is_error);
        let mut told: Vec<String> = all
            .take(WARNINGS_TOLD)
            .map(|p| shortened(&format!("[{}] {}", p.code, p.message), WARNING_BYTES))
            .collect();
        let more = self.warnings.saturating_sub(told.len() as u64);
        if more > 0 {
            told.push(format!("… and {more} more"));
        }
        told
    }

    pub fn has_errors(&self) -> bool {
        self.errors > 0
    }

    /// One text of all of them: the first line counts, then one line each.
    pub fn text(&self, what: &str) -> String {
        let mut text = format!("{what}: {}", plural(self.errors, "problem"));
        for problem in self.listed.iter().filter(|p| p.is_error) {
            text.push_str(&format!("\n[{}] {}", problem.code, visible(&problem.message)));
        }
        let listed = self.listed.iter().filter(|p| p.is_error).count() as u64;
        if self.errors > listed {
            text.push_str(&format!("\n… and {} more", self.errors - listed));
        }
        text
    }

    /// The code of the first error: what the job's failure is filed under.
    pub fn code(&self) -> Option<&str> {
        self.first().map(|p| p.code.as_str())
    }

    /// Where the first error is.
    pub fn place(&self) -> Option<&str> {
        self.first().map(|p| p.place.as_str()).filter(|place| !place.is_empty())
    }

    fn first(&self) -> Option<&Problem> {
        self.listed.iter().find(|p| p.is_error)
    }
}

/// A line end in a name must not look like another problem.
fn visible(text: &str) -> String {
    let shown =
        |c: char| if c.is_control() { c.escape_default().to_string() } else { c.to_string() };
    text.chars().map(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_problem_is_one_line_whatever_a_name_has_in_it() {
        let mut problems = Problems::default();
        problems.error(ErrorCode::DuplicatePath, "a\n[x] b", "a\n[x] b is there twice");
        assert_eq!(
            problems.text("box-17"),
            "box-17: 1 problem\n[duplicate_path] a\\n[x] b is there twice"
        );
    }
}
