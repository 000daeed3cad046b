//! What is ingested, and into what.

use crate::cli::Global;
use crate::cmd::{app, ingest, notify};
use crate::error_code::ErrorCode;
use crate::exit::Failure;
use archive::app::App;
use archive::intake::accept::NewDeposit;
use archive::intake::received::{Received, kind_of};
use archive::model::item::Source;
use archive::model::pipelines::BATCH;
use archive::registry::deposit::Options;
use bagit::{Algorithm, TarBag, WriteOptions};
use queue::rules::batch;
use queue::rules::claim::{Request, claim};
use queue::{BatchId, Catalog};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

pub struct Place {
    pub directory: PathBuf,
    pub global: Global,
}

/// A data directory of one repetition.
pub struct Data {
    pub global: Global,
    path: PathBuf,
}

impl Data {
    /// A benchmark that cannot clean up is no reason to lose its figures.
    pub fn remove(self) {
        let _ = std::fs::remove_dir_all(self.path);
    }
}

impl Place {
    pub fn is_postgres(&self) -> bool {
        self.global.database.as_deref().is_some_and(|d| d.starts_with("postgres"))
    }

    pub fn fresh_data(&self) -> Result<Data, Failure> {
        let path = tempfile::tempdir_in(&self.directory)?.keep();
        let global = Global { data: Some(path.clone()), quiet: true, ..self.global.clone() };
        Ok(Data { global, path })
    }

    /// A bag of `files` files in a tar, with a SHA-256 manifest.
    pub fn bag_as_tar(&self, files: u64, size: u64) -> Result<PathBuf, Failure> {
        let path = self.directory.join("bag.tar");
        let options = WriteOptions {
            algorithms: [Algorithm::Sha256].into_iter().collect(),
            ..WriteOptions::default()
        };
        let wrong = |e: bagit::Error| Failure::unable(ErrorCode::Bench, e.to_string());
        let out = BufWriter::new(std::fs::File::create(&path)?);
        let mut bag = TarBag::new(out, "bag", options).map_err(wrong)?;
        for number in 0..files {
            let mut content = Content { seed: number, left: size };
            bag.add_payload(&format!("{:03}/{number}.bin", number % 1000), size, &mut content)
                .map_err(wrong)?;
        }
        let (mut out, _) = bag.finish().map_err(wrong)?;
        out.flush()?;
        Ok(path)
    }

    /// Directories, each a bag of five small files.
    pub fn small_bags(&self, count: u64) -> Result<Vec<PathBuf>, Failure> {
        let top = tempfile::tempdir_in(&self.directory)?.keep();
        (0..count)
            .map(|number| {
                let path = top.join(format!("bag-{number}"));
                std::fs::create_dir(&path)?;
                for file in 0..5 {
                    let text = format!("bag {number}, file {file}\n").repeat(40);
                    std::fs::write(path.join(format!("{file}.txt")), text)?;
                }
                bagit::create_in_place(&path, &WriteOptions::default(), &())
                    .map_err(|e| Failure::unable(ErrorCode::Bench, e.to_string()))?;
                Ok(path)
            })
            .collect()
    }

    /// Deposits everything and works until all of it is preserved.
    pub fn ingest(&self, data: &Data, sources: &[PathBuf]) -> Result<(), Failure> {
        let (app, _) = app::open(&data.global, db::Options::default())?;
        let ids = deposit_all(&app, sources)?;
        let batches = app::block_on(ingest::work_on(&app, ids, notify::TIMEOUT, &data.global))??;
        good(&batches)
    }

    /// Deposits one after the other while a worker runs; how long each took.
    pub fn ingest_one_by_one(
        &self,
        data: &Data,
        sources: &[PathBuf],
    ) -> Result<Vec<Duration>, Failure> {
        let (app, _) = app::open(&data.global, db::Options::default())?;
        let first = deposit_all(&app, &sources[..1])?;
        let times = app::block_on(async {
            let (stop, stopped) = tokio::sync::watch::channel(queue::runtime::Stop::No);
            let settings = queue::runtime::Settings {
                workspaces: vec![app.settings.work_space.name.clone()],
                ..Default::default()
            };
            let worker =
                tokio::spawn(archive::worker::work(app.clone(), settings, |_, _| true, stopped));
            // The first one also opens stores and starts threads.
            crate::cmd::waiting::wait(&app, first).await?;
            let mut times = Vec::new();
            for source in &sources[1..] {
                let began = Instant::now();
                let accepting = (app.clone(), source.clone());
                let ids =
                    tokio::task::spawn_blocking(move || deposit_all(&accepting.0, &[accepting.1]))
                        .await
                        .map_err(|e| Failure::unable(ErrorCode::Bench, e.to_string()))??;
                good(&crate::cmd::waiting::wait(&app, ids).await?)?;
                times.push(began.elapsed());
            }
            stop.send_replace(queue::runtime::Stop::Shutdown);
            let _ = worker.await;
            Ok::<_, Failure>(times)
        })??;
        Ok(times)
    }

    /// Expands a manifest; the seconds from acceptance to the last job, and what a claim took
    /// with nothing waiting and with all of them, in milliseconds.
    pub fn expand(&self, data: &Data, rows: u64) -> Result<(f64, (f64, f64)), Failure> {
        let manifest = self.directory.join("batch.checkm");
        write_manifest(&manifest, rows)?;
        let (app, _) = app::open(&data.global, db::Options::default())?;
        let before = claims(&app)?;
        let wanted = |pipeline: &str, _: &str| pipeline == BATCH;
        let began = Instant::now();
        let ids = deposit_all(&app, std::slice::from_ref(&manifest))?;
        app::block_on(async {
            let (stop, stopped) = tokio::sync::watch::channel(queue::runtime::Stop::No);
            let settings = queue::runtime::Settings::default();
            let worker =
                tokio::spawn(archive::worker::work(app.clone(), settings, wanted, stopped));
            let id = ids[0];
            loop {
                let found = app.db.read(move |tx| batch::load(tx, id)).await?;
                if found.moved >= found.total && found.total > 0 {
                    break;
                }
                if let Some(error) = found.error {
                    return Err(Failure::unable(ErrorCode::Bench, error));
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            stop.send_replace(queue::runtime::Stop::Shutdown);
            let _ = worker.await;
            Ok::<_, Failure>(())
        })??;
        let seconds = began.elapsed().as_secs_f64();
        Ok((seconds, (before, claims(&app)?)))
    }
}

/// Bytes that do not compress and differ from file to file, made faster than they are hashed.
struct Content {
    seed: u64,
    left: u64,
}

impl std::io::Read for Content {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let wanted = usize::try_from(self.left).unwrap_or(usize::MAX).min(buffer.len());
        for chunk in buffer[..wanted].chunks_mut(8) {
            self.seed = self
                .seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let bytes = self.seed.to_le_bytes();
            chunk.copy_from_slice(&bytes[..chunk.len()]);
        }
        self.left -= wanted as u64;
        Ok(wanted)
    }
}

fn write_manifest(path: &Path, rows: u64) -> Result<(), Failure> {
    let mut out = BufWriter::new(std::fs::File::create(path)?);
    writeln!(
        out,
        "#%checkm_0.7\n#%profile | http://uc3.cdlib.org/registry/ingest/manifest/mrt-single-file-batch-manifest"
    )?;
    for row in 0..rows {
        writeln!(
            out,
            "http://files.example.org/{row}.tif | | | | | {row}.tif | | local-{row} | | Page {row} |"
        )?;
    }
    writeln!(out, "#%eof")?;
    out.flush()?;
    Ok(())
}

fn deposit_all(app: &Arc<App>, sources: &[PathBuf]) -> Result<Vec<BatchId>, Failure> {
    let mut received = Received::new(&app.settings.payloads);
    for path in sources {
        let source = Source::from_path(path)?;
        let new = NewDeposit {
            collection: "default".to_string(),
            submitter: "bench".to_string(),
            name: source.file_name(),
            source: source.clone(),
            payload: None,
            options: Options::default(),
        };
        received.add(kind_of(&source, &new.options)?, new)?;
    }
    Ok(received.accept(&app.db)?.into_iter().map(|receipt| receipt.batch).collect())
}

fn good(batches: &[batch::Batch]) -> Result<(), Failure> {
    match batches.iter().find(|b| b.state != queue::BatchState::Completed) {
        None => Ok(()),
        Some(bad) => Err(Failure::unable(
            ErrorCode::Bench,
            format!("batch {} ended as {}: {:?}", bad.id, bad.state, bad.error),
        )),
    }
}

/// The median time of a claim of ten jobs in the first stage, in milliseconds; nothing is kept.
fn claims(app: &Arc<App>) -> Result<f64, Failure> {
    let mut times = Vec::new();
    for _ in 0..21 {
        let began = Instant::now();
        let undone: queue::Result<()> = app.db.write_blocking(|tx| {
            let catalog = Catalog::load(tx)?;
            let stage = catalog.named(archive::model::pipelines::INGEST)?.first().id;
            let now = tx.now();
            let worker = queue::rules::lease::register(
                tx,
                now,
                &queue::rules::lease::NewWorker::default(),
                1_000_000,
            )?;

            claim(
                tx,
                now,
                &catalog,
                Request { stage, worker, who: "bench", limit: 10, start: 10 },
            )?;
            // Only the time is wanted: an error takes everything back.
            Err(queue::Error::Refused("measured".to_string()))
        });
        if let Err(queue::Error::Db(error)) = undone {
            return Err(error.into());
        }
        times.push(began.elapsed().as_secs_f64() * 1e3);
    }
    Ok(super::median(times))
}
