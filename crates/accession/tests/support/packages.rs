//! Packages of every shape, made by the tests.

use bagit::{Algorithm, Hasher, WriteOptions};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Files by name and content.
pub type Files = Vec<(String, Vec<u8>)>;

/// So many small files, each different; `salt` makes others of them.
pub fn small(count: usize, salt: &str) -> Files {
    (0..count)
        .map(|n| (format!("d{}/f{n}.txt", n % 7), format!("{salt} {n}\n").into_bytes()))
        .collect()
}

/// Bytes that do not compress away.
pub fn noise(length: usize, seed: u64) -> Vec<u8> {
    use rand::{RngCore, SeedableRng};
    let mut bytes = vec![0; length];
    rand::rngs::StdRng::seed_from_u64(seed).fill_bytes(&mut bytes);
    bytes
}

pub fn sha256(content: &[u8]) -> String {
    let mut hasher = Hasher::new([Algorithm::Sha256].into_iter().collect());
    hasher.update(content);
    hasher.finish().get(Algorithm::Sha256).unwrap().to_string()
}

/// A directory with these files, and those that were there.
pub fn directory<N: AsRef<Path>, C: AsRef<[u8]>>(path: &Path, files: &[(N, C)]) -> PathBuf {
    for (name, content) in files {
        let file = path.join(name);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, content).unwrap();
    }
    path.to_path_buf()
}

/// A bag with these payload files.
pub fn bag<N: AsRef<Path>, C: AsRef<[u8]>>(path: &Path, files: &[(N, C)]) -> PathBuf {
    directory(path, files);
    bagit::create_in_place(path, &WriteOptions::default(), &()).unwrap();
    path.to_path_buf()
}

/// An archive of a directory, beside it: `tar`, `tar.gz` or `zip`.
pub fn archive(path: &Path, extension: &str) -> PathBuf {
    let to = PathBuf::from(format!("{}.{extension}", path.display()));
    let (parent, name) = (path.parent().unwrap(), path.file_name().unwrap());
    let mut command = match extension {
        "zip" => {
            let mut python = Command::new("python3");
            python.current_dir(parent).args(["-m", "zipfile", "-c"]).arg(&to).arg(name);
            python
        }
        _ => {
            let mut tar = Command::new("tar");
            tar.arg("-C").arg(parent).arg("-caf").arg(&to).arg(name);
            tar
        }
    };
    assert!(command.status().unwrap().success());
    to
}

/// An object manifest whose files are at `base`.
pub fn manifest(path: &Path, base: &str, files: &Files) -> PathBuf {
    let mut text = String::from(
        "#%checkm_0.7\n#%profile | http://uc3.cdlib.org/registry/ingest/manifest/mrt-ingest-manifest\n",
    );
    for (name, content) in files {
        let digest = sha256(content);
        text.push_str(&format!(
            "{base}/{name} | sha256 | {digest} | {} | | {name}\n",
            content.len()
        ));
    }
    text.push_str("#%eof\n");
    std::fs::write(path, text).unwrap();
    path.to_path_buf()
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
