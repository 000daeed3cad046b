//! Moments as S3 writes and reads them.

use jiff::Timestamp;
use std::time::SystemTime;

/// A moment as `20260131T235959Z`: what signatures need.
pub(super) fn stamp(moment: SystemTime) -> String {
    let moment = Timestamp::try_from(moment).unwrap_or(Timestamp::MAX);
    moment.strftime("%Y%m%dT%H%M%SZ").to_string()
}

/// Reads `2026-01-31T23:59:59.000Z`, with or without the fraction, and with an offset instead of `Z`.
pub(super) fn parse_iso(text: &str) -> Option<SystemTime> {
    text.parse::<Timestamp>().ok().map(SystemTime::from)
}

/// Reads the date of an HTTP header.
pub(super) fn parse_http(text: &str) -> Option<SystemTime> {
    jiff::fmt::rfc2822::parse(text).ok().map(|date| date.timestamp().into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::UNIX_EPOCH;

    #[test]
    fn dates_of_headers() {
        let moment = parse_http("Sun, 06 Nov 1994 08:49:37 GMT").unwrap();
        assert_eq!(stamp(moment), "19941106T084937Z");
        assert_eq!(parse_http("yesterday"), None);
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
