//! Points in time as people and programs write them, compared by their meaning.

use std::cmp::Ordering;

/// A point in time: seconds since a day long ago, and a fraction of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Moment {
    seconds: i64,
    nanoseconds: u32,
}

impl Moment {
    /// Reads `2026-10-02`, `2026-10-02T08:15:30.123Z` and the like; without an offset it is UTC.
    pub(super) fn read(text: &str) -> Option<Moment> {
        let date = text.get(..10).filter(|date| is_date(date))?;
        let number = |text: &str| text.parse::<i64>().ok();
        let days = days(number(&date[..4])?, number(&date[5..7])?, number(&date[8..])?);
        let mut rest = &text[10..];
        let (mut seconds, mut nanoseconds) = (days * 86_400, 0);
        if let Some(time) = rest.strip_prefix(['T', 't', ' ']) {
            let part = |range: std::ops::Range<usize>| {
                time.get(range).filter(|part| is_number(part)).and_then(number)
            };
            seconds +=
                part(0..2)? * 3600 + time.get(2..3).filter(|c| *c == ":").and_then(|_| part(3..5))? * 60;
            rest = &time[5..];
            if let Some(second) = rest.strip_prefix(':') {
                seconds += second.get(..2).filter(|part| is_number(part)).and_then(number)?;
                rest = &second[2..];
            }
            if let Some(fraction) = rest.strip_prefix(['.', ',']) {
                let digits = fraction.bytes().take_while(u8::is_ascii_digit).count();
                let nine: String = fraction[..digits].chars().chain(std::iter::repeat('0')).take(9).collect();
                nanoseconds = nine.parse().ok()?;
                rest = &fraction[digits..];
            }
        }
        seconds -= offset(rest)?;
        Some(Moment { seconds, nanoseconds })
    }
}

/// Compares two values of which the greater is the newer: as points in time, as numbers, or as they are written.
pub(super) fn compare(one: &str, other: &str) -> Ordering {
    let (one, other) = (one.trim(), other.trim());
    let number = |text: &str| -> Option<(bool, usize, String)> {
        let (is_negative, digits) = text.strip_prefix('-').map_or((false, text), |digits| (true, digits));
        let digits = digits.trim_start_matches('0');
        (!text.is_empty() && is_number(text.trim_start_matches('-')))
            .then(|| (is_negative, digits.len(), digits.to_owned()))
    };
    let by_meaning = match (Moment::read(one), Moment::read(other), number(one), number(other)) {
        (Some(one), Some(other), ..) => one.cmp(&other),
        (.., Some(one), Some(other)) => match (one.0, other.0) {
            (false, false) => (one.1, one.2).cmp(&(other.1, other.2)),
            (true, true) => (other.1, other.2).cmp(&(one.1, one.2)),
            (one, other) => other.cmp(&one),
        },
        // Parsed moments come before unparsed ones.
        (one, other, one_number, other_number) => {
            (one.is_some() || one_number.is_some()).cmp(&(other.is_some() || other_number.is_some()))
        }
    };
    by_meaning.then_with(|| one.cmp(other))
}

/// Returns the first date in a text.
pub(super) fn date_in(text: &str) -> Option<&str> {
    let starts = text.char_indices().filter(|(_, c)| c.is_ascii_digit());
    starts.map(|(at, _)| at).find_map(|at| text.get(at..at + 10).filter(|date| is_date(date)))
}

/// Returns true if a text is a date like `2026-10-02`.
pub(super) fn is_date(text: &str) -> bool {
    text.len() == 10
        && text
            .bytes()
            .enumerate()
            .all(|(at, byte)| if at == 4 || at == 7 { byte == b'-' } else { byte.is_ascii_digit() })
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns the seconds that a local time is ahead.
fn offset(text: &str) -> Option<i64> {
    if text.is_empty() || text.eq_ignore_ascii_case("z") {
        return Some(0);
    }
    let (sign, rest) = match text.split_at_checked(1)? {
        ("+", rest) => (1, rest),
        ("-", rest) => (-1, rest),
        _ => return None,
    };
    let rest = rest.replace(':', "");
    let (hours, minutes) = rest.split_at_checked(2)?;
    (is_number(hours) && (minutes.is_empty() || is_number(minutes)))
        .then(|| Some(sign * (hours.parse::<i64>().ok()? * 3600 + minutes.parse::<i64>().unwrap_or(0) * 60)))
        .flatten()
}

/// Returns the days since the start of an era, in the calendar that everybody uses.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let month = if month <= 2 { month + 9 } else { month - 3 };
    year * 365 + year / 4 - year / 100 + year / 400 + (month * 153 + 2) / 5 + day
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newer_is_the_greater() {
        for (older, newer) in [
            ("2026-10-02", "2026-10-03"),
            ("2026-02-28", "2026-03-01"),
            ("2026-10-02T08:00:00Z", "2026-10-02T08:00:00.123Z"),
            ("2026-10-02T08:00:00.9Z", "2026-10-02T08:00:01Z"),
            ("2026-10-02T10:00:00+02:00", "2026-10-02T09:00:00Z"),
            ("2026-10-02T01:00:00Z", "2026-10-01T23:00:00-0500"),
            ("2026-10-02 08:00", "2026-10-02T08:01"),
            ("9", "10"),
            ("-10", "-9"),
            ("-1", "1"),
            ("99999999999999999999", "100000000000000000000"),
            ("nonsense", "1"),
            ("zzz", "2026-10-02"),
            ("a", "b"),
        ] {
            assert_eq!(compare(older, newer), Ordering::Less, "{older} {newer}");
            assert_eq!(compare(newer, older), Ordering::Greater, "{older} {newer}");
        }
        assert_eq!(Moment::read("2026-10-02T10:00:00+02:00"), Moment::read("2026-10-02T08:00:00Z"));
        assert_eq!(Moment::read("2026-10-02x"), None);
        assert_eq!(Moment::read("2026-10-02T1"), None);
        assert_eq!(Moment::read("ümläut-10-"), None);
        assert_eq!(date_in("## 2026-10-02, later"), Some("2026-10-02"));
        assert_eq!(date_in("ä2026-1ö-02"), None);
    }
}
