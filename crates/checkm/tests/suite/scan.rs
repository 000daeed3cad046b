//! Manifests made of directories.

use checkm::{
    Algorithm, Format, Header, Options, Profile, Row, Scan, ScanError, Scanned, WriteError, Writer,
};
use std::fs;
use std::path::Path;

#[derive(Debug, thiserror::Error)]
enum Stop {
    #[error(transparent)]
    Scan(#[from] ScanError),
    #[error(transparent)]
    Write(#[from] WriteError),
}

fn scan(profile: Profile, algorithm: Algorithm, base_url: Option<&str>) -> Scan {
    let base_url = base_url.map(str::to_string);
    Scan { profile, algorithm, base_url, has_times: false, except: Vec::new(), threads: 3 }
}

fn rows(scan: &Scan, root: &Path) -> (Vec<Row<'static>>, Vec<String>) {
    let (mut rows, mut skipped) = (Vec::new(), Vec::new());
    scan.run::<Stop>(root, |scanned| {
        match scanned {
            Scanned::Row(row) => rows.push(*row),
            Scanned::Skipped(why) => skipped.push(why.to_string()),
        }
        Ok(())
    })
    .unwrap();
    (rows, skipped)
}

fn tree() -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir_all(root.path().join("b/empty")).unwrap();
    fs::write(root.path().join("b/two words|#.txt"), "abc").unwrap();
    fs::write(root.path().join("a.txt"), "").unwrap();
    fs::write(root.path().join("c.bin"), vec![7; 300_000]).unwrap();
    root
}

#[test]
fn files_are_listed_in_order_with_true_digests() {
    let root = tree();
    let known = [
        (Algorithm::Md5, "900150983cd24fb0d6963f7d28e17f72"),
        (Algorithm::Sha1, "a9993e364706816aba3e25717850c26c9cd0d89d"),
        (Algorithm::Sha256, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
    ];
    for (hash, of_abc) in known {
        let (rows, skipped) = rows(&scan(Profile::General, hash, None), root.path());
        let names: Vec<_> = rows.iter().map(|r| r.source.as_deref().unwrap()).collect();
        assert_eq!(names, ["a.txt", "b/empty/", "b/two words|#.txt", "c.bin"]);
        assert!(rows[1].is_directory() && skipped.is_empty());
        assert_eq!(rows[2].digest.as_deref(), Some(of_abc));
        assert_eq!((rows[0].size, rows[2].size, rows[3].size), (Some(0), Some(3), Some(300_000)));
    }
}

#[test]
fn a_manifest_that_is_made_is_valid_in_its_profile() {
    let root = tree();
    for (profile, format) in [
        (Profile::General, Format::Checkm),
        (Profile::Object, Format::Json),
        (Profile::Object, Format::Checkm),
        (Profile::Container, Format::Checkm),
        (Profile::SingleFileBatch, Format::Checkm),
    ] {
        let settings = scan(profile, Algorithm::Sha512, Some("https://example.org/files/"));
        let mut writer = Writer::new(Vec::new(), format, Header::new(profile)).unwrap();
        settings
            .run::<Stop>(root.path(), |scanned| match scanned {
                Scanned::Row(row) => Ok(writer.write(&row)?),
                Scanned::Skipped(_) => Ok(()),
            })
            .unwrap();
        let bytes = writer.finish().unwrap();
        let report = checkm::check(&bytes[..], &Options::default()).unwrap();
        assert!(report.problems().is_empty(), "{profile}: {:?}", report.problems());
    }
}

#[test]
fn urls_are_encoded_and_needed() {
    let root = tree();
    let (rows, skipped) =
        rows(&scan(Profile::Object, Algorithm::Md5, Some("http://h/x")), root.path());
    assert_eq!(rows[1].source.as_deref(), Some("http://h/x/b/two%20words%7C%23.txt"));
    assert_eq!(rows[1].name.as_deref(), Some("b/two words|#.txt"));
    assert_eq!(skipped.len(), 1, "an empty directory has no place there: {skipped:?}");
    let missing = scan(Profile::Object, Algorithm::Md5, None).check();
    assert!(matches!(missing, Err(ScanError::NoBaseUrl(Profile::Object))));
    for bad in ["ftp://h", "http://h/?x", "http://h/ü", "nonsense"] {
        let result = scan(Profile::Object, Algorithm::Md5, Some(bad)).check();
        assert!(matches!(result, Err(ScanError::BadBaseUrl { .. })), "{bad}");
    }
}

#[cfg(unix)]
#[test]
fn what_no_manifest_can_list_is_said() {
    use std::os::unix::ffi::OsStrExt;
    let root = tree();
    std::os::unix::fs::symlink("/etc/passwd", root.path().join("link")).unwrap();
    fs::write(root.path().join(std::ffi::OsStr::from_bytes(b"latin-\xfc")), "x").unwrap();
    let mut settings = scan(Profile::General, Algorithm::Md5, None);
    settings.except.push(root.path().join("b/../c.bin"));
    let (rows, skipped) = rows(&settings, root.path());
    assert_eq!(rows.len(), 3, "the link is not followed, and what is excepted is not there");
    assert!(
        skipped[0].contains("not UTF-8") && skipped[1].contains("symbolic link"),
        "{skipped:?}"
    );
    let gone = settings.run::<Stop>(&root.path().join("nowhere"), |_| Ok(()));
    assert!(matches!(gone, Err(Stop::Scan(ScanError::Read { .. }))));
}

#[test]
fn a_scan_can_be_given_up() {
    let root = tempfile::tempdir().unwrap();
    for n in 0..2000 {
        fs::write(root.path().join(n.to_string()), "x").unwrap();
    }
    let mut seen = 0;
    let result = scan(Profile::General, Algorithm::Md5, None).run::<Stop>(root.path(), |_| {
        seen += 1;
        if seen == 3 { Err(ScanError::NoBaseUrl(Profile::General).into()) } else { Ok(()) }
    });
    assert!(result.is_err());
    assert_eq!(seen, 3, "and the threads ended, or this would not have come back");
}
