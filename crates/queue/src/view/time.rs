//! Times as people read them.

use db::Micros;

/// `2026-11-15 10:02:03Z`
pub fn show_time(at: Micros) -> String {
    jiff::Timestamp::from_microsecond(at)
        .map_or_else(|_| format!("{at} µs"), |t| t.strftime("%Y-%m-%d %H:%M:%SZ").to_string())
}

/// `3 h 5 min`, `20 s`: how long, to the two largest units.
pub fn ago(micros: Micros) -> String {
    let seconds = micros.max(0) / 1_000_000;
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60);
    match (days, hours, minutes) {
        (0, 0, 0) if seconds == 0 => format!("{} ms", micros.max(0) / 1000),
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, _) => format!("{minutes} min {} s", seconds % 60),
        (0, ..) => format!("{hours} h {minutes} min"),
        _ => format!("{days} d {hours} h"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_two_units() {
        assert_eq!(ago(20_000_000), "20 s");
        assert_eq!(ago(3_723_000_000), "1 h 2 min");
        assert_eq!(ago(90_000_000_000), "1 d 1 h");
        assert_eq!(ago(1500), "1 ms");
    }

    #[test]
    fn times_are_utc() {
        assert_eq!(show_time(0), "1970-01-01 00:00:00Z");
    }
}
