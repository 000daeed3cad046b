use super::*;
use crate::config::{AllowPrivate, MailSecurity};

struct Case {
    dir: tempfile::TempDir,
    env: Vec<(String, String)>,
    flags: Flags,
}

impl Case {
    fn new(text: &str) -> Case {
        let dir = tempfile::tempdir().unwrap();
        if !text.is_empty() {
            std::fs::write(dir.path().join(FILE_NAME), text).unwrap();
        }
        Case { dir, env: Vec::new(), flags: Flags::default() }
    }

    fn env(mut self, name: &str, value: &str) -> Case {
        self.env.push((name.to_string(), value.to_string()));
        self
    }

    fn set(mut self, assignment: &str) -> Case {
        self.flags.set.push(assignment.to_string());
        self
    }

    fn load(&self) -> Result<Loaded> {
        Config::load(&self.flags, self.env.clone(), self.dir.path(), &["storing", "verifying"])
    }

    fn error(&self) -> String {
        self.load().unwrap_err().to_string()
    }
}

#[test]
fn nothing_at_all_works() {
    let case = Case::new("");
    let loaded = case.load().unwrap();
    let config = &loaded.config;
    assert_eq!(config.stores["main"].url, case.dir.path().join("stores/main").to_str().unwrap());
    assert_eq!(config.work_space.path, case.dir.path().join("work"));
    assert_eq!((config.work_space.admit_percent, config.work_space.stop_percent), (70, 80));
    assert_eq!(config.upload.bytes_max, 30 << 30);
    assert!(loaded.entries().iter().all(|entry| entry.origin == Origin::Default));
    assert_eq!(loaded.file, None);
}

#[test]
fn flags_go_over_variables_and_variables_over_the_file() {
    let text = "[fetch]\ntimeout_seconds = 11\nconnections = 12\ntries = 3\n";
    let case = Case::new(text)
        .env("ACCESSION_FETCH_CONNECTIONS", "20")
        .env("ACCESSION_FETCH_TRIES", "4")
        .set("fetch.tries=5");
    let loaded = case.load().unwrap();
    let fetch = &loaded.config.fetch;
    assert_eq!((fetch.timeout_seconds, fetch.connections, fetch.tries), (11, 20, 5));
    let origin = |key: &str| loaded.origin(key).to_string();
    let file = case.dir.path().join(FILE_NAME);
    assert_eq!(origin("fetch.timeout_seconds"), format!("{}:2", file.display()));
    assert_eq!(origin("fetch.connections"), "environment ACCESSION_FETCH_CONNECTIONS");
    assert_eq!(origin("fetch.tries"), "--set fetch.tries");
    assert_eq!(origin("fetch.bytes_max"), "default");
}

#[test]
fn variables_name_stores_and_collections_and_need_no_file() {
    let loaded = Case::new(
        "[stores.cold-copies]\nurl = 'cold'\n[collections.A]\n[[watch]]\npath='in'\ncollection='A'",
    )
    .env("ACCESSION_STORES_COLD_COPIES_URL", "s3://cold/")
    .env("ACCESSION_STORES_NEAR_URL", "/near")
    .env("ACCESSION_COLLECTIONS_A_CALLBACK_URL", "https://x/")
    .env("ACCESSION_COLLECTIONS_A_CALLBACK_SECRET", "1234")
    .env("ACCESSION_WATCH_0_STILL_SECONDS", "5")
    .env("ACCESSION_STAGES_STORING_WORKERS", "8")
    .env("ACCESSION_MAIL_HOST", "mail.example.org")
    .env("ACCESSION_MAIL_FROM", "archive@example.org")
    .env("ACCESSION_FUZZ_SECONDS", "4")
    .env("ACCESSION_DATABASE", "x")
    .load()
    .unwrap();
    let config = &loaded.config;
    assert_eq!(config.stores["cold-copies"].url, "s3://cold/");
    assert_eq!(config.stores["near"].url, "/near");
    assert_eq!(config.stores.len(), 2);
    assert_eq!(config.collections["A"].callback.as_ref().unwrap().secret.as_deref(), Some("1234"));
    assert_eq!(config.watch[0].still_seconds, 5);
    assert_eq!(config.stages["storing"].changes(), [("workers".to_string(), "8".to_string())]);
    let mail = config.mail.as_ref().unwrap();
    assert_eq!((mail.security, mail.port()), (MailSecurity::Starttls, 587));
    let shown = serde_json::to_string(&loaded.entries()).unwrap();
    assert!(!shown.contains("1234") && shown.contains(MASK));
}

/// Whoever opens a store by its address alone reaches it as workers do.
#[test]
fn the_address_of_a_store_has_what_every_request_needs() {
    let loaded = Case::new(
        "[stores.s]\nurl = 's3://b/p?region=eu-1'\nconcurrency = 3\nsse = 'aws:kms'\n\
         sse_kms_key_id = 'arn:aws:kms:eu-1:1:key/a&b%'\n[stores.d]\nurl = '/near'",
    )
    .load()
    .unwrap();
    let stores = &loaded.config.stores;
    let config = store::S3Config::from_url(&stores["s"].address()).unwrap();
    assert_eq!((&*config.prefix, &*config.region, config.requests_max), ("p", "eu-1", 3));
    assert_eq!(config.sse.as_deref(), Some("aws:kms"));
    assert_eq!(config.sse_kms_key_id.as_deref(), Some("arn:aws:kms:eu-1:1:key/a&b%"));
    assert_eq!(stores["d"].address(), "/near");
}

#[test]
fn amounts_and_lists_are_written_as_people_write_them() {
    let loaded = Case::new("[upload]\nbytes_max = '5 GiB'\n[fetch]\nallow_private = ['10.0.0.0/8', 'files.local']\nfile_roots = ['drop', '/srv']")
        .env("ACCESSION_LIMITS_BYTES_MAX", "2 TiB")
        .env("ACCESSION_FETCH_ALLOW_PRIVATE", "true")
        .load()
        .unwrap();
    assert_eq!(loaded.config.upload.bytes_max, 5 << 30);
    assert_eq!(loaded.config.limits.bytes_max, 2 << 40);
    assert_eq!(loaded.config.fetch.allow_private, AllowPrivate::All(true));
    assert!(loaded.config.fetch.file_roots[0].is_absolute());
}

#[test]
fn errors_name_the_file_the_line_and_the_key() {
    for (text, parts) in [
        (
            "[fetch]\n\ntimeout = 5\n",
            vec!["accession.toml:3: fetch.timeout: unknown field `timeout`"],
        ),
        ("[fetch]\ntimeout_seconds = 'x'\n", vec!["accession.toml:2: fetch.timeout_seconds:"]),
        ("[upload]\nbytes_max = '5 XB'\n", vec!["accession.toml:2: upload.bytes_max", "bytes"]),
        ("[fetch\n", vec!["accession.toml:1:"]),
        ("[colour]\nx=1\n", vec!["accession.toml:1:", "unknown field `colour`"]),
        ("[stores.a]\n", vec!["accession.toml:1: stores.a.url: missing field `url`"]),
        (
            "[fetch]\ntries = 3\n\n[mail]\nhost = 'x'\n\n[upload]\nbytes_max = 5\n",
            vec!["accession.toml:4: mail.from: missing field `from`"],
        ),
        (
            "[fetch]\ntries = 3\n\n[[watch]]\npath = 'x'\nstill_seconds = 'a'\n",
            vec![
                "accession.toml:6: watch.0.still_seconds: invalid type: string \"a\", expected a whole number;",
            ],
        ),
        (
            "[collections.c]\nnotify = ['x@example.org']\n",
            vec![
                "accession.toml:2: collections.c.notify: invalid type: string \"x@example.org\", expected a table;",
            ],
        ),
        (
            "[collections.c]\nnotify = {address = 'x@example.org'}\n",
            vec!["accession.toml:2: collections.c.notify: a table is here, expected a list;"],
        ),
        (
            "stores = 'x'\n",
            vec!["accession.toml:1: stores: invalid type: string \"x\", expected a table;"],
        ),
        ("[mail]\nfrom = 'a@b'\n", vec!["accession.toml:1: mail.host: missing field `host`"]),
        (
            "[[watch]]\npath = 'in'\ncollection = 'c'\n\n[[watch]]\ncollection = 'c'\n",
            vec!["accession.toml:5: watch.1.path: missing field `path`"],
        ),
        (
            "[stores.b]\nurl = 'x'\n[identifiers.ezid]\nurl = 'https://x'\n",
            vec!["accession.toml:3: identifiers.ezid.user: missing field `user`"],
        ),
        (
            "\n[fetch]\ntries = 0\nconnections = 9999\n",
            vec![
                "accession.toml:3: fetch.tries is 0 but must be between 1 and 20",
                "accession.toml:4: fetch.connections is 9999",
            ],
        ),
        (
            "[collections.c]\nstores = ['x']\n",
            vec!["accession.toml:2: collections.c.stores names the store `x`"],
        ),
        (
            "[collections.c]\nfixity_days = 0\n",
            vec!["accession.toml:2: collections.c.fixity_days is 0"],
        ),
        ("[stores.'a b']\nurl = 'x'\n", vec!["`a b` cannot be a name"]),
        ("[stores.a]\nurl = 'ftp://x'\n", vec!["accession.toml:2: stores.a.url `ftp://x`"]),
        ("[stages.sorting]\nworkers = 1\n", vec!["accession.toml:2: stages.sorting is no stage"]),
        ("[[watch]]\npath = 'in'\n", vec!["accession.toml:2: watch.0 says no collection"]),
        (
            "[fetch]\nallow_private = ['10.0.0.0/99']\n",
            vec!["accession.toml:2: fetch.allow_private"],
        ),
        (
            "[work_space]\nadmit_percent = 90\n",
            vec!["work_space.stop_percent is 80, which is below"],
        ),
        (
            "[mail]\nhost = 'x'\nfrom = 'nobody'\nuser = 'u'\n",
            vec!["mail.from `nobody` is not", "mail.user and"],
        ),
        ("[collections.c]\nidentifiers = 'ezid'\n", vec!["[identifiers.ezid] is not configured"]),
    ] {
        let error = Case::new(text).error();
        for part in parts {
            assert!(error.contains(part), "{text:?} gave: {error}");
        }
    }
}

#[test]
fn wrong_variables_and_flags_are_named() {
    for (case, part) in [
        (
            Case::new("").env("ACCESSION_FETCH_TIMEOUT", "5"),
            "ACCESSION_FETCH_TIMEOUT is no setting",
        ),
        (
            Case::new("").env("ACCESSION_FETCH_TRIES", "many"),
            "environment ACCESSION_FETCH_TRIES: fetch.tries cannot be `many`",
        ),
        (
            Case::new("").env("ACCESSION_FETCH_TRIES", "99"),
            "environment ACCESSION_FETCH_TRIES: fetch.tries is 99",
        ),
        (
            Case::new("").env("ACCESSION_MAIL_HOST", "x"),
            "environment ACCESSION_MAIL_HOST: mail.from: missing field `from`",
        ),
        (Case::new("").set("fetch.tries"), "has no `=`"),
        (
            Case::new("").set("fetch.trials=3"),
            "--set fetch.trials: fetch.trials cannot be `3`: unknown field `trials`",
        ),
        (
            Case::new("").env("ACCESSION_CONFIG", "/does/not/exist"),
            "/does/not/exist cannot be read",
        ),
    ] {
        let error = case.error();
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn every_setting_is_in_the_table_and_in_the_documentation() {
    let text = "
        [stores.a]\nurl = 'x'
        [mail]\nhost = 'x'\nfrom = 'a@b'
        [identifiers.ezid]\nurl = 'https://x'\nuser = 'u'\npassword_file = 'p'\nshoulder = 'ark:/1/x'
        [stages.storing]
        [[watch]]\npath = 'in'\ncollection = 'c'
        [collections.c]\nnotify = [{address = 'a@b'}]\nchecks = [{name = 'x', program = ['y']}]
        callback = {url = 'https://x', secret = 's'}
    ";
    let loaded = Case::new(text).load().unwrap();
    let docs = std::fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/configuration.md"
    ))
    .unwrap();
    for entry in loaded.entries() {
        let found =
            setting(&entry.key).unwrap_or_else(|| panic!("{} is not in SETTINGS", entry.key));
        let name = found.key.replace("*", "NAME");
        let short = name.rsplit('.').next().unwrap();
        assert!(docs.contains(&format!("`{short}`")), "{name} is not in docs/configuration.md");
    }
}
