//! Moments as S3 writes and reads them.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

const DAY_SECONDS: u64 = 86_400;

/// A moment as `20260131T235959Z`: what signatures need.
pub(super) fn stamp(moment: SystemTime) -> String {
    let seconds = moment.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let (year, month, day) = date_of(seconds / DAY_SECONDS);
    let rest = seconds % DAY_SECONDS;
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    format!("{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}Z")
}

/// Reads `2026-01-31T23:59:59.000Z`, with or without the fraction, and with an offset instead of `Z`.
pub(super) fn parse_iso(text: &str) -> Option<SystemTime> {
    if let Some(text) = text.strip_suffix('Z') {
        return parse_utc(text);
    }
    let (local, offset) = text.split_at_checked(text.len().checked_sub(6)?)?;
    let (hours, minutes) = offset.get(1..)?.split_once(':')?;
    let (hours, minutes) = (hours.parse::<u64>().ok()?, minutes.parse::<u64>().ok()?);
    let by = Duration::from_secs(hours * 3600 + minutes * 60);
    match offset.as_bytes()[0] {
        b'+' => parse_utc(local)?.checked_sub(by),
        b'-' => parse_utc(local)?.checked_add(by),
        _ => None,
    }
}

fn parse_utc(text: &str) -> Option<SystemTime> {
    let (date, time) = text.split_once('T')?;
    let mut date = date.splitn(3, '-').map(|part| part.parse::<u64>().ok());
    let (year, month, day) = (date.next()??, date.next()??, date.next()??);
    let (time, fraction) = time.split_once('.').unwrap_or((time, ""));
    let mut time = time.splitn(3, ':').map(|part| part.parse::<u64>().ok());
    let (hour, minute, second) = (time.next()??, time.next()??, time.next()??);
    let plausible = (1970..=9999).contains(&year)
        && (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && hour < 24
        && minute < 60
        && second <= 60;
    if !plausible {
        return None;
    }
    let seconds = days_before(year, month, day) * DAY_SECONDS + hour * 3600 + minute * 60 + second;
    let millis: u64 = format!("{fraction:0<3}").get(..3)?.parse().ok()?;
    Some(UNIX_EPOCH + Duration::from_secs(seconds) + Duration::from_millis(millis))
}

/// Reads the date of an HTTP header.
pub(super) fn parse_http(text: &str) -> Option<SystemTime> {
    httpdate::parse_http_date(text).ok()
}

/// Days from the epoch to a date. Years are counted from March, so that the leap day is the last
/// of its year.
fn days_before(year: u64, month: u64, day: u64) -> u64 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = year * 365 + year / 4 - year / 100 + year / 400 + (month * 153 + 2) / 5 + day - 1;
    // The days from the first of March of the year 0 to the epoch.
    days - 719_468
}

/// The date so many days after the epoch: the same count, backwards.
fn date_of(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, in_era) = (days / 146_097, days % 146_097);
    let year = (in_era - in_era / 1460 + in_era / 36_524 - in_era / 146_096) / 365;
    let in_year = in_era - (365 * year + year / 4 - year / 100);
    let month = (5 * in_year + 2) / 153;
    let day = in_year - (153 * month + 2) / 5 + 1;
    let year = era * 400 + year;
    if month < 10 { (year, month + 3, day) } else { (year + 1, month - 9, day) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_day_there_and_back() {
        for days in 0..80_000 {
            let (year, month, day) = date_of(days);
            assert_eq!(days_before(year, month, day), days);
        }
        assert_eq!(date_of(0), (1970, 1, 1));
        assert_eq!(date_of(19_782), (2024, 2, 29));
    }

    #[test]
    fn moments_of_listings_and_signatures() {
        let moment = parse_iso("2013-05-24T00:00:01.250Z").unwrap();
        assert_eq!(stamp(moment), "20130524T000001Z");
        assert_eq!(moment.duration_since(UNIX_EPOCH).unwrap().as_millis(), 1_369_353_601_250);
        assert_eq!(parse_iso("2013-05-24T00:00:01Z").map(stamp).unwrap(), "20130524T000001Z");
        for same in
            ["2013-05-24T00:00:01+00:00", "2013-05-24T01:30:01+01:30", "2013-05-23T19:00:01-05:00"]
        {
            assert_eq!(parse_iso(same).map(stamp).unwrap(), "20130524T000001Z", "{same}");
        }
        for bad in
            ["", "Z", "2013-05-24", "2013-13-01T00:00:00Z", "2013-05-24T0:0Z", "é-1-1T1:1:1Z"]
        {
            assert_eq!(parse_iso(bad), None, "{bad}");
        }
        assert_eq!(parse_iso("2013-05-24T00:00:01.éZ"), None);
    }
}
