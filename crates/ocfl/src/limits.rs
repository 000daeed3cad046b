//! Bounds on what is read from others.

/// Bounds on what is read. What exceeds one is an error that names it, never a full memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The length of one inventory.
    pub inventory_bytes_max: u64,
    /// What the paths, digests and entries of one inventory may take in memory.
    pub inventory_memory_bytes_max: u64,
    /// The length of one string in an inventory: a path, a message, an id.
    pub string_bytes_max: usize,
    /// The versions of one object.
    pub versions_max: usize,
    /// The nesting of JSON that is skipped because it is not known.
    pub json_depth_max: usize,
    /// The length of a sidecar, declaration or layout configuration.
    pub small_file_bytes_max: usize,
}

impl Default for Limits {
    /// Enough for objects of a million files, within half a gibibyte of memory.
    fn default() -> Limits {
        Limits {
            inventory_bytes_max: 4 << 30,
            inventory_memory_bytes_max: 256 << 20,
            string_bytes_max: 64 << 10,
            versions_max: 100_000,
            json_depth_max: 64,
            small_file_bytes_max: 64 << 10,
        }
    }
}
