//! The times that entries of zip archives have: of MS-DOS, of Unix, and of Windows.

use jiff::civil::{Date, Time};
use jiff::tz::TimeZone;

const SECOND: i64 = 1_000_000;
/// From 1601 to 1970, in units of 100 ns.
const WINDOWS_TO_UNIX: i64 = 116_444_736_000_000_000;

/// The time in the fixed part of an entry; `None` for one that is no date.
pub(crate) fn of_dos(date: u16, time: u16) -> Option<i64> {
    // The first moment that can be written is what programs write who know none.
    if (date, time) == (1 << 5 | 1, 0) {
        return None;
    }
    let part = |bits: u16| i8::try_from(bits).ok();
    let year = 1980 + i16::try_from(date >> 9).ok()?;
    let date = Date::new(year, part(date >> 5 & 15)?, part(date & 31)?).ok()?;
    let second = part((time & 31) * 2)?;
    let time = Time::new(part(time >> 11)?, part(time >> 5 & 63)?, second, 0).ok()?;
    let moment = date.to_datetime(time).to_zoned(TimeZone::UTC).ok()?;
    Some(moment.timestamp().as_microsecond())
}

/// The time in an extra field, if it is one that has it.
pub(crate) fn of_extra(id: u16, data: &[u8]) -> Option<i64> {
    match id {
        0x5455 => of_unix(data),
        0x000a => of_windows(data),
        _ => None,
    }
}

fn of_unix(data: &[u8]) -> Option<i64> {
    let has_modified = data.first()? & 1 == 1;
    let seconds = i32::from_le_bytes(data.get(1..5)?.try_into().ok()?);
    has_modified.then(|| i64::from(seconds) * SECOND)
}

/// Four bytes that say nothing, then the attribute 1 of 24 bytes, whose first time is it.
fn of_windows(data: &[u8]) -> Option<i64> {
    if data.get(4..8)? != [1, 0, 24, 0] {
        return None;
    }
    let time = i64::from_le_bytes(data.get(8..16)?.try_into().ok()?);
    (time != 0).then(|| time.checked_sub(WINDOWS_TO_UNIX).map(|units| units / 10)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_time_is_read() {
        // 2023-11-14 22:13:20 UTC.
        let expected = Some(1_700_000_000 * SECOND);
        assert_eq!(of_dos((2023 - 1980) << 9 | 11 << 5 | 14, 22 << 11 | 13 << 5 | 10), expected);
        assert_eq!(of_dos(20 << 9 | 2 << 5 | 29, 0), Some(951_782_400 * SECOND), "a leap day");
        assert_eq!(of_dos(1 << 5 | 1, 0), None);
        assert_eq!(of_dos(0, 0), None);
        assert_eq!(of_dos(21 << 9 | 2 << 5 | 29, 0), None, "no leap year");
        let mut unix = vec![3];
        unix.extend(1_700_000_000_i32.to_le_bytes());
        assert_eq!(of_extra(0x5455, &unix), expected);
        assert_eq!(of_extra(0x5455, &[0]), None);
        let mut windows = vec![0, 0, 0, 0, 1, 0, 24, 0];
        windows.extend((1_700_000_000 * 10_000_000 + WINDOWS_TO_UNIX).to_le_bytes());
        windows.extend([0; 16]);
        assert_eq!(of_extra(0x000a, &windows), expected);
        assert_eq!(of_extra(0x000a, &windows[..10]), None);
    }
}
