//! Accepting a restore: everything that is wrong with the request is said before anything is added,
//! and the orders become the jobs of one batch.

mod destination;

pub use destination::To;

use crate::ErrorCode;
use crate::app::App;
use crate::model::error::{Error, Result};
use crate::model::glob::Patterns;
use crate::model::id::ObjectId;
use crate::model::pipelines::{RESTORE_FILE, RESTORE_OBJECT};
use crate::model::profile::Profile;
use crate::model::restore::{Arrangement, Container, Order, WantedForm};
use crate::registry::restoring::{self, Request};
use crate::registry::view::{self, FileView, Filter, ObjectView};
use crate::registry::{collection, resolve};
use crate::stores::copies::check_kept;
use db::Tx;
use queue::rules::batch::{self, Entry, NewBatch};
use queue::{BatchId, Catalog};
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

/// What a person asks for.
#[derive(Debug, Clone, Default)]
pub struct Wanted {
    pub version: Option<i64>,
    pub paths: Vec<String>,
    pub form: WantedForm,
    pub to: Option<To>,
    /// The place of what names none; none where such a request is refused.
    pub here: Option<std::path::PathBuf>,
    pub metadata: bool,
    /// They come from a list or a collection, so that the place holds packages however many there are.
    pub is_list: bool,
    pub by: String,
    pub notify: Vec<String>,
}

/// An order that can be accepted, and what is known of it.
#[derive(Debug, Clone)]
pub struct Prepared {
    pub order: Order,
    pub collection: String,
    /// What people call the object.
    pub name: String,
    pub lock: String,
    pub files: u64,
    pub bytes: u64,
}

/// A name, and where it was said: a line of a list.
#[derive(Debug, Clone)]
pub struct Said {
    pub name: String,
    pub line: Option<u64>,
}

/// Objects that are looked up in one transaction.
const PORTION: usize = 500;
/// Problems that a refusal lists.
const LISTED_MAX: usize = 20;
/// Entries that are written in one transaction.
const ENTRIES: usize = 2000;

/// Finds the objects and says what would be delivered. Everything that is wrong is said at once.
pub fn prepare(app: &Arc<App>, said: Vec<Said>, wanted: &Wanted) -> Result<Vec<Prepared>> {
    let several = wanted.is_list || said.len() > 1;
    let (mut prepared, mut problems) = (Vec::with_capacity(said.len()), Vec::new());
    let mut profiles: BTreeMap<String, Profile> = BTreeMap::new();
    for portion in said.chunks(PORTION) {
        let (names, asked) = (portion.to_vec(), wanted.clone());
        let found = app.db.read_blocking(move |tx| {
            let found = names.iter().map(|one| match look(tx, one, &asked) {
                Ok(found) => Ok(Ok(found)),
                // The database is no fault of the request.
                Err(error) if error.is_transient() => Err(error),
                Err(error) => Ok(Err((one.line, error))),
            });
            found.collect::<Result<Vec<_>>>()
        })?;
        for one in found {
            match one {
                Ok(found) => prepared.push(found),
                Err(problem) => problems.push(problem),
            }
        }
    }
    refuse(problems)?;
    let mut problems = Vec::new();
    let (mut orders, mut taken) = (Vec::with_capacity(prepared.len()), HashSet::new());
    let mut named = HashSet::new();
    for found in prepared {
        if !named.insert(found.object.id) {
            let message = format!("{} is named twice; name it once", found.object.identifier);
            problems.push((found.line, Error::permanent(ErrorCode::RestoredTwice, message)));
            continue;
        }
        let collection = &found.object.collection;
        if !profiles.contains_key(collection) {
            let name = collection.clone();
            let profile = app.db.read_blocking(move |tx| collection::find(tx, &name))?;
            profiles.insert(collection.clone(), profile.unwrap_or_default());
        }
        let profile = &profiles[collection];
        match found.order(app, wanted, profile, several, &mut taken) {
            Ok(order) => orders.push(order),
            Err(error) => problems.push((found.line, error)),
        }
    }
    refuse(problems)?;
    Ok(orders)
}

/// One problem is said as it is; of several, each with its line.
fn refuse(mut problems: Vec<(Option<u64>, Error)>) -> Result<()> {
    match problems.len() {
        0 => Ok(()),
        1 if problems[0].0.is_none() => Err(problems.remove(0).1),
        count => {
            let line = |(line, error): &(Option<u64>, Error)| match line {
                Some(line) => format!("line {line}: {error}"),
                None => error.to_string(),
            };
            let mut text: Vec<String> = problems.iter().take(LISTED_MAX).map(line).collect();
            if count > LISTED_MAX {
                text.push(format!("{} more", count - LISTED_MAX));
            }
            Err(Error::permanent(
                ErrorCode::RestoreRefused,
                format!("nothing is restored, because of {count} problems:\n{}", text.join("\n")),
            ))
        }
    }
}

/// An object that was found, and what of it is wanted.
struct Candidate {
    line: Option<u64>,
    object: ObjectView,
    name: String,
    version: i64,
    files: u64,
    bytes: u64,
    has_tags: bool,
    /// The only file that is wanted, if it was named by its path.
    one_file: Option<String>,
}

fn look(tx: &mut Tx<'_>, said: &Said, wanted: &Wanted) -> Result<Candidate> {
    let object = view::find(tx, &said.name)?;
    check_kept(&object)?;
    let version = view::check_version(&object, wanted.version)?;
    let local_ids = resolve::local_ids(tx, object.id)?;
    let name = destination::name_of(&object.identifier, &local_ids);
    let mut candidate = Candidate {
        line: said.line,
        name,
        version,
        files: 0,
        bytes: 0,
        has_tags: false,
        one_file: None,
        object,
    };
    candidate.count(tx, wanted)?;
    Ok(candidate)
}

impl Candidate {
    /// Counts what is wanted; a pattern that nothing matches is refused.
    fn count(&mut self, tx: &mut Tx<'_>, wanted: &Wanted) -> Result<()> {
        let patterns = Patterns::new(&wanted.paths);
        let mut matched = vec![false; wanted.paths.len()];
        let mut after = String::new();
        loop {
            let page: Vec<FileView> = view::files(tx, self.object.id, self.version, &after, 1000)?;
            let Some(last) = page.last() else { break };
            after = last.path.clone();
            for file in page.iter().filter(|file| patterns.matches(&file.path)) {
                patterns.matching(&file.path).for_each(|at| matched[at] = true);
                self.files += 1;
                self.bytes += u64::try_from(file.size).unwrap_or(0);
                self.has_tags |= file.path.starts_with("tags/");
                if let [only] = wanted.paths.as_slice()
                    && *only == file.path
                {
                    self.one_file = Some(file.path.clone());
                }
            }
        }
        match matched.iter().position(|matched| !matched) {
            None => Ok(()),
            Some(at) => Err(Error::permanent(
                ErrorCode::NoFileMatches,
                format!(
                    "version {} of {} has no file that {} matches; `accession objects files {} --version {}` lists those it has",
                    self.version,
                    self.object.identifier,
                    wanted.paths[at],
                    self.object.identifier,
                    self.version
                ),
            )),
        }
    }

    fn order(
        &self,
        app: &App,
        wanted: &Wanted,
        profile: &Profile,
        several: bool,
        taken: &mut HashSet<String>,
    ) -> Result<Prepared> {
        let of_collection = profile.restore_to.as_deref().map(To::parse).transpose()?;
        let is_own = wanted.to.is_none() && of_collection.is_some();
        let to = wanted.to.clone().or(of_collection);
        let one_file = self.one_file.is_some() && wanted.form == WantedForm::default();
        let named = to.as_ref().filter(|_| !is_own && !several).and_then(To::container);
        let container = match wanted.form.container.or(named) {
            Some(container) => container,
            None if one_file => Container::File,
            None if matches!(to, Some(To::S3(_))) => Container::Tar,
            None => Container::Directory,
        };
        let arrangement = wanted.form.arrangement.unwrap_or({
            // A whole version that was deposited as a bag goes out as one.
            match self.has_tags && wanted.paths.is_empty() && container != Container::File {
                true => Arrangement::Bag,
                false => Arrangement::Files,
            }
        });
        self.check(arrangement, wanted)?;
        let place = destination::Wish {
            to: to.as_ref(),
            here: wanted.here.as_deref(),
            // A place of the archive's own holds many packages.
            several: several || is_own,
            name: &self.name,
            identifier: &self.object.identifier,
            version: self.version,
            container,
            file: self.one_file.as_deref(),
        };
        let to = destination::choose(app, &place, taken)?;
        let order = Order {
            object: self.object.identifier.clone(),
            version: self.version,
            paths: wanted.paths.clone(),
            arrangement,
            container,
            to,
            metadata: wanted.metadata,
            kept_days: profile.restored_keep_days.filter(|_| is_own),
            by: wanted.by.clone(),
            asked_at: db::system_now() / 1_000_000,
        };
        Ok(Prepared {
            order,
            collection: self.object.collection.clone(),
            name: self.name.clone(),
            lock: self.object.lock.clone(),
            files: self.files,
            bytes: self.bytes,
        })
    }

    fn check(&self, arrangement: Arrangement, wanted: &Wanted) -> Result<()> {
        let refuse =
            |code: ErrorCode, message: &str| Err(Error::permanent(code, message.to_string()));
        match arrangement {
            Arrangement::Ocfl if wanted.version.is_some() || !wanted.paths.is_empty() => refuse(
                ErrorCode::OcflIsWhole,
                "an OCFL object has all its versions and files; leave out --version and --path, or restore another form",
            ),
            Arrangement::Files | Arrangement::Ocfl if wanted.metadata => refuse(
                ErrorCode::MetadataNeedsBag,
                "--metadata adds tag files, which only bags have; add --as bag, or leave it out",
            ),
            _ => Ok(()),
        }
    }
}

/// The objects of a collection.
pub fn of_collection(app: &App, name: &str) -> Result<Vec<Said>> {
    let (mut found, mut after) = (Vec::new(), ObjectId::default());
    loop {
        let filter = Filter {
            collection: Some(name.to_string()),
            state: Some(crate::model::codes::ObjectState::Active),
            after,
            limit: 1000,
            ..Filter::default()
        };
        let (page, _) = app.db.read_blocking(move |tx| view::page(tx, &filter))?;
        let Some(last) = page.last().map(|named| named.object.id) else { break };
        found.extend(page.into_iter().map(|n| Said { name: n.object.identifier, line: None }));
        after = last;
    }
    match found.is_empty() {
        false => Ok(found),
        true => Err(Error::permanent(
            ErrorCode::EmptyCollection,
            format!(
                "collection `{name}` has no objects; `accession collection list` shows those there are"
            ),
        )),
    }
}

/// Accepts orders: from here none of them is lost. All of them are of one kind.
pub fn accept(app: &App, orders: &[Prepared], wanted: &Wanted, label: &str) -> Result<BatchId> {
    let is_file = orders.iter().all(|one| one.order.container == Container::File);
    let pipeline = if is_file { RESTORE_FILE } else { RESTORE_OBJECT };
    let mut collections: Vec<&str> = orders.iter().map(|one| one.collection.as_str()).collect();
    collections.dedup();
    let collection = match collections.as_slice() {
        [only] => Some(only.to_string()),
        _ => None,
    };
    let entries: Vec<Entry> = orders
        .iter()
        .zip(1..)
        .map(|(one, number)| {
            Ok(Entry {
                number,
                subject: queue::subject::encode(one.name.as_bytes())?,
                lock: Some(one.lock.clone()),
                payload: Some(serde_json::json!(one.order).to_string().into_bytes()),
            })
        })
        .collect::<Result<_>>()?;
    let mut portions: Vec<Vec<Entry>> = entries.chunks(ENTRIES).map(<[Entry]>::to_vec).collect();
    let last = portions.pop().unwrap_or_default();
    let (label, by) = (label.to_string(), wanted.by.clone());
    let request = Request { notify: wanted.notify.clone() };
    let create = move |tx: &mut Tx<'_>| {
        let now = tx.now();
        let catalog = Catalog::load(tx)?;
        let new = NewBatch {
            label: &label,
            pipeline: catalog.named(pipeline)?.id,
            collection: collection.as_deref(),
            submitter: &by,
            mode: "restore",
            priority: None,
        };
        let batch = batch::create(tx, now, &new)?;
        restoring::insert_request(tx, batch, &request)?;
        Ok::<_, Error>(batch)
    };
    let end = move |tx: &mut Tx<'_>, batch: BatchId| {
        let now = tx.now();
        let catalog = Catalog::load(tx)?;
        batch::fill(tx, &catalog, batch, &last)?;
        batch::accept(tx, now, batch)?;
        Ok::<_, Error>(batch)
    };
    if portions.is_empty() {
        return app.db.write_blocking(move |tx| create(tx).and_then(|batch| end(tx, batch)));
    }
    let batch = app.db.write_blocking(create)?;
    for portion in portions {
        app.db.write_blocking(move |tx| {
            let catalog = Catalog::load(tx)?;
            batch::fill(tx, &catalog, batch, &portion).map_err(Error::from)
        })?;
    }
    app.db.write_blocking(move |tx| end(tx, batch))
}
