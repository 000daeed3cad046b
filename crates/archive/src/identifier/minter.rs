//! Mints ARKs from a counter: short, opaque, never twice the same, with a check character.

use super::ark::{Ark, BETANUMERIC, is_betanumeric};
use crate::ErrorCode;
use crate::{Error, Result};

/// Longer strings would repeat a weight of the check character (there are 29), and so no longer
/// detect every error.
const CHECKED_MAX: usize = 28;
/// Blades grow, but a 64-bit counter needs no longer ones than this.
const BLADE_MAX: usize = 20;

/// Where the counter's values are scattered to. These are for ever: with others, a counter that
/// goes on would repeat names that it gave before. Neither shares a factor (2, 5, 29) with a number
/// of names, so that nothing collides.
const SCATTER: [u128; 2] = [7_046_029_254_386_353_087, 2_862_933_555_777_941_757];

/// A minter of NOID kind. Each number gives one name, and no two numbers the same. When the names
/// of a length are used up, names get longer by one character.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Minter {
    naan: String,
    shoulder: String,
    template: Template,
}

/// How the part after the shoulder looks, as NOID writes it: `r` (scattered) or `s` or `z` (in
/// order), then `e` for an extended digit (29 of them) or `d` for a digit, then perhaps `k` for a
/// check character. The default is `reeeeek`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Template {
    scattered: bool,
    radices: Vec<u8>,
    check: bool,
}

impl Minter {
    /// The template as in `reeeeek`.
    pub fn new(naan: &str, shoulder: &str, template: &str) -> Result<Minter> {
        let template = Template::parse(template)?;
        if naan.len() < 5 || naan.len() > 16 || !naan.bytes().all(is_betanumeric) {
            return Err(wrong(format!(
                "NAAN {naan:?} is not five or more betanumeric characters; 99999 is for tests"
            )));
        }
        if !shoulder.bytes().all(is_betanumeric) {
            return Err(wrong(format!(
                "shoulder {shoulder:?} has characters other than {}",
                String::from_utf8_lossy(BETANUMERIC)
            )));
        }
        let minter = Minter { naan: naan.to_owned(), shoulder: shoulder.to_owned(), template };
        if minter.template.check && minter.checked_len(u64::MAX) > CHECKED_MAX {
            return Err(wrong(format!("NAAN {naan:?} and shoulder {shoulder:?} are too long")));
        }
        Ok(minter)
    }

    /// The ARK of a number.
    pub fn mint(&self, number: u64) -> String {
        let checked = format!("{}/{}{}", self.naan, self.shoulder, self.template.blade(number));
        match self.template.check {
            true => format!("ark:/{checked}{}", char::from(check_character(&checked))),
            false => format!("ark:/{checked}"),
        }
    }

    fn checked_len(&self, number: u64) -> usize {
        self.naan.len() + 1 + self.shoulder.len() + self.template.blade(number).len()
    }
}

impl Default for Minter {
    /// For trying things out: the authority 99999 is reserved for tests.
    fn default() -> Minter {
        let radices = vec![29; 5];
        let template = Template { scattered: true, radices, check: true };
        Minter { naan: "99999".to_owned(), shoulder: "fk4".to_owned(), template }
    }
}

impl Template {
    fn parse(text: &str) -> Result<Template> {
        let help = || {
            wrong(format!(
                "template {text:?} is none; write r or s, then 1 to 12 of e and d, then perhaps k, as in reeeeek"
            ))
        };
        let (kind, mask) = text.split_at_checked(1).ok_or_else(help)?;
        let scattered = match kind {
            "r" => true,
            "s" | "z" => false,
            _ => return Err(help()),
        };
        let (mask, check) = match mask.strip_suffix('k') {
            Some(mask) => (mask, true),
            None => (mask, false),
        };
        let radix = |c| match c {
            'e' => Ok(29),
            'd' => Ok(10),
            _ => Err(help()),
        };
        let radices = mask.chars().map(radix).collect::<Result<Vec<u8>>>()?;
        if radices.is_empty() || radices.len() > 12 {
            return Err(help());
        }
        Ok(Template { scattered, radices, check })
    }

    fn blade(&self, number: u64) -> String {
        let mut radices = self.radices.clone();
        let mut number = u128::from(number);
        // The numbers of the shorter lengths come first.
        while number >= names(&radices) && radices.len() < BLADE_MAX {
            number -= names(&radices);
            radices.insert(0, 29);
        }
        if self.scattered {
            number = scatter(number, &radices);
        }
        let mut blade = vec![b'0'; radices.len()];
        for (digit, radix) in blade.iter_mut().zip(&radices).rev() {
            *digit = BETANUMERIC[(number % u128::from(*radix)) as usize];
            number /= u128::from(*radix);
        }
        blade.into_iter().map(char::from).collect()
    }
}

/// How many names there are of this shape. Twenty extended digits are below 2^98.
fn names(radices: &[u8]) -> u128 {
    radices.iter().map(|radix| u128::from(*radix)).product()
}

/// One-to-one on the numbers below the number of names: multiplied, its halves swapped, and
/// multiplied again, so that neighbours share nothing that one sees.
fn scatter(number: u128, radices: &[u8]) -> u128 {
    let all = names(radices);
    let low = names(&radices[radices.len() / 2..]);
    let high = all / low;
    let first = times(number, SCATTER[0], all);
    let swapped = (first % low) * high + first / low;
    (times(swapped, SCATTER[1], all) + SCATTER[1]) % all
}

/// `a * b % modulus` where the product may not fit: by doubling.
fn times(a: u128, b: u128, modulus: u128) -> u128 {
    let (mut a, mut b, mut product) = (a % modulus, b % modulus, 0);
    while b > 0 {
        if b & 1 == 1 {
            product = (product + a) % modulus;
        }
        a = (a + a) % modulus;
        b >>= 1;
    }
    product
}

/// NOID's check character: each character's value times its position, summed, modulo 29. What is
/// not in the alphabet counts as nothing but takes a position.
fn check_character(checked: &str) -> u8 {
    let value = |byte| BETANUMERIC.iter().position(|own| *own == byte).unwrap_or(0);
    let sum: usize = checked.bytes().enumerate().map(|(at, byte)| (at + 1) * value(byte)).sum();
    BETANUMERIC[sum % 29]
}

/// Whether the check character at the end of an ARK's name is right. Qualifiers do not count.
pub fn check(ark: &str) -> bool {
    let Ok(ark) = Ark::parse(ark) else { return false };
    let whole = format!("{}/{}", ark.naan(), ark.base_name());
    let Some((at, _)) = whole.char_indices().next_back() else { return false };
    at <= CHECKED_MAX && check_character(&whole[..at]) == whole.as_bytes()[at]
}

fn wrong(message: String) -> Error {
    Error::permanent(ErrorCode::IdentifierMinter, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn the_example_of_noid() {
        assert_eq!(check_character("13030/xf93gt2"), b'q');
        assert!(check("ark:/13030/xf93gt2q"));
        assert!(check("ark:13030/xf-93gt-2q/page1.tiff"));
        assert!(!check("ark:/13030/xf93gt2r"));
        assert!(!check("nonsense"));
    }

    /// Names given once must never be given again, so the sequence is fixed for ever.
    #[test]
    fn the_sequence_is_what_it_was() {
        let minter = Minter::default();
        let names: Vec<String> = (0..4).map(|n| minter.mint(n)).collect();
        assert_eq!(names, GOLDEN);
        let ordered = Minter::new("12345", "x5", "seedk").unwrap();
        assert_eq!(ordered.mint(0), "ark:/12345/x5000s");
        assert!(ordered.mint(29 * 10 + 12).starts_with("ark:/12345/x5112"));
    }
    const GOLDEN: [&str; 4] = [
        "ark:/99999/fk4sccxvj",
        "ark:/99999/fk454k8cw",
        "ark:/99999/fk4hwrkw1",
        "ark:/99999/fk4wnxxdz",
    ];

    #[test]
    fn every_number_has_its_own_name_through_growth() {
        for template in ["rek", "sek", "reek", "rdek", "seddk", "rdd", "zeek"] {
            let minter = Minter::new("12345", "x5", template).unwrap();
            let mut seen = HashSet::new();
            for number in 0..60_000 {
                let name = minter.mint(number);
                assert!(!template.ends_with('k') || check(&name), "{name}");
                assert!(seen.insert(name), "{template} {number}");
            }
        }
        let minter = Minter::default();
        assert!(check(&minter.mint(u64::MAX)));
        assert_ne!(minter.mint(u64::MAX), minter.mint(u64::MAX - 1));
        let longest = Minter::new("12345", "x5", "reeeeeeeeeeeek").unwrap();
        assert!(check(&longest.mint(u64::MAX)));
    }

    #[test]
    fn single_errors_and_transpositions_are_found() {
        let minter = Minter::new("12345", "x54", "reeeek").unwrap();
        for number in (0..300).chain([1 << 30, u64::MAX / 3, u64::MAX]) {
            let name = minter.mint(number).into_bytes();
            for at in "ark:/12345/".len()..name.len() {
                for wrong in BETANUMERIC {
                    let mut bad = name.clone();
                    bad[at] = *wrong;
                    let same = bad == name;
                    assert_eq!(check(std::str::from_utf8(&bad).unwrap()), same);
                }
                let mut swapped = name.clone();
                swapped.swap(at, (at + 1).min(name.len() - 1));
                let same = swapped == name;
                assert_eq!(check(std::str::from_utf8(&swapped).unwrap()), same);
            }
        }
    }

    #[test]
    fn settings_that_cannot_be_are_refused() {
        for (naan, shoulder, template) in [
            ("1234", "x5", "reek"),
            ("12345", "xa", "reek"),
            ("12345", "x5", ""),
            ("12345", "x5", "rk"),
            ("12345", "x5", "reekk"),
            ("12345", "x5", "qeek"),
            ("1234567890", "bcdfghjkm", "reek"),
            ("12345", "x5", "é"),
        ] {
            let error = Minter::new(naan, shoulder, template).unwrap_err();
            assert_eq!(error.code(), "identifier.minter");
        }
    }
}
