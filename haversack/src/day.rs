//! Days, weeks, months and years as people count them: in the user's time zone.
//!
//! Stored moments are UTC ([`Timestamp`]). A day is a day in a [`Zone`], which the caller hands in: shortly before midnight in one zone it is
//! already tomorrow in another. A day with a change to or from daylight saving time has 23 or 25 hours, so a day is never 24 hours of
//! milliseconds.
//!
//! Files are named after a [`Period`]: `2026-11-18`, `2026-W47`, `2026-11` or `2026`.

use std::fmt;
use std::str::FromStr;

use jiff::ToSpan;
use jiff::civil::{Date, ISOWeekDate, Weekday};
use jiff::tz::{Offset, TimeZone};

use crate::ids::Timestamp;

/// The time zone in which days are counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Zone(TimeZone);

impl Zone {
    /// Returns the day of a moment. Moments that no calendar has count as the first or the last day of the calendar.
    pub fn day_of(&self, moment: Timestamp) -> Day {
        let end = if moment.0 < 0 { jiff::Timestamp::MIN } else { jiff::Timestamp::MAX };
        let moment = jiff::Timestamp::from_millisecond(moment.0).unwrap_or(end);
        Day(self.0.to_datetime(moment).date())
    }

    /// Returns the time of day of a moment, as `09:05`.
    pub fn time_of(&self, moment: Timestamp) -> String {
        match jiff::Timestamp::from_millisecond(moment.0) {
            Ok(moment) => self.0.to_datetime(moment).time().strftime("%H:%M").to_string(),
            Err(_) => "00:00".to_owned(),
        }
    }
}

impl From<TimeZone> for Zone {
    fn from(zone: TimeZone) -> Zone {
        Zone(zone)
    }
}

/// A day of the calendar, written as `2026-11-18`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Day(Date);

impl Day {
    /// Returns the day that is the latest anywhere on Earth at a moment: 14 hours ahead of UTC.
    ///
    /// Another device may count in another zone than this one. A comparison with this day accepts all of them.
    pub fn latest_anywhere(moment: Timestamp) -> Day {
        Zone(TimeZone::fixed(Offset::constant(14))).day_of(moment)
    }

    /// Returns the day so many days later; earlier if the number is negative. It stops at the end of the calendar.
    #[must_use]
    pub fn plus(self, days: i32) -> Day {
        Day(self.0.saturating_add(days.days()))
    }

    /// Returns the number of days from another day to this one; negative if the other is later.
    pub fn days_since(self, other: Day) -> i32 {
        (self.0 - other.0).get_days()
    }

    /// Returns the week that the day is in, by ISO 8601: from Monday to Sunday.
    pub fn week(self) -> Period {
        let week = self.0.iso_week_date();
        Period::Week { year: week.year(), week: week.week() }
    }

    /// Returns the month that the day is in.
    pub fn month(self) -> Period {
        Period::Month { year: self.0.year(), month: self.0.month() }
    }

    /// Returns the year that the day is in.
    pub fn year(self) -> Period {
        Period::Year(self.0.year())
    }
}

impl fmt::Display for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A text that is no day of the calendar.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidDay(String);

impl fmt::Display for InvalidDay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is not a day of the calendar, as 2026-11-18", self.0)
    }
}

impl std::error::Error for InvalidDay {}

impl FromStr for Day {
    type Err = InvalidDay;

    fn from_str(text: &str) -> Result<Day, InvalidDay> {
        match Period::from_str(text) {
            Ok(Period::Day(day)) => Ok(day),
            _ => Err(InvalidDay(text.chars().take(40).collect())),
        }
    }
}

/// A span of the calendar after which files are named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Period {
    /// `2026-11-18`
    Day(Day),
    /// `2026-W47`: the ISO week, whose year is that of its Thursday.
    Week {
        /// The year of the week's Thursday.
        year: i16,
        /// From 1 to 53.
        week: i8,
    },
    /// `2026-11`
    Month {
        /// The year.
        year: i16,
        /// From 1 to 12.
        month: i8,
    },
    /// `2026`
    Year(i16),
}

impl Period {
    /// Returns the period in the name of a file: the first digits of the name, up to its extension or its end.
    ///
    /// `session_digest_2026-11-18.md` is named after a day, `notes-2026.txt` after a year, `session_digest_2026-11-18b.md` and
    /// `session_digest_2026-02-30.md` after none.
    pub fn of_name(name: &str) -> Option<Period> {
        let start = name.find(|c: char| c.is_ascii_digit())?;
        let rest = &name[start..];
        rest.split_once('.').map_or(rest, |(stem, _)| stem).parse().ok()
    }

    /// Returns the week of a name such as `2026-47.md`, which is no month if its number is above 12.
    pub fn of_plain_week(name: &str) -> Option<Period> {
        let start = name.find(|c: char| c.is_ascii_digit())?;
        let stem = name[start..].split('.').next()?;
        let (year, week) = stem.split_once('-')?;
        format!("{year}-W{week}").parse().ok()
    }

    /// Returns the first day.
    pub fn first_day(self) -> Day {
        let day = match self {
            Period::Day(day) => return day,
            Period::Week { year, week } => {
                ISOWeekDate::new(year, week, Weekday::Monday).map(ISOWeekDate::date)
            }
            Period::Month { year, month } => Date::new(year, month, 1),
            Period::Year(year) => Date::new(year, 1, 1),
        };
        Day(day.unwrap_or(Date::MIN))
    }

    /// Returns the last day.
    pub fn last_day(self) -> Day {
        let day = match self {
            Period::Day(day) => return day,
            Period::Week { year, week } => {
                ISOWeekDate::new(year, week, Weekday::Sunday).map(ISOWeekDate::date)
            }
            Period::Month { year, month } => Date::new(year, month, 1).map(Date::last_of_month),
            Period::Year(year) => Date::new(year, 12, 31),
        };
        Day(day.unwrap_or(Date::MAX))
    }

    /// Returns true if a day is in the period.
    pub fn contains(self, day: Day) -> bool {
        (self.first_day()..=self.last_day()).contains(&day)
    }
}

impl fmt::Display for Period {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Period::Day(day) => day.fmt(f),
            Period::Week { year, week } => write!(f, "{year:04}-W{week:02}"),
            Period::Month { year, month } => write!(f, "{year:04}-{month:02}"),
            Period::Year(year) => write!(f, "{year:04}"),
        }
    }
}

impl FromStr for Period {
    type Err = InvalidDay;

    fn from_str(text: &str) -> Result<Period, InvalidDay> {
        parse(text).ok_or_else(|| InvalidDay(text.chars().take(40).collect()))
    }
}

/// Parses the exact spelling of a period: the digits have leading zeros and nothing follows.
fn parse(text: &str) -> Option<Period> {
    let number = |digits: &str, length: usize| {
        let is_number = digits.len() == length && digits.bytes().all(|c| c.is_ascii_digit());
        if is_number { digits.parse::<i16>().ok() } else { None }
    };
    let two = |digits: &str| number(digits, 2).and_then(|number| i8::try_from(number).ok());
    let mut parts = text.split('-');
    // The first days of the year 0 are in a week of the year -1, which no file can be named after.
    let year = number(parts.next()?, 4).filter(|year| *year > 0)?;
    let period = match (parts.next(), parts.next(), parts.next()) {
        (None, ..) => Period::Year(year),
        (Some(week), None, _) if week.starts_with('W') => {
            let week = two(&week[1..])?;
            ISOWeekDate::new(year, week, Weekday::Monday).ok()?;
            Period::Week { year, week }
        }
        (Some(month), None, _) => {
            let month = two(month)?;
            Date::new(year, month, 1).ok()?;
            Period::Month { year, month }
        }
        (Some(month), Some(day), None) => Period::Day(Day(Date::new(year, two(month)?, two(day)?).ok()?)),
        (Some(_), Some(_), Some(_)) => return None,
    };
    Some(period)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn day(text: &str) -> Day {
        text.parse().expect("a day")
    }

    fn at(text: &str) -> Timestamp {
        Timestamp(text.parse::<jiff::Timestamp>().expect("a moment").as_millisecond())
    }

    fn posix(zone: &str) -> Zone {
        TimeZone::posix(zone).expect("a zone").into()
    }

    #[test]
    fn day_changes_at_midnight_of_its_zone() {
        let pacific = posix("PST8PDT,M3.2.0,M11.1.0");
        for (moment, in_pacific, in_utc) in [
            ("2026-04-18T00:30:00Z", "2026-04-17", "2026-04-18"),
            ("2026-04-18T06:59:59Z", "2026-04-17", "2026-04-18"),
            ("2026-04-18T07:00:00Z", "2026-04-18", "2026-04-18"),
            // After the change of the clocks, midnight is an hour later in UTC.
            ("2026-11-01T06:59:59Z", "2026-10-31", "2026-11-01"),
            ("2026-11-02T07:59:59Z", "2026-11-01", "2026-11-02"),
            ("2026-11-02T08:00:00Z", "2026-11-02", "2026-11-02"),
        ] {
            assert_eq!(pacific.day_of(at(moment)), day(in_pacific), "{moment}");
            assert_eq!(Zone(TimeZone::UTC).day_of(at(moment)), day(in_utc), "{moment}");
        }
        assert_eq!(Day::latest_anywhere(at("2026-04-17T10:00:00Z")), day("2026-04-18"));
    }

    #[test]
    fn moments_that_no_calendar_has_are_a_day_all_the_same() {
        let years = [i64::MIN, i64::MAX].map(|moment| Zone(TimeZone::UTC).day_of(Timestamp(moment)).year());
        assert_eq!(years, [Period::Year(-9999), Period::Year(9999)]);
    }

    #[test]
    fn days_that_do_not_exist_are_refused() {
        for wrong in [
            "",
            "2026",
            "2026-11",
            "2026-W47",
            "2026-02-29",
            "2026-13-01",
            "2026-11-31",
            "2026-1-1",
            "2026-11-018",
            "26-11-18",
            "2026-11-18-01",
            "2026-11-1 ",
            "+026-11-18",
            "２０２６-11-18",
        ] {
            assert!(wrong.parse::<Day>().is_err(), "{wrong}");
        }
        assert_eq!(day("2028-02-29").plus(1), day("2028-03-01"));
        assert_eq!(
            "soon".parse::<Day>().expect_err("no day").to_string(),
            "\"soon\" is not a day of the calendar, as 2026-11-18"
        );
    }

    #[test]
    fn periods_are_read_from_names_and_contain_their_days() {
        for (name, period, first, last) in [
            ("session_digest_2026-11-18.md", "2026-11-18", "2026-11-18", "2026-11-18"),
            ("2026-W53.md", "2026-W53", "2026-12-28", "2027-01-03"),
            ("weekly_2026-W01.md", "2026-W01", "2025-12-29", "2026-01-04"),
            ("2028-02.md", "2028-02", "2028-02-01", "2028-02-29"),
            ("yearly_2026.md", "2026", "2026-01-01", "2026-12-31"),
        ] {
            let read = Period::of_name(name).expect("a period");
            assert_eq!(read.to_string(), period);
            assert_eq!((read.first_day(), read.last_day()), (day(first), day(last)), "{name}");
            assert!(read.contains(day(first)) && read.contains(day(last)));
            assert!(!read.contains(day(first).plus(-1)) && !read.contains(day(last).plus(1)));
        }
        for odd in
            ["notes.md", "session_digest_2026-02-30.md", "2025-W53.md", "2026-11-18b.md", "20261118.md"]
        {
            assert_eq!(Period::of_name(odd), None, "{odd}");
        }
    }

    #[test]
    fn week_month_and_year_of_a_day() {
        let periods =
            |text: &str| [day(text).week(), day(text).month(), day(text).year()].map(|p| p.to_string());
        assert_eq!(periods("2027-01-02"), ["2026-W53", "2027-01", "2027"]);
        assert_eq!(periods("2024-12-30"), ["2025-W01", "2024-12", "2024"]);
        assert_eq!(day("2026-03-01").days_since(day("2026-02-01")), 28);
        assert_eq!(day("2026-02-01").days_since(day("2026-03-01")), -28);
    }
}
