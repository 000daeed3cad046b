//! Bags for tests, written by hand so that they can be wrong on purpose.

#![allow(dead_code, clippy::unwrap_used)]

use bagit::{Algorithm, Bag, Code, Hasher, Options, Report};
use std::io::Write;
use std::path::Path;

/// Files of a bag by path.
#[derive(Clone, Default)]
pub struct Files(pub Vec<(String, Vec<u8>)>);

pub fn digest(algorithm: Algorithm, bytes: &[u8]) -> String {
    let mut hasher = Hasher::new([algorithm].into_iter().collect());
    hasher.update(bytes);
    hasher.finish().get(algorithm).unwrap().to_string()
}

impl Files {
    /// A declaration and nothing else.
    pub fn new(version: &str) -> Files {
        let text = format!("BagIt-Version: {version}\nTag-File-Character-Encoding: UTF-8\n");
        Files::default().with("bagit.txt", text)
    }

    /// A valid bag with payload, information and manifests of these algorithms.
    pub fn valid(algorithms: &[Algorithm]) -> Files {
        let mut files = Files::new("1.0")
            .with("data/hello.txt", "hello\n")
            .with("data/sub/world.txt", "world\n".repeat(1000))
            .with("data/empty", "");
        files = files.with("bag-info.txt", "Source-Organization: Test\nPayload-Oxum: 6006.3\n");
        for algorithm in algorithms {
            files = files.manifest(*algorithm);
        }
        for algorithm in algorithms {
            files = files.tagmanifest(*algorithm);
        }
        files
    }

    pub fn with(mut self, path: &str, bytes: impl Into<Vec<u8>>) -> Files {
        self.0.retain(|(p, _)| p != path);
        self.0.push((path.to_owned(), bytes.into()));
        self
    }

    pub fn without(mut self, path: &str) -> Files {
        self.0.retain(|(p, _)| p != path);
        self
    }

    pub fn manifest(self, algorithm: Algorithm) -> Files {
        let text = self.list(algorithm, &|path| path.starts_with("data/"));
        self.with(&format!("manifest-{algorithm}.txt"), text)
    }

    pub fn tagmanifest(self, algorithm: Algorithm) -> Files {
        let tags = |path: &str| !path.starts_with("data/") && !path.starts_with("tagmanifest-");
        let text = self.list(algorithm, &tags);
        self.with(&format!("tagmanifest-{algorithm}.txt"), text)
    }

    fn list(&self, algorithm: Algorithm, wanted: &dyn Fn(&str) -> bool) -> String {
        let lines = self.0.iter().filter(|(path, _)| wanted(path));
        lines.map(|(path, bytes)| format!("{}  {path}\n", digest(algorithm, bytes))).collect()
    }

    pub fn write(&self, directory: &Path) {
        std::fs::create_dir_all(directory.join("data")).unwrap();
        for (path, bytes) in &self.0 {
            let path = directory.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, bytes).unwrap();
        }
    }

    /// A tar file made by the crate `tar`.
    pub fn tar(&self, base: &str) -> Vec<u8> {
        let mut builder = tar::Builder::new(Vec::new());
        for (path, bytes) in &self.0 {
            let mut header = tar::Header::new_gnu();
            header.set_size(bytes.len() as u64);
            header.set_mode(0o644);
            builder.append_data(&mut header, format!("{base}{path}"), bytes.as_slice()).unwrap();
        }
        builder.into_inner().unwrap()
    }

    /// A zip file made by the crate `zip`.
    pub fn zip(&self, base: &str, deflate: bool) -> Vec<u8> {
        let mut writer = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
        let method = match deflate {
            true => zip::CompressionMethod::Deflated,
            false => zip::CompressionMethod::Stored,
        };
        let options = zip::write::SimpleFileOptions::default().compression_method(method);
        for (path, bytes) in &self.0 {
            writer.start_file(format!("{base}{path}"), options).unwrap();
            writer.write_all(bytes).unwrap();
        }
        writer.finish().unwrap().into_inner()
    }

    /// Validates the files as a directory.
    pub fn validate(&self) -> Report {
        self.validate_with(&Options::default())
    }

    pub fn validate_with(&self, options: &Options) -> Report {
        let directory = tempfile::tempdir().unwrap();
        self.write(directory.path());
        Bag::open(directory.path()).unwrap().validate(options).unwrap()
    }
}

/// A tar member as raw as it can be made.
pub fn member(name: &[u8], flag: u8, size_field: &[u8; 12], body: &[u8]) -> Vec<u8> {
    let mut block = vec![0_u8; 512];
    block[..name.len().min(100)].copy_from_slice(&name[..name.len().min(100)]);
    block[100..108].copy_from_slice(b"0000644\0");
    block[124..136].copy_from_slice(size_field);
    block[136..148].copy_from_slice(b"00000000000\0");
    block[148..156].copy_from_slice(b"        ");
    block[156] = flag;
    block[257..265].copy_from_slice(b"ustar\x0000");
    let sum: u32 = block.iter().map(|b| u32::from(*b)).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    block.extend_from_slice(body);
    block.resize(block.len().next_multiple_of(512), 0);
    block
}

pub fn octal(size: usize) -> [u8; 12] {
    format!("{size:011o}\0").into_bytes().try_into().unwrap()
}

pub fn plain(name: &str, body: &[u8]) -> Vec<u8> {
    member(name.as_bytes(), b'0', &octal(body.len()), body)
}

pub fn gz(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

pub fn bz2(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

pub fn zst(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 1).unwrap()
}

pub fn codes(report: &Report) -> Vec<Code> {
    report.problems.iter().map(|p| p.code).collect()
}

/// Validates bytes that can be read anywhere.
pub fn validate_bytes(bytes: Vec<u8>) -> Result<Report, bagit::Error> {
    Bag::from_read_at(bytes, "bag.archive")?.validate(&Options::default())
}
