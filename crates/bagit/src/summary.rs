//! What a bag says about itself, without checking its payload.

use crate::declaration::Version;
use crate::error::Error;
use crate::info::{Oxum, Tags};
use crate::problem::{Problem, Problems};
use crate::source::Serialization;
use crate::source::open::Bag;
use crate::validate::survey::Survey;
use crate::validate::tags::TagFiles;
use crate::validate::{Mode, Options};
use digest::{Algorithm, Algorithms};
use serde::Serialize;

/// What bagit.txt, bag-info.txt and the names of the manifests tell.
#[derive(Debug, Clone, Serialize)]
pub struct Summary {
    pub bag: String,
    pub serialization: Serialization,
    pub version: Option<Version>,
    pub encoding: Option<String>,
    pub payload_manifests: Vec<Algorithm>,
    pub tag_manifests: Vec<Algorithm>,
    pub has_fetch: bool,
    /// Payload-Oxum as it is declared.
    pub oxum: Option<Oxum>,
    pub tags: Tags,
    /// What is wrong with these files.
    pub problems: Vec<Problem>,
}

impl Bag {
    /// Reads what the bag says about itself.
    pub fn summary(&self) -> Result<Summary, Error> {
        let options = Options { mode: Mode::Fast, ..Options::default() };
        let mut problems = Problems::new(options.problems_max);
        let survey = Survey::take(self, &options, Algorithms::NONE, &(), &mut problems)?;
        let tags = TagFiles::read(self, &survey, &mut problems)?;
        let algorithms = |is_tag: bool| {
            tags.manifests.iter().filter(|m| m.is_tag == is_tag).map(|m| m.algorithm).collect()
        };
        Ok(Summary {
            bag: self.name().to_owned(),
            serialization: self.serialization(),
            version: tags.declaration.version,
            encoding: tags.declaration.encoding_name.clone(),
            payload_manifests: algorithms(false),
            tag_manifests: algorithms(true),
            has_fetch: tags.fetch.is_some(),
            oxum: tags.info.as_ref().and_then(|info| info.oxum()?.ok()).map(|(oxum, _)| oxum),
            tags: tags.info.unwrap_or_default(),
            problems: problems.into_sorted(),
        })
    }
}
