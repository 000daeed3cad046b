//! What a configuration must keep to beyond its form.

use super::allow::Allowed;
use super::origin::flatten;
use super::sections::{AllowPrivate, Config};
use super::settings::setting;
use crate::model::profile::is_address;
use serde_json::Value;

/// Something that is wrong with one setting. The message follows the key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    pub key: String,
    pub message: String,
}

impl Problem {
    pub fn new(key: impl Into<String>, message: impl Into<String>) -> Problem {
        Problem { key: key.into(), message: message.into() }
    }
}

/// Numbers below `prefix` that are out of bounds.
pub fn check_bounds(prefix: &str, tree: &Value) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (key, value) in flatten(tree) {
        let bounds = setting(&format!("{prefix}{key}")).and_then(|setting| setting.bounds);
        let (Some((least, largest)), Some(_)) = (bounds, value.as_number()) else { continue };
        if value.as_i64().is_none_or(|number| number < least || number > largest) {
            problems.push(Problem::new(
                key,
                format!("is {value} but must be between {least} and {largest}"),
            ));
        }
    }
    problems
}

/// Names of stores, collections, work spaces and checks are used in keys, paths and messages.
pub fn check_name(name: &str) -> Result<(), String> {
    let good = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(good)
        && name.len() <= 64
    {
        return Ok(());
    }
    Err(format!(
        "`{name}` cannot be a name; use up to 64 letters, digits, `-` and `_`, beginning with a letter or digit"
    ))
}

impl Config {
    /// Everything that is wrong with it, once defaults are filled in. `stages` are those that can
    /// have settings.
    pub fn problems(&self, stages: &[&str]) -> Vec<Problem> {
        let mut found = check_bounds("", &serde_json::json!(self));
        self.check_names(stages, &mut found);
        self.check_values(&mut found);
        for (name, profile) in &self.collections {
            let own = profile.problems().into_iter();
            // Bounds were seen above.
            let own = own.filter(|p| !p.message.contains("must be between"));
            found.extend(
                own.map(|p| Problem::new(format!("collections.{name}.{}", p.key), p.message)),
            );
            found.extend(
                self.problems_here(profile)
                    .into_iter()
                    .map(|p| Problem::new(format!("collections.{name}.{}", p.key), p.message)),
            );
        }
        found
    }

    /// What is wrong with a profile beside this configuration, such as a store it does not have.
    pub fn problems_here(&self, profile: &crate::model::profile::Profile) -> Vec<Problem> {
        let mut found = Vec::new();
        for (key, names) in [("stores", &profile.stores), ("later_stores", &profile.later_stores)] {
            for name in names.iter().filter(|name| !self.stores.contains_key(*name)) {
                found.push(Problem::new(key, format!("names the store `{name}`, which is not configured; add [stores.{name}] or name one of: {}", self.names(&self.stores))));
            }
        }
        if profile.identifiers == crate::model::profile::Identifiers::Ezid
            && self.identifiers.ezid.is_none()
        {
            found.push(Problem::new("identifiers", "is `ezid`, but [identifiers.ezid] is not configured; add it with url, user, password_file and shoulder"));
        }
        if profile.required_stores(self.stores.keys()).is_empty() {
            found.push(Problem::new(
                "stores",
                "leaves no store that a version must be in; name at least one",
            ));
        }
        found
    }

    fn names<T>(&self, map: &std::collections::BTreeMap<String, T>) -> String {
        map.keys().map(String::as_str).collect::<Vec<_>>().join(", ")
    }

    fn check_names(&self, stages: &[&str], found: &mut Vec<Problem>) {
        let stores = self.stores.keys().map(|name| ("stores", name));
        let collections = self.collections.keys().map(|name| ("collections", name));
        let work_space = [("work_space.name", &self.work_space.name)];
        for (section, name) in stores.chain(collections).chain(work_space) {
            if let Err(message) = check_name(name) {
                found.push(Problem::new(section, message));
            }
        }
        for name in self.stages.keys().filter(|name| !stages.contains(&name.as_str())) {
            let all = stages.join(", ");
            found.push(Problem::new(
                format!("stages.{name}"),
                format!("is no stage; there are {all}"),
            ));
        }
        for (at, watch) in self.watch.iter().enumerate() {
            let key = format!("watch.{at}");
            match &watch.collection {
                Some(name) => {
                    if let Err(message) = check_name(name) {
                        found.push(Problem::new(format!("{key}.collection"), message));
                    }
                }
                None if !watch.prefix_is_collection => found.push(Problem::new(
                    key,
                    "says no collection; add collection = \"NAME\" or prefix_is_collection = true",
                )),
                None => {}
            }
            if self.watch[..at].iter().any(|other| other.path == watch.path) {
                found.push(Problem::new(
                    format!("watch.{at}.path"),
                    format!("`{}` is watched twice; watch it once", watch.path),
                ));
            }
        }
    }

    fn check_values(&self, found: &mut Vec<Problem>) {
        let mut say = |key: &str, message: String| found.push(Problem::new(key, message));
        if self.work_space.stop_percent < self.work_space.admit_percent {
            say(
                "work_space.stop_percent",
                format!(
                    "is {}, which is below admit_percent ({}); make it at least as large",
                    self.work_space.stop_percent, self.work_space.admit_percent
                ),
            );
        }
        if let AllowPrivate::Only(list) = &self.fetch.allow_private {
            for text in list {
                if let Err(message) = text.parse::<Allowed>() {
                    say("fetch.allow_private", message);
                }
            }
        }
        for (name, store) in &self.stores {
            let s3_only = [
                ("storage_class", store.storage_class.is_some()),
                ("inventory_storage_class", store.inventory_storage_class.is_some()),
                ("concurrency", store.concurrency.is_some()),
                ("sse", store.sse.is_some()),
                ("sse_kms_key_id", store.sse_kms_key_id.is_some()),
            ];
            let is_s3 = store.url.starts_with("s3://");
            for (key, _) in s3_only.into_iter().filter(|(_, given)| *given && !is_s3) {
                say(
                    &format!("stores.{name}.{key}"),
                    "is for stores of S3, and this one is a directory; remove it".to_string(),
                );
            }
            let own = store.inventory_storage_class.as_deref().map(store::StorageClass::new);
            if own.is_some_and(|class| class.is_cold()) {
                say(
                    &format!("stores.{name}.inventory_storage_class"),
                    "is a class that cannot be read at once, and inventories have to be; choose STANDARD, STANDARD_IA or GLACIER_IR".to_string(),
                );
            }
            let kinds = ["AES256", "aws:kms", "aws:kms:dsse"];
            if store.sse.as_deref().is_some_and(|sse| !kinds.contains(&sse)) {
                say(&format!("stores.{name}.sse"), format!("must be one of {}", kinds.join(", ")));
            }
        }
        let places = self.stores.iter().map(|(name, s)| (format!("stores.{name}.url"), &s.url));
        let places = places.chain(
            self.watch.iter().enumerate().map(|(at, w)| (format!("watch.{at}.path"), &w.path)),
        );
        for (key, place) in places {
            let scheme = place.split_once("://").map(|(scheme, _)| scheme);
            if scheme.is_some_and(|scheme| !matches!(scheme, "file" | "s3")) || place.is_empty() {
                say(&key, format!("`{place}` is neither a directory nor s3://bucket/prefix"));
            }
        }
        if let Some(mail) = &self.mail {
            let operators = mail.operators.iter().map(|address| ("mail.operators", address));
            for (key, address) in operators.chain([("mail.from", &mail.from)]) {
                if !is_address(address) {
                    say(key, format!("`{address}` is not a mail address"));
                }
            }
            if mail.user.is_some() != mail.password_file.is_some() {
                say(
                    "mail.user",
                    "and mail.password_file belong together; give both or neither".into(),
                );
            }
        }
        let ids = &self.identifiers;
        if ids.naan.is_empty() || !ids.naan.chars().all(|c| c.is_ascii_alphanumeric()) {
            say(
                "identifiers.naan",
                format!("`{}` is not a NAAN, which is a number such as 12345", ids.naan),
            );
        }
        if !ids.shoulder.chars().all(|c| c.is_ascii_alphanumeric()) || ids.shoulder.len() > 16 {
            say(
                "identifiers.shoulder",
                format!("`{}` is not a shoulder; use up to 16 letters and digits", ids.shoulder),
            );
        }
        if let Some(ezid) = &ids.ezid {
            if !ezid.url.starts_with("https://") && !ezid.url.starts_with("http://") {
                say(
                    "identifiers.ezid.url",
                    format!("`{}` is not an http:// or https:// URL", ezid.url),
                );
            }
            if !ezid.shoulder.starts_with("ark:/") {
                say(
                    "identifiers.ezid.shoulder",
                    format!(
                        "`{}` does not begin with ark:/; write it as ark:/99999/fk4",
                        ezid.shoulder
                    ),
                );
            }
        }
    }
}
