//! Installed sets of signatures: several versions side by side, and which one is in use.
//!
//! ```text
//! <root>/current                     the name of the set in use
//! <root>/v122-20260119/about.json    what it is and which files it was made of
//!                      signatures.xml  containers.xml  compiled
//! ```

use crate::droid::{self, OfficialFile};
use crate::error::{Error, Result};
use crate::model::{Origin, SignatureSet};
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};

const CURRENT: &str = "current";
const ABOUT: &str = "about.json";
const SIGNATURES: &str = "signatures.xml";
const CONTAINERS: &str = "containers.xml";
const COMPILED: &str = "compiled";
/// A signature file larger than this is none.
const FILE_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// A directory of installed sets. The essential set is always there as well.
#[derive(Clone, Debug)]
pub struct Library {
    root: PathBuf,
}

/// A set that can be used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Installed {
    /// Its name and where it comes from.
    pub origin: Origin,
    /// How many formats it knows.
    pub formats: usize,
    /// How many byte signatures it has.
    pub signatures: usize,
    /// How many container signatures it has.
    pub containers: usize,
    /// The names of the files it was made of; none for the essential set.
    pub files: Vec<String>,
    /// Signatures of those files that could not be used, with reasons.
    pub skipped: Vec<String>,
    /// Whether it is the one in use.
    #[serde(default)]
    pub in_use: bool,
}

impl Installed {
    fn of(set: &SignatureSet, files: Vec<String>) -> Installed {
        Installed {
            origin: set.origin.clone(),
            formats: set.formats.len(),
            signatures: set.signatures.len(),
            containers: set.containers.len(),
            files,
            skipped: set.skipped.clone(),
            in_use: false,
        }
    }
}

/// An official file on its way in: its name, which may tell its date, and its bytes.
#[derive(Clone, Debug)]
pub struct NewFile {
    /// The file's own name, such as `container-signature-20260119.xml`.
    pub name: String,
    /// All of it.
    pub bytes: Vec<u8>,
}

impl NewFile {
    /// Reads a file from disk.
    ///
    /// # Errors
    /// When it cannot be read, or is too large to be a signature file.
    pub fn read(path: &Path) -> Result<NewFile> {
        let fail = |source| Error::File { path: path.to_owned(), source };
        if fs::metadata(path).map_err(fail)?.len() > FILE_BYTES_MAX {
            return Err(Error::UnknownFile(path.to_owned()));
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok(NewFile { name, bytes: fs::read(path).map_err(fail)? })
    }
}

impl Library {
    /// The library in this directory, which need not exist before something is installed.
    pub fn new(root: impl Into<PathBuf>) -> Library {
        Library { root: root.into() }
    }

    /// Where the library is.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Installs a DROID signature file, a container signature file, or one of each, and puts the
    /// set in use. A file that is not given is taken from the set in use.
    ///
    /// # Errors
    /// When a file is neither, or unusable, or there are two of a kind; nothing is changed then.
    pub fn install(&self, files: Vec<NewFile>) -> Result<Installed> {
        let (mut signatures, mut containers) = (None, None);
        for file in files {
            let place = match OfficialFile::recognise(&file.bytes) {
                Some(OfficialFile::Signatures(_)) => &mut signatures,
                Some(OfficialFile::Containers(_)) => &mut containers,
                None => return Err(Error::UnknownFile(PathBuf::from(file.name))),
            };
            if place.replace(file).is_some() {
                let message =
                    "two files of the same kind were given; install one at a time".to_owned();
                return Err(Error::SignatureFile { offset: 0, message });
            }
        }
        let current = self.current()?;
        let signatures = match signatures {
            Some(file) => file,
            None => self.file_of(&current, SIGNATURES)?.ok_or(Error::ContainerAlone)?,
        };
        let containers = match containers {
            Some(file) => Some(file),
            None => self.file_of(&current, CONTAINERS)?,
        };
        let mut set =
            droid::read(&signatures.bytes, containers.as_ref().map(|f| f.bytes.as_slice()))?;
        let date = containers.as_ref().and_then(|file| date_in(&file.name));
        set.origin.name = droid::set_name(&set, date.as_deref());
        self.write_set(&set, &signatures, containers.as_ref())?;
        self.choose(&set.origin.name)
    }

    /// Writes a set beside its place and moves it there, so that a set is there whole or not at all.
    fn write_set(
        &self,
        set: &SignatureSet,
        signatures: &NewFile,
        containers: Option<&NewFile>,
    ) -> Result<()> {
        let fail = |path: &Path| {
            let path = path.to_owned();
            move |source| Error::File { path, source }
        };
        let dir = self.root.join(&set.origin.name);
        let new = self.root.join(format!(".{}.{}", set.origin.name, std::process::id()));
        fs::create_dir_all(&new).map_err(fail(&new))?;
        let names = [Some(signatures), containers].into_iter().flatten().map(|f| f.name.clone());
        let about = Installed::of(set, names.collect());
        let about =
            serde_json::to_vec_pretty(&about).map_err(|e| Error::Compiled(e.to_string()))?;
        let compiled = set.to_compiled()?;
        let mut parts =
            vec![(ABOUT, &about), (SIGNATURES, &signatures.bytes), (COMPILED, &compiled)];
        parts.extend(containers.map(|file| (CONTAINERS, &file.bytes)));
        for (name, bytes) in parts {
            let path = new.join(name);
            fs::write(&path, bytes).map_err(fail(&path))?;
        }
        if dir.exists() {
            fs::remove_dir_all(&dir).map_err(fail(&dir))?;
        }
        fs::rename(&new, &dir).map_err(fail(&dir))
    }

    /// A file that the named set was made of.
    fn file_of(&self, name: &str, which: &str) -> Result<Option<NewFile>> {
        let path = self.root.join(name).join(which);
        match fs::read(&path) {
            Ok(bytes) => {
                let names = self.about(name)?.map(|about| about.files).unwrap_or_default();
                let place = usize::from(which == CONTAINERS);
                Ok(Some(NewFile { name: names.get(place).cloned().unwrap_or_default(), bytes }))
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(Error::File { path, source }),
        }
    }

    fn about(&self, name: &str) -> Result<Option<Installed>> {
        let path = self.root.join(name).join(ABOUT);
        match fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes)
                .map(Some)
                .map_err(|e| Error::File { path, source: e.into() }),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(Error::File { path, source }),
        }
    }

    /// The name of the set in use: the essential one until another is chosen.
    ///
    /// # Errors
    /// When the library cannot be read.
    pub fn current(&self) -> Result<String> {
        let path = self.root.join(CURRENT);
        match fs::read_to_string(&path) {
            Ok(name) => Ok(name.trim().to_owned()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                Ok(SignatureSet::essential().origin.name.clone())
            }
            Err(source) => Err(Error::File { path, source }),
        }
    }

    /// All sets, the essential one first, then by name.
    ///
    /// # Errors
    /// When the library cannot be read.
    pub fn list(&self) -> Result<Vec<Installed>> {
        let fail = |source| Error::File { path: self.root.clone(), source };
        let mut sets = Vec::new();
        match fs::read_dir(&self.root) {
            Ok(entries) => {
                for entry in entries {
                    let name = entry.map_err(fail)?.file_name().to_string_lossy().into_owned();
                    if !name.starts_with('.') && name != CURRENT {
                        sets.extend(self.about(&name)?);
                    }
                }
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(source) => return Err(fail(source)),
        }
        sets.sort_by(|a, b| a.origin.name.cmp(&b.origin.name));
        sets.insert(0, Installed::of(SignatureSet::essential(), Vec::new()));
        let current = self.current()?;
        sets.iter_mut().for_each(|set| set.in_use = set.origin.name == current);
        Ok(sets)
    }

    /// Puts an installed set in use.
    ///
    /// # Errors
    /// When there is no such set.
    pub fn choose(&self, name: &str) -> Result<Installed> {
        let fail = |path: &Path| {
            let path = path.to_owned();
            move |source| Error::File { path, source }
        };
        let mut sets = self.list()?;
        let Some(place) = sets.iter().position(|set| set.origin.name == name) else {
            return Err(no_such_set(name, &sets));
        };
        fs::create_dir_all(&self.root).map_err(fail(&self.root))?;
        let (path, new) = (self.root.join(CURRENT), self.root.join(".current"));
        fs::write(&new, format!("{name}\n")).map_err(fail(&new))?;
        fs::rename(&new, &path).map_err(fail(&path))?;
        let mut chosen = sets.swap_remove(place);
        chosen.in_use = true;
        Ok(chosen)
    }

    /// Loads a set by name, or the one in use. If its compiled form is unusable it is made again
    /// from the official files.
    ///
    /// # Errors
    /// When there is no such set, or its files cannot be read.
    pub fn load(&self, name: Option<&str>) -> Result<SignatureSet> {
        let name = name.map_or_else(|| self.current(), |name| Ok(name.to_owned()))?;
        if name == SignatureSet::essential().origin.name {
            return Ok(SignatureSet::essential().clone());
        }
        let sets = || self.list().unwrap_or_default();
        if name.contains(['/', '\\']) || name.starts_with('.') {
            return Err(no_such_set(&name, &sets()));
        }
        let compiled = fs::read(self.root.join(&name).join(COMPILED));
        if let Some(set) = compiled.ok().and_then(|bytes| SignatureSet::from_compiled(&bytes).ok())
        {
            return Ok(set);
        }
        let Some(signatures) = self.file_of(&name, SIGNATURES)? else {
            return Err(no_such_set(&name, &sets()));
        };
        let containers = self.file_of(&name, CONTAINERS)?;
        let mut set =
            droid::read(&signatures.bytes, containers.as_ref().map(|f| f.bytes.as_slice()))?;
        set.origin.name.clone_from(&name);
        // Only speed is lost when the compiled form cannot be written, on a read-only disk say.
        let _ = fs::write(self.root.join(&name).join(COMPILED), set.to_compiled()?);
        Ok(set)
    }
}

fn no_such_set(name: &str, sets: &[Installed]) -> Error {
    let installed: Vec<&str> = sets.iter().map(|set| set.origin.name.as_str()).collect();
    Error::NoSuchSet { name: name.to_owned(), installed: installed.join(", ") }
}

/// Eight digits in a row in a file's name.
fn date_in(name: &str) -> Option<String> {
    let digits = |part: &&str| part.len() == 8 && part.bytes().all(|b| b.is_ascii_digit());
    name.split(|c: char| !c.is_ascii_digit()).find(digits).map(str::to_owned)
}
