//! Packages of every shape, made by the tests.

use bagit::{Algorithm, Hasher};
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

/// A plain directory; what was there goes.
pub fn directory(path: &Path, files: &Files) -> PathBuf {
    let _ = std::fs::remove_dir_all(path);
    for (name, content) in files {
        let place = path.join(name);
        std::fs::create_dir_all(place.parent().unwrap()).unwrap();
        std::fs::write(place, content).unwrap();
    }
    path.to_path_buf()
}

/// A bag in a directory.
pub fn bag(path: &Path, files: &Files) -> PathBuf {
    let payload: Files = files.iter().map(|(n, c)| (format!("data/{n}"), c.clone())).collect();
    directory(path, &payload);
    let mut manifest = String::new();
    for (name, content) in &payload {
        manifest.push_str(&format!("{}  {name}\n", sha256(content)));
    }
    let declaration = "BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n";
    let bytes: usize = files.iter().map(|(_, c)| c.len()).sum();
    let info = format!("Payload-Oxum: {bytes}.{}\nSource-Organization: Tests\n", files.len());
    for (name, text) in
        [("bagit.txt", declaration), ("bag-info.txt", &info), ("manifest-sha256.txt", &manifest)]
    {
        std::fs::write(path.join(name), text).unwrap();
    }
    path.to_path_buf()
}

/// A directory, packed: `tar`, `tar.gz` or `zip` by its name's end.
pub fn pack(directory: &Path, archive: &Path) -> PathBuf {
    let (parent, name) = (directory.parent().unwrap(), directory.file_name().unwrap());
    let mut command = match archive.to_string_lossy().ends_with(".zip") {
        true => {
            let mut python = Command::new("python3");
            python.current_dir(parent).args(["-m", "zipfile", "-c"]).arg(archive).arg(name);
            python
        }
        false => {
            let mut tar = Command::new("tar");
            tar.arg("-C").arg(parent).arg("-caf").arg(archive).arg(name);
            tar
        }
    };
    assert!(command.status().unwrap().success());
    archive.to_path_buf()
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
