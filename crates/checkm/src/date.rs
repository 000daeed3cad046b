//! The two ways to write a time that Checkm names: W3CDTF (`2024-02-29T12:00:00Z`, or a part of
//! it from the left) and TEMPER (`20240229120000`, likewise).

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DateFlaw {
    /// It is not written as a time.
    Syntax,
    /// It is written as a time that never was.
    Impossible,
}

/// Checks a time of last modification.
pub(crate) fn check(text: &str) -> Result<(), DateFlaw> {
    let bytes = text.as_bytes();
    if bytes.iter().all(u8::is_ascii_digit) && bytes.len() > 4 {
        return temper(bytes);
    }
    let mut cursor = Cursor(bytes);
    w3c(&mut cursor)
}

fn temper(digits: &[u8]) -> Result<(), DateFlaw> {
    if !digits.len().is_multiple_of(2) || digits.len() > 14 {
        return Err(DateFlaw::Syntax);
    }
    let mut cursor = Cursor(digits);
    let year = cursor.number(4)?;
    let mut part = |least| if cursor.0.is_empty() { Ok(least) } else { cursor.number(2) };
    let (month, day) = (part(1)?, part(1)?);
    let (hour, minute, second) = (part(0)?, part(0)?, part(0)?);
    possible(year, month, day)?;
    possible_time(hour, minute, second)
}

fn w3c(cursor: &mut Cursor<'_>) -> Result<(), DateFlaw> {
    let year = cursor.number(4)?;
    if cursor.0.is_empty() {
        return Ok(());
    }
    cursor.byte(b'-')?;
    let month = cursor.number(2)?;
    if cursor.0.is_empty() {
        return possible(year, month, 1);
    }
    cursor.byte(b'-')?;
    let day = cursor.number(2)?;
    if cursor.0.is_empty() {
        return possible(year, month, day);
    }
    cursor.byte(b'T').or_else(|_| cursor.byte(b't'))?;
    let (hour, minute, second) = clock(cursor)?;
    zone(cursor)?;
    possible(year, month, day)?;
    possible_time(hour, minute, second)
}

fn clock(cursor: &mut Cursor<'_>) -> Result<(u32, u32, u32), DateFlaw> {
    let hour = cursor.number(2)?;
    cursor.byte(b':')?;
    let minute = cursor.number(2)?;
    if cursor.byte(b':').is_err() {
        return Ok((hour, minute, 0));
    }
    let second = cursor.number(2)?;
    if cursor.byte(b'.').is_ok() {
        let digits = cursor.0.iter().take_while(|b| b.is_ascii_digit()).count();
        if digits == 0 {
            return Err(DateFlaw::Syntax);
        }
        cursor.0 = &cursor.0[digits..];
    }
    Ok((hour, minute, second))
}

fn zone(cursor: &mut Cursor<'_>) -> Result<(), DateFlaw> {
    match cursor.0 {
        [] | [b'Z' | b'z'] => Ok(()),
        [b'+' | b'-', rest @ ..] => {
            cursor.0 = rest;
            let hour = cursor.number(2)?;
            if !cursor.0.is_empty() {
                // The colon is often forgotten, and nothing else could be meant.
                let _ = cursor.byte(b':');
                possible_time(hour, cursor.number(2)?, 0)?;
            }
            if cursor.0.is_empty() { possible_time(hour, 0, 0) } else { Err(DateFlaw::Syntax) }
        }
        _ => Err(DateFlaw::Syntax),
    }
}

fn possible(year: u32, month: u32, day: u32) -> Result<(), DateFlaw> {
    let (Ok(year), Ok(month), Ok(day)) = (year.try_into(), month.try_into(), day.try_into()) else {
        return Err(DateFlaw::Impossible);
    };
    Date::new(year, month, day).map(drop).map_err(|_| DateFlaw::Impossible)
}

fn possible_time(hour: u32, minute: u32, second: u32) -> Result<(), DateFlaw> {
    // A leap second is a time; 24:00 is not one that two tools understand alike.
    if hour < 24 && minute < 60 && second <= 60 { Ok(()) } else { Err(DateFlaw::Impossible) }
}

struct Cursor<'a>(&'a [u8]);

impl Cursor<'_> {
    fn byte(&mut self, wanted: u8) -> Result<(), DateFlaw> {
        match self.0.split_first() {
            Some((&first, rest)) if first == wanted => {
                self.0 = rest;
                Ok(())
            }
            _ => Err(DateFlaw::Syntax),
        }
    }

    fn number(&mut self, digits: usize) -> Result<u32, DateFlaw> {
        let Some((number, rest)) = self.0.split_at_checked(digits) else {
            return Err(DateFlaw::Syntax);
        };
        if !number.iter().all(u8::is_ascii_digit) {
            return Err(DateFlaw::Syntax);
        }
        self.0 = rest;
        Ok(number.iter().fold(0, |sum, digit| sum * 10 + u32::from(digit - b'0')))
    }
}

/// `YYYY-MM-DDThh:mm:ssZ` of a time, or nothing for years that need more than four digits.
pub(crate) fn format(time: std::time::SystemTime) -> Option<String> {
    let time = Timestamp::try_from(time).ok()?.to_zoned(TimeZone::UTC);
    let written = || time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    (time.year() >= 0).then(written)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, UNIX_EPOCH};

    #[test]
    fn both_ways_of_writing_a_time() {
        for good in [
            "2024",
            "2024-02",
            "2024-02-29",
            "2024-02-29T23:59",
            "2024-02-29T23:59:60Z",
            "2010-06-02T13:54:43-07:00",
            "2010-06-02T13:54:43.123+0200",
            "20240229",
            "20240229120000",
        ] {
            assert_eq!(check(good), Ok(()), "{good}");
        }
        for bad in [
            "",
            "yesterday",
            "2024-2-9",
            "2024-02-29 12:00",
            "202402291",
            "2024-02-29T",
            "2024-01-01T00:00:00.Z",
        ] {
            assert_eq!(check(bad), Err(DateFlaw::Syntax), "{bad}");
        }
        for never in ["2023-02-29", "2024-13", "2024-00-01", "20240431", "2024-01-01T24:00:00Z"] {
            assert_eq!(check(never), Err(DateFlaw::Impossible), "{never}");
        }
    }

    #[test]
    fn times_are_written_in_utc() {
        let at = |seconds| format(UNIX_EPOCH + Duration::from_secs(seconds)).unwrap();
        assert_eq!(at(0), "1970-01-01T00:00:00Z");
        assert_eq!(at(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(at(1_735_689_599), "2024-12-31T23:59:59Z");
        assert_eq!(format(UNIX_EPOCH - Duration::from_secs(1)).unwrap(), "1969-12-31T23:59:59Z");
    }
}
