//! Writes an inventory as a stream. The same inventory is always written the same way.

use super::{Entry, Inventory, Version};
use crate::algorithm::algorithm_name;
use crate::json::write_string;
use std::io::{Result, Write};

impl Inventory {
    /// Writes the inventory as JSON: one digest a line, in the order of digests.
    pub fn write(&self, out: &mut impl Write) -> Result<()> {
        let order = self.digest_order();
        out.write_all(b"{\n  \"id\": ")?;
        write_string(out, &self.id)?;
        write!(out, ",\n  \"type\": \"{}\"", self.spec.inventory_type())?;
        write!(out, ",\n  \"digestAlgorithm\": \"{}\"", algorithm_name(self.algorithm))?;
        write!(out, ",\n  \"head\": \"{}\"", self.head)?;
        if let Some(name) = &self.content_directory {
            out.write_all(b",\n  \"contentDirectory\": ")?;
            write_string(out, name)?;
        }
        out.write_all(b",\n  \"manifest\": ")?;
        self.write_map(out, self.manifest.clone(), &order, "  ")?;
        out.write_all(b",\n  \"versions\": {")?;
        for (at, version) in self.versions.iter().enumerate() {
            out.write_all(if at == 0 { b"\n" } else { b",\n" })?;
            self.write_version(out, version, &order)?;
        }
        out.write_all(b"\n  }")?;
        self.write_fixity(out, &order)?;
        out.write_all(b"\n}\n")
    }

    /// Each digest's place in the order of digests.
    fn digest_order(&self) -> Vec<u32> {
        let count = u32::try_from(self.digests.len()).unwrap_or(u32::MAX);
        let mut sorted: Vec<u32> = (0..count).collect();
        sorted.sort_unstable_by_key(|number| self.digests.key(*number));
        let mut order = vec![0; sorted.len()];
        for (place, number) in (0..).zip(sorted) {
            order[number as usize] = place;
        }
        order
    }

    fn write_version(&self, out: &mut impl Write, version: &Version, order: &[u32]) -> Result<()> {
        write!(out, "    \"{}\": {{\n      \"created\": ", version.name)?;
        write_string(out, &version.about.created)?;
        if let Some(message) = &version.about.message {
            out.write_all(b",\n      \"message\": ")?;
            write_string(out, message)?;
        }
        if let Some(user) = &version.about.user {
            out.write_all(b",\n      \"user\": {\"name\": ")?;
            write_string(out, &user.name)?;
            if let Some(address) = &user.address {
                out.write_all(b", \"address\": ")?;
                write_string(out, address)?;
            }
            out.write_all(b"}")?;
        }
        out.write_all(b",\n      \"state\": ")?;
        self.write_map(out, version.state.clone(), order, "      ")?;
        out.write_all(b"\n    }")
    }

    fn write_fixity(&self, out: &mut impl Write, order: &[u32]) -> Result<()> {
        let mut first = true;
        for (name, entries) in self.fixity.iter().filter(|(_, entries)| !entries.is_empty()) {
            out.write_all(if first { b",\n  \"fixity\": {\n    " } else { b",\n    " })?;
            first = false;
            write_string(out, name)?;
            out.write_all(b": ")?;
            self.write_map(out, entries.clone(), order, "    ")?;
        }
        if first { Ok(()) } else { out.write_all(b"\n  }") }
    }

    fn write_map(
        &self,
        out: &mut impl Write,
        mut entries: Vec<Entry>,
        order: &[u32],
        indent: &str,
    ) -> Result<()> {
        entries.sort_unstable_by_key(|entry| order[entry.digest as usize]);
        out.write_all(b"{")?;
        for (at, group) in entries.chunk_by_mut(|a, b| a.digest == b.digest).enumerate() {
            group.sort_unstable_by_key(|entry| self.paths.bytes(entry.path));
            write!(out, "{}\n{indent}  ", if at == 0 { "" } else { "," })?;
            write_string(out, &self.digests.get(group[0].digest))?;
            for (at, entry) in group.iter().enumerate() {
                out.write_all(if at == 0 { b": [" } else { b", " })?;
                write_string(out, self.paths.get(entry.path))?;
            }
            out.write_all(b"]")?;
        }
        if entries.is_empty() { out.write_all(b"}") } else { write!(out, "\n{indent}}}") }
    }
}
