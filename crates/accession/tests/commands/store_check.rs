//! `accession store check` as people and scripts meet it.

use crate::answers;
use std::process::{Command, Output};

fn check(arguments: &[&str]) -> Output {
    let typed = [&["store", "check"][..], arguments].concat();
    let output = Command::new(env!("CARGO_BIN_EXE_accession"))
        .args(&typed)
        .env_clear()
        .env("AWS_EC2_METADATA_DISABLED", "true")
        .output()
        .unwrap();
    answers::hold(&typed, &String::from_utf8_lossy(&output.stdout));
    output
}

#[test]
fn a_directory_is_tried_and_left_as_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let output = check(&["--json", dir.path().to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["writable"], true);
    assert_eq!(report["supports"][0]["what"], "rename");
    assert!(report["space_available_bytes"].as_u64().unwrap() > 0);
    let left: Vec<_> = walk(dir.path());
    assert!(left.is_empty(), "{left:?}");
    let people = check(&[&format!("file://{}", dir.path().display())]);
    assert!(String::from_utf8(people.stdout).unwrap().contains("writable  yes"));
}

fn walk(dir: &std::path::Path) -> Vec<std::path::PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { files.extend(walk(&path)) } else { files.push(path) }
    }
    files
}

#[test]
fn what_is_wrong_or_not_there_has_its_own_exit_status() {
    for wrong in ["ftp://x", "s3://", "s3://bucket?colour=red"] {
        assert_eq!(check(&[wrong]).status.code(), Some(2), "{wrong}");
    }
    let absent = check(&["/no/such/directory"]);
    assert_eq!(absent.status.code(), Some(3));
    assert!(String::from_utf8(absent.stderr).unwrap().contains("/no/such/directory"));
    let lonely = check(&["s3://bucket?endpoint=http://127.0.0.1:9"]);
    assert_eq!(lonely.status.code(), Some(3));
    assert!(String::from_utf8(lonely.stderr).unwrap().contains("AWS_ACCESS_KEY_ID"));
}

/// A proxy that lets nothing pass; gives the first line of each request.
fn refusing_proxy() -> (String, std::sync::Arc<std::sync::Mutex<Vec<String>>>) {
    use std::io::{BufRead, BufReader, Write};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let asked: std::sync::Arc<std::sync::Mutex<Vec<String>>> = Default::default();
    let kept = asked.clone();
    std::thread::spawn(move || {
        for socket in listener.incoming().flatten() {
            let mut lines = BufReader::new(&socket).lines().map_while(Result::ok);
            kept.lock().unwrap().extend(lines.next());
            let _: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
            (&socket).write_all(b"HTTP/1.1 403 Forbidden\r\n\r\n").unwrap();
        }
    });
    (address, asked)
}

#[test]
fn connections_go_through_the_proxy_of_the_environment_unless_it_says_otherwise() {
    let through = |no_proxy: &str| {
        let (proxy, asked) = refusing_proxy();
        let output = Command::new(env!("CARGO_BIN_EXE_accession"))
            .args(["store", "check", "s3://bucket?endpoint=http://127.0.0.1:9"])
            .env_clear()
            .envs([("AWS_ACCESS_KEY_ID", "key"), ("AWS_SECRET_ACCESS_KEY", "secret")])
            .envs([("HTTP_PROXY", proxy.as_str()), ("NO_PROXY", no_proxy)])
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(3));
        std::mem::take(&mut *asked.lock().unwrap())
    };
    assert!(through("example.org").iter().any(|line| line == "CONNECT 127.0.0.1:9 HTTP/1.1"));
    assert_eq!(through("127.0.0.1"), Vec::<String>::new());
}

#[test]
fn the_endpoint_of_a_profile_and_the_certificates_of_the_environment_count() {
    let (endpoint, asked) = refusing_proxy();
    let dir = tempfile::tempdir().unwrap();
    let config = dir.path().join("config");
    let text = format!("[profile garage]\nendpoint_url = {endpoint}\nregion = garage\n");
    std::fs::write(&config, text).unwrap();
    let reach = |url: &str, variables: &[(&str, &str)]| {
        Command::new(env!("CARGO_BIN_EXE_accession"))
            .args(["store", "check", url])
            .env_clear()
            .env("AWS_CONFIG_FILE", &config)
            .env("AWS_PROFILE", "garage")
            .envs([("AWS_ACCESS_KEY_ID", "key"), ("AWS_SECRET_ACCESS_KEY", "secret")])
            .envs(variables.iter().copied())
            .output()
            .unwrap()
    };
    let output = reach("s3://bucket", &[]);
    assert_eq!(output.status.code(), Some(3));
    let asked: Vec<String> = std::mem::take(&mut *asked.lock().unwrap());
    assert!(asked[0].starts_with("GET /bucket/?"), "{asked:?}");
    let bundle = [("AWS_CA_BUNDLE", "/no/such/bundle.pem")];
    let output = reach("s3://bucket?endpoint=https://127.0.0.1:9", &bundle);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("/no/such/bundle.pem"), "{said}");
}
