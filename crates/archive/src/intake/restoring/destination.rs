//! Where packages are delivered: the place that was asked for, or a name in it.

use crate::ErrorCode;
use crate::app::App;
use crate::model::error::{Error, Result};
use crate::model::restore::{Container, Destination};
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// A place as a person names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum To {
    /// A directory or a file of this machine.
    Path(PathBuf),
    /// `s3://bucket/prefix?…`.
    S3(String),
}

impl To {
    pub fn parse(text: &str) -> Result<To> {
        match text.split_once("://") {
            Some(("s3", _)) => {
                crate::transfer::fetch::check_credentials(text)?;
                store::S3Config::from_url(text).map_err(|error| {
                    Error::permanent(ErrorCode::BadDestination, format!("{text}: {error}"))
                })?;
                Ok(To::S3(text.to_string()))
            }
            Some(("file", path)) if path.starts_with('/') => Ok(To::Path(path.into())),
            Some((scheme, _)) if !scheme.contains('/') => Err(Error::permanent(
                ErrorCode::BadDestination,
                format!(
                    "nothing is delivered to {scheme}://; name a directory, a file or s3://bucket/prefix"
                ),
            )),
            _ if text.is_empty() => Err(Error::permanent(
                ErrorCode::BadDestination,
                "the destination is empty; name a directory, a file or s3://bucket/prefix",
            )),
            _ => Ok(To::Path(text.into())),
        }
    }

    /// The container that its name asks for.
    pub fn container(&self) -> Option<Container> {
        Container::of_name(match self {
            To::Path(path) => path.file_name()?.to_str()?,
            To::S3(url) => url.split('?').next()?,
        })
    }
}

/// What a place has to fit.
pub struct Wish<'a> {
    pub to: Option<&'a To>,
    pub here: Option<&'a Path>,
    /// It is one of many that go to the same place.
    pub several: bool,
    pub name: &'a str,
    pub identifier: &'a str,
    pub version: i64,
    pub container: Container,
    pub file: Option<&'a str>,
}

/// The exact place of a package. One that exists, or lies in a store, is refused.
pub fn choose(app: &App, wish: &Wish<'_>, taken: &mut HashSet<String>) -> Result<Destination> {
    let destination = match wish.to {
        Some(To::S3(url)) => in_bucket(url, wish)?,
        Some(To::Path(path)) => Destination::of_path(&local(path, wish))?,
        None => match wish.here {
            Some(here) => Destination::of_path(&here.join(wish.file_name(wish.several)))?,
            None => {
                return Err(Error::permanent(
                    ErrorCode::NoDestination,
                    "it is not said where to deliver; add --to, or set `restore_to` of the collection",
                ));
            }
        },
    };
    let destination = match taken.insert(destination.to_string()) {
        true => destination,
        // Objects of two collections may have the same name.
        false => {
            let other = short(wish.identifier);
            let name = format!("{}-{other}", wish.name);
            let wish = Wish { name: &name, several: true, ..*wish };
            let again = match wish.to {
                Some(To::S3(url)) => in_bucket(url, &wish)?,
                Some(To::Path(path)) => Destination::of_path(&local(path, &wish))?,
                None => Destination::of_path(
                    &wish.here.unwrap_or(Path::new(".")).join(wish.file_name(true)),
                )?,
            };
            if !taken.insert(again.to_string()) {
                return Err(Error::permanent(
                    ErrorCode::RestoredTwice,
                    format!("{} is named twice; name it once", wish.identifier),
                ));
            }
            again
        }
    };
    check(app, &destination)?;
    Ok(destination)
}

impl Wish<'_> {
    /// The name of the package in a directory.
    fn file_name(&self, with_version: bool) -> String {
        match (self.container, self.file) {
            (Container::File, Some(file)) if !self.several => {
                file.rsplit('/').next().unwrap_or(file).to_string()
            }
            (Container::File, Some(file)) => {
                let file = file.rsplit('/').next().unwrap_or(file);
                format!("{}-v{}-{file}", self.name, self.version)
            }
            (container, _) if with_version => {
                format!("{}-v{}{}", self.name, self.version, container.extension())
            }
            (container, _) => format!("{}{}", self.name, container.extension()),
        }
    }
}

/// As asked, unless the place can only be a directory that holds packages.
fn local(path: &Path, wish: &Wish<'_>) -> PathBuf {
    let is_folder = path.is_dir() || path.as_os_str().to_string_lossy().ends_with('/');
    match wish.several || (is_folder && wish.container != Container::Directory) {
        true => path.join(wish.file_name(true)),
        false => path.to_path_buf(),
    }
}

fn in_bucket(url: &str, wish: &Wish<'_>) -> Result<Destination> {
    if wish.container == Container::Directory {
        return Err(Error::permanent(
            ErrorCode::NoDirectoryInBucket,
            "a bucket has no directories that appear as a whole; add --as tar, tar.gz or zip",
        ));
    }
    let (place, options) = match url.split_once('?') {
        Some((place, options)) => (place, format!("?{options}")),
        None => (url, String::new()),
    };
    let is_named = !wish.several
        && !place.ends_with('/')
        && match wish.container {
            // Below the bucket; its own name is that of no file.
            Container::File => place.trim_start_matches("s3://").contains('/'),
            _ => Container::of_name(place).is_some(),
        };
    let (place, key) = match place.rsplit_once('/') {
        Some((above, key)) if is_named && above != "s3:/" => (above, key.to_string()),
        _ => (place.trim_end_matches('/'), wish.file_name(true)),
    };
    store::check_key(&key)
        .map_err(|error| Error::permanent(ErrorCode::BadDestination, error.to_string()))?;
    Ok(Destination::S3 { url: format!("{place}{options}"), key })
}

/// Refuses what exists and what lies in a store.
fn check(app: &App, destination: &Destination) -> Result<()> {
    let Some(path) = destination.path() else {
        let place = destination.to_string();
        let inside = app.stores.places().find(|(_, url)| {
            let root = url.split(['?', '#']).next().unwrap_or(url).trim_end_matches('/');
            root.starts_with("s3://")
                && place.strip_prefix(root).is_some_and(|rest| rest.starts_with('/'))
        });
        return match inside {
            Some((name, _)) => Err(in_store(&place, name)),
            None => Ok(()),
        };
    };
    if path.symlink_metadata().is_ok() {
        return Err(crate::delivery::local::taken(&path));
    }
    // The part of the path that is there says where it leads.
    let real = path.ancestors().find_map(|above| above.canonicalize().ok());
    for (name, url) in app.stores.places() {
        let root = url.strip_prefix("file://").unwrap_or(url);
        let Ok(root) = Path::new(root).canonicalize() else { continue };
        if real.as_ref().is_some_and(|real| real.starts_with(&root)) {
            return Err(in_store(&path.display().to_string(), name));
        }
    }
    Ok(())
}

fn in_store(place: &str, store: &str) -> Error {
    Error::permanent(
        ErrorCode::DestinationInStore,
        format!(
            "{place} lies in store {store}, in which only the archive writes; name another place with --to"
        ),
    )
}

/// What an object's package is called: its first local identifier, or the end of its identifier.
pub fn name_of(identifier: &str, local_ids: &[String]) -> String {
    let plain = |text: &str| {
        let name: String = text
            .chars()
            .map(|c| if c == '/' || c == '\\' || c.is_control() { '_' } else { c })
            .take(100)
            .collect();
        let name = name.trim_start_matches('.').trim().to_string();
        (!name.is_empty()).then_some(name)
    };
    let local = local_ids.first().and_then(|id| plain(id));
    local.unwrap_or_else(|| short(identifier))
}

/// The end of an identifier, as a file name.
fn short(identifier: &str) -> String {
    let end = identifier.trim_end_matches('/').rsplit('/').next().unwrap_or(identifier);
    end.chars().map(|c| if c.is_alphanumeric() || "-_.".contains(c) { c } else { '_' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wish<'a>(container: Container, several: bool) -> Wish<'a> {
        Wish {
            to: None,
            here: None,
            several,
            name: "box-17",
            identifier: "ark:/99999/fk4x",
            version: 2,
            container,
            file: None,
        }
    }

    #[test]
    fn packages_in_buckets_are_named_as_asked_or_after_the_object() {
        let place = |url: &str, wish: &Wish<'_>| match in_bucket(url, wish).unwrap() {
            Destination::S3 { url, key } => (url, key),
            other => panic!("{other}"),
        };
        let tar = wish(Container::Tar, false);
        for (url, wanted) in [
            ("s3://b/out?region=x", ("s3://b/out?region=x", "box-17-v2.tar")),
            ("s3://b/out/", ("s3://b/out", "box-17-v2.tar")),
            ("s3://b", ("s3://b", "box-17-v2.tar")),
            ("s3://b/out/a.tar?region=x", ("s3://b/out?region=x", "a.tar")),
        ] {
            assert_eq!(place(url, &tar), (wanted.0.to_string(), wanted.1.to_string()), "{url}");
        }
        let many = wish(Container::Tar, true);
        assert_eq!(place("s3://b/a.tar", &many).1, "box-17-v2.tar");
        assert!(in_bucket("s3://b/out", &wish(Container::Directory, false)).is_err());
    }

    #[test]
    fn names_of_objects_are_names_of_files() {
        let name = |ids: &[&str]| {
            name_of("ark:/99999/fk4x", &ids.iter().map(ToString::to_string).collect::<Vec<_>>())
        };
        assert_eq!(name(&[]), "fk4x");
        assert_eq!(name(&["a/b"]), "a_b");
        assert_eq!(name(&["..", "x"]), "fk4x");
        assert_eq!(name(&[".hidden"]), "hidden");
    }
}
