//! The two official files: DROID's signature file and the container signature file.

use crate::error::{Error, Result};
use crate::model::{
    Anchor, ContainerKind, ContainerSignature, Format, Member, Origin, Sequence, Signature,
    SignatureSet, Trigger,
};
use crate::sequence;
use crate::xml::{self, Element};
use std::collections::HashMap;

/// Who is named wherever the official files are used.
pub const ATTRIBUTION: &str = "Contains public sector information (PRONOM, The National Archives) \
licensed under the Open Government Licence v3.0.";

/// Which of the official files a text is, and its version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OfficialFile {
    /// DROID's signature file, with its version number.
    Signatures(String),
    /// The container signature file, with its version number.
    Containers(String),
}

impl OfficialFile {
    /// Looks at the root element only; `None` if it is neither.
    pub fn recognise(xml: &[u8]) -> Option<OfficialFile> {
        let head = String::from_utf8_lossy(xml.get(..4096).unwrap_or(xml)).into_owned();
        let version = |root: &str, attribute: &str| {
            let rest = head.split_once(root)?.1.split_once('>')?.0;
            let value = rest.split_once(attribute)?.1.strip_prefix('=')?;
            let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''))?;
            let digits = value[1..].split(quote).next()?;
            digits.bytes().all(|b| b.is_ascii_digit()).then(|| digits.to_owned())
        };
        version("<FFSignatureFile", " Version").map(OfficialFile::Signatures).or_else(|| {
            version("<ContainerSignatureMapping", " signatureVersion").map(OfficialFile::Containers)
        })
    }
}

/// Reads the official files into a set. `container` may be absent; then nothing looks into containers.
pub(crate) fn read(signatures: &[u8], container: Option<&[u8]>) -> Result<SignatureSet> {
    let root = xml::read(signatures, &["Shift", "DefaultShift"])?;
    if root.name != "FFSignatureFile" {
        return Err(root.error(format!("the root is <{}>, not <FFSignatureFile>", root.name)));
    }
    let version = root.required("Version")?.to_owned();
    let mut set = SignatureSet {
        origin: Origin {
            name: format!("v{version}"),
            version,
            container_version: None,
            created: root.attribute("DateCreated").unwrap_or_default().to_owned(),
            attribution: ATTRIBUTION.to_owned(),
        },
        formats: Vec::new(),
        signatures: Vec::new(),
        containers: Vec::new(),
        triggers: Vec::new(),
        skipped: Vec::new(),
    };
    let owners = formats(&root, &mut set)?;
    byte_signatures(&root, &owners, &mut set)?;
    if let Some(container) = container {
        containers(&xml::read(container, &["Shift", "DefaultShift"])?, &mut set)?;
    }
    mark_formats_with_signatures(&mut set);
    Ok(set)
}

/// Reads the formats; returns which format each byte signature stands for.
fn formats(root: &Element, set: &mut SignatureSet) -> Result<HashMap<u32, u32>> {
    let collection = root
        .child("FileFormatCollection")
        .ok_or_else(|| root.error("there is no <FileFormatCollection>".to_owned()))?;
    let mut places = HashMap::new();
    let mut owners = HashMap::new();
    for (place, element) in (0u32..).zip(collection.children("FileFormat")) {
        places.insert(element.number("ID")?, place);
        for id in element.children("InternalSignatureID") {
            owners.insert(text_number(id)?, place);
        }
        let mime = element.attribute("MIMEType").unwrap_or_default();
        let text = |name: &str| element.attribute(name).unwrap_or_default().to_owned();
        set.formats.push(Format {
            puid: element.required("PUID")?.to_owned(),
            name: text("Name"),
            version: text("Version"),
            mime: mime.split(',').map(|m| m.trim().to_owned()).filter(|m| !m.is_empty()).collect(),
            extensions: element
                .children("Extension")
                .map(|e| e.text.trim().to_lowercase())
                .collect(),
            has_signature: false,
            priority_over: Vec::new(),
        });
    }
    for (format, element) in set.formats.iter_mut().zip(collection.children("FileFormat")) {
        for lower in element.children("HasPriorityOverFileFormatID") {
            format.priority_over.extend(places.get(&Some(text_number(lower)?)));
        }
    }
    Ok(owners)
}

fn text_number(element: &Element) -> Result<u32> {
    let text = element.text.trim();
    text.parse().map_err(|_| element.error(format!("<{}>{text} is not a number", element.name)))
}

fn byte_signatures(
    root: &Element,
    owners: &HashMap<u32, u32>,
    set: &mut SignatureSet,
) -> Result<()> {
    let collection = root
        .child("InternalSignatureCollection")
        .ok_or_else(|| root.error("there is no <InternalSignatureCollection>".to_owned()))?;
    for element in collection.children("InternalSignature") {
        let id = element.number("ID")?.unwrap_or(0);
        let Some(format) = owners.get(&id) else {
            set.skipped.push(format!("signature {id}: no format uses it"));
            continue;
        };
        match sequences(element) {
            Ok(sequences) => set.signatures.push(Signature { id, format: *format, sequences }),
            Err(error) => set.skipped.push(format!("signature {id}: {error}")),
        }
    }
    Ok(())
}

fn sequences(element: &Element) -> Result<Vec<Sequence>> {
    let found: Vec<Sequence> =
        element.children("ByteSequence").map(byte_sequence).collect::<Result<_>>()?;
    if found.is_empty() {
        return Err(element.error("the signature has no byte sequence".to_owned()));
    }
    Ok(found)
}

/// A byte sequence is written out in subsequences, or, in newer files, as one expression.
fn byte_sequence(element: &Element) -> Result<Sequence> {
    let Some(expression) = element.attribute("Sequence") else {
        return sequence::read(element);
    };
    match element.attribute("Reference") {
        Some("BOFoffset") => sequence::from_expression(Anchor::Beginning, (0, Some(0)), expression),
        Some("EOFoffset") => sequence::from_expression(Anchor::End, (0, Some(0)), expression),
        _ => sequence::from_expression(Anchor::Anywhere, (0, None), expression),
    }
}

fn containers(root: &Element, set: &mut SignatureSet) -> Result<()> {
    if root.name != "ContainerSignatureMapping" {
        let message = format!("the root is <{}>, not <ContainerSignatureMapping>", root.name);
        return Err(root.error(message));
    }
    set.origin.container_version = root.attribute("signatureVersion").map(str::to_owned);
    let places: HashMap<&str, u32> =
        (0u32..).zip(&set.formats).map(|(place, format)| (format.puid.as_str(), place)).collect();
    let mut owners: HashMap<u32, u32> = HashMap::new();
    for mapping in
        root.child("FileFormatMappings").into_iter().flat_map(|m| m.children("FileFormatMapping"))
    {
        let id = mapping.number("signatureId")?.unwrap_or(0);
        if let Some(place) = places.get(mapping.required("Puid")?) {
            owners.insert(id, *place);
        }
    }
    for element in
        root.child("ContainerSignatures").into_iter().flat_map(|c| c.children("ContainerSignature"))
    {
        let id = element.number("Id")?.unwrap_or(0);
        let Some(format) = owners.get(&id) else {
            set.skipped.push(format!("container signature {id}: its format is not in the set"));
            continue;
        };
        match container(element, id, *format) {
            Ok(signature) => set.containers.push(signature),
            Err(error) => set.skipped.push(format!("container signature {id}: {error}")),
        }
    }
    for trigger in root.child("TriggerPuids").into_iter().flat_map(|t| t.children("TriggerPuid")) {
        if let Some(format) = places.get(trigger.required("Puid")?) {
            set.triggers.push(Trigger { format: *format, kind: kind(trigger)? });
        }
    }
    Ok(())
}

fn kind(element: &Element) -> Result<ContainerKind> {
    match element.required("ContainerType")? {
        "ZIP" => Ok(ContainerKind::Zip),
        "OLE2" => Ok(ContainerKind::Ole2),
        other => Err(element.error(format!("unknown container type {other}"))),
    }
}

fn container(element: &Element, id: u32, format: u32) -> Result<ContainerSignature> {
    let mut members = Vec::new();
    for file in element.child("Files").into_iter().flat_map(|files| files.children("File")) {
        let path = file.child("Path").map(|path| path.text.trim().to_owned()).unwrap_or_default();
        if path.is_empty() {
            return Err(file.error("a file has no path".to_owned()));
        }
        let collection =
            file.child("BinarySignatures").and_then(|b| b.child("InternalSignatureCollection"));
        let signatures = collection
            .into_iter()
            .flat_map(|c| c.children("InternalSignature"))
            .map(sequences)
            .collect::<Result<_>>()?;
        members.push(Member { path, signatures });
    }
    if members.is_empty() {
        return Err(element.error("the signature names no file".to_owned()));
    }
    Ok(ContainerSignature { id, format, kind: kind(element)?, members })
}

pub(crate) fn mark_formats_with_signatures(set: &mut SignatureSet) {
    let found =
        set.signatures.iter().map(|s| s.format).chain(set.containers.iter().map(|c| c.format));
    for place in found {
        if let Some(format) = set.formats.get_mut(place as usize) {
            format.has_signature = true;
        }
    }
}

/// The name of a set made of these files: `v122-20260119`, or `v122-c40` when the container file's
/// name has no date.
pub(crate) fn set_name(set: &SignatureSet, container_date: Option<&str>) -> String {
    match (container_date, &set.origin.container_version) {
        (Some(date), _) => format!("v{}-{date}", set.origin.version),
        (None, Some(version)) => format!("v{}-c{version}", set.origin.version),
        (None, None) => format!("v{}", set.origin.version),
    }
}

impl SignatureSet {
    /// Reads the official files: DROID's signature file, and the container signature file if given.
    ///
    /// # Errors
    /// When a file is not what it should be. Single signatures that cannot be used do not fail the
    /// whole file; they are listed by [`SignatureSet::skipped`].
    pub fn from_official(
        signatures: &[u8],
        container: Option<&[u8]>,
    ) -> Result<SignatureSet, Error> {
        let mut set = read(signatures, container)?;
        set.origin.name = set_name(&set, None);
        Ok(set)
    }
}
