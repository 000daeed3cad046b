//! What commands of the archive begin with: configuration, database, stores and signatures.

use crate::cli::Global;
use crate::error_code::ErrorCode;
use crate::exit::Failure;
use crate::session::{Session, data_directory, make_private};
use archive::app::App;
use archive::config::{Config, Flags, Loaded};
use archive::model::pipelines;
use archive::pipeline::ingest;
use std::sync::Arc;

/// The configuration that applies here, and where each value came from.
pub fn configuration(global: &Global) -> Result<Loaded, Failure> {
    let data = data_directory(global)?;
    let flags = Flags { config: global.config.clone(), set: global.set.clone() };
    let env = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    Ok(Config::load(&flags, env, &data, &ingest::PIPELINE.stage_names())?)
}

/// Everything a process needs that works for the archive.
pub fn open(global: &Global, options: db::Options) -> Result<(Arc<App>, Loaded), Failure> {
    let loaded = configuration(global)?;
    let data = data_directory(global)?;
    make_private(&data).map_err(|e| {
        Failure::unable(ErrorCode::DataDirectory, format!("the data directory {} cannot be made: {e}; choose another with --data or ACCESSION_DATA", data.display()))
    })?;
    let session = Session::open_with(global, options)?;
    let signatures = super::formats::library(global)?
        .load(None)
        .map_err(|e| Failure::unable(ErrorCode::Signatures, e.to_string()))?;
    let identifier = pronom::Identifier::new(signatures);
    let app = archive::setup::open(session.db.clone(), &loaded.config, &data, identifier)?;
    Ok((Arc::new(app), loaded))
}

/// Makes the archive's pipelines where no command of the archive has done so yet: people may pause
/// before anything is deposited.
pub fn prepare(global: &Global) -> Result<(), Failure> {
    let session = Session::open(global)?;
    if session.read(|_, _, catalog| Ok(catalog.named(pipelines::INGEST).is_ok()))? {
        return Ok(());
    }
    let config = configuration(global)?.config;
    session.db.write_blocking(move |tx| archive::setup::prepare(tx, &config).map(drop))?;
    Ok(())
}

/// For commands that only look, or hand something over.
pub fn open_small(global: &Global) -> Result<(Arc<App>, Loaded), Failure> {
    let options = db::Options { connections: 2, readers: 1, ..db::Options::default() };
    open(global, options)
}

/// Runs what is asynchronous.
pub fn block_on<T>(work: impl Future<Output = T>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let done = runtime.block_on(work);
    // Threads that still read are not waited for: what they do no longer counts.
    runtime.shutdown_background();
    Ok(done)
}
