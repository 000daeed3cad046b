//! Reads an inventory as a stream. What breaks a rule becomes a finding and reading goes on, so a
//! validation can tell everything at once; only what is no JSON at all ends it.

use super::{About, Entry, Inventory, User, Version, check};
use crate::Limits;
use crate::algorithm::{self, algorithm_named};
use crate::code::Code;
use crate::error::Error;
use crate::findings::Findings;
use crate::json::{Fault, Kind, Reader};
use crate::path::{self, PathFault};
use crate::version::{Spec, VersionName};
use digest::Algorithm;
use std::collections::HashSet;
use std::io::Read;

/// An inventory as it was read, and what is wrong with it.
#[derive(Debug)]
pub(crate) struct Parsed {
    /// Missing if it is not JSON. Where there are errors, parts may be missing in it.
    pub(crate) inventory: Option<Inventory>,
    pub(crate) findings: Findings,
}

/// Reads an inventory; `place` is its name in findings. Fails where it cannot be read at all.
pub(crate) fn parse(source: impl Read, limits: &Limits, place: &str) -> Result<Parsed, Error> {
    let mut parser = Parser {
        json: Reader::new(source, limits),
        limits,
        place,
        inventory: Inventory::new("", Spec::default(), Algorithm::Sha512),
        findings: Findings::default(),
        seen: HashSet::new(),
        head: None,
        adds: 0,
        state_entries: 0,
    };
    match parser.document() {
        Ok(()) => {
            let (mut inventory, mut findings) = (parser.inventory, parser.findings);
            let seen = parser.seen;
            let head = parser.head;
            check::check(&mut inventory, &seen, head, &mut findings, place);
            Ok(Parsed { inventory: Some(inventory), findings })
        }
        Err(Fault::Syntax { line, column, what }) => {
            let message = format!("not JSON at line {line}, column {column}: {what}");
            parser.findings.add(Code::E033, place, message);
            Ok(Parsed { inventory: None, findings: parser.findings })
        }
        Err(Fault::Limit { what, limit }) => {
            Err(Error::Limit { place: place.to_owned(), what: what.to_owned(), limit })
        }
        Err(Fault::Io(error)) => Err(Error::Io { place: place.to_owned(), source: error }),
    }
}

struct Parser<'a, R> {
    json: Reader<R>,
    limits: &'a Limits,
    place: &'a str,
    inventory: Inventory,
    findings: Findings,
    /// The keys of the outermost object.
    seen: HashSet<String>,
    head: Option<String>,
    adds: u32,
    state_entries: u64,
}

type Read_<T> = Result<T, Fault>;

impl<R: Read> Parser<'_, R> {
    fn found(&mut self, code: Code, message: impl Into<String>) {
        self.findings.add(code, self.place, message);
    }

    fn document(&mut self) -> Read_<()> {
        if self.json.kind()? != Kind::Object {
            self.json.skip()?;
            self.found(Code::E033, "the inventory is not a JSON object");
            return self.json.end();
        }
        self.json.begin_object()?;
        let (mut first, mut key) = (true, String::new());
        while self.json.key(&mut first, &mut key)? {
            if self.seen.contains(&key) {
                self.found(Code::E033, format!("the key {key:?} is there twice"));
                self.json.skip()?;
                continue;
            }
            self.top_level(&key)?;
            // Unknown keys are not remembered: there may be any number of them.
            if is_known(&key) {
                self.seen.insert(key.clone());
            }
        }
        self.json.end()
    }

    fn top_level(&mut self, key: &str) -> Read_<()> {
        match key {
            "id" => {
                let id = self.text(Code::E037, key)?.unwrap_or_default();
                if id.is_empty() {
                    self.found(Code::E037, "the id is empty");
                }
                self.inventory.id = id;
            }
            "type" => {
                if let Some(text) = self.text(Code::E038, key)? {
                    match Spec::of_inventory_type(&text) {
                        Some(spec) => self.inventory.spec = spec,
                        None => self.found(Code::E038, format!("the type is {text:?}")),
                    }
                }
            }
            "digestAlgorithm" => {
                if let Some(name) = self.text(Code::E025, key)? {
                    match algorithm_named(&name) {
                        Some(algorithm) => self.inventory.algorithm = algorithm,
                        None => self.found(Code::E025, algorithm::unknown(&name)),
                    }
                }
            }
            "head" => self.head = self.text(Code::E040, key)?,
            "contentDirectory" => {
                self.inventory.content_directory = self.text(Code::E017, key)?;
            }
            "manifest" => self.manifest()?,
            "versions" => self.versions()?,
            "fixity" => self.fixity()?,
            _ => {
                self.found(Code::E102, format!("the key {key:?} is not specified"));
                self.json.skip()?;
            }
        }
        Ok(())
    }

    /// A string; what is none is a finding.
    fn text(&mut self, code: Code, key: &str) -> Read_<Option<String>> {
        if self.json.kind()? == Kind::String {
            let mut text = String::new();
            self.json.string(&mut text)?;
            return Ok(Some(text));
        }
        self.found(code, format!("{key} is not a string"));
        self.json.skip()?;
        Ok(None)
    }

    /// Goes into an object; what is none is a finding.
    fn enter(&mut self, code: Code, what: &str) -> Read_<bool> {
        if self.json.kind()? == Kind::Object {
            self.json.begin_object()?;
            return Ok(true);
        }
        self.found(code, format!("{what} is not a JSON object"));
        self.json.skip()?;
        Ok(false)
    }

    fn manifest(&mut self) -> Read_<()> {
        if self.enter(Code::E106, "the manifest")? {
            self.inventory.manifest = self.digest_map(MapOf::Manifest)?;
        }
        Ok(())
    }

    fn fixity(&mut self) -> Read_<()> {
        if !self.enter(Code::E111, "the fixity block")? {
            return Ok(());
        }
        let (mut first, mut name) = (true, String::new());
        while self.json.key(&mut first, &mut name)? {
            if self.inventory.fixity.contains_key(&name) {
                self.found(Code::E033, format!("the fixity block has {name:?} twice"));
                self.json.skip()?;
            } else if self.enter(Code::E057, &format!("the fixity block of {name:?}"))? {
                let entries = self.digest_map(MapOf::Fixity)?;
                self.inventory.fixity.insert(std::mem::take(&mut name), entries);
                self.bound(self.inventory.fixity.len() as u64, 1000, "the fixity algorithms")?;
            }
        }
        Ok(())
    }

    fn bound(&self, count: u64, limit: u64, what: &'static str) -> Read_<()> {
        if count > limit { Err(Fault::Limit { what, limit }) } else { Ok(()) }
    }

    /// An object of digests, each with an array of paths.
    fn digest_map(&mut self, of: MapOf) -> Read_<Vec<Entry>> {
        let mut entries = Vec::new();
        let (mut first, mut digest, mut path) = (true, String::new(), String::new());
        // Digests that were keys of this map already, by number.
        let mut seen = Vec::new();
        while self.json.key(&mut first, &mut digest)? {
            let number = self.digest_number(&digest)?;
            if seen.len() <= number as usize {
                seen.resize(number as usize + 1, false);
            }
            if std::mem::replace(&mut seen[number as usize], true) {
                self.found(of.twice(), format!("the digest {digest} is there twice"));
            }
            if self.json.kind()? != Kind::Array {
                self.found(of.no_array(), format!("the value of {digest} is not an array"));
                self.json.skip()?;
                continue;
            }
            self.json.begin_array()?;
            let (mut first_path, before) = (true, entries.len());
            while self.json.element(&mut first_path)? {
                if self.json.kind()? != Kind::String {
                    self.found(of.no_array(), format!("a path of {digest} is not a string"));
                    self.json.skip()?;
                    continue;
                }
                self.json.string(&mut path)?;
                if self.check_path(of, &path) {
                    let path = self.path_number(&path)?;
                    entries.push(Entry { digest: number, path });
                    self.count_entry()?;
                }
            }
            if entries.len() == before && of == MapOf::Manifest && first_path {
                self.found(Code::E092, format!("the digest {digest} has no content path"));
            }
        }
        Ok(entries)
    }

    /// Whether a path can be used; faults are findings.
    fn check_path(&mut self, of: MapOf, path: &str) -> bool {
        let faults: Vec<PathFault> = path::faults(path).collect();
        for fault in &faults {
            let message = format!("{path:?}: {}", fault.why());
            self.findings.add_with(of.path(*fault), self.place, || message);
        }
        faults.is_empty()
    }

    fn digest_number(&mut self, digest: &str) -> Read_<u32> {
        let number = self.inventory.digests.add(digest);
        self.check_memory()?;
        number.ok_or(Fault::Limit { what: "the length of all digests", limit: 4 << 30 })
    }

    fn path_number(&mut self, path: &str) -> Read_<u32> {
        let number = self.inventory.paths.add(path);
        self.check_memory()?;
        number.ok_or(Fault::Limit { what: "the length of all paths", limit: 4 << 30 })
    }

    fn count_entry(&mut self) -> Read_<()> {
        self.state_entries += 1;
        self.check_memory()
    }

    fn check_memory(&mut self) -> Read_<()> {
        self.adds = self.adds.wrapping_add(1);
        if !self.adds.is_multiple_of(256) {
            return Ok(());
        }
        let lists = self.state_entries * size_of::<Entry>() as u64;
        let memory = self.inventory.paths.memory() + self.inventory.digests.memory() + lists;
        self.bound(memory, self.limits.inventory_memory_bytes_max, "the inventory's memory")
    }

    fn versions(&mut self) -> Read_<()> {
        if !self.enter(Code::E044, "the versions block")? {
            return Ok(());
        }
        let (mut first, mut key) = (true, String::new());
        let mut names: HashSet<VersionName> = HashSet::new();
        while self.json.key(&mut first, &mut key)? {
            let Ok(name) = key.parse::<VersionName>() else {
                self.found(Code::E046, format!("{key:?} is no name of a version"));
                self.json.skip()?;
                continue;
            };
            if !names.insert(name) {
                self.found(Code::E033, format!("the version {name} is there twice"));
                self.json.skip()?;
                continue;
            }
            let count = names.len() as u64;
            self.bound(count, self.limits.versions_max as u64, "the number of versions")?;
            if self.enter(Code::E047, &format!("the version {name}"))? {
                let version = self.version(name)?;
                self.inventory.versions.push(version);
            }
        }
        Ok(())
    }

    fn version(&mut self, name: VersionName) -> Read_<Version> {
        let mut version = Version { name, about: About::default(), state: Vec::new() };
        let mut seen = [false; 4];
        let (mut first, mut key) = (true, String::new());
        while self.json.key(&mut first, &mut key)? {
            let keys = ["created", "state", "message", "user"];
            let Some(at) = keys.iter().position(|known| *known == key) else {
                self.found(Code::E102, format!("{name}: the key {key:?} is not specified"));
                self.json.skip()?;
                continue;
            };
            if std::mem::replace(&mut seen[at], true) {
                self.found(Code::E033, format!("{name}: the key {key:?} is there twice"));
                self.json.skip()?;
                continue;
            }
            match at {
                0 => self.created(&mut version)?,
                1 if self.enter(Code::E050, &format!("the state of {name}"))? => {
                    version.state = self.digest_map(MapOf::State)?;
                }
                1 => {}
                2 => version.about.message = self.text(Code::E094, "message")?,
                _ => version.about.user = self.user(name)?,
            }
        }
        self.missing_keys(name, seen);
        Ok(version)
    }

    fn missing_keys(&mut self, name: VersionName, seen: [bool; 4]) {
        for (missing, key) in [(!seen[0], "created"), (!seen[1], "state")] {
            if missing {
                self.found(Code::E048, format!("{name} has no {key}"));
            }
        }
        for (missing, key) in [(!seen[2], "message"), (!seen[3], "user")] {
            if missing {
                self.found(Code::W007, format!("{name} has no {key}"));
            }
        }
    }

    fn created(&mut self, version: &mut Version) -> Read_<()> {
        let Some(created) = self.text(Code::E049, "created")? else { return Ok(()) };
        if let Some(fault) = crate::time::fault(&created) {
            let message = format!("{}: created is {created:?}: {fault}", version.name);
            self.found(Code::E049, message);
        }
        version.about.created = created;
        Ok(())
    }

    fn user(&mut self, name: VersionName) -> Read_<Option<User>> {
        if !self.enter(Code::E054, &format!("the user of {name}"))? {
            return Ok(None);
        }
        let mut user = User::default();
        let (mut first, mut key) = (true, String::new());
        let mut seen = [false; 2];
        while self.json.key(&mut first, &mut key)? {
            let at = usize::from(key == "address");
            if !matches!(key.as_str(), "name" | "address") {
                self.found(Code::E102, format!("{name}: the user's key {key:?} is not specified"));
                self.json.skip()?;
            } else if std::mem::replace(&mut seen[at], true) {
                self.found(Code::E033, format!("{name}: the user has {key:?} twice"));
                self.json.skip()?;
            } else if at == 0 {
                user.name = self.text(Code::E054, "the user's name")?.unwrap_or_default();
            } else {
                user.address = self.text(Code::E054, "the user's address")?;
            }
        }
        if user.name.is_empty() {
            self.found(Code::E054, format!("{name}: the user has no name"));
        }
        match user.address.as_deref() {
            None if !seen[1] => self.found(Code::W008, format!("{name}: the user has no address")),
            Some(address) if !is_uri(address) => {
                self.found(Code::W009, format!("{name}: the address {address:?} is no URI"));
            }
            _ => {}
        }
        Ok(Some(user))
    }
}

fn is_known(key: &str) -> bool {
    matches!(
        key,
        "id" | "type"
            | "digestAlgorithm"
            | "head"
            | "contentDirectory"
            | "manifest"
            | "versions"
            | "fixity"
    )
}

/// Whether a text has the form of a URI: a scheme, a colon, and no spaces or control characters.
pub(super) fn is_uri(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once(':') else { return false };
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
    scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(plain)
        && !rest.is_empty()
        && !rest.chars().any(|c| c.is_whitespace() || c.is_control() || "<>\"{}|\\^`".contains(c))
}

/// Which of the three maps of digests to paths is read: their rules have different codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MapOf {
    Manifest,
    State,
    Fixity,
}

impl MapOf {
    fn twice(self) -> Code {
        match self {
            MapOf::Manifest => Code::E096,
            MapOf::State => Code::E033,
            MapOf::Fixity => Code::E097,
        }
    }

    fn no_array(self) -> Code {
        match self {
            MapOf::Manifest => Code::E092,
            MapOf::State => Code::E051,
            MapOf::Fixity => Code::E057,
        }
    }

    fn path(self, fault: PathFault) -> Code {
        match (self, fault) {
            (MapOf::State, PathFault::Empty) => Code::E051,
            (MapOf::State, PathFault::Slash) => Code::E053,
            (MapOf::State, PathFault::Element) => Code::E052,
            (_, PathFault::Empty) => Code::E098,
            (_, PathFault::Slash) => Code::E100,
            (_, PathFault::Element) => Code::E099,
        }
    }
}
