//! What has become of each package since the last look. Pure: what was known, what is there now,
//! and the time.

use db::Micros;
use queue::BatchId;
use std::collections::BTreeMap;

/// A package as it is there now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Present {
    /// Changes when anything in the package does: names, sizes, times.
    pub fingerprint: String,
    /// It says of itself that it is not whole: a part file in it, or nothing at all.
    pub unfinished: bool,
}

/// A package as it was known at the last look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sighting {
    pub fingerprint: String,
    /// Since when it has looked like this.
    pub seen_at: Micros,
    pub state: State,
    /// The deposit it was last taken with.
    pub batch: Option<BatchId>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Not yet still for long enough.
    Moving,
    /// Deposited as it looks.
    Taken,
    /// Deposited, and its depositor was told that it failed, or that it is done.
    ToldFailed,
    Told,
    /// Deposited, and no longer there; its depositor was not told yet what became of it.
    Left,
}

impl State {
    pub fn as_str(self) -> &'static str {
        match self {
            State::Moving => "moving",
            State::Taken => "taken",
            State::ToldFailed => "told failed",
            State::Told => "told",
            State::Left => "left",
        }
    }

    pub fn parse(text: &str) -> State {
        let all = [State::Taken, State::ToldFailed, State::Told, State::Left];
        all.into_iter().find(|state| state.as_str() == text).unwrap_or(State::Moving)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Seen for the first time, or again after it was gone.
    New,
    /// Changed since the last look, or not still for long enough.
    Moving,
    /// Still for long enough: to be deposited.
    Ready,
    /// Deposited, and the same since.
    Unchanged,
    /// Deposited, and different since: a new version once it is still.
    Changed,
    /// No longer there; if it comes back it is new.
    Gone,
}

/// Decides for every package that was known or is there.
pub fn decide<'a>(
    known: &'a BTreeMap<String, Sighting>,
    present: &'a BTreeMap<String, Present>,
    now: Micros,
    still: Micros,
) -> Vec<(&'a str, Decision)> {
    let is_gone = |(name, before): &(&String, &Sighting)| {
        before.state != State::Left && !present.contains_key(*name)
    };
    let gone = known.iter().filter(is_gone).map(|(name, _)| (name.as_str(), Decision::Gone));
    let there = present.iter().map(|(name, package)| {
        let decision = match known.get(name) {
            None => Decision::New,
            Some(before) => of_known(before, package, now, still),
        };
        (name.as_str(), decision)
    });
    gone.chain(there).collect()
}

fn of_known(before: &Sighting, package: &Present, now: Micros, still: Micros) -> Decision {
    let same = before.fingerprint == package.fingerprint;
    match (before.state, same) {
        (State::Taken | State::ToldFailed | State::Told, true) => Decision::Unchanged,
        (State::Taken | State::ToldFailed | State::Told, false) => Decision::Changed,
        (State::Moving, true)
            if !package.unfinished && now.saturating_sub(before.seen_at) >= still =>
        {
            Decision::Ready
        }
        (State::Moving, _) => Decision::Moving,
        // It was gone, and is there again.
        (State::Left, _) => Decision::New,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STILL: Micros = 60;

    /// What a caller keeps, looked at over and over.
    #[derive(Default)]
    struct Folder {
        known: BTreeMap<String, Sighting>,
        present: BTreeMap<String, Present>,
        batches: i64,
    }

    impl Folder {
        fn put(&mut self, name: &str, fingerprint: &str) {
            let present = Present { fingerprint: fingerprint.into(), unfinished: false };
            self.present.insert(name.into(), present);
        }

        /// Looks at the time, does what the caller would do, and says what was decided.
        fn look(&mut self, now: Micros) -> Vec<(String, Decision)> {
            let decided = decide(&self.known, &self.present, now, STILL);
            let decided: Vec<_> = decided.into_iter().map(|(n, d)| (n.to_string(), d)).collect();
            for (name, decision) in &decided {
                let batch = self.known.get(name).and_then(|s| s.batch);
                let fingerprint = || self.present[name].fingerprint.clone();
                match decision {
                    Decision::Gone => drop(self.known.remove(name)),
                    Decision::Ready => {
                        self.batches += 1;
                        let kept = self.known.get_mut(name).unwrap();
                        (kept.state, kept.batch) = (State::Taken, Some(BatchId::new(self.batches)));
                    }
                    Decision::Unchanged => {}
                    Decision::Moving if self.known[name].fingerprint == fingerprint() => {}
                    _ => {
                        let fingerprint = fingerprint();
                        let sighting =
                            Sighting { fingerprint, seen_at: now, state: State::Moving, batch };
                        self.known.insert(name.clone(), sighting);
                    }
                }
            }
            decided
        }

        fn of(&mut self, name: &str, now: Micros) -> Decision {
            let decided = self.look(now);
            decided.into_iter().find(|(n, _)| n == name).unwrap().1
        }
    }

    #[test]
    fn a_package_is_taken_once_it_is_still() {
        let mut folder = Folder::default();
        folder.put("a", "1");
        assert_eq!(folder.of("a", 0), Decision::New);
        assert_eq!(folder.of("a", 30), Decision::Moving);
        assert_eq!(folder.of("a", 59), Decision::Moving);
        assert_eq!(folder.of("a", 60), Decision::Ready);
        assert_eq!(folder.of("a", 61), Decision::Unchanged);
        assert_eq!(folder.of("a", 9999), Decision::Unchanged, "the same content is taken once");
        assert_eq!(folder.batches, 1);
    }

    #[test]
    fn a_file_that_is_being_copied_is_left_alone() {
        let mut folder = Folder::default();
        for step in 0..10 {
            folder.put("big", &format!("{step} MB"));
            let expected = if step == 0 { Decision::New } else { Decision::Moving };
            assert_eq!(folder.of("big", step * 50), expected);
        }
        // Still since 450.
        assert_eq!(folder.of("big", 509), Decision::Moving);
        assert_eq!(folder.of("big", 510), Decision::Ready);
    }

    #[test]
    fn what_says_that_it_is_unfinished_is_never_taken() {
        let mut folder = Folder::default();
        folder.put("dir", "1");
        folder.present.get_mut("dir").unwrap().unfinished = true;
        assert_eq!(folder.of("dir", 0), Decision::New);
        assert_eq!(folder.of("dir", 10_000), Decision::Moving);
        folder.put("dir", "2");
        assert_eq!(folder.of("dir", 10_001), Decision::Moving);
        assert_eq!(folder.of("dir", 10_061), Decision::Ready);
    }

    #[test]
    fn changed_content_is_taken_again_once_it_is_still() {
        let mut folder = Folder::default();
        folder.put("a", "1");
        folder.look(0);
        assert_eq!(folder.of("a", 60), Decision::Ready);
        folder.put("a", "2");
        assert_eq!(folder.of("a", 100), Decision::Changed);
        assert_eq!(
            folder.known["a"].batch,
            Some(BatchId::new(1)),
            "which deposit it was is remembered"
        );
        folder.put("a", "3");
        assert_eq!(folder.of("a", 150), Decision::Moving);
        assert_eq!(folder.of("a", 209), Decision::Moving);
        assert_eq!(folder.of("a", 210), Decision::Ready);
        assert_eq!(folder.known["a"].batch, Some(BatchId::new(2)));
    }

    #[test]
    fn what_comes_back_after_it_was_deleted_is_new() {
        let mut folder = Folder::default();
        folder.put("a", "1");
        folder.look(0);
        folder.look(60);
        folder.present.clear();
        assert_eq!(folder.of("a", 70), Decision::Gone);
        assert!(folder.known.is_empty());
        assert_eq!(folder.look(75), []);
        folder.put("a", "1");
        assert_eq!(folder.of("a", 80), Decision::New);
        assert_eq!(folder.of("a", 140), Decision::Ready);
        assert_eq!(folder.batches, 2);
    }

    #[test]
    fn one_package_does_not_hold_up_another() {
        let mut folder = Folder::default();
        folder.put("a", "1");
        folder.look(0);
        folder.put("b", "1");
        folder.look(50);
        let decided = folder.look(60);
        assert_eq!(decided, [("a".into(), Decision::Ready), ("b".into(), Decision::Moving)]);
    }

    #[test]
    fn a_clock_that_goes_back_only_delays() {
        let mut folder = Folder::default();
        folder.put("a", "1");
        folder.look(1000);
        assert_eq!(folder.of("a", 500), Decision::Moving);
        assert_eq!(folder.of("a", 1060), Decision::Ready);
    }
}
