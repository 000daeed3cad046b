//! The pipelines of the archive, and the collections that the configuration names: made when a
//! process starts, if they are not there.

use crate::collection;
use crate::config::Config;
use crate::deposit;
use crate::error::{Error, Result};
use crate::janitor;
use crate::outbox;
use crate::stage;
use db::{Statement, Tx, statement};
use queue::rules::pipelines::{self, PipelineSpec};
use queue::{Catalog, PipelineSettings, StageSettings};

/// Who makes things when no person does.
const WHO: &str = "accession";

/// Makes what is missing. What is there keeps its settings, but for those that the configuration
/// names.
pub fn prepare(tx: &mut Tx<'_>, config: &Config) -> Result<Catalog> {
    let catalog = Catalog::load(tx)?;
    for spec in specs() {
        match catalog.named(&spec.name) {
            Err(_) => {
                pipelines::create(tx, tx.now(), WHO, &spec)?;
            }
            Ok(there) if there.plain => return Err(in_the_way(&spec.name)),
            Ok(_) => {}
        }
    }
    let catalog = Catalog::load(tx)?;
    for (name, section) in &config.stages {
        let (pipeline, stage) = (catalog.named(stage::PIPELINE)?, name.as_str());
        let before = pipeline.stage_named(stage)?.settings.clone();
        let changes = section.changes();
        let same = changes.iter().all(|(key, value)| {
            serde_json::json!(before).get(key).is_some_and(|v| v.as_i64() == value.parse().ok())
        });
        if !same {
            pipelines::set(tx, &catalog, stage::PIPELINE, Some(stage), &changes)?;
        }
    }
    for (name, profile) in &config.collections {
        collection::put(tx, name, profile, WHO)?;
    }
    if collection::find(tx, crate::config::DEFAULT_COLLECTION)?.is_none() {
        collection::put(tx, crate::config::DEFAULT_COLLECTION, &Default::default(), WHO)?;
    }
    Ok(Catalog::load(tx)?)
}

/// True for the names of the archive's own pipelines, which no queue may have.
pub fn is_taken(name: &str) -> bool {
    specs().iter().any(|spec| spec.name == name)
}

/// A queue that someone made before the archive's own pipelines were.
fn in_the_way(name: &str) -> Error {
    Error::permanent(
        "name_taken",
        format!(
            "there is a queue called `{name}`, and the archive needs that name for itself; see what is in it with `accession queue list {name}`, and delete it with `accession queue delete {name}`"
        ),
    )
}

/// This installation's name for itself: made once, by chance.
pub fn installation(tx: &mut Tx<'_>) -> Result<String> {
    const FIND: Statement = statement!(setup::find_installation);
    const NAME: Statement = statement!(setup::name_installation);
    if let Some((found,)) = tx.first::<(String,)>(&FIND, &[])? {
        return Ok(found);
    }
    let fresh = format!("{:016x}{:016x}", fastrand::u64(..), fastrand::u64(..));
    // Two processes that start at once agree on the first.
    tx.send(&NAME, &db::params![&fresh])?;
    Ok(tx.one::<(String,)>(&FIND, &[])?.0)
}

fn specs() -> [PipelineSpec; 5] {
    let sending = |name: &str| PipelineSpec {
        stages: vec![(
            "sending".to_string(),
            StageSettings { max_attempts: 10, ..StageSettings::default() },
        )],
        ..PipelineSpec::staged(name, &["sending"])
    };
    let ingest = PipelineSpec {
        restart: Some("resolving".to_string()),
        settings: stage::pipeline_settings(),
        stages: stage::STAGES.map(|s| (s.to_string(), stage::default_settings(s))).to_vec(),
        ..PipelineSpec::staged(stage::PIPELINE, &stage::STAGES)
    };
    let batch = PipelineSpec {
        settings: PipelineSettings::default(),
        ..PipelineSpec::staged(deposit::PIPELINE, &deposit::STAGES)
    };
    let sweep = PipelineSpec {
        coalesces: true,
        ..PipelineSpec::staged(janitor::PIPELINE, &[janitor::STAGE])
    };
    [batch, ingest, sweep, sending(outbox::REPORT), sending(outbox::CALLBACK)]
}
