//! `accession deposit PATH|URL…`: something is handed over, and a receipt is given at once.

use super::app;
use super::same_name::{self, Asking};
use super::waiting::{say_why_it_waits, show_batches, wait};
use crate::cli::Global;
use crate::exit::{Exit, Failure};
use crate::output;
use crate::session::os_user;
use archive::app::App;
use archive::intake::accept::{NewDeposit, Receipt};
use archive::intake::received::{Received, kind_of};
use archive::metadata::Metadata;
use archive::model::deposit_kind::DepositKind;
use archive::model::item::{ExpectedDigest, Mode, Source, Update};
use archive::package::kind;
use archive::registry::deposit::Options;
use queue::BatchId;
use std::ffi::OsString;
use std::sync::Arc;

#[derive(clap::Args)]
#[command(after_help = "Examples:
  accession deposit box-17.tar.gz --collection maps
  accession deposit letters/ --who 'Ada Lovelace' --what 'Letters, 1842'
  accession deposit letters/ --what '' --dc subject=
  accession deposit https://example.org/batch.checkm --collection maps --wait
  accession deposit box-17.zip --digest sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08 --mode update
  accession deposit box-17.tar --check

A deposit is a file, a directory, an archive (tar, tar.gz, tar.bz2, tar.zst, zip; a bag or not), or
a manifest (Checkm or JSON). Local files are read where they are: leave them there until the
deposit is done. `accession work` does the work.

Which object it is: --id, else --local-id, else External-Identifier in bag-info.txt, else the
package's name. A name alone takes no files from an object that came from another place: say
--mode update --local-id NAME for a new version of it, or --local-id OTHER for another object.

What a deposit does not say of who, what, when, where and Dublin Core stays as the version before has
it; an empty value removes it.")]
pub struct Args {
    /// What to deposit
    #[arg(required = true, value_name = "PATH|URL")]
    sources: Vec<OsString>,
    #[command(flatten)]
    how: How,
    /// Wait until it is done, and say how it ended
    #[arg(long, conflicts_with = "check")]
    wait: bool,
    /// Say everything that would be wrong with it, and deposit nothing
    #[arg(long)]
    check: bool,
}

/// What is said of a deposit.
#[derive(clap::Args, Clone)]
pub struct How {
    /// The collection it belongs to
    #[arg(long, short, default_value = "default", value_name = "NAME")]
    pub collection: String,
    /// Whether its objects are there already: new, update or either
    #[arg(long, default_value = "either", value_parser = parse_mode)]
    mode: Mode,
    /// Whether files it does not have leave the new version: replace or add (default: the
    /// collection's choice)
    #[arg(long, value_parser = parse_update)]
    update: Option<Update>,
    /// Who deposits (default: the operating system's user)
    #[arg(long, value_name = "NAME")]
    submitter: Option<String>,
    /// The digest it must have: ALGORITHM:HEX
    #[arg(long, value_parser = parse_digest, value_name = "ALGORITHM:HEX")]
    digest: Option<ExpectedDigest>,
    /// The object's identifier; it decides which object it is
    #[arg(long, value_name = "ARK")]
    id: Option<String>,
    /// An identifier of your own; decides where no --id is given (may be given several times)
    #[arg(long = "local-id", value_name = "ID")]
    local_ids: Vec<String>,
    /// What it is, where that cannot be seen: file, directory, container or manifest
    #[arg(long, value_parser = parse_kind)]
    kind: Option<DepositKind>,
    /// Who made it; '' removes what an earlier version says, and so for what, when and where
    #[arg(long)]
    who: Option<String>,
    /// What it is called
    #[arg(long)]
    what: Option<String>,
    /// When it was made
    #[arg(long)]
    when: Option<String>,
    /// Where it is or was
    #[arg(long = "where")]
    place: Option<String>,
    /// A Dublin Core element: creator=Ada Lovelace (may be given several times); creator= removes it
    #[arg(long, value_name = "ELEMENT=VALUE")]
    dc: Vec<String>,
    /// Who gets the report by mail, beside those the collection names
    #[arg(long, value_name = "ADDRESS")]
    notify: Vec<String>,
}

fn parse_mode(text: &str) -> Result<Mode, String> {
    match text {
        "new" => Ok(Mode::New),
        "update" => Ok(Mode::Update),
        "either" => Ok(Mode::Either),
        _ => Err("it is new, update or either".to_string()),
    }
}

fn parse_update(text: &str) -> Result<Update, String> {
    match text {
        "replace" => Ok(Update::Replace),
        "add" => Ok(Update::Add),
        _ => Err("it is replace or add".to_string()),
    }
}

fn parse_kind(text: &str) -> Result<DepositKind, String> {
    let wrong = || "it is file, directory, container or manifest".to_string();
    DepositKind::from_name(text).ok_or_else(wrong)
}

fn parse_digest(text: &str) -> Result<ExpectedDigest, String> {
    let wrong = || "write it as ALGORITHM:HEX, such as sha256:9f86d081…".to_string();
    let (algorithm, digest) = text.split_once(':').ok_or_else(wrong)?;
    let known: bagit::Algorithm = algorithm.parse().map_err(|_| {
        format!("`{algorithm}` is not known; use md5, sha1, sha256, sha512 or blake2b-512")
    })?;
    if digest.len() != known.digest_len() * 2 || !digest.bytes().all(|b| b.is_ascii_hexdigit()) {
        return Err(format!("a {known} digest has {} hexadecimal digits", known.digest_len() * 2));
    }
    Ok(ExpectedDigest { algorithm: known.name().to_string(), digest: digest.to_ascii_lowercase() })
}

impl How {
    pub fn options(&self) -> Result<Options, Failure> {
        let mut metadata = Metadata {
            who: self.who.clone(),
            what: self.what.clone(),
            when: self.when.clone(),
            where_: self.place.clone(),
            ..Metadata::default()
        };
        for pair in &self.dc {
            let (element, value) = pair.split_once('=').ok_or_else(|| {
                Failure::refused(
                    queue::ErrorCode::BadInput,
                    format!("`{pair}` is not ELEMENT=VALUE, as in creator=Ada Lovelace"),
                )
            })?;
            metadata.say_dc(element, value)?;
        }
        for address in &self.notify {
            archive::model::mail_address::check_address(address)?;
        }
        let identifier = self.id.as_deref().map(archive::identifier::normalise).transpose()?;
        Ok(Options {
            mode: self.mode,
            update: self.update,
            identifier,
            local_ids: self.local_ids.clone(),
            claimed: self.digest.clone(),
            metadata: metadata.checked()?,
            kind: self.kind,
            notify: self.notify.clone(),
            place: None,
            fingerprint: None,
        })
    }

    pub fn submitter(&self) -> String {
        self.submitter.clone().unwrap_or_else(os_user)
    }
}

pub fn run(args: Args, global: &Global) -> Result<Exit, Failure> {
    let (app, _) = app::open_small(global)?;
    if args.check {
        return super::check_deposit::run(&app, &args.sources, &args.how, global);
    }
    let asking = Asking { command: "deposit", never: global.json };
    let receipts = accept(&app, &args.sources, &args.how, asking)?;
    if !args.wait {
        show_receipts(&receipts, global)?;
        return Ok(Exit::Yes);
    }
    if !global.json {
        show_receipts(&receipts, global)?;
    }
    let ids: Vec<BatchId> = receipts.iter().map(|r| r.batch).collect();
    let waited = app::block_on(async {
        let said =
            (!global.quiet).then(|| tokio::spawn(say_why_it_waits(app.clone(), ids.clone(), true)));
        let waited = wait(&app, ids).await;
        if let Some(said) = said {
            said.abort();
        }
        waited
    })?;
    show_batches(&app, &waited?, global)
}

/// Accepts all that is named, or none of it: what cannot be read is found before.
pub fn accept(
    app: &Arc<App>,
    sources: &[OsString],
    how: &How,
    asking: Asking<'_>,
) -> Result<Vec<Receipt>, Failure> {
    let options = how.options()?;
    if sources.len() > 1
        && (options.identifier.is_some()
            || options.claimed.is_some()
            || !options.local_ids.is_empty())
    {
        return Err(Failure::refused(
            queue::ErrorCode::BadInput,
            "--id, --local-id and --digest are about one object; deposit one at a time with them",
        ));
    }
    let mut received = Received::new(&app.settings.payloads);
    for text in sources {
        let named = Source::parse(text)?;
        let source = kind::resolved(&named).map_err(|e| refused(&named, e))?;
        let kind = kind_of(&source, &options).map_err(|e| refused(&source, e))?;
        let mut options = options.clone();
        same_name::settle(app, &how.collection, &source, kind, &mut options, asking)?;
        let new = NewDeposit {
            collection: how.collection.clone(),
            submitter: how.submitter(),
            name: named.file_name(),
            source: source.clone(),
            payload: None,
            options,
        };
        received.add(kind, new).map_err(|e| refused(&source, e))?;
    }
    Ok(received.accept(&app.db)?)
}

/// What is wrong with a path, to who has just named it: there is no job to requeue yet.
pub fn refused(source: &Source, error: archive::Error) -> Failure {
    match error.own_code() {
        Some(archive::ErrorCode::PackageMissing) => Failure::refused(
            archive::ErrorCode::PackageMissing,
            format!("{source} is not there; nothing was deposited, check the path"),
        ),
        Some(archive::ErrorCode::PackageForbidden) => Failure::refused(
            archive::ErrorCode::PackageForbidden,
            format!("{source} may not be read by this user; nothing was deposited, let it be read"),
        ),
        _ => error.into(),
    }
}

fn show_receipts(receipts: &[Receipt], global: &Global) -> Result<(), Failure> {
    if global.json {
        let own = receipts.iter().map(|receipt| output::with_own_id(receipt, "batch"));
        let own: Vec<_> = own.collect::<std::io::Result<_>>()?;
        return Ok(output::json_list("deposits", &own, None)?);
    }
    for receipt in receipts {
        output::line(&format!(
            "batch {}: {} was received for collection {}",
            receipt.batch,
            output::printable(&receipt.name),
            output::printable(&receipt.collection)
        ))?;
    }
    Ok(())
}
