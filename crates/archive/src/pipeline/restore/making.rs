//! Writes a package, and goes on with what an earlier run has written of it.

use super::{Run, Telling, s3, thawing};
use crate::ErrorCode;
use crate::blocking::blocking;
use crate::delivery::bag::{self, BagSpec};
use crate::delivery::directory::DirectoryWriter;
use crate::delivery::feed::{self, MissingFile, PackageError, Written};
use crate::delivery::local::{LocalPlace, taken, unwritable};
use crate::delivery::ocfl;
use crate::delivery::plan::{Naming, Plan, Selection};
use crate::delivery::sink::{FileSink, GzipSink, NullSink, Sent, Sink};
use crate::delivery::tar::TarWriter;
use crate::delivery::writer::{PackageWriter, WriteError};
use crate::delivery::zip::ZipWriter;
use crate::delivery::{MadeFile, Making, Member, verify};
use crate::metadata::{write_dc_xml, write_erc};
use crate::model::error::{Error, Result};
use crate::model::glob::Patterns;
use crate::model::item::stem;
use crate::model::restore::{Arrangement, Container, Destination};
use crate::pipeline::failpoint;
use crate::registry::premis;
use crate::stores::copies::Copies;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use queue::Outcome;
use std::collections::BTreeSet;
use std::fs::File;
use std::path::Path;
use std::sync::{Arc, PoisonError};

/// How often a package is begun again because something of it had to be taken back.
const BEGINNINGS_MAX: u32 = 20;

/// Writes the package to its destination, where it waits to be read again.
/// An outcome says that it has to wait first.
pub async fn make(run: &mut Run<'_>) -> Result<Option<Outcome>> {
    let copies = run.copies().await?;
    if let Some(place) = run.local() {
        if place.is_taken() && !place.is_published() {
            return Err(taken(&place.path));
        }
        if place.is_published() {
            // A run before this one ended before it could say so; what it has written is compared.
            run.restore.package.is_written = true;
        }
    }
    run.restore.package.stores = copies.stores().map(str::to_string).collect();
    let mut missing: Vec<MissingFile> = Vec::new();
    for _ in 0..BEGINNINGS_MAX {
        let plan = plan(run, &copies, &missing).await?;
        run.meter.begin("writing", Some(plan.bytes()));
        let package = &mut run.restore.package;
        package.totals(plan.totals);
        (package.head, package.tail) = plan.made();
        if package.is_written {
            return Ok(None);
        }
        let written = match (run.local(), &run.order.to) {
            (Some(place), _) => {
                let (done, sent) = write_local(run, &copies, &plan, &place).await?;
                let package = &mut run.restore.package;
                (package.bytes, package.sha256) =
                    sent.map(|sent| (sent.bytes, sent.sha256)).unzip();
                done
            }
            (None, Destination::Nowhere) => {
                let writer = Box::new(TarWriter::new(NullSink::default()));
                let telling = Telling { run, root: None };
                let done =
                    feed::write(&copies, plan.members(), writer, needs_all(run), &telling).await;
                written(done, Error::Output)?
            }
            (None, _) => s3::write(run, &copies, &plan).await?,
        };
        match written {
            Written::Complete(found) => {
                let package = &mut run.restore.package;
                package.is_written = true;
                // Those of an earlier plan are not in this one.
                let bytes: u64 = found.iter().map(|file| file.bytes).sum();
                package.files = package.files.saturating_sub(found.len() as u64);
                package.content_bytes = package.content_bytes.saturating_sub(bytes);
                missing.extend(found);
                package.missing = missing;
                if package.files == 0
                    && let Some(first) = package.missing.first()
                {
                    return Err(Error::permanent(ErrorCode::NoIntactCopy, first.why.clone()));
                }
                return Ok(None);
            }
            // What was thawed is cold again, or only a cold copy has it intact.
            Written::Frozen(message) => {
                return match thawing::ask(run, &copies).await? {
                    Some(outcome) => Ok(Some(outcome)),
                    None => Err(Error::transient(ErrorCode::ContentFrozen, message)),
                };
            }
            Written::Incomplete(found) if run.order.arrangement == Arrangement::Ocfl => {
                let why = found.first().map(|file| file.why.clone()).unwrap_or_default();
                return Err(Error::permanent(
                    ErrorCode::NoIntactCopy,
                    format!("{why}; restore it as a directory or a bag, which have the rest"),
                ));
            }
            Written::Incomplete(found) => missing.extend(found),
            Written::BeginAgain => {}
        }
    }
    Err(Error::transient(
        ErrorCode::UnsteadyStores,
        "copies of the object were found bad again and again while the package was written; `accession check --content` says what is damaged",
    ))
}

/// Only a bag says of itself which files it has, so it is planned without those that are missing.
fn needs_all(run: &Run<'_>) -> bool {
    run.order.arrangement != Arrangement::Files
}

fn selection(run: &Run<'_>, missing: &[MissingFile]) -> Selection {
    Selection {
        app: run.app.clone(),
        object: run.object.id,
        version: run.order.version,
        patterns: Patterns::new(&run.order.paths),
        without: Arc::new(missing.iter().map(|file| file.path.clone()).collect::<BTreeSet<_>>()),
    }
}

/// How files are named in the package.
async fn naming(run: &Run<'_>, selection: &Selection) -> Result<Naming> {
    Ok(match (run.order.container, run.order.arrangement) {
        (Container::File, _) => Naming::Last,
        (_, Arrangement::Bag) => Naming::Bag(bag_base(&run.order.to, run.order.container)),
        (_, Arrangement::Ocfl) => Naming::Whole,
        (_, Arrangement::Files) => {
            let mut files = selection.files();
            // In the order of paths, what is not in `data/` comes last or first.
            let mut is_payload = true;
            while let Some(file) = files.next().await {
                is_payload &= file?.path.starts_with("data/");
            }
            if is_payload { Naming::Payload } else { Naming::Whole }
        }
    })
}

/// A bag in an archive lies in a directory that is named like the archive.
fn bag_base(to: &Destination, container: Container) -> String {
    if container == Container::Directory {
        return String::new();
    }
    let name = match to {
        Destination::Path(_) => to
            .path()
            .and_then(|path| Some(path.file_name()?.to_string_lossy().into_owned()))
            .unwrap_or_default(),
        Destination::S3 { key, .. } => key.rsplit('/').next().unwrap_or(key).to_string(),
        Destination::Nowhere => String::new(),
    };
    match stem(&name) {
        "" => "bag/".to_string(),
        base => format!("{base}/"),
    }
}

async fn plan(run: &Run<'_>, copies: &Copies, missing: &[MissingFile]) -> Result<Plan> {
    let selection = selection(run, missing);
    if run.order.arrangement == Arrangement::Ocfl {
        return ocfl::plan(copies, selection).await;
    }
    if run.order.arrangement != Arrangement::Bag {
        let naming = naming(run, &selection).await?;
        return Plan::files(selection, naming).await;
    }
    let added = match run.order.metadata {
        true => metadata(run).await?,
        false => Vec::new(),
    };
    let date = jiff::Timestamp::from_second(run.order.asked_at).unwrap_or_default();
    bag::plan(BagSpec {
        copies,
        selection,
        base: bag_base(&run.order.to, run.order.container),
        added,
        date: date.strftime("%Y-%m-%d").to_string(),
        is_part: !run.order.paths.is_empty() || !missing.is_empty(),
    })
    .await
}

/// The plan of a package that was written, by this run or one before it.
pub async fn written_plan(run: &Run<'_>, copies: &Copies) -> Result<Plan> {
    if run.order.arrangement == Arrangement::Ocfl {
        return plan(run, copies, &[]).await;
    }
    let package = &run.restore.package;
    let selection = selection(run, &package.missing);
    let naming = naming(run, &selection).await?;
    Plan::of_record(selection, naming, (package.head.clone(), package.tail.clone())).await
}

/// What the archive knows of the object, as tag files.
async fn metadata(run: &Run<'_>) -> Result<Vec<(String, MadeFile)>> {
    let all = bagit::Algorithms::LIKELY;
    let stored = premis::locate(run.app, &run.order.object).await?;
    let (app, name) = (run.app.clone(), run.order.object.clone());
    let premis = blocking(move || {
        let making = Making::new(all);
        let format = crate::premis::Format::Xml;
        premis::export(&app.db, &name, format, &stored, making)?.finish().map_err(Error::Output)
    })
    .await?;
    let said = &run.object.metadata;
    let made = |text: String| Making::of(text.as_bytes(), all).map_err(Error::Output);
    Ok(vec![
        ("metadata/premis.xml".to_string(), premis),
        ("metadata/erc.txt".to_string(), made(write_erc(said))?),
        ("metadata/dc.xml".to_string(), made(write_dc_xml(said))?),
    ])
}

async fn write_local(
    run: &Run<'_>,
    copies: &Copies,
    plan: &Plan,
    place: &LocalPlace,
) -> Result<(Written, Option<Sent>)> {
    let prepared = place.clone();
    blocking(move || prepared.prepare()).await?;
    failpoint("packaging.prepared");
    let path = place.unfinished();
    let fault = |error| unwritable(&place.path, error);
    let is_there = path.symlink_metadata().is_ok();
    let mut members = plan.members();
    let mut telling = Telling { run, root: None };
    let mut known = None;
    let mut sink = |file: File, at: u64| {
        let sink = FileSink::new(file, at).map_err(fault)?;
        known = Some(sink.written());
        Ok::<_, Error>(sink)
    };
    let writer: Box<dyn PackageWriter> = match run.order.container {
        Container::Directory => {
            telling.root = is_there.then(|| path.clone());
            Box::new(DirectoryWriter::new(&path).map_err(fault)?)
        }
        Container::Tar => {
            let file = open(&path).map_err(fault)?;
            let (at, skipped) = verified_length(run, plan, &file).await?;
            members = members.skip(usize::try_from(skipped).unwrap_or(usize::MAX)).boxed();
            Box::new(TarWriter::new(sink(file, at)?))
        }
        Container::TarGz => {
            Box::new(TarWriter::new(GzipSink::new(sink(open(&path).map_err(fault)?, 0)?)))
        }
        Container::Zip => {
            let sink = sink(open(&path).map_err(fault)?, 0)?;
            Box::new(ZipWriter::new(sink).map_err(fault)?)
        }
        Container::File => Box::new(OneFile { sink: sink(open(&path).map_err(fault)?, 0)? }),
    };
    let done = feed::write(copies, members, writer, needs_all(run), &telling).await;
    let done = written(done, fault)?;
    let sent = known.and_then(|known| known.lock().unwrap_or_else(PoisonError::into_inner).take());
    Ok((done, sent))
}

/// Sorts out why a package was not written.
pub fn written(
    done: std::result::Result<Written, PackageError>,
    unwritable: impl FnOnce(std::io::Error) -> Error,
) -> Result<Written> {
    done.map_err(|error| match error {
        PackageError::Source(error) => error,
        PackageError::Write(error) => unwritable(error),
    })
}

fn open(path: &Path) -> std::io::Result<File> {
    File::options().read(true).write(true).create(true).truncate(false).open(path)
}

/// How much of an unfinished tar archive stays: its bytes, and the members in them. They are compared
/// with the registry like everything that is delivered.
async fn verified_length(run: &Run<'_>, plan: &Plan, file: &File) -> Result<(u64, u64)> {
    let length = file.metadata().map_err(Error::Output)?.len();
    if length == 0 {
        return Ok((0, 0));
    }
    let file = file.try_clone().map_err(Error::Output)?;
    let mut members: BoxStream<'static, Result<Member>> = plan.members();
    let (to, mut from) = tokio::sync::mpsc::channel(256);
    let listing = async move {
        while let Some(member) = members.next().await {
            if to.send(member).await.is_err() {
                break;
            }
        }
    };
    let meter = run.meter.clone();
    let comparing = blocking(move || {
        let mut expected = move || from.blocking_recv().transpose();
        let progress = move |bytes| {
            meter.add(bytes);
            true
        };
        verify::tar_prefix(&file, &mut expected, &progress)
    });
    tokio::join!(listing, comparing).1
}

/// One file by itself.
pub(super) struct OneFile<S: Sink> {
    pub sink: S,
}

impl<S: Sink> PackageWriter for OneFile<S> {
    fn begin(&mut self, _: &Member) -> std::result::Result<(), WriteError> {
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> std::result::Result<(), WriteError> {
        Ok(self.sink.write_all(bytes)?)
    }

    fn restart(&mut self, _: &Member) -> std::result::Result<(), WriteError> {
        self.sink.rewind(0)
    }

    fn abandon(&mut self, _: &Member) -> std::result::Result<(), WriteError> {
        self.sink.rewind(0)
    }

    fn end(&mut self, _: &Member) -> std::result::Result<(), WriteError> {
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> std::result::Result<(), WriteError> {
        Ok(self.sink.finish()?)
    }
}
