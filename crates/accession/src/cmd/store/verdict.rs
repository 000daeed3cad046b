//! What a store is good for, from what was tried.

use super::trials::Trial;
use serde::Serialize;
use store::Capabilities;

/// Whether a store can serve a purpose.
#[derive(Debug, Serialize)]
pub struct Verdict {
    pub purpose: &'static str,
    pub serves: bool,
    pub why: String,
}

pub fn verdicts(writable: bool, can: &Capabilities, trials: &[Trial]) -> Vec<Verdict> {
    let failed: Vec<&str> = trials.iter().filter(|t| t.failed()).map(|t| t.what).collect();
    let basics = match (writable, failed.is_empty()) {
        (false, _) => Some("it cannot be written".to_owned()),
        (true, false) => Some(format!("it failed at {}", failed.join(", "))),
        (true, true) => None,
    };
    let classes = (!can.storage_classes).then(|| "it has no cold storage".to_owned());
    let unvouched = match (can.digests, can.digests_of_large) {
        (true, true) => None,
        (true, false) => Some("objects in parts"),
        (false, _) => Some("objects"),
    };
    let cold = classes.clone().or_else(|| {
        unvouched.map(|what| {
            format!(
                "it does not compare and keep the SHA-256 of {what}, and nothing else vouches for \
                 what cannot be read"
            )
        })
    });
    let verify = match can.digests || can.rename {
        true => "copies are verified",
        false => "copies are verified by reading every byte back",
    };
    let verdict = |purpose, problem: Option<String>, good: &str| Verdict {
        purpose,
        serves: problem.is_none(),
        why: problem.unwrap_or_else(|| good.to_owned()),
    };
    vec![
        verdict("ingest: required store", basics.clone(), verify),
        verdict("replicate: later store", basics.clone(), verify),
        verdict(
            "ingest: required store in a cold class",
            basics.clone().or(cold),
            "the store vouches for the SHA-256 of every object",
        ),
        verdict(
            "replicate: later store in a cold class",
            basics.or(classes),
            "cold copies are made",
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nothing_vouches_for_is_no_required_cold_store() {
        let serves = |can: &Capabilities, trials: &[Trial]| -> Vec<bool> {
            verdicts(true, can, trials).iter().map(|verdict| verdict.serves).collect()
        };
        let plain = Capabilities::default();
        assert_eq!(serves(&plain, &[]), [true, true, false, false]);
        let cold = Capabilities { storage_classes: true, ..plain };
        assert_eq!(serves(&cold, &[]), [true, true, false, true]);
        let small = Capabilities { digests: true, ..cold };
        assert_eq!(serves(&small, &[]), [true, true, false, true]);
        let all = Capabilities { digests_of_large: true, ..small };
        assert_eq!(serves(&all, &[]), [true; 4]);
        let trial = Trial { what: "pages", works: "no", detail: "lost".into() };
        assert_eq!(serves(&all, &[trial]), [false; 4]);
        assert!(verdicts(false, &all, &[]).iter().all(|verdict| !verdict.serves));
    }
}
