//! Packages to ingest, good and bad.

use bagit::WriteOptions;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A directory with these files.
pub fn directory(path: &Path, files: &[(&str, &str)]) -> PathBuf {
    for (name, content) in files {
        let file = path.join(name);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, content).unwrap();
    }
    path.to_path_buf()
}

/// A bag with these payload files.
pub fn bag(path: &Path, files: &[(&str, &str)]) -> PathBuf {
    directory(path, files);
    bagit::create_in_place(path, &WriteOptions::default(), &()).unwrap();
    path.to_path_buf()
}

/// An archive of a directory, beside it.
pub fn archive(path: &Path, extension: &str) -> PathBuf {
    let to = PathBuf::from(format!("{}.{extension}", path.display()));
    let (parent, name) = (path.parent().unwrap(), path.file_name().unwrap());
    let flags = match extension {
        "tar" => "cf",
        "tar.gz" => "czf",
        "zip" => {
            let script = "import shutil,sys; shutil.make_archive(sys.argv[1], 'zip', sys.argv[2], sys.argv[3])";
            let made = Command::new("python3")
                .args(["-c", script])
                .args([path.as_os_str(), parent.as_os_str(), name])
                .status();
            assert!(made.unwrap().success());
            return to;
        }
        other => panic!("{other}"),
    };
    let made = Command::new("tar").arg(flags).arg(&to).arg("-C").arg(parent).arg(name).status();
    assert!(made.unwrap().success());
    to
}

/// A tar written by hand, member by member: for names that no tool would write.
pub fn raw_tar(path: &Path, members: &[(&str, u8, &str, &str)]) -> PathBuf {
    let mut bytes = Vec::new();
    for (name, kind, link, content) in members {
        let mut header = [0; 512];
        header[..name.len()].copy_from_slice(name.as_bytes());
        header[100..108].copy_from_slice(b"0000644\0");
        header[108..124].copy_from_slice(b"0000000\x000000000\0");
        header[124..136].copy_from_slice(format!("{:011o}\0", content.len()).as_bytes());
        header[136..148].copy_from_slice(b"00000000000\0");
        header[148..156].copy_from_slice(b"        ");
        header[156] = *kind;
        header[157..157 + link.len()].copy_from_slice(link.as_bytes());
        header[257..265].copy_from_slice(b"ustar\x0000");
        let sum: u32 = header.iter().map(|b| u32::from(*b)).sum();
        header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        bytes.extend(header);
        bytes.extend(content.as_bytes());
        bytes.resize(bytes.len().next_multiple_of(512), 0);
    }
    bytes.extend([0; 1024]);
    std::fs::write(path, bytes).unwrap();
    path.to_path_buf()
}
