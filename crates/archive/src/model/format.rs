//! What format a file is in, as the archive keeps it.

use pronom::{Basis, Identification, Match};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Format {
    /// The PRONOM identifier; `None` if nothing is known.
    pub puid: Option<String>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub version: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime: Option<String>,
    /// How it was found: `signature`, `container`, `extension`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub basis: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// The formats that fit equally well, where none of them is the answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub candidates: Vec<Candidate>,
    /// The set of signatures that was used.
    pub signatures: String,
}

/// A format that a file may be in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Candidate {
    pub puid: String,
    pub name: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub version: String,
    pub basis: String,
}

/// So many are kept of one file; more tell nothing.
const CANDIDATES_MAX: usize = 20;

impl Candidate {
    fn of(found: &Match) -> Candidate {
        Candidate {
            puid: found.puid.clone(),
            name: found.name.clone(),
            version: found.version.clone(),
            basis: basis(&found.basis).to_string(),
        }
    }
}

/// As in a report: `fmt/43 JPEG File Interchange Format 1.01 (signature)`.
impl std::fmt::Display for Candidate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.puid, self.name)?;
        if !self.version.is_empty() {
            write!(f, " {}", self.version)?;
        }
        write!(f, " ({})", self.basis)
    }
}

fn basis(basis: &Basis) -> &'static str {
    match basis {
        Basis::Signature { .. } => "signature",
        Basis::Container { .. } => "container",
        Basis::Extension { .. } => "extension",
    }
}

impl Format {
    pub fn of(found: &Identification) -> Format {
        let warnings = found.warnings.iter().map(ToString::to_string).collect();
        let signatures = found.signatures.clone();
        // Several that fit equally well are no identification.
        let Some(best) = found.matches.first().filter(|_| found.matches.len() == 1) else {
            let candidates = found.matches.iter().take(CANDIDATES_MAX).map(Candidate::of).collect();
            return Format { warnings, candidates, signatures, ..Format::default() };
        };
        Format {
            puid: Some(best.puid.clone()),
            name: best.name.clone(),
            version: best.version.clone(),
            mime: best.mime.first().cloned(),
            basis: Some(basis(&best.basis).to_string()),
            warnings,
            candidates: Vec::new(),
            signatures,
        }
    }

    pub fn unknown(signatures: &str, why: &str) -> Format {
        Format {
            warnings: vec![format!("it could not be identified: {why}")],
            signatures: signatures.to_string(),
            ..Format::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pronom::{Scope, Span};

    fn found(puid: &str, version: &str) -> Match {
        Match {
            puid: puid.to_string(),
            name: "Some Format".to_string(),
            version: version.to_string(),
            mime: Vec::new(),
            basis: Basis::Signature { signature: 1, spans: vec![Span { offset: 0, length: 4 }] },
            extension_match: false,
            extension_mismatch: false,
        }
    }

    #[test]
    fn formats_that_fit_equally_well_are_kept_as_candidates() {
        let matches = vec![found("fmt/1", "1.0"), found("fmt/2", "")];
        let mut several = Identification {
            matches,
            warnings: Vec::new(),
            signatures: "essential-1".to_string(),
            scope: Scope::default(),
            size: 4,
        };
        let format = Format::of(&several);
        assert_eq!(format.puid, None);
        let shown: Vec<String> = format.candidates.iter().map(ToString::to_string).collect();
        assert_eq!(shown, ["fmt/1 Some Format 1.0 (signature)", "fmt/2 Some Format (signature)"]);
        let json = serde_json::to_string(&format).unwrap();
        assert_eq!(serde_json::from_str::<Format>(&json).unwrap(), format);
        several.matches.pop();
        let one = Format::of(&several);
        assert_eq!((one.puid.as_deref(), one.candidates.len()), (Some("fmt/1"), 0));
    }
}
