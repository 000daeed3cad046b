//! A store that goes away in the middle of a package.

use crate::support::packages;
use crate::support::world::World;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

const FILES: usize = 6;
/// The one that does not arrive.
const LOST: usize = 4;

/// What arrived before the store went away is not sent again when it is back; and a job that is alone
/// waits for that without losing its only attempt.
#[test]
fn an_outage_costs_no_more_than_the_file_under_way() {
    let mut world = World::half_remote();
    // One after the other, so that some have arrived when the store goes away.
    world.env.push(("ACCESSION_STORES_S1_CONCURRENCY".to_string(), "1".to_string()));
    let control = world.s3.as_ref().unwrap().control.clone();
    // Marks are written for what took a while, as large files do.
    control.delay_millis.store(700, Ordering::SeqCst);
    let is_payload = |method: &str, path: &str| method == "PUT" && path.contains("/letter-");
    let (mut sent, shared) = (0, control.clone());
    *control.hook.lock().unwrap() = Some(Box::new(move |method, path| {
        sent += usize::from(is_payload(method, path));
        if sent == LOST {
            shared.status.store(503, Ordering::SeqCst);
            shared.delay_millis.store(0, Ordering::SeqCst);
        }
    }));
    let letters: Vec<(String, Vec<u8>)> = (0..FILES)
        .map(|n| (format!("letter-{n}.tif"), packages::noise(300 * 1024, n as u64)))
        .collect();
    world.deposit(&packages::directory(&world.path("box"), &letters), &[]);
    world.done(&["queue", "set", "ingest", "--stage", "storing", "max_attempts=1"]);
    let mut worker = world.worker();
    world.until("an error that names the store", |jobs| {
        let names_it = |job: &Value| job["note"].as_str().is_some_and(|n| n.contains("store s1"));
        jobs.iter().any(|job| names_it(job) && job["stage"] == "storing")
    });
    *control.hook.lock().unwrap() = None;
    control.status.store(0, Ordering::SeqCst);
    world.until("done", |jobs| jobs.iter().all(|job| job["status"] == "succeeded"));
    worker.kill();
    let mut arrived: BTreeMap<String, usize> = BTreeMap::new();
    for (method, path) in control.seen.lock().unwrap().iter() {
        if is_payload(method, path) {
            *arrived.entry(path.clone()).or_default() += 1;
        }
    }
    assert_eq!(arrived.len(), FILES, "{arrived:#?}");
    assert!(arrived.values().all(|times| *times == 1), "some were sent again: {arrived:#?}");
    world.work();
    world.check();
}
