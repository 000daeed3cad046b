//! `deposit --check` finds whatever a deposit would be refused for, under the same code, and records
//! nothing. Packages that are wrong in themselves are in `invalid`.

use crate::support::packages::{archive, bag, directory, manifest};
use crate::support::web;
use crate::support::world::World;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Collections that take little, and programs that refuse what has `virus` in it.
const COLLECTIONS: &str = r#"
[collections.files]
payload_kinds = ['file']
[collections.plain]
payload_kinds = ['directory']
[collections.named]
local_ids = 'required'
[collections.nameless]
local_ids = 'forbidden'
[collections.supplied]
identifiers = 'supplied'
[collections.few]
files_max = 1
[collections.small]
bytes_max = 1000
[[collections.scanned.checks]]
name = 'scan'
program = ['sh', '-c', '! grep -q virus "$1"', 'scan']
[[collections.scanned-whole.checks]]
name = 'scan'
per = 'package'
program = ['sh', '-c', '! grep -q virus "$1"', 'scan']
"#;

struct Case {
    code: &'static str,
    collection: &'static str,
    path: PathBuf,
    options: Vec<String>,
}

fn case(code: &'static str, collection: &'static str, path: &Path, options: &[&str]) -> Case {
    let options = options.iter().map(ToString::to_string).collect();
    Case { code, collection, path: path.to_path_buf(), options }
}

/// A world with two objects, `first` and `second`.
fn world() -> World {
    let world = World::local(1);
    world.configure(COLLECTIONS);
    for name in ["first", "second"] {
        let path = directory(&world.path(name), &[("a.txt", name)]);
        assert_eq!(world.ingest(&path, &["--local-id", name])["state"], "completed");
    }
    world
}

fn cases(world: &World) -> Vec<Case> {
    let folder = directory(&world.path("folder"), &[("a.txt", "a"), ("b.txt", "b")]);
    let large = directory(&world.path("large"), &[("a.txt", "a".repeat(2000))]);
    let bagged = bag(&world.path("bagged"), &[("a.txt", "a")]);
    let infected = directory(&world.path("infected"), &[("a.txt", "a virus"), ("b.txt", "b")]);
    let packed = archive(&directory(&world.path("packed"), &[("a.txt", "a virus")]), "tar.gz");
    let served = vec![("a.txt".to_string(), b"one".to_vec()), ("b.txt".to_string(), vec![7; 9])];
    directory(&world.path("served"), &served);
    let base = web::serve(&world.path("served"));
    let listed = manifest(&world.path("listed.checkm"), &base, &served);
    let mut longer = served.clone();
    longer[0].1.push(b'!');
    let longer = manifest(&world.path("longer.checkm"), &base, &longer);
    let elsewhere = manifest(&world.path("elsewhere.checkm"), &format!("{base}/none"), &served);
    let first = world.json(&["objects", "show", "first"]).remove(0);
    let first = first["object"]["identifier"].as_str().unwrap();
    let nothing = format!("sha256:{}", "0".repeat(64));
    vec![
        case("payload_kind", "files", &folder, &[]),
        case("payload_kind", "plain", &bagged, &[]),
        case("payload_kind", "files", &listed, &[]),
        case("local_id_required", "named", &folder, &[]),
        case("local_id_forbidden", "nameless", &folder, &["--local-id", "x"]),
        case("identifier_required", "supplied", &folder, &[]),
        case("identifier_required", "supplied", &listed, &[]),
        case("too_many_files", "few", &folder, &[]),
        case("too_many_bytes", "small", &large, &[]),
        case("too_large", "few", &listed, &[]),
        case("object_exists", "default", &folder, &["--local-id", "first", "--mode", "new"]),
        case("object_missing", "default", &folder, &["--local-id", "third", "--mode", "update"]),
        case("other_collection", "files", &world.path("first/a.txt"), &["--id", first]),
        case(
            "contradictory_identifiers",
            "default",
            &folder,
            &["--local-id", "first", "--local-id", "second"],
        ),
        case("digest_of_directory", "default", &folder, &["--digest", &nothing]),
        case("digest_mismatch", "default", &world.path("first/a.txt"), &["--digest", &nothing]),
        case("digest_mismatch", "default", &listed, &["--digest", &nothing]),
        case("size_mismatch", "default", &longer, &[]),
        case("url_not_there", "default", &elsewhere, &[]),
        case("check_refused", "scanned", &infected, &[]),
        case("check_refused", "scanned", &packed, &[]),
        case("check_refused", "scanned-whole", &infected.join("a.txt"), &[]),
    ]
}

/// The codes of the errors that `--check` lists.
fn checked(world: &World, args: &[&str]) -> Vec<String> {
    let verdict = world.json(&[args, &["--check"]].concat()).remove(0);
    let listed = verdict["problems"]["listed"].as_array().unwrap_or_else(|| panic!("{verdict:#}"));
    let errors = listed.iter().filter(|problem| problem["is_error"] == true);
    errors.map(|problem| problem["code"].as_str().unwrap().to_string()).collect()
}

fn count(world: &World, list: &str) -> usize {
    let listed = world.json(&[list, "list"]).remove(0);
    listed[list].as_array().map_or(0, Vec::len)
}

#[test]
fn a_check_refuses_whatever_a_deposit_is_refused_for() {
    let world = world();
    let mut wrong = Vec::new();
    for Case { code, collection, path, options } in cases(&world) {
        let mut args = vec!["deposit", path.to_str().unwrap(), "--collection", collection];
        args.extend(options.iter().map(String::as_str));
        let before = count(&world, "batches");
        let found = checked(&world, &args);
        assert_eq!(count(&world, "batches"), before, "a check deposits nothing");
        world.json(&args);
        world.work();
        let listed = world.json(&["batches", "list"]).remove(0);
        let newest = listed["batches"].as_array().unwrap().iter().map(|b| b["id"].as_i64());
        let report: Value = world.batch(newest.max().unwrap().unwrap());
        let refused = report["failures"][0]["code"] == code
            || report.to_string().contains(&format!("[{code}]"));
        if report["state"] != "failed" || !refused {
            wrong.push(format!("{code} of {}: the deposit: {report:#}", path.display()));
        }
        if !found.iter().any(|found| found == code) {
            wrong.push(format!("{code} of {}: --check says {found:?}", path.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_check_finds_nothing_wrong_with_what_is_taken() {
    let world = world();
    let clean = directory(&world.path("clean"), &[("a.txt", "a"), ("b.txt", "b")]);
    for collection in ["scanned", "plain", "default"] {
        let args = ["deposit", clean.to_str().unwrap(), "--collection", collection];
        assert_eq!(checked(&world, &args), [""; 0], "{collection}");
        let report = world.ingest(&clean, &["--collection", collection]);
        assert_eq!(report["state"], "completed", "{collection}: {report:#}");
    }
}
