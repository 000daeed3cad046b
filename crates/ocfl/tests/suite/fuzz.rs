//! Hostile and mutated input: no panic, no unbounded memory, always a clear answer.
//!
//! `ACCESSION_FUZZ_SECONDS` sets how long each target runs, `ACCESSION_FUZZ_SEED` replays one.

use crate::support::Random;
use ocfl::{Inventory, Layout, Limits, Spec, StorageRoot, Validation, VersionName};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use store::{MemoryStore, PutOptions, Store};

/// An inventory with all that there can be in one.
fn good_inventory() -> String {
    let digest = |text: &str| ocfl::Algorithm::Sha512.hex(text.as_bytes());
    let (a, b) = (digest("a"), digest("b"));
    format!(
        r#"{{"id": "urn:x", "type": "https://ocfl.io/1.1/spec/#inventory",
"digestAlgorithm": "sha512", "head": "v2", "contentDirectory": "content",
"manifest": {{"{a}": ["v1/content/a", "v1/content/a2"], "{b}": ["v2/content/d\u00e9/b"]}},
"versions": {{
"v1": {{"created": "2026-01-01T00:00:00Z", "message": "\"m\\", "state": {{"{a}": ["a", "x/a"]}},
  "user": {{"name": "n", "address": "mailto:n@example.org"}}}},
"v2": {{"created": "2026-01-01T00:00:00.5+01:00", "message": "", "state": {{"{a}": ["a"], "{b}": ["d/b"]}},
  "user": {{"name": "n"}}}}}},
"fixity": {{"md5": {{"0cc175b9c0f1b6a831c399e269772661": ["v1/content/a", "v1/content/a2"]}}}}}}"#
    )
}

/// What people with bad intentions, or bad software, would send.
fn hostile() -> Vec<Vec<u8>> {
    let good = good_inventory();
    let digest = "a".repeat(128);
    let many_versions: String = (1..=1_000_000).map(|n| format!("\"v{n}\":{{}},")).collect();
    let mut cases: Vec<Vec<u8>> = [
        good.replace("\"head\"", "\"id\""),
        good.replace("\"v2\": {", "\"v1\": {"),
        good.replace("urn:x", &"x".repeat(10 << 20)),
        format!("{{\"versions\":{{{many_versions}\"v0\":1}}}}"),
        format!("{{\"manifest\":{{\"{digest}\":[\"../../etc/passwd\",\"/etc/passwd\",\"a//b\",\".\"]}}}}"),
        format!("{{\"versions\":{{\"v1\":{{\"state\":{{\"{digest}\":[\"../x\",\"a\",\"a/b\",\"a\"]}}}}}}}}"),
        good.replace("v1/content/a2", "v2/content/d\\u00e9/b"),
        good.to_uppercase(),
        good.replace("\"md5\"", "\"\\ud800\""),
        "{".repeat(100_000),
        "[".repeat(100_000),
        format!("{{\"manifest\":{}", "{\"x\":".repeat(100_000)),
        "\u{feff}{}".to_owned(),
        "null".to_owned(),
        String::new(),
        format!("{{\"versions\":{{\"v1\":{{\"created\":{}1}}}}}}", "[".repeat(63)),
        "{\"head\":".to_owned() + &"9".repeat(1 << 20),
    ]
    .into_iter()
    .map(String::into_bytes)
    .collect();
    cases.push(good.encode_utf16().flat_map(u16::to_le_bytes).collect());
    cases.push(good.replace('m', "é").chars().map(|c| c as u8).collect());
    cases.extend((0..good.len()).step_by(37).map(|end| good.as_bytes()[..end].to_vec()));
    cases
}

/// Small limits, so that what exceeds them is found by small inputs too.
fn limits() -> Limits {
    Limits { inventory_memory_bytes_max: 1 << 20, versions_max: 1000, ..Limits::default() }
}

fn mutate(input: &[u8], random: &mut Random) -> Vec<u8> {
    const TOKENS: [&str; 16] = [
        "{", "}", "[", "]", "\"", ":", ",", "\\", "/", "..", "null", "\\u0000", "v0", "v01",
        "\u{1}", "\u{fffd}",
    ];
    let mut bytes = input.to_vec();
    for _ in 0..1 + random.below(6) {
        let at = random.below(bytes.len() + 1);
        match random.below(6) {
            0 if at < bytes.len() => bytes[at] = random.next() as u8,
            1 => bytes.truncate(at),
            2 => {
                let end = (at + random.below(200)).min(bytes.len());
                let piece = bytes[at..end].to_vec();
                let to = random.below(bytes.len() + 1);
                bytes.splice(to..to, piece);
            }
            3 => drop(bytes.drain(at..(at + random.below(60)).min(bytes.len()))),
            _ => drop(bytes.splice(at..at, random.pick(&TOKENS).bytes()).collect::<Vec<_>>()),
        }
    }
    bytes
}

/// Runs a target on mutated input for a while, or on the one input that failed before.
fn fuzz(name: &str, seeds: &[Vec<u8>], target: impl Fn(&[u8]) + std::panic::RefUnwindSafe) {
    let seconds =
        std::env::var("ACCESSION_FUZZ_SECONDS").ok().and_then(|s| s.parse().ok()).unwrap_or(4);
    let replay: Option<u64> =
        std::env::var("ACCESSION_FUZZ_SEED").ok().and_then(|s| s.parse().ok());
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64;
    let end = Instant::now() + Duration::from_secs(seconds);
    let mut seed = replay.unwrap_or(now);
    loop {
        let mut random = Random::new(seed);
        let input = mutate(&seeds[random.below(seeds.len())], &mut random);
        let result = std::panic::catch_unwind(|| target(&input));
        assert!(result.is_ok(), "{name} failed: replay with ACCESSION_FUZZ_SEED={seed}");
        seed = seed.wrapping_add(1);
        if replay.is_some() || Instant::now() > end {
            return;
        }
    }
}

/// Whatever is accepted without an error must survive being written and read again.
fn inventory_target(input: &[u8]) {
    let Ok((inventory, findings)) = Inventory::inspect(input, &limits()) else { return };
    assert!(inventory.is_some() || !findings.is_valid());
    let Some(inventory) = inventory.filter(|_| findings.is_valid()) else { return };
    for version in inventory.versions() {
        for file in inventory.sorted_files(version) {
            assert!(!file.content_path.is_empty());
            assert!(file.path.split('/').all(|element| !matches!(element, "" | "." | "..")));
        }
        inventory.diff(None, version);
    }
    let (mut once, mut twice) = (Vec::new(), Vec::new());
    inventory.write(&mut once).expect("a vector takes everything");
    let again = Inventory::read(once.as_slice(), &limits()).expect("what we write is good");
    again.write(&mut twice).expect("a vector takes everything");
    assert!(once == twice);
}

#[test]
fn inventories() {
    for case in hostile() {
        let start = Instant::now();
        match Inventory::inspect(case.as_slice(), &limits()) {
            Ok((_, findings)) => assert!(
                !findings.is_valid(),
                "{:?}",
                String::from_utf8_lossy(&case[..80.min(case.len())])
            ),
            Err(error) => assert!(matches!(error, ocfl::Error::Limit { .. }), "{error}"),
        }
        // A bound on hostile input, far above what any of it takes.
        assert!(start.elapsed() < Duration::from_secs(30));
    }
    let mut seeds = vec![good_inventory().into_bytes()];
    assert!(Inventory::read(seeds[0].as_slice(), &limits()).is_ok());
    seeds.extend(hostile().into_iter().filter(|case| case.len() < 10_000));
    fuzz("inventories", &seeds, inventory_target);
}

#[test]
fn layout_configurations() {
    let seeds: Vec<Vec<u8>> = ["0002", "0003", "0004", "0007"]
        .iter()
        .map(|name| Layout::named(name).expect("a layout").config().to_string().into_bytes())
        .chain([
            br#"{"extensionName":"0006-flat-omit-prefix-storage-layout","delimiter":":"}"#.to_vec()
        ])
        .collect();
    fuzz("layouts", &seeds, |input| {
        let Ok(config) = serde_json::from_slice(input) else { return };
        for name in ["0002", "0003", "0004", "0006", "0007"] {
            let Ok(layout) = Layout::from_config(name, &config) else { continue };
            for id in ["a", "urn:x:..", "a:/../b", "ü:名", "x:", "", &"y".repeat(5000)] {
                let Ok(path) = layout.path(id) else { continue };
                assert!(
                    path.split('/').all(|element| !matches!(element, "" | "." | "..")),
                    "{path}"
                );
            }
        }
    });
}

#[test]
fn version_names() {
    let seeds = vec![b"v1".to_vec(), b"v0010".to_vec(), b"v4294967295".to_vec()];
    fuzz("versions", &seeds, |input| {
        let text = String::from_utf8_lossy(input);
        if let Ok(name) = text.parse::<VersionName>() {
            assert_eq!(name.to_string(), text);
            name.next();
        }
    });
}

/// A whole object of mutated files: declarations, sidecars and inventories meet each other.
#[test]
fn objects_and_roots() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let inventory = good_inventory();
    let sidecar = format!("{} inventory.json\n", ocfl::Algorithm::Sha512.hex(inventory.as_bytes()));
    let layout = r#"{"extension": "0004-hashed-n-tuple-storage-layout", "description": "d"}"#;
    let files: Vec<(&str, Vec<u8>)> = vec![
        ("0=ocfl_1.1", b"ocfl_1.1\n".to_vec()),
        ("ocfl_layout.json", layout.as_bytes().to_vec()),
        (
            "extensions/0004-hashed-n-tuple-storage-layout/config.json",
            Layout::default().config().to_string().into_bytes(),
        ),
        ("o/0=ocfl_object_1.1", b"ocfl_object_1.1\n".to_vec()),
        ("o/inventory.json", inventory.clone().into_bytes()),
        ("o/inventory.json.sha512", sidecar.clone().into_bytes()),
        ("o/v2/inventory.json", inventory.into_bytes()),
        ("o/v2/inventory.json.sha512", sidecar.into_bytes()),
        ("o/v1/content/a", b"a".to_vec()),
        ("o/v1/content/a2", b"a".to_vec()),
        ("o/v2/content/d\u{e9}/b", b"b".to_vec()),
    ];
    let numbers: Vec<Vec<u8>> = (0..files.len() as u8).map(|n| vec![n; 64]).collect();
    fuzz("objects", &numbers, |input| {
        let seed = input
            .iter()
            .fold(7_u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(*byte)));
        let mut random = Random::new(seed);
        runtime.block_on(async {
            let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
            let target = random.below(files.len());
            for (at, (key, content)) in files.iter().enumerate() {
                let content =
                    if at == target { mutate(content, &mut random) } else { content.clone() };
                store.put(key, content.into(), &PutOptions::default()).await.expect("a put");
            }
            let validation = Validation { limits: limits(), ..Validation::default() };
            match ocfl::validate_root(store.clone(), &validation).await {
                Ok(_) | Err(ocfl::Error::Limit { .. }) => {}
                Err(error) => panic!("{error}"),
            }
            if let Ok(root) = StorageRoot::open_with(store, limits()).await {
                assert_eq!(root.spec(), Spec::V1_1);
                let _ = root.object_at("o").await.map(|object| object.inventory().head());
            }
        });
    });
}
