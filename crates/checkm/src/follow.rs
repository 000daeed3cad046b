//! Inclusions: a row that begins with `@` names another manifest whose rows belong there too.
//! Those in files beside the manifest can be followed; what is at a URL is for others to fetch.

use crate::code::Code;
use crate::error::Error;
use crate::layout::Header;
use crate::options::Options;
use crate::reader::Reader;
use crate::report::{Place, Report, excerpt};
use crate::scan::digest_of;
use crate::url;
use std::collections::HashSet;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

/// How deep manifests may include each other.
const DEPTH_MAX: usize = 16;
/// How many manifests one may include, directly or not.
const MANIFESTS_MAX: usize = 10_000;

/// A manifest that was read, and what was found in it.
#[derive(Debug)]
pub struct Followed {
    /// Where it is: the path asked for, or that path's directory and what the row says.
    pub path: PathBuf,
    /// What was found in it, its inclusions among it.
    pub report: Report,
    /// Its header, if it could be read that far.
    pub header: Option<Header>,
}

/// Checks a manifest and all that it includes, each once; `visit` hears of one after another, an
/// including manifest before those that it includes.
///
/// Only files in the directory of the first manifest, or below, are read: a manifest comes from a
/// stranger, and must not tell what else is on this machine.
pub fn follow<E: From<Error>>(
    path: &Path,
    options: &Options,
    visit: impl FnMut(Followed) -> Result<(), E>,
) -> Result<(), E> {
    let canonical = path.canonicalize().map_err(Error::Read)?;
    let root = canonical.parent().unwrap_or(Path::new("/")).to_owned();
    let mut tree = Tree { options, root, seen: HashSet::from([canonical.clone()]), visit };
    tree.manifest(path, &mut vec![canonical])
}

/// A row that includes a manifest.
struct Inclusion {
    place: Place,
    source: String,
    algorithm: Option<String>,
    digest: Option<String>,
    size: Option<u64>,
}

type Flaw = (Code, String);

struct Tree<'a, V> {
    options: &'a Options,
    root: PathBuf,
    seen: HashSet<PathBuf>,
    visit: V,
}

impl<V> Tree<'_, V> {
    /// Reads one manifest, and then what it includes. `above` are the manifests that led here.
    fn manifest<E: From<Error>>(&mut self, path: &Path, above: &mut Vec<PathBuf>) -> Result<(), E>
    where
        V: FnMut(Followed) -> Result<(), E>,
    {
        let (mut report, header, inclusions) = self.read(path)?;
        let directory = path.parent().unwrap_or(Path::new(""));
        let mut children = Vec::new();
        for inclusion in inclusions {
            match self.find(directory, &inclusion, above, &mut report) {
                Ok(Some(child)) => children.push(child),
                Ok(None) => {}
                Err((code, message)) => {
                    report.add(code, inclusion.place, Some("source"), || message);
                }
            }
        }
        (self.visit)(Followed { path: path.to_owned(), report, header })?;
        for (child, canonical) in children {
            above.push(canonical);
            self.manifest(&child, above)?;
            above.pop();
        }
        Ok(())
    }

    fn read(&self, path: &Path) -> Result<(Report, Option<Header>, Vec<Inclusion>), Error> {
        let file = File::open(path).map_err(Error::Read)?;
        let mut reader = Reader::new(BufReader::with_capacity(256 << 10, file), self.options)?;
        reader.is_followed = true;
        let mut inclusions = Vec::new();
        let owned = |text: &Option<std::borrow::Cow<'_, str>>| text.as_deref().map(str::to_owned);
        while reader.step(&mut |row, _| {
            if let Some(source) = row.source.as_deref().filter(|_| row.include)
                && inclusions.len() <= MANIFESTS_MAX
            {
                inclusions.push(Inclusion {
                    place: row.place,
                    source: source.to_owned(),
                    algorithm: owned(&row.algorithm),
                    digest: owned(&row.digest),
                    size: row.size,
                });
            }
            Ok(())
        })? {}
        let (report, header) = reader.finish_with_header()?;
        Ok((report, header, inclusions))
    }

    /// Finds an included manifest: none if it has been read already.
    fn find(
        &mut self,
        directory: &Path,
        inclusion: &Inclusion,
        above: &[PathBuf],
        report: &mut Report,
    ) -> Result<Option<(PathBuf, PathBuf)>, Flaw> {
        let shown = excerpt(&inclusion.source);
        if url::is_url(&inclusion.source) {
            let message = format!("{shown:?} is at a URL, and was not read");
            return Err((Code::IncludeRemote, message));
        }
        let path = directory.join(&inclusion.source);
        let missing = |why: String| (Code::IncludeMissing, format!("{shown:?}: {why}"));
        let canonical = path.canonicalize().map_err(|e| missing(e.to_string()))?;
        if !canonical.starts_with(&self.root) {
            let message = format!("{shown:?} leads out of the directory of the first manifest");
            return Err((Code::IncludeOutside, message));
        }
        if !canonical.is_file() {
            return Err(missing("it is not a file".into()));
        }
        if above.contains(&canonical) {
            let message = format!("{shown:?} includes this manifest, directly or by others");
            return Err((Code::IncludeCycle, message));
        }
        if above.len() > DEPTH_MAX || self.seen.len() > MANIFESTS_MAX {
            let message = format!(
                "{shown:?} was not read: manifests may include each other {DEPTH_MAX} deep, and {MANIFESTS_MAX} in all"
            );
            return Err((Code::IncludeLimit, message));
        }
        let size = canonical.metadata().map_err(|e| missing(e.to_string()))?.len();
        if let Some(stated) = inclusion.size.filter(|stated| *stated != size) {
            let message = format!("{shown:?} has {size} bytes, and the row says {stated}");
            return Err((Code::IncludeChanged, message));
        }
        if let (Some(algorithm), Some(stated)) = (&inclusion.algorithm, &inclusion.digest) {
            match digest_of(&canonical, algorithm).map_err(|e| missing(e.to_string()))? {
                Some(found) if found == *stated => {}
                Some(found) => {
                    let message = format!("the {algorithm} of {shown:?} is {found}");
                    return Err((Code::IncludeChanged, message));
                }
                None => report.add(Code::IncludeUnchecked, inclusion.place, Some("digest"), || {
                    format!("{} is not computed here", excerpt(algorithm))
                }),
            }
        }
        Ok(self.seen.insert(canonical.clone()).then_some((path, canonical)))
    }
}
