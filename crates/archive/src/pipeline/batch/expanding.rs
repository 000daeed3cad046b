//! Makes a deposit's jobs, all or none of them. The rows of a manifest are streamed: five million
//! of them are no problem.

use super::batch_of;
use super::examining::{of_job, refuse};
use crate::ErrorCode;
use crate::app::App;
use crate::model::deposit_kind::DepositKind;
use crate::model::error::{Error, Result};
use crate::model::item::{Item, Source};
use crate::model::problem::Problems;
use crate::model::text::plural;
use crate::package::Owner;
use crate::package::manifest::{self, Common, Rows};
use crate::pipeline::Stage;
use crate::registry::deposit::Deposit;
use db::Db;
use queue::rules::batch::{self, Entry};
use queue::runtime::{Context, Handler};
use queue::{BatchId, Catalog, Claimed, Outcome};
use std::io::BufReader;
use std::path::Path;
use std::sync::Arc;

/// Entries that are written in one transaction.
const PORTION: usize = 2_000;

pub struct Expanding(Arc<App>);

impl Stage for Expanding {
    const NAME: &'static str = "expanding";

    fn handler(app: &Arc<App>) -> impl Handler {
        Expanding(app.clone())
    }
}

impl Handler for Expanding {
    async fn run(&self, job: &Claimed, context: &Context) -> Outcome {
        match expand(&self.0, job, context).await {
            Ok(outcome) => outcome,
            Err(error) => refuse(job, context, error),
        }
    }
}

async fn expand(app: &Arc<App>, job: &Claimed, context: &Context) -> Result<Outcome> {
    let id = batch_of(job)?;
    let (deposit, batch) = of_job(app, job).await?;
    if batch.state != queue::BatchState::Pending {
        return Ok(Outcome::Skip(format!("the batch is {} by now", batch.state)));
    }
    let collection = batch.collection.clone().unwrap_or_default();
    let expander = Expander {
        db: app.db.clone(),
        batch: id,
        collection,
        submitter: batch.submitter.clone(),
        deposit,
        payloads: app.settings.payloads.clone(),
        context: context.clone(),
    };
    let (count, last) = crate::blocking::blocking(move || expander.run()).await?;
    let catalog = context.catalog();
    batch::check_entries(&catalog, batch.pipeline, &last)?;
    context.record(move |tx| {
        let now = tx.now();
        let filled = match last.is_empty() {
            true => Ok(()),
            false => batch::fill(tx, &catalog, id, &last),
        };
        match filled.and_then(|()| batch::accept(tx, now, id)) {
            // It was cancelled or deleted while this ran.
            Err(queue::Error::Refused(_)) => Ok(()),
            done => done.map(|_| ()),
        }
    });
    let note = Some(format!("{} to ingest", plural(count, "object")));
    Ok(Outcome::Success(queue::Handover { note, ..queue::Handover::default() }))
}

struct Expander {
    db: Db,
    batch: BatchId,
    collection: String,
    submitter: String,
    deposit: Deposit,
    payloads: std::path::PathBuf,
    context: Context,
}

impl Expander {
    /// How many entries there are, and those that are not written yet: a single one is written when
    /// the batch is accepted.
    fn run(&self) -> Result<(u64, Vec<Entry>)> {
        let options = &self.deposit.options;
        let kind = self.deposit.kind.as_deref().and_then(DepositKind::from_name);
        let kind = kind.unwrap_or(DepositKind::File);
        if kind == DepositKind::Manifest {
            return Ok((self.manifest()?, Vec::new()));
        }
        let item = Item {
            kind,
            source: self.deposit.source.clone(),
            name: self.deposit.name.clone(),
            identifier: options.identifier.clone(),
            local_ids: options.local_ids.clone(),
            claimed: options.claimed.clone(),
            size: None,
            mode: options.mode,
            update: options.update,
            metadata: options.metadata.clone(),
            submitter: self.submitter.clone(),
            line: None,
            place: options.place.clone(),
            fingerprint: options.fingerprint.clone(),
        };
        Ok((1, vec![self.entry(1, &item)?]))
    }

    /// Reads the manifest while what was read of it is written.
    fn manifest(&self) -> Result<u64> {
        std::thread::scope(|scope| {
            let (sender, portions) = std::sync::mpsc::sync_channel::<Vec<Entry>>(1);
            let writing =
                scope.spawn(move || portions.into_iter().try_for_each(|some| self.fill(some)));
            // A writer that has failed takes nothing more, and says why when it is asked.
            let read = self.read(&mut |some| sender.send(some).map_err(|_| Error::Stopped));
            drop(sender);
            let wrote = writing.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            wrote.and(read)
        })
    }

    /// Hands on an entry for each object, in portions.
    fn read(&self, write: &mut dyn FnMut(Vec<Entry>) -> Result<()>) -> Result<u64> {
        let options = &self.deposit.options;
        let payload = self.deposit.payload.clone().unwrap_or_default();
        let path = self.payloads.join(payload);
        let mut reader = open(&path, &self.deposit.name)?;
        let common = Common {
            mode: options.mode,
            update: options.update,
            metadata: options.metadata.clone(),
            submitter: self.submitter.clone(),
        };
        let mut portion = Vec::with_capacity(PORTION);
        let mut number = 0;
        let mut rows = None;
        // Rows that must not be written down.
        let mut problems = Problems::default();
        while let Some(row) = reader.next_row().map_err(|e| broken(&self.deposit.name, &e))? {
            let profile = reader.header().map(|h| h.profile);
            let rows = *rows.get_or_insert(profile.map_or(Rows::OneObject, manifest::rows_of));
            let Rows::Each(kind) = rows else { continue };
            let Some(item) = manifest::item_of(&row, kind, &common) else { continue };
            if let Source::Url(url) = &item.source
                && let Err(error) = crate::transfer::fetch::check_credentials(url)
            {
                let (name, line) = (&self.deposit.name, row.place.line);
                let message = format!("line {line} of {name}: {error}");
                problems.error(ErrorCode::UrlCredentials, &format!("{name} line {line}"), message);
                continue;
            }
            number += 1;
            portion.push(self.entry(number, &item)?);
            if portion.len() == PORTION {
                write(std::mem::replace(&mut portion, Vec::with_capacity(PORTION)))?;
            }
            if self.context.stop() != queue::runtime::Stop::No {
                return Err(Error::Stopped);
            }
        }
        let report = reader.finish().map_err(|e| broken(&self.deposit.name, &e))?;
        if !report.is_valid() || problems.has_errors() {
            manifest::take_report(&self.deposit.name, &report, &mut problems);
            let what = format!("the manifest {}", self.deposit.name);
            return Err(Error::Invalid { what, problems: Box::new(problems) });
        }
        if rows == Some(Rows::OneObject) {
            let item = Item {
                kind: DepositKind::Manifest,
                source: Source::from_path(&path)?,
                name: self.deposit.name.clone(),
                identifier: options.identifier.clone(),
                local_ids: options.local_ids.clone(),
                claimed: None,
                size: None,
                mode: options.mode,
                update: options.update,
                metadata: options.metadata.clone(),
                submitter: self.submitter.clone(),
                line: None,
                place: Some(self.place()),
                fingerprint: None,
            };
            number = 1;
            portion.push(self.entry(1, &item)?);
        }
        write(portion)?;
        Ok(u64::try_from(number).unwrap_or(0))
    }

    /// Where the manifest was: what is kept of it with the batch is a copy.
    fn place(&self) -> String {
        let said = self.deposit.options.place.clone();
        said.unwrap_or_else(|| crate::model::place::place_of(&self.deposit.source))
    }

    fn entry(&self, number: i64, item: &Item) -> Result<Entry> {
        let named = item.identifier.is_some() || !item.local_ids.is_empty();
        let subject = match !named && item.line.is_none() && self.deposit.source.path().is_some() {
            // The name of a path is encoded already: encoding it again would show another name.
            true => queue::subject::encode(&queue::subject::decode(&item.name))?,
            false => subject_of_row(item)?,
        };
        Ok(Entry {
            number,
            subject,
            lock: Some(item.lock(&self.collection)),
            payload: Some(serde_json::json!(item).to_string().into_bytes()),
        })
    }

    /// Writing an entry again changes nothing, so a run that was cut short begins again.
    fn fill(&self, entries: Vec<Entry>) -> Result<()> {
        let batch = self.batch;
        self.db.write_blocking(move |tx| {
            let catalog = Catalog::load(tx)?;
            batch::fill(tx, &catalog, batch, &entries).map_err(Error::from)
        })
    }
}

/// What the job of a row is about: its identifier, else its first local identifier, else its name.
pub(crate) fn subject_of_row(item: &Item) -> Result<String> {
    let said = item.identifier.as_ref().or(item.local_ids.first()).unwrap_or(&item.name);
    Ok(queue::subject::encode(said.as_bytes())?)
}

/// Opens a manifest in either of its forms.
pub fn open(path: &Path, name: &str) -> Result<checkm::Reader<BufReader<std::fs::File>>> {
    let file = Owner::Archive.open_file(path)?;
    let reader = BufReader::with_capacity(256 * 1024, file);
    checkm::Reader::new(reader, &checkm::Options::default()).map_err(|e| broken(name, &e))
}

pub fn broken(name: &str, error: &checkm::Error) -> Error {
    Error::permanent(
        ErrorCode::ManifestUnreadable,
        format!("the manifest {name} cannot be read: {error}; submit it again"),
    )
}
