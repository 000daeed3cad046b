//! What the database has, beside what is configured: collections, copies and stores.

use super::Finding;
use crate::cli::Global;
use crate::exit::Failure;
use crate::session::{Session, data_directory};
use archive::config::Config;
use archive::registry::collection::{self, Collection};
use archive::registry::placed;
use archive::stores::Stores;
use std::collections::BTreeSet;

pub fn all(config: &Config, global: &Global) -> Result<Vec<Finding>, Failure> {
    let (session, data) = (Session::open(global)?, data_directory(global)?);
    let wanted = config.clone();
    let looked = session.db.read_blocking(move |tx| -> archive::Result<_> {
        // A collection that the configuration names is as it is there.
        let mut collections = collection::list(tx)?;
        for (name, profile) in &wanted.collections {
            collections.retain(|collection| collection.name != *name);
            collections.push(Collection {
                name: name.clone(),
                profile: profile.clone(),
                created_at: 0,
                created_by: String::new(),
                updated_at: 0,
            });
        }
        let lost = placed::check_configured(tx, &wanted, &data).err();
        let missing = placed::stores_not_configured(tx, &wanted)?;
        Ok((collections, placed::stores_with_copies(tx)?, missing, lost, data.clone()))
    });
    let (collections, with_copies, missing, lost, data) = looked?;
    let mut findings = Vec::new();
    findings.extend(unknown(config, &session)?);
    findings.extend(untold(config, &collections));
    findings.extend(unused(config, &collections, &with_copies));
    match lost {
        Some(error) => findings.push(Finding::problem(
            "stores",
            error.to_string(),
            format!("add {}", lines(&missing, &data)),
        )),
        None if !missing.is_empty() => findings.push(Finding::warning(
            "stores",
            format!(
                "the registry has copies in {}, not configured: these copies are neither read nor checked; every object has another",
                missing.join(", ")
            ),
            format!("add {}", lines(&missing, &data)),
        )),
        None => {}
    }
    Ok(findings)
}

fn lines(missing: &[String], data: &std::path::Path) -> String {
    missing.iter().map(|name| placed::lines_for(name, data)).collect::<Vec<_>>().join(", ")
}

/// A database that is new beside stores that are not. A store that does not answer has a finding of its own.
fn unknown(config: &Config, session: &Session) -> Result<Option<Finding>, Failure> {
    let runtime = tokio::runtime::Runtime::new()?;
    let stores = Stores::configured(config);
    let older = runtime.block_on(placed::older_store(&session.db, &stores)).ok().flatten();
    Ok(older.map(|store| {
        Finding::problem(
            "registry",
            placed::advice(&store),
            format!("accession registry rebuild --from {store}"),
        )
    }))
}

/// Collections that promise mail where none is sent.
fn untold(config: &Config, collections: &[Collection]) -> Option<Finding> {
    if config.mail.is_some() {
        return None;
    }
    let promise = |c: &&Collection| !c.profile.notify.is_empty();
    let names: Vec<&str> = collections.iter().filter(promise).map(|c| c.name.as_str()).collect();
    (!names.is_empty()).then(|| {
        Finding::warning(
            "notify",
            format!("{} should tell people by mail (notify), and none is sent", names.join(", ")),
            "add [mail] with host and from, or take `notify` away",
        )
    })
}

/// Stores that nothing goes to, or nothing went to although there are objects.
fn unused(config: &Config, collections: &[Collection], with_copies: &[String]) -> Vec<Finding> {
    let mut used = BTreeSet::new();
    for Collection { profile, .. } in collections {
        used.extend(profile.required_stores(config.stores.keys()));
        used.extend(profile.later_stores.iter().map(String::as_str));
    }
    // Before the first command of the archive there is no collection yet.
    let has_collections = !collections.is_empty();
    let of_store = |name: &String| {
        let what = format!("store {name}");
        match with_copies.contains(name) {
            false if has_collections && !used.contains(name.as_str()) => Some(Finding::warning(
                what,
                "no collection keeps anything in it",
                format!("name it in a collection's `stores`, or take [stores.{name}] away"),
            )),
            false if !with_copies.is_empty() => Some(Finding::warning(
                what,
                format!("no object is in it, and there are objects in {}", with_copies.join(", ")),
                "see that its url is right; objects that exist are not copied to it, and new versions of them are refused while their collection keeps them there too: name `stores` in the collection",
            )),
            _ => None,
        }
    };
    config.stores.keys().filter_map(of_store).collect()
}
