//! `accession restore OBJECT…`: delivers what is kept, here and now or by workers.

mod show;

use super::app;
use super::ingest::work_on;
use super::notify::Timeout;
use crate::cli::Global;
use crate::error_code::ErrorCode;
use crate::exit::{Exit, Failure};
use crate::output;
use crate::session::os_user;
use archive::app::App;
use archive::intake::restoring::{self, Prepared, Said, To, Wanted};
use archive::model::restore::WantedForm;
use archive::stores::copies::Copies;
use queue::BatchId;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::sync::Arc;

#[derive(clap::Args)]
#[command(after_help = "Examples:
  accession restore box-17
  accession restore box-17 --version 1 --to box-17-before.tar
  accession restore box-17 --path 'data/letters/*' --to letters/
  accession restore box-17 --as bag --to s3://reading-room/out
  accession restore --collection maps --to /mnt/disk --as zip --enqueue
  accession restore --from objects.txt --to /mnt/disk --dry-run

Without --to, a package goes where the collection's `restore_to` says, else into the current directory.
Nothing is ever overwritten. Every byte is compared with its digest on the way, and what was delivered is
read again before it gets its name. Ends with 0 only if everything was delivered; what this process could
not finish is kept, and `accession work --until-empty` goes on with it.")]
pub struct Args {
    /// The objects: identifiers or local identifiers
    #[arg(value_name = "OBJECT", required_unless_present_any = ["from", "collection"])]
    objects: Vec<String>,
    /// Another version than the current one
    #[arg(long, value_name = "NUMBER")]
    version: Option<i64>,
    /// Only files whose paths match: `data/letters/*`, `data/**/*.tif`, a directory, or one file
    #[arg(long = "path", value_name = "PATTERN")]
    paths: Vec<String>,
    /// Where to: a directory, an archive file (.tar, .tar.gz, .zip) or s3://bucket/prefix
    #[arg(long, value_name = "PLACE")]
    to: Option<String>,
    /// directory, tar, tar.gz, zip, bag or ocfl (default: as the name of --to says, else a directory)
    #[arg(long = "as", value_name = "FORM", value_parser = parse_form)]
    form: Option<WantedForm>,
    /// Add PREMIS, ERC and Dublin Core to a bag
    #[arg(long)]
    metadata: bool,
    /// Restore the objects that a file names, one in each line
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
    /// Restore all objects of a collection
    #[arg(long, value_name = "NAME")]
    collection: Option<String>,
    /// Leave the work to workers, and print a receipt
    #[arg(long)]
    enqueue: bool,
    /// Say what would be delivered from where, and deliver nothing
    #[arg(long)]
    dry_run: bool,
    /// A mail address that gets the report, beside the collection's
    #[arg(long, value_name = "ADDRESS")]
    notify: Vec<String>,
    #[command(flatten)]
    timeout: Timeout,
}

fn parse_form(text: &str) -> Result<WantedForm, String> {
    WantedForm::parse(text).ok_or_else(|| format!("it is {}", WantedForm::NAMES))
}

pub fn run(args: Args, global: &Global) -> Result<Exit, Failure> {
    let (app, _) = match args.enqueue || args.dry_run {
        true => app::open_small(global)?,
        false => app::open(global, db::Options::default())?,
    };
    for address in &args.notify {
        archive::model::mail_address::check_address(address).map_err(|why| {
            Failure::refused(ErrorCode::BadAddress, format!("`{address}`: {why}"))
        })?;
    }
    let said = objects(&app, &args)?;
    let here = std::env::current_dir().ok().filter(|_| !args.enqueue);
    let wanted = Wanted {
        version: args.version,
        paths: args.paths.clone(),
        form: args.form.unwrap_or_default(),
        to: args.to.as_deref().map(To::parse).transpose()?,
        here,
        metadata: args.metadata,
        is_list: args.from.is_some() || args.collection.is_some(),
        by: os_user(),
        notify: args.notify.clone(),
    };
    let orders = restoring::prepare(&app, said, &wanted)?;
    if args.dry_run {
        return dry_run(&app, &orders, global);
    }
    let batch = restoring::accept(&app, &orders, &wanted, &label(&args, &orders))?;
    if args.enqueue {
        return receipt(batch, &orders, global);
    }
    let batches = app::block_on(work_on(&app, vec![batch], args.timeout.notify_timeout, global))??;
    show::result(&app, &batches[0], global)
}

/// Everything that is asked for, with the lines of a list.
fn objects(app: &Arc<App>, args: &Args) -> Result<Vec<Said>, Failure> {
    let mut said: Vec<Said> =
        args.objects.iter().map(|name| Said { name: name.clone(), line: None }).collect();
    if let Some(path) = &args.from {
        let unreadable =
            |e| Failure::refused(ErrorCode::UnreadableList, format!("{}: {e}", path.display()));
        let file = std::fs::File::open(path).map_err(unreadable)?;
        for (number, line) in BufReader::new(file).lines().enumerate() {
            let line = line.map_err(unreadable)?;
            let name = line.trim();
            if !name.is_empty() && !name.starts_with('#') {
                said.push(Said { name: name.to_string(), line: Some(number as u64 + 1) });
            }
        }
        if said.is_empty() {
            let message = format!("{} names no object; write one in each line", path.display());
            return Err(Failure::refused(ErrorCode::EmptyList, message));
        }
    }
    if let Some(collection) = &args.collection {
        said.extend(restoring::of_collection(app, collection)?);
    }
    Ok(said)
}

/// What people call the batch.
fn label(args: &Args, orders: &[Prepared]) -> String {
    match (&args.collection, &args.from, orders) {
        (_, _, [only]) => only.name.clone(),
        (Some(collection), _, _) => format!("collection {collection}"),
        (None, Some(path), _) => {
            path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
        }
        (None, None, orders) => output::count(orders.len(), "object"),
    }
}

fn receipt(batch: BatchId, orders: &[Prepared], global: &Global) -> Result<Exit, Failure> {
    let bytes: u64 = orders.iter().map(|one| one.bytes).sum();
    if global.json {
        let places: Vec<String> = orders.iter().map(|one| one.order.to.to_string()).collect();
        output::json(&serde_json::json!({
            "batch": batch, "objects": orders.len(), "bytes": bytes, "places": places,
        }))?;
        return Ok(Exit::Yes);
    }
    let objects = output::count(orders.len(), "object");
    output::line(&format!("batch {batch}: {objects}, {}", output::size(bytes)))?;
    for one in orders.iter().take(show::SHOWN) {
        let (name, to) = (&one.name, &one.order.to);
        output::line(&format!("  {}", output::printable(&format!("{name} to {to}"))))?;
    }
    if orders.len() > show::SHOWN {
        output::line(&format!("  and {} more", orders.len() - show::SHOWN))?;
    }
    if !global.quiet {
        anstream::eprintln!(
            "`accession work` delivers it; `accession batches show {batch}` shows how far it is"
        );
    }
    Ok(Exit::Yes)
}

/// What would be delivered, from which store.
fn dry_run(app: &Arc<App>, orders: &[Prepared], global: &Global) -> Result<Exit, Failure> {
    let mut list = global.json.then(|| output::JsonList::begin("restores")).transpose()?;
    let mut rows = Vec::new();
    for one in orders {
        let object = super::objects::find(app, &one.order.object)?;
        let copies = app::block_on(Copies::of(app, object, &one.order.by))??;
        let store = copies.stores().next().unwrap_or_default().to_string();
        let is_cold = copies.is_cold(&store);
        if let Some(list) = &mut list {
            list.push(&serde_json::json!({
                "object": one.order.object, "version": one.order.version, "name": one.name,
                "files": one.files, "bytes": one.bytes, "store": store, "thaw": is_cold,
                "as": show::form(&one.order), "to": one.order.to.to_string(),
            }))?;
            continue;
        }
        rows.push(vec![
            one.name.clone(),
            one.order.version.to_string(),
            one.files.to_string(),
            output::size(one.bytes),
            if is_cold { format!("{store}, thawed first") } else { store },
            show::form(&one.order),
            one.order.to.to_string(),
        ]);
    }
    match list {
        Some(list) => list.end()?,
        None => {
            output::table(&["object", "version", "files", "bytes", "from", "as", "to"], rows)?;
            let bytes: u64 = orders.iter().map(|one| one.bytes).sum();
            let objects = output::count(orders.len(), "object");
            output::line(&format!("{objects}, {}; nothing was delivered", output::size(bytes)))?;
        }
    }
    Ok(Exit::Yes)
}
