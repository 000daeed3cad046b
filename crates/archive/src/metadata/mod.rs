//! What is said about an object: who, what, when, where, and Dublin Core.
//!
//! A deposit may say it in several places. Of these the first that has a field decides it, field
//! by field ([`Metadata::or`]): the options of the deposit, the row of the manifest, a Dublin Core
//! file in the package, an ERC file in the package, the tags of `bag-info.txt`, the version before.
//!
//! What a source does not mention stays as it is. A source removes a field by saying that there is
//! none: an empty text in `who`, `what`, `when`, `where`, an empty list of values of an element.
//! [`Metadata::settled`] turns what was said into what an object has, without such marks.

mod anvl;
mod bag_info;
mod dc;
mod dc_xml;
mod erc;

use crate::ErrorCode;
pub use bag_info::from_bag_info;
pub use dc::{parse_dc, parse_dc_json, parse_dc_text};
pub use dc_xml::{parse_dc_xml, write_dc_xml};
pub use erc::{parse_erc, write_erc};

use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The fifteen elements of Dublin Core, in alphabetical order.
pub const DC_ELEMENTS: [&str; 15] = [
    "contributor",
    "coverage",
    "creator",
    "date",
    "description",
    "format",
    "identifier",
    "language",
    "publisher",
    "relation",
    "rights",
    "source",
    "subject",
    "title",
    "type",
];

/// A file of metadata is read up to this size.
pub const FILE_BYTES_MAX: usize = 1 << 20;
/// One value is no longer than this; a description of a few pages fits.
pub const VALUE_BYTES_MAX: usize = 64 << 10;
/// An element is not repeated more often than this.
pub const VALUES_MAX: usize = 1000;

/// Who made it, what it is, when, and where it is to be found; and what Dublin Core adds. An empty
/// text or list says that there is none, where it is what a source says.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Metadata {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub who: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub what: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
    #[serde(rename = "where", skip_serializing_if = "Option::is_none")]
    pub where_: Option<String>,
    /// Values by element, the names as in [`DC_ELEMENTS`].
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub dublin_core: BTreeMap<String, Vec<String>>,
}

impl Metadata {
    pub fn is_empty(&self) -> bool {
        *self == Metadata::default()
    }

    /// What the registry has of an object, as JSON.
    pub fn of_registry(json: &str) -> Metadata {
        serde_json::from_str(json).unwrap_or_default()
    }

    /// This, and where it says nothing, what `lower` says. A removal is something said.
    #[must_use]
    pub fn or(mut self, lower: Metadata) -> Metadata {
        self.who = self.who.or(lower.who);
        self.what = self.what.or(lower.what);
        self.when = self.when.or(lower.when);
        self.where_ = self.where_.or(lower.where_);
        for (element, values) in lower.dublin_core {
            self.dublin_core.entry(element).or_insert(values);
        }
        self
    }

    /// What an object has: without the fields that were said to be none.
    #[must_use]
    pub fn settled(mut self) -> Metadata {
        let said = |value: Option<String>| value.filter(|value| !value.is_empty());
        self.who = said(self.who);
        self.what = said(self.what);
        self.when = said(self.when);
        self.where_ = said(self.where_);
        self.dublin_core.retain(|_, values| !values.is_empty());
        self
    }

    /// Adds a value as [`Metadata::add_dc`] does. An empty value says that the element has none,
    /// unless others are said.
    pub fn say_dc(&mut self, name: &str, value: &str) -> Result<()> {
        self.add_dc(name, value)?;
        if let Some(element) = dc_element(name) {
            self.dublin_core.entry(element.to_owned()).or_default();
        }
        Ok(())
    }

    /// Adds a value of an element of Dublin Core, named as people name them: `title`, `dc:title`,
    /// `DC.Title`. An empty value adds nothing.
    pub fn add_dc(&mut self, name: &str, value: &str) -> Result<()> {
        let Some(element) = dc_element(name) else {
            let message = format!(
                "{name:?} is no element of Dublin Core; there are {}",
                DC_ELEMENTS.join(", ")
            );
            return Err(Error::permanent(ErrorCode::MetadataDcElement, message));
        };
        let Some(value) = tidy(value)? else { return Ok(()) };
        let values = self.dublin_core.entry(element.to_owned()).or_default();
        if values.len() == VALUES_MAX {
            let message = format!("more than {VALUES_MAX} values of dc:{element}; leave some out");
            return Err(too_large(message));
        }
        if !values.contains(&value) {
            values.push(value);
        }
        Ok(())
    }

    /// Checks and tidies what came from outside as a whole, as the fields of a JSON document do.
    /// What is empty stays as a removal.
    pub fn checked(self) -> Result<Metadata> {
        let mut checked = Metadata {
            who: tidy_option(self.who)?,
            what: tidy_option(self.what)?,
            when: tidy_option(self.when)?,
            where_: tidy_option(self.where_)?,
            dublin_core: BTreeMap::new(),
        };
        for (element, values) in self.dublin_core {
            checked.say_dc(&element, "")?;
            for value in values {
                checked.add_dc(&element, &value)?;
            }
        }
        Ok(checked)
    }

    /// Fills who, what, when and where from creator, title, date and identifier, if they are
    /// unsaid: the equivalents that the ERC specification gives.
    #[must_use]
    pub fn with_kernel_of_dc(mut self) -> Metadata {
        // An element without values says that there is none.
        let first = |element: &str| {
            self.dublin_core.get(element).map(|values| values.first().cloned().unwrap_or_default())
        };
        let who = self.dublin_core.get("creator").map(|values| values.join("; "));
        let lower = Metadata {
            who,
            what: first("title"),
            when: first("date"),
            where_: first("identifier"),
            dublin_core: BTreeMap::new(),
        };
        self = self.or(lower);
        self
    }

    /// Fills creator, title, date and identifier from who, what, when and where, if they are
    /// unsaid, so that the Dublin Core record of an object is never empty of what is known.
    #[must_use]
    pub fn with_dc_of_kernel(self) -> Metadata {
        let kernel = [
            ("creator", &self.who),
            ("title", &self.what),
            ("date", &self.when),
            ("identifier", &self.where_),
        ];
        let said = |(element, value): (&str, &Option<String>)| {
            value.clone().map(|value| (element.to_owned(), vec![value]))
        };
        let lower = Metadata {
            dublin_core: kernel.into_iter().filter_map(said).collect(),
            ..Metadata::default()
        };
        self.or(lower)
    }
}

/// The element that a name means: case and the prefixes `dc:`, `dc.`, `dc-` and `dcterms:` do
/// not matter.
pub fn dc_element(name: &str) -> Option<&'static str> {
    let name = name.trim().to_ascii_lowercase();
    let bare = ["dcterms:", "dcterms.", "dc:", "dc.", "dc-"]
        .iter()
        .find_map(|prefix| name.strip_prefix(prefix))
        .unwrap_or(&name);
    DC_ELEMENTS.into_iter().find(|element| *element == bare)
}

/// A value without the space around it and without control characters other than newlines and
/// tabs; `None` if nothing is left.
fn tidy(value: &str) -> Result<Option<String>> {
    let trimmed = value.trim();
    if trimmed.len() > VALUE_BYTES_MAX {
        let message = format!(
            "a value of {} bytes that starts {:?}; the limit is {VALUE_BYTES_MAX}",
            trimmed.len(),
            trimmed.chars().take(40).collect::<String>()
        );
        return Err(too_large(message));
    }
    let one_newline = trimmed.replace("\r\n", "\n").replace('\r', "\n");
    let clean = |c: char| match c {
        '\n' | '\t' => c,
        c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => char::REPLACEMENT_CHARACTER,
        c => c,
    };
    let value: String = one_newline.chars().map(clean).collect();
    Ok(Some(value).filter(|value| !value.is_empty()))
}

fn tidy_option(value: Option<String>) -> Result<Option<String>> {
    value.map(|value| Ok(tidy(&value)?.unwrap_or_default())).transpose()
}

/// The text of a metadata file: UTF-8, within bounds, without a byte order mark.
fn text_of(bytes: &[u8]) -> Result<&str> {
    if bytes.len() > FILE_BYTES_MAX {
        return Err(too_large(format!(
            "a metadata file of {} bytes; the limit is {FILE_BYTES_MAX}",
            bytes.len()
        )));
    }
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let message = format!(
            "a metadata file is not UTF-8 at byte {}; save it as UTF-8",
            error.valid_up_to()
        );
        Error::permanent(ErrorCode::MetadataEncoding, message)
    })?;
    Ok(text.strip_prefix('\u{feff}').unwrap_or(text))
}

fn too_large(message: String) -> Error {
    Error::permanent(ErrorCode::MetadataTooLarge, message)
}

#[cfg(test)]
mod tests;
