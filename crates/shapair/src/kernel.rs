//! Which way this machine computes the pair: decided once, by trying.

use crate::pair::Pair;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// How the two digests are computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// One after the other, by ring.
    Separate,
    /// Together, by the code of this crate.
    Stitched,
}

/// The way of this machine. The first call takes about a millisecond: it looks whether the
/// processor has the instructions, whether the stitched code then agrees with ring, and whether it
/// is the faster of the two.
pub fn way() -> Way {
    match chosen() {
        Some(_) => Way::Stitched,
        None => Way::Separate,
    }
}

pub(crate) fn chosen() -> Option<Stitched> {
    static CHOSEN: OnceLock<Option<Stitched>> = OnceLock::new();
    *CHOSEN.get_or_init(|| Stitched::detect().filter(|s| agrees(*s) && is_faster(*s)))
}

/// The processor has what `stitched.rs` needs. Only `detect` makes one of these.
#[derive(Clone, Copy)]
pub(crate) struct Stitched(());

#[cfg(target_arch = "x86_64")]
impl Stitched {
    pub(crate) fn detect() -> Option<Stitched> {
        let can = is_x86_feature_detected!("sha")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512vl");
        can.then_some(Stitched(()))
    }

    #[allow(unsafe_code)]
    pub(crate) fn compress(
        self,
        state256: &mut [u32; 8],
        state512: &mut [u64; 8],
        blocks: &[[u8; 128]],
    ) {
        // SAFETY: the processor has the instructions that the function is compiled to, because
        // `self` exists.
        unsafe { crate::stitched::compress(state256, state512, blocks) }
    }
}

#[cfg(not(target_arch = "x86_64"))]
impl Stitched {
    pub(crate) fn detect() -> Option<Stitched> {
        None
    }

    pub(crate) fn compress(self, _: &mut [u32; 8], _: &mut [u64; 8], _: &[[u8; 128]]) {
        unreachable!("detect makes none of these")
    }
}

/// What the trials hash: no two blocks of it are the same.
fn sample(bytes: usize) -> Vec<u8> {
    (0..bytes as u32).map(|i| (i.wrapping_mul(0x9e37_79b1) >> 24) as u8).collect()
}

/// A processor, an emulator or a compiler may be wrong. Then ring does the work.
fn agrees(stitched: Stitched) -> bool {
    let sample = sample(1500);
    let both = |mut pair: Pair| {
        let (first, second) = sample.split_at(333);
        pair.update(first);
        pair.update(second);
        pair.finish()
    };
    both(Pair::stitched(stitched)) == both(Pair::separate())
}

/// Which is faster cannot be told from the instructions alone: a few wide registers in the wrong
/// place make the stitched code many times slower (`docs/decisions/shapair.md`).
fn is_faster(stitched: Stitched) -> bool {
    let sample = sample(32 * 1024);
    let time = |pair: &mut Pair| {
        let start = Instant::now();
        pair.update(&sample);
        start.elapsed()
    };
    let (mut ours, mut others) = (Pair::stitched(stitched), Pair::separate());
    let mut best = [Duration::MAX; 2];
    for _ in 0..4 {
        best[0] = best[0].min(time(&mut ours));
        best[1] = best[1].min(time(&mut others));
    }
    best[0] < best[1]
}
