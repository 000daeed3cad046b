//! `accession ocfl` on S3: the same commands, against a real server in the test process, or the one
//! that `scripts/torture s3` names.

use crate::answers;
use crate::s3::Server;
use ocfl::{About, DraftOptions, StorageRoot};
use std::process::Command;

const ID: &str = "ark:/12345/bcd987";

struct Answer {
    status: i32,
    out: String,
    err: String,
}

/// Runs a command on a thread of its own, since the server runs on the others.
async fn accession(server: &Server, typed: &[&str]) -> Answer {
    let environment = server.environment();
    let arguments: Vec<String> = typed.iter().map(|&argument| argument.to_owned()).collect();
    let run = tokio::task::spawn_blocking(move || {
        Command::new(env!("CARGO_BIN_EXE_accession"))
            .arg("ocfl")
            .args(arguments)
            .env_clear()
            .envs(environment)
            .output()
    });
    let output = run.await.expect("a thread").expect("the binary runs");
    let typed = [&["ocfl"][..], typed].concat();
    answers::hold(&typed, &String::from_utf8_lossy(&output.stdout));
    Answer {
        status: output.status.code().expect("an exit status"),
        out: String::from_utf8(output.stdout).expect("UTF-8"),
        err: String::from_utf8(output.stderr).expect("UTF-8"),
    }
}

/// An object of two versions, and another that nobody finished.
async fn fill(server: &Server) {
    let store = server.store("bucket", "root").await;
    let root = StorageRoot::open(store).await.expect("a root");
    for content in ["one", "two"] {
        let about = About { message: Some(format!("Version {content}")), ..About::default() };
        let draft = root.begin(ID, about, &DraftOptions::default()).await.expect("a draft");
        draft.put("letter.txt", content.into()).await.expect("a put");
        draft.put(&format!("{content}/more.txt"), "more".into()).await.expect("a put");
        root.seal(&draft.write().await.expect("an inventory")).await.expect("a seal");
    }
    let draft = root.begin("urn:x:left", About::default(), &DraftOptions::default()).await;
    draft.expect("a draft").put("a", "a".into()).await.expect("a put");
}

#[tokio::test(flavor = "multi_thread")]
async fn from_init_to_purge() {
    let directory = tempfile::tempdir().expect("a directory");
    std::fs::create_dir(directory.path().join("bucket")).expect("a bucket");
    let server = Server::start(directory.path()).await;
    let root = &server.url("bucket", "root");
    let accession = async |arguments: &[&str]| accession(&server, arguments).await;
    let made = accession(&["init", root]).await;
    assert_eq!(made.status, 0, "{}", made.err);
    assert_eq!(accession(&["init", root]).await.status, 2, "a root is made once");
    fill(&server).await;

    let listed = accession(&["ls", root]).await;
    assert!(listed.status == 0 && listed.out.contains(ID) && listed.out.contains("v2"));
    assert_eq!(accession(&["log", root, ID, "--json"]).await.out.lines().count(), 2);
    let shown = accession(&["show", root, ID, "--at", "v1"]).await;
    assert!(shown.out.contains("v1 of v2") && shown.out.contains("one/more.txt"), "{}", shown.out);
    assert_eq!(accession(&["diff", root, ID]).await.out, "~ letter.txt\n+ two/more.txt\n");
    assert_eq!(accession(&["cat", root, ID, "letter.txt", "--at", "v1"]).await.out, "one");
    assert_eq!(accession(&["cat", root, ID, "nothing.txt"]).await.status, 1);

    let target = directory.path().join("out");
    let out = target.to_str().expect("UTF-8");
    assert_eq!(accession(&["export", root, ID, out]).await.status, 0);
    assert_eq!(std::fs::read(target.join("letter.txt")).expect("a file"), b"two");

    // What nobody finished is in its place here, where a validator sees it, until it is swept.
    assert_eq!(accession(&["validate", root, ID]).await.status, 0);
    assert!(accession(&["sweep", root]).await.out.contains("kept"), "it is young");
    let told = accession(&["sweep", root, "--older-than", "0", "--dry-run"]).await;
    assert!(told.out.contains("would be removed") && told.out.contains("urn:x:left"));
    assert!(accession(&["sweep", root, "--older-than", "0"]).await.out.contains("removed"));
    let again = accession(&["sweep", root, "--older-than", "0"]).await;
    assert!(again.out.starts_with("nothing was left behind\n"), "{}", again.out);
    let whole = accession(&["validate", root]).await;
    assert_eq!(whole.status, 0, "{}{}", whole.out, whole.err);

    if let Some(real) = &server.real {
        real.judge_root("bucket/root", &[]);
    }
    server.damage("bucket", "root", "v1/content/letter.txt");
    let found = accession(&["validate", root]).await;
    assert!(found.status == 1 && found.out.contains("E092"), "{}", found.out);
    let damaged = accession(&["cat", root, ID, "letter.txt", "--at", "v1"]).await;
    assert!(damaged.status == 1 && damaged.err.contains("[corrupt]"), "{}", damaged.err);

    assert_eq!(accession(&["purge", root, ID]).await.status, 2, "not without --yes");
    assert_eq!(accession(&["purge", root, ID, "--yes"]).await.status, 0);
    assert_eq!(accession(&["log", root, ID]).await.status, 1);
    assert_eq!(accession(&["validate", root]).await.status, 0);
}
