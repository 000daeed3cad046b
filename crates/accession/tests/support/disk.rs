//! Disks that fill up.

use std::path::Path;
use std::process::Command;

/// A real small file system, unmounted when it is dropped.
pub struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    pub fn mount(mebibytes: u32) -> Option<SmallDisk> {
        let disk = SmallDisk(tempfile::tempdir().unwrap());
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={mebibytes}m"), "tmpfs"]);
        if !mount.arg(disk.0.path()).output().is_ok_and(|o| o.status.success()) {
            testing::skip("a tmpfs cannot be mounted here");
            return None;
        }
        Some(disk)
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    pub fn grow(&self, mebibytes: u32) {
        let size = format!("remount,size={mebibytes}m");
        let done = Command::new("mount").args(["-o", &size]).arg(self.0.path()).status();
        assert!(done.is_ok_and(|s| s.success()));
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0.path()).status();
    }
}
