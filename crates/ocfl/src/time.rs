//! Moments as inventories write them: RFC 3339.

use jiff::Timestamp;
use jiff::civil::Date;
use std::time::SystemTime;

/// The moment as RFC 3339 in UTC, to the second.
pub fn rfc3339(moment: SystemTime) -> String {
    let moment = Timestamp::try_from(moment).unwrap_or(Timestamp::MAX);
    moment.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Why a text is not a moment of RFC 3339, if it is not.
pub(crate) fn fault(text: &str) -> Option<&'static str> {
    let bytes = text.as_bytes();
    let number = |from: usize, to: usize| -> Option<u32> {
        let digits = bytes.get(from..to)?;
        let all = digits.iter().all(u8::is_ascii_digit);
        all.then(|| digits.iter().fold(0, |sum, digit| sum * 10 + u32::from(digit - b'0')))
    };
    let at = |index: usize, wanted: &[u8]| bytes.get(index).is_some_and(|b| wanted.contains(b));
    let (Some(year), Some(month), Some(day)) = (number(0, 4), number(5, 7), number(8, 10)) else {
        return Some("it does not start with a date");
    };
    if !at(4, b"-") || !at(7, b"-") || !is_date(year, month, day) {
        return Some("its date does not exist");
    }
    if !at(10, b"Tt ") {
        return Some("it has no time");
    }
    let (Some(hour), Some(minute)) = (number(11, 13), number(14, 16)) else {
        return Some("it has no time");
    };
    let Some(second) = number(17, 19).filter(|_| at(16, b":")) else {
        return Some("its time has no seconds");
    };
    if !at(13, b":") || hour > 23 || minute > 59 || second > 60 {
        return Some("its time does not exist");
    }
    let mut zone = 19;
    if at(19, b".") {
        zone = 20 + bytes[20..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        if zone == 20 {
            return Some("its fraction has no digits");
        }
    }
    match &bytes[zone..] {
        b"Z" | b"z" => None,
        [] => Some("it has no time zone"),
        [b'+' | b'-', _, _, b':', _, _] => {
            let hour = number(zone + 1, zone + 3).is_some_and(|hour| hour < 24);
            let minute = number(zone + 4, zone + 6).is_some_and(|minute| minute < 60);
            (!hour || !minute).then_some("its time zone does not exist")
        }
        _ => Some("its time zone is not written as RFC 3339 asks"),
    }
}

fn is_date(year: u32, month: u32, day: u32) -> bool {
    let (Ok(year), Ok(month), Ok(day)) = (year.try_into(), month.try_into(), day.try_into()) else {
        return false;
    };
    Date::new(year, month, day).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, UNIX_EPOCH};

    #[test]
    fn known_moments() {
        assert_eq!(rfc3339(UNIX_EPOCH), "1970-01-01T00:00:00Z");
        let later = UNIX_EPOCH + Duration::from_secs(1_709_210_096);
        assert_eq!(rfc3339(later), "2024-02-29T12:34:56Z");
        assert_eq!(rfc3339(UNIX_EPOCH - Duration::from_millis(1)), "1969-12-31T23:59:59Z");
        for days in 0..80_000 {
            let text = rfc3339(UNIX_EPOCH + Duration::from_secs(days * 86_400 + 3));
            assert_eq!(fault(&text), None, "{text}");
        }
    }

    #[test]
    fn moments_of_others() {
        for good in [
            "2019-01-01T02:03:04Z",
            "2021-03-30T15:18:29.613693922-05:00",
            "2020-02-29t00:00:60+23:59",
        ] {
            assert_eq!(fault(good), None, "{good}");
        }
        for bad in [
            "",
            "2019",
            "2019-01-01",
            "2019-01-01T02:03Z",
            "2019-01-01T02:03:04",
            "2019-02-29T00:00:00Z",
            "2019-13-01T00:00:00Z",
            "2019-01-01T24:00:00Z",
            "2019-01-01T02:03:04+0100",
            "2019-01-01T02:03:04.Z",
            "2019-01-01T02:03:04Zx",
            "ü019-01-01T02:03:04Z",
        ] {
            assert!(fault(bad).is_some(), "{bad}");
        }
    }
}
