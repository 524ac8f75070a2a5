//! Moments and spans of time as people say them.

use std::sync::OnceLock;
use std::time::{SystemTime, UNIX_EPOCH};

use haversack::day::Zone;
use haversack::ids::Timestamp;

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// Returns how long ago something was, roughly.
pub(crate) fn ago(now: Timestamp, then: Timestamp) -> String {
    match (now.0 - then.0) / 1000 {
        // A clock may be behind another.
        seconds if seconds < MINUTE => "just now".to_owned(),
        seconds => format!("{} ago", span(seconds)),
    }
}

/// Returns a moment of the file system's clock.
pub(crate) fn timestamp(moment: SystemTime) -> Timestamp {
    let since = moment.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis());
    Timestamp(i64::try_from(since).unwrap_or(i64::MAX))
}

/// Returns a span of time, roughly.
pub(crate) fn span(seconds: i64) -> String {
    let (count, unit) = match seconds {
        seconds if seconds < MINUTE => (seconds, "s"),
        seconds if seconds < HOUR => (seconds / MINUTE, "min"),
        seconds if seconds < 2 * DAY => (seconds / HOUR, "h"),
        seconds => (seconds / DAY, "days"),
    };
    format!("{count} {unit}")
}

/// Returns how many there are of something.
pub(crate) fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// Returns the words that go with a number of things: `("was", "it")` or `("were", "them")`.
pub(crate) fn was_it(count: usize) -> (&'static str, &'static str) {
    if count == 1 { ("was", "it") } else { ("were", "them") }
}

/// The time zone of the user, in which all times are shown. A run has one, set when its settings are known.
static ZONE: OnceLock<Zone> = OnceLock::new();

/// Sets the time zone in which this run shows times.
pub(crate) fn show_times_in(zone: &Zone) {
    // A process reads its settings once.
    drop(ZONE.set(zone.clone()));
}

fn zone() -> &'static Zone {
    ZONE.get_or_init(|| jiff::tz::TimeZone::system().into())
}

/// Returns a moment as day and time in the user's time zone.
pub(crate) fn local(then: Timestamp) -> String {
    match jiff::Timestamp::from_millisecond(then.0) {
        Ok(_) => format!("{} {}", zone().day_of(then), zone().time_of(then)),
        Err(_) => then.to_string(),
    }
}

/// Returns the time of day of a moment in the user's time zone, as `14:30`.
pub(crate) fn time_of_day(then: Timestamp) -> String {
    zone().time_of(then)
}

/// Parses a number of things.
pub(crate) fn parse_count(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| "it is not a whole number such as 5".to_owned())
}

/// Parses a span such as `2h`, `30min` or `3d`, in milliseconds.
pub(crate) fn parse_span(text: &str) -> Result<i64, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (count, unit) = text.split_at(digits);
    let seconds = match unit.trim() {
        "s" => 1,
        "m" | "min" => MINUTE,
        "h" => HOUR,
        "d" | "days" => DAY,
        "w" => 7 * DAY,
        _ => return Err("say it as 30min, 2h, 3d or 1w".to_owned()),
    };
    let count: i64 = count.parse().map_err(|_| "say it as 30min, 2h, 3d or 1w".to_owned())?;
    count.checked_mul(seconds * 1000).ok_or_else(|| "that is too long".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_people_say_it() {
        let at = |seconds: i64| ago(Timestamp(seconds * 1000), Timestamp(0));
        let cases = [
            (0, "just now"),
            (59, "just now"),
            (60, "1 min ago"),
            (7200, "2 h ago"),
            (200_000, "2 days ago"),
        ];
        for (seconds, said) in cases {
            assert_eq!(at(seconds), said);
        }
        assert_eq!(at(-5), "just now");
    }

    #[test]
    fn spans() {
        assert_eq!(parse_span("30min"), Ok(1_800_000));
        assert_eq!(parse_span("2h"), Ok(7_200_000));
        assert_eq!(parse_span("1w"), Ok(604_800_000));
        for wrong in ["", "h", "2", "-2h", "2 fortnights", "99999999999999999999d", "9999999999999999d"] {
            assert!(parse_span(wrong).is_err(), "{wrong}");
        }
    }
}
