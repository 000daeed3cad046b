//! Both compression functions in one stream of instructions, for processors with SHA extensions.
//!
//! SHA-256 here is a chain of few, slow vector instructions; SHA-512 is very many quick ones, most
//! of them on ordinary registers. Each leaves idle what the other needs. So the source takes turns:
//! two rounds of SHA-512, four rounds of SHA-256, and the processor, which looks some hundred
//! instructions ahead, runs them at the same time.
//!
//! Only registers of 128 bits may be used here. The instructions of SHA-256 become many times slower
//! while the upper part of a wider register holds anything, and the compiler, which does not know
//! that, joins neighbouring operations where it can. That is why the sums below are stored by an
//! instruction of its own instead of as numbers. `kernel.rs` notices should it happen all the same.
//!
//! A function with `target_feature` may call the instructions that belong to it, and is itself safe
//! to call only from others of the kind.

use crate::constants::{K256, K512};
use core::arch::x86_64::*;
use core::hint::black_box;

/// The schedule of SHA-512 has 16 words in use; here two to a vector.
struct Schedule {
    words: [__m128i; 8],
    /// The same words with the rounds' constants added, for the rounds to read.
    sums: [[u64; 2]; 8],
}

/// The eight variables of SHA-512, and `b ^ c`, which the round before has computed already.
struct Rounds {
    abcdefgh: [u64; 8],
    b_xor_c: u64,
}

impl Rounds {
    #[inline(always)]
    fn new(abcdefgh: [u64; 8]) -> Rounds {
        Rounds { abcdefgh, b_xor_c: abcdefgh[1] ^ abcdefgh[2] }
    }

    #[inline(always)]
    fn round(&mut self, sum: u64) {
        let [a, b, c, d, e, f, g, h] = self.abcdefgh;
        let choice = (e & f) ^ (!e & g);
        let e_mixed = e.rotate_right(14) ^ e.rotate_right(18) ^ e.rotate_right(41);
        let first = h.wrapping_add(sum).wrapping_add(choice).wrapping_add(e_mixed);
        let a_xor_b = a ^ b;
        let majority = (a_xor_b & self.b_xor_c) ^ b;
        let a_mixed = a.rotate_right(28) ^ a.rotate_right(34) ^ a.rotate_right(39);
        let second = majority.wrapping_add(a_mixed);
        self.b_xor_c = a_xor_b;
        self.abcdefgh = [first.wrapping_add(second), a, b, c, d.wrapping_add(first), e, f, g];
    }
}

/// The two halves of SHA-256's variables as the instructions want them, highest lane first.
#[derive(Clone, Copy)]
struct Halves {
    abef: __m128i,
    cdgh: __m128i,
}

/// A loop that is written out, so that variables and words change their places without being moved.
macro_rules! eight_times {
    ($i:ident => $body:block) => {
        eight_times!($i => $body $body $body $body $body $body $body $body)
    };
    ($i:ident => $($body:block)*) => {
        let mut _next = 0;
        $(
            let $i = _next;
            $body
            _next += 1;
        )*
    };
}

/// Takes whole blocks into the states of SHA-256 and SHA-512.
#[target_feature(enable = "sha,bmi1,bmi2,avx512f,avx512vl")]
pub(crate) fn compress(state256: &mut [u32; 8], state512: &mut [u64; 8], blocks: &[[u8; 128]]) {
    let mut halves = split(state256);
    for block in blocks {
        let mut schedule = schedule(block);
        let mut rounds = Rounds::new(*state512);
        for half in 0..2 {
            let before = halves;
            let mut words = words_256(block, half);
            for quarter in 0..2 {
                let step = 2 * half + quarter;
                // The sums go through memory: loads are cheap, and taking a vector apart would
                // cost what SHA-256 needs.
                black_box(&mut schedule.sums);
                eight_times!(i => {
                    rounds.round(schedule.sums[i][0]);
                    four_256(&mut halves, &mut words, 8 * quarter + i);
                    rounds.round(schedule.sums[i][1]);
                    advance(&mut schedule, step + 1, i);
                });
            }
            halves.abef = _mm_add_epi32(halves.abef, before.abef);
            halves.cdgh = _mm_add_epi32(halves.cdgh, before.cdgh);
        }
        black_box(&mut schedule.sums);
        eight_times!(i => {
            rounds.round(schedule.sums[i][0]);
            rounds.round(schedule.sums[i][1]);
        });
        for (word, more) in state512.iter_mut().zip(rounds.abcdefgh) {
            *word = word.wrapping_add(more);
        }
    }
    *state256 = join(halves);
}

/// The first 16 words of SHA-512's schedule: the block itself.
#[inline]
#[target_feature(enable = "sha,bmi1,bmi2,avx512f,avx512vl")]
fn schedule(block: &[u8; 128]) -> Schedule {
    let swap = _mm_set_epi64x(0x0809_0a0b_0c0d_0e0f, 0x0001_0203_0405_0607);
    let mut schedule = Schedule { words: [_mm_setzero_si128(); 8], sums: [[0; 2]; 8] };
    for (i, bytes) in block.as_chunks::<16>().0.iter().enumerate() {
        schedule.words[i] = _mm_shuffle_epi8(vector(bytes), swap);
        put_sums(&mut schedule, 0, i);
    }
    schedule
}

/// Replaces words `2 * i` and `2 * i + 1` by those of 16 rounds later, of which
/// `step` says for the how many-th time.
#[inline]
#[target_feature(enable = "sha,bmi1,bmi2,avx512f,avx512vl")]
fn advance(schedule: &mut Schedule, step: usize, i: usize) {
    let words = &mut schedule.words;
    let back_15 = _mm_alignr_epi8::<8>(words[(i + 1) % 8], words[i]);
    let back_7 = _mm_alignr_epi8::<8>(words[(i + 5) % 8], words[(i + 4) % 8]);
    let back_2 = words[(i + 7) % 8];
    let mixed_15 = _mm_xor_si128(
        _mm_xor_si128(rotate::<1, 63>(back_15), rotate::<8, 56>(back_15)),
        _mm_srli_epi64::<7>(back_15),
    );
    let mixed_2 = _mm_xor_si128(
        _mm_xor_si128(rotate::<19, 45>(back_2), rotate::<61, 3>(back_2)),
        _mm_srli_epi64::<6>(back_2),
    );
    words[i] = _mm_add_epi64(_mm_add_epi64(words[i], back_7), _mm_add_epi64(mixed_15, mixed_2));
    put_sums(schedule, step, i);
}

#[inline]
#[target_feature(enable = "sha,bmi1,bmi2,avx512f,avx512vl")]
fn put_sums(schedule: &mut Schedule, step: usize, i: usize) {
    let at = 16 * step + 2 * i;
    let constants = _mm_set_epi64x(K512[at + 1].cast_signed(), K512[at].cast_signed());
    store(&mut schedule.sums[i], _mm_add_epi64(schedule.words[i], constants));
}

#[inline]
#[target_feature(enable = "sha,bmi1,bmi2,avx512f,avx512vl")]
#[allow(unsafe_code)]
fn store(to: &mut [u64; 2], words: __m128i) {
    // SAFETY: the 16 bytes written are those of the array, and the instruction asks for no
    // alignment.
    unsafe { _mm_storeu_si128(to.as_mut_ptr().cast(), words) }
}

/// To the right; with AVX-512 the compiler makes one instruction of it.
#[inline]
#[target_feature(enable = "sha,bmi1,bmi2,avx512f,avx512vl")]
fn rotate<const RIGHT: i32, const LEFT: i32>(words: __m128i) -> __m128i {
    _mm_or_si128(_mm_srli_epi64::<RIGHT>(words), _mm_slli_epi64::<LEFT>(words))
}

/// The 16 words of one half of the block, as SHA-256 sees them.
#[inline]
#[target_feature(enable = "sha,bmi1,bmi2,avx512f,avx512vl")]
fn words_256(block: &[u8; 128], half: usize) -> [__m128i; 4] {
    let swap = _mm_set_epi64x(0x0c0d_0e0f_0809_0a0b, 0x0405_0607_0001_0203);
    let mut words = [_mm_setzero_si128(); 4];
    for (word, bytes) in words.iter_mut().zip(&block.as_chunks::<16>().0[4 * half..]) {
        *word = _mm_shuffle_epi8(vector(bytes), swap);
    }
    words
}

/// Four rounds of SHA-256, the `i`-th of 16 times, and the words of 16 rounds later.
#[inline]
#[target_feature(enable = "sha,bmi1,bmi2,avx512f,avx512vl")]
fn four_256(halves: &mut Halves, words: &mut [__m128i; 4], i: usize) {
    let constants = _mm_set_epi32(
        K256[4 * i + 3].cast_signed(),
        K256[4 * i + 2].cast_signed(),
        K256[4 * i + 1].cast_signed(),
        K256[4 * i].cast_signed(),
    );
    let sums = _mm_add_epi32(words[i % 4], constants);
    let upper = _mm_shuffle_epi32::<0b1110>(sums);
    halves.cdgh = _mm_sha256rnds2_epu32(halves.cdgh, halves.abef, sums);
    halves.abef = _mm_sha256rnds2_epu32(halves.abef, halves.cdgh, upper);
    // The words of the last four times are those that no round needs.
    if i < 12 {
        let last = words[(i + 3) % 4];
        let back_7 = _mm_alignr_epi8::<4>(last, words[(i + 2) % 4]);
        let begun = _mm_sha256msg1_epu32(words[i % 4], words[(i + 1) % 4]);
        words[i % 4] = _mm_sha256msg2_epu32(_mm_add_epi32(begun, back_7), last);
    }
}

#[inline]
#[target_feature(enable = "sha,bmi1,bmi2,avx512f,avx512vl")]
fn vector(bytes: &[u8; 16]) -> __m128i {
    let bits = u128::from_le_bytes(*bytes);
    _mm_set_epi64x((bits >> 64) as i64, bits as i64)
}

#[inline]
#[target_feature(enable = "sha,bmi1,bmi2,avx512f,avx512vl")]
fn split(state: &[u32; 8]) -> Halves {
    let [a, b, c, d, e, f, g, h] = state.map(u32::cast_signed);
    Halves { abef: _mm_set_epi32(a, b, e, f), cdgh: _mm_set_epi32(c, d, g, h) }
}

#[inline]
#[target_feature(enable = "sha,bmi1,bmi2,avx512f,avx512vl")]
fn join(halves: Halves) -> [u32; 8] {
    let Halves { abef, cdgh } = halves;
    [
        _mm_extract_epi32::<3>(abef),
        _mm_extract_epi32::<2>(abef),
        _mm_extract_epi32::<3>(cdgh),
        _mm_extract_epi32::<2>(cdgh),
        _mm_extract_epi32::<1>(abef),
        _mm_extract_epi32::<0>(abef),
        _mm_extract_epi32::<1>(cdgh),
        _mm_extract_epi32::<0>(cdgh),
    ]
    .map(i32::cast_unsigned)
}
