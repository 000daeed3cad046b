//! Packages that are delivered to buckets.

use crate::damage::{tree, unpack};
use crate::support::packages::{directory, noise};
use crate::support::world::World;

#[test]
fn a_package_in_a_bucket_is_what_was_deposited() {
    let world = World::half_remote();
    let s3 = world.s3.as_ref().unwrap();
    let files = [("a.txt", b"first".to_vec()), ("m.bin", noise(12 << 20, 7)), ("z.txt", vec![])];
    let package = directory(&world.path("box"), &files);
    world.ingest(&package, &[]);
    let to = s3.store("incoming/out");
    for (form, ending) in [("tar", "tar"), ("tar.gz", "tar.gz"), ("zip", "zip"), ("bag", "tar")] {
        let to = if form == "bag" { s3.store("incoming/bags") } else { to.clone() };
        let answer = world.json(&["restore", "box", "--to", &to, "--as", form]).remove(0);
        assert_eq!(answer["state"], "completed", "{answer:#}");
        if s3.real.is_some() {
            continue;
        }
        let prefix = if form == "bag" { "bags" } else { "out" };
        let delivered = s3.file("incoming", &format!("{prefix}/box-v1.{ending}"));
        let copied = world.path(&format!("{form}.{ending}"));
        std::fs::copy(&delivered, &copied).unwrap();
        let unpacked = world.path(&format!("unpacked-{form}"));
        unpack(&copied, &unpacked);
        match form {
            "bag" => {
                let found = tree(&unpacked.join("box-v1/data"));
                assert!(found == tree(&package));
            }
            _ => assert!(tree(&unpacked) == tree(&package), "{form}"),
        }
    }
    // What is there stays.
    let again = world.run(&["restore", "box", "--to", &to, "--as", "tar", "-q"]);
    assert_eq!(again.status.code(), Some(1), "{}", again.stderr);
    assert!(again.stdout.contains("is there already"), "{}{}", again.stdout, again.stderr);
}

#[test]
fn a_kill_before_a_bucket_is_told_of_sends_once() {
    let world = World::half_remote();
    let s3 = world.s3.as_ref().unwrap();
    let package = directory(&world.path("box"), &[("m.bin", noise(12 << 20, 7))]);
    world.ingest(&package, &[]);
    for (at, failpoint) in
        ["packaging", "packaging.written", "delivering", "delivering.published"].iter().enumerate()
    {
        let to = s3.store(&format!("incoming/out{at}/box.tar"));
        world.done(&["restore", "box", "--to", &to, "--enqueue", "-q"]);
        assert!(world.work_until(failpoint), "{failpoint}");
        world.work();
        if s3.real.is_none() {
            let copied = world.path(&format!("box{at}.tar"));
            std::fs::copy(s3.file("incoming", &format!("out{at}/box.tar")), &copied).unwrap();
            let unpacked = world.path(&format!("unpacked{at}"));
            unpack(&copied, &unpacked);
            assert!(tree(&unpacked) == tree(&package), "{failpoint}");
        }
    }
}
