//! What format a file is in, as the archive keeps it.

use pronom::{Basis, Identification};
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
    /// The set of signatures that was used.
    pub signatures: String,
}

impl Format {
    pub fn of(found: &Identification) -> Format {
        let warnings = found.warnings.iter().map(ToString::to_string).collect();
        let signatures = found.signatures.clone();
        // Several that fit equally well are no identification; the warning names how many.
        let Some(best) = found.matches.first().filter(|_| found.matches.len() == 1) else {
            return Format { warnings, signatures, ..Format::default() };
        };
        Format {
            puid: Some(best.puid.clone()),
            name: best.name.clone(),
            version: best.version.clone(),
            mime: best.mime.first().cloned(),
            basis: Some(
                match best.basis {
                    Basis::Signature { .. } => "signature",
                    Basis::Container { .. } => "container",
                    Basis::Extension { .. } => "extension",
                }
                .to_string(),
            ),
            warnings,
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
