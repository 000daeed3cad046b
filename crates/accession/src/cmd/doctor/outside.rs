//! What may be elsewhere: stores, watched places and the mail server.

use super::Finding;
use crate::cmd::store::round_trip;
use crate::output;
use archive::config::{Config, StoreSection};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use store::{ListOptions, LocalOptions, LocalStore, Store};

/// A place that does not answer must not keep the others from being looked at.
const PATIENCE: Duration = Duration::from_secs(30);
/// Less than this share left is worth a warning.
const SPACE_LEFT_PERCENT: u64 = 5;

pub async fn all(config: &Config, data: &Path) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (name, section) in &config.stores {
        let what = format!("store {name}");
        findings.push(match tokio::time::timeout(PATIENCE, store(&what, section, data)).await {
            Ok(finding) => finding,
            Err(_) => late(what, format!("stores.{name}.url")),
        });
    }
    for (at, watch) in config.watch.iter().enumerate() {
        let what = format!("watch {at}");
        findings.push(match tokio::time::timeout(PATIENCE, watched(&what, &watch.path)).await {
            Ok(finding) => finding,
            Err(_) => late(what, format!("watch.{at}.path")),
        });
    }
    findings.push(mail(config).await);
    findings
}

fn late(what: String, key: String) -> Finding {
    let found = format!("does not answer within {} s", PATIENCE.as_secs());
    Finding::problem(what, found, format!("check {key} and the network"))
}

async fn store(what: &str, section: &StoreSection, data: &Path) -> Finding {
    let path = Path::new(section.url.strip_prefix("file://").unwrap_or(&section.url));
    if !section.url.starts_with("s3://") && !path.exists() {
        let found =
            format!("{} is not there yet; it is made when it is first needed", path.display());
        return match path.starts_with(data) {
            true => Finding::ok(what, found),
            false => {
                Finding::warning(what, found, "if it is a disk of its own, mount it; else make it")
            }
        };
    }
    let fix = "check its url, that it exists, and that this user may write to it; `accession store check` says more";
    let opened = match open(&section.address()).await {
        Ok(store) => store,
        Err(error) => return Finding::problem(what, error.to_string(), fix),
    };
    let (put, get) = match round_trip(opened.as_ref()).await {
        Ok(times) => times,
        Err(error) => return Finding::problem(what, error.to_string(), fix),
    };
    let ms = |duration: Duration| duration.as_secs_f64() * 1e3;
    let mut found = format!("{}: put {:.1} ms, get {:.1} ms", opened.url(), ms(put), ms(get));
    let missing = missing(opened.as_ref());
    match opened.free_space().await {
        Ok(Some(space)) => {
            found.push_str(&format!(
                ", {} free of {}",
                output::size(space.available),
                output::size(space.total)
            ));
            if space.available < space.total / 100 * SPACE_LEFT_PERCENT {
                return Finding::warning(what, found, "make room: it is nearly full");
            }
        }
        Ok(None) => {}
        Err(error) => return Finding::problem(what, error.to_string(), fix),
    }
    match missing {
        Some(missing) => Finding::warning(
            what,
            format!("{found}; {missing}"),
            "see docs/stores.md; it works, with more reading",
        ),
        None => Finding::ok(what, found),
    }
}

/// Opens a store as ingest does, so that a look leaves nothing in it that does not belong there.
async fn open(url: &str) -> store::Result<Arc<dyn Store>> {
    if url.starts_with("s3://") {
        // What a worker found out and remembered, without trying anything out here.
        let config = store::S3Config::from_url(url)?;
        let remembered = Some(ocfl::StorageRoot::SUPPORT);
        return Ok(Arc::new(store::S3Store::connect(config, remembered).await?));
    }
    let path = Path::new(url.strip_prefix("file://").unwrap_or(url));
    let temporaries = ocfl::StorageRoot::TEMPORARIES.to_owned();
    let options = LocalOptions { temporaries, ..LocalOptions::default() };
    Ok(Arc::new(LocalStore::open_with(path, &options)?))
}

/// What a store cannot do that makes work slower or less safe.
fn missing(store: &dyn Store) -> Option<&'static str> {
    let can = store.capabilities();
    if !can.rename && !can.put_if_absent {
        return Some(
            "it cannot refuse to replace an object, so only the queue's locks keep writers apart",
        );
    }
    if !can.rename && !can.digests {
        return Some("it keeps no checksums, so verifying reads every byte back");
    }
    None
}

async fn watched(what: &str, path: &str) -> Finding {
    let fix = "make it, and let this user read it";
    if !path.starts_with("s3://") {
        return match std::fs::read_dir(path.strip_prefix("file://").unwrap_or(path)) {
            Ok(_) => Finding::ok(what, path),
            Err(error) => Finding::problem(what, format!("{path}: {error}"), fix),
        };
    }
    let listed = match store::open(path).await {
        Ok(store) => store.list("", &ListOptions { limit: 1, ..ListOptions::default() }).await,
        Err(error) => Err(error),
    };
    match listed {
        Ok(_) => Finding::ok(what, path),
        Err(error) => Finding::problem(what, error.to_string(), fix),
    }
}

async fn mail(config: &Config) -> Finding {
    let Some(section) = &config.mail else {
        return Finding::ok("mail", "not configured: no mail is sent");
    };
    let settings = archive::pipeline::outbox::sending::mail_settings(section);
    match archive::transfer::mail::probe(&settings).await {
        Ok(()) => Finding::ok("mail", format!("{}:{} takes mail", section.host, section.port())),
        Err(error) => Finding::problem(
            "mail",
            error.to_string(),
            "check [mail], and that the server can be reached from here",
        ),
    }
}
