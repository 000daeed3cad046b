//! The two ways to write a time that Checkm names: W3CDTF (`2024-02-29T12:00:00Z`, or a part of
//! it from the left) and TEMPER (`20240229120000`, likewise).

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
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let days = match month {
        4 | 6 | 9 | 11 => 30,
        2 if leap => 29,
        2 => 28,
        1..=12 => 31,
        _ => return Err(DateFlaw::Impossible),
    };
    if (1..=days).contains(&day) { Ok(()) } else { Err(DateFlaw::Impossible) }
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
    let seconds = match time.duration_since(std::time::UNIX_EPOCH) {
        Ok(after) => i64::try_from(after.as_secs()).ok()?,
        Err(before) => -i64::try_from(before.duration().as_secs()).ok()?,
    };
    let (days, clock) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    // Years are counted from March, so that the leap day is the last of its year.
    let days = days.checked_add(719_468)?;
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let (hour, minute, second) = (clock / 3600, clock / 60 % 60, clock % 60);
    (0..=9999)
        .contains(&year)
        .then(|| format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z"))
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
