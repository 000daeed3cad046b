//! What the tags of `bag-info.txt` say about an object.
//!
//! | field | tag, the first that is there |
//! |---|---|
//! | who | `Source-Organization`, `Contact-Name` |
//! | what | `Title`, `External-Description`, `Internal-Sender-Description` |
//! | when | `Bagging-Date` |
//! | where | `External-Identifier`, `Internal-Sender-Identifier` |
//! | dc:title | `Title` |
//! | dc:description | `External-Description`, `Description` |
//! | dc:identifier | `External-Identifier` (each), `Internal-Sender-Identifier` (each) |
//! | any dc element | `DC-Title`, `DC.Title`, `dc:title` … |
//!
//! A tag for Dublin Core in particular (`DC-Title`) is also what fills who, what, when and where
//! first.

use super::{Metadata, dc_element, tidy};
use crate::Result;

/// Reads the tags, in their order in the file. Labels are compared without regard to case.
pub fn from_bag_info<'a>(tags: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Metadata> {
    let tags: Vec<(String, &str)> = tags
        .into_iter()
        .map(|(label, value)| (label.trim().to_ascii_lowercase(), value))
        .filter(|(_, value)| !value.trim().is_empty())
        .collect();
    let first = |labels: &[&str]| -> Result<Option<String>> {
        let find = |label: &&str| tags.iter().find(|(own, _)| own == label);
        let found = labels.iter().find_map(find);
        found.map_or(Ok(None), |(_, value)| tidy(value))
    };
    let mut particular = Metadata::default();
    for (label, value) in &tags {
        if label.starts_with("dc") && dc_element(label).is_some() {
            particular.add_dc(label, value)?;
        }
    }
    let mut general = Metadata {
        who: first(&["source-organization", "contact-name"])?,
        what: first(&["title", "external-description", "internal-sender-description"])?,
        when: first(&["bagging-date"])?,
        where_: first(&["external-identifier", "internal-sender-identifier"])?,
        ..Metadata::default()
    };
    for (label, value) in &tags {
        let element = match label.as_str() {
            "title" => "title",
            "external-description" | "description" => "description",
            "external-identifier" | "internal-sender-identifier" => "identifier",
            _ => continue,
        };
        general.add_dc(element, value)?;
    }
    Ok(particular.with_kernel_of_dc().or(general))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_mapped() {
        let tags = [
            ("source-organization", "Library"),
            ("Contact-Name", "Ada"),
            ("External-Description", "Maps of the coast"),
            ("Bagging-Date", "2024-05-01"),
            ("External-Identifier", "box-17"),
            ("External-Identifier", "b17"),
            ("Payload-Oxum", "1.1"),
        ];
        let metadata = from_bag_info(tags).unwrap();
        assert_eq!(metadata.who.as_deref(), Some("Library"));
        assert_eq!(metadata.what.as_deref(), Some("Maps of the coast"));
        assert_eq!(metadata.when.as_deref(), Some("2024-05-01"));
        assert_eq!(metadata.where_.as_deref(), Some("box-17"));
        assert_eq!(metadata.dublin_core["identifier"], ["box-17", "b17"]);
        assert_eq!(metadata.dublin_core["description"], ["Maps of the coast"]);
        assert_eq!(metadata.dublin_core.len(), 2);
    }

    #[test]
    fn particular_tags_come_first() {
        let tags = [
            ("Title", "General"),
            ("DC-Title", "Particular"),
            ("Contact-Name", " "),
            ("dc:creator", "A"),
        ];
        let metadata = from_bag_info(tags).unwrap();
        assert_eq!(metadata.what.as_deref(), Some("Particular"));
        assert_eq!(metadata.dublin_core["title"], ["Particular"]);
        assert_eq!(metadata.who.as_deref(), Some("A"));
        assert!(from_bag_info([]).unwrap().is_empty());
    }
}
