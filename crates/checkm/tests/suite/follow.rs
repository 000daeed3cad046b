//! Inclusions: what is beside a manifest is read too, and nothing else is.

use checkm::{Code, Error, Options};
use std::path::Path;

/// Writes manifests, and gives for each that was read its name, its rows and its codes.
fn follow(files: &[(&str, &str)]) -> Vec<(String, u64, Vec<Code>)> {
    let directory = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = directory.path().join("in").join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, format!("#%checkm_0.7\n{text}#%eof\n")).unwrap();
    }
    std::fs::write(directory.path().join("outside.checkm"), "#%checkm_0.7\n#%eof\n").unwrap();
    follow_in(directory.path())
}

fn follow_in(directory: &Path) -> Vec<(String, u64, Vec<Code>)> {
    let directory = directory.join("in");
    let mut all = Vec::new();
    checkm::follow(&directory.join("first.checkm"), &Options::default(), |followed| {
        let name = followed.path.strip_prefix(&directory).unwrap().display().to_string();
        let codes = followed.report.problems().iter().map(|p| p.code).collect();
        all.push((name, followed.report.rows(), codes));
        Ok::<(), Error>(())
    })
    .unwrap();
    all
}

#[test]
fn included_manifests_are_read_where_the_row_says_and_once() {
    let found = follow(&[
        ("first.checkm", "a.txt\n@sub/second.checkm\n@third.checkm\n"),
        ("sub/second.checkm", "b.txt\nb.txt\n@../third.checkm\n@fourth.checkm\n"),
        ("sub/fourth.checkm", "c.txt | md5 | bad\n"),
        ("third.checkm", "d.txt\n"),
    ]);
    assert_eq!(
        found,
        [
            ("first.checkm".into(), 3, vec![]),
            // A name that leaves its directory is an error, in inclusions too.
            ("sub/second.checkm".into(), 4, vec![Code::NameDuplicate, Code::NameEscape]),
            ("sub/fourth.checkm".into(), 1, vec![Code::DigestLength]),
            ("third.checkm".into(), 1, vec![]),
        ]
    );
}

#[test]
fn circles_and_depth_end() {
    let circle = follow(&[
        ("first.checkm", "@second.checkm\n"),
        ("second.checkm", "@first.checkm\n@second.checkm\n"),
    ]);
    assert_eq!(circle[1].2, [Code::IncludeCycle, Code::IncludeCycle]);
    let deep: Vec<(String, String)> = (0..30)
        .map(|n| {
            let name = if n == 0 { "first.checkm".into() } else { format!("{n}.checkm") };
            (name, format!("@{}.checkm\n", n + 1))
        })
        .collect();
    let deep: Vec<_> = deep.iter().map(|(n, t)| (n.as_str(), t.as_str())).collect();
    let found = follow(&deep);
    assert_eq!(found.len(), 17);
    assert_eq!(found[16].2, [Code::IncludeLimit]);
}

#[test]
fn what_the_row_says_of_the_manifest_must_be_so() {
    let codes = |row: &str| {
        let files = [("first.checkm", format!("{row}\n")), ("second.checkm", "b.txt\n".into())];
        let files: Vec<_> = files.iter().map(|(n, t)| (*n, t.as_str())).collect();
        let found = follow(&files);
        (found[0].2.clone(), found.len())
    };
    let right = "09c9bcd4ad22624c02ee6af3e7dc3c30";
    assert_eq!(codes("@second.checkm | | | 25"), (vec![], 2));
    assert_eq!(codes("@second.checkm | | | 26"), (vec![Code::IncludeChanged], 1));
    assert_eq!(codes(&format!("@second.checkm | MD5 | {right}")), (vec![], 2));
    let wrong = format!("@second.checkm | md5 | {}", right.replace('0', "1"));
    assert_eq!(codes(&wrong), (vec![Code::IncludeChanged], 1));
    let unknown = format!("@second.checkm | blake3 | {}", "0".repeat(64));
    assert_eq!(codes(&unknown), (vec![Code::IncludeUnchecked], 2));
}

#[test]
fn nothing_is_read_elsewhere() {
    for (row, code) in [
        ("@https://example.org/x.checkm", Code::IncludeRemote),
        ("@missing.checkm", Code::IncludeMissing),
        ("@.", Code::NameSyntax),
        ("@../outside.checkm", Code::NameEscape),
    ] {
        let found = follow(&[("first.checkm", &format!("{row}\n"))]);
        assert_eq!(found.len(), 1, "{row}");
        assert!(found[0].2.contains(&code), "{row}: {:?}", found[0].2);
    }
}

#[test]
#[cfg(unix)]
fn links_do_not_lead_out() {
    let directory = tempfile::tempdir().unwrap();
    let inside = directory.path().join("in");
    std::fs::create_dir(&inside).unwrap();
    std::fs::write(inside.join("first.checkm"), "#%checkm_0.7\n@link.checkm\n#%eof\n").unwrap();
    std::fs::write(directory.path().join("outside.checkm"), "#%checkm_0.7\n#%eof\n").unwrap();
    std::os::unix::fs::symlink("../outside.checkm", inside.join("link.checkm")).unwrap();
    assert_eq!(
        follow_in(directory.path()),
        [("first.checkm".into(), 1, vec![Code::IncludeOutside])]
    );
}

#[test]
fn inclusions_that_are_not_followed_are_said_to_be_unread() {
    let text = "#%checkm_0.7\na.txt\n@second.checkm\n#%eof\n";
    let report = checkm::check(text.as_bytes(), &Options::default()).unwrap();
    let found: Vec<_> = report.problems().iter().map(|p| (p.line, p.code)).collect();
    assert_eq!(found, [(3, Code::IncludeUnread)]);
    assert!(report.is_valid());
}
