//! Finds dates in text and time spans in queries. Pure.
//!
//! A date in a memory is indexed by its year, month, day and weekday, so that "in March" and "on Monday" find it. A query may name a span that
//! is relative to now ("last week"); it ranks memories of that span higher. `--since` and `--until` take the same words and filter.

use std::fmt;

use jiff::ToSpan;
use jiff::civil::{Date, Weekday};

/// The most dates of one passage that are indexed.
const MAX_DATES: usize = 8;

const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];

const WEEKDAYS: [&str; 7] = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];

/// A span of days, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The first day.
    pub first: Date,
    /// The last day.
    pub last: Date,
}

/// A time that cannot be understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownTime(String);

impl fmt::Display for UnknownTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?} is not a time we know, such as 2026-11-18, 2026-11, yesterday, \"last week\", \"3 months ago\" or March",
            self.0
        )
    }
}

impl std::error::Error for UnknownTime {}

impl Span {
    /// Returns the span of one day.
    fn day(day: Date) -> Span {
        Span { first: day, last: day }
    }

    fn month(year: i16, month: i8) -> Option<Span> {
        let first = Date::new(year, month, 1).ok()?;
        Some(Span { first, last: first.last_of_month() })
    }

    fn year(year: i16) -> Option<Span> {
        Some(Span { first: Date::new(year, 1, 1).ok()?, last: Date::new(year, 12, 31).ok()? })
    }

    /// Reads a time that a person gave as an option, such as `2026-11-18`, `yesterday` or `last week`.
    pub fn parse(text: &str, today: Date) -> Result<Span, UnknownTime> {
        let unknown = || UnknownTime(text.chars().take(60).collect());
        let words: Vec<String> = words(text).into_iter().map(|word| word.text).collect();
        let words: Vec<&str> = words
            .iter()
            .map(String::as_str)
            .filter(|word| !["the", "in", "on", "since", "until"].contains(word))
            .collect();
        if let [date] = dates(text)[..]
            && words.len() <= 3
        {
            return Ok(Span::day(date));
        }
        match words[..] {
            [month] if month_of(month).is_some() => {
                latest_month(month_of(month).ok_or_else(unknown)?, today).ok_or_else(unknown)
            }
            [year] => match number(year, 4) {
                Some(year) => Span::year(year).ok_or_else(unknown),
                None => relative(&words, today)
                    .filter(|(_, used)| *used == 1)
                    .map(|(span, _)| span)
                    .ok_or_else(unknown),
            },
            [month, year] if month_of(month).is_some() => {
                let month = month_of(month).and_then(|month| Span::month(number(year, 4)?, month));
                month.ok_or_else(unknown)
            }
            [year, month] if number(year, 4).is_some() => {
                let month =
                    number(year, 4).and_then(|year| Span::month(year, i8::try_from(number(month, 2)?).ok()?));
                month.ok_or_else(unknown)
            }
            _ => relative(&words, today)
                .filter(|(_, used)| *used == words.len())
                .map(|(span, _)| span)
                .ok_or_else(unknown),
        }
    }

    /// Returns the span that a query names, if it names one, and the words that are of no other use, as in "last week".
    pub(crate) fn in_query(text: &str, today: Date) -> Option<(Span, Vec<String>)> {
        if let [date] = dates(text)[..] {
            return Some((Span::day(date), Vec::new()));
        }
        let words: Vec<String> = words(text).into_iter().map(|word| word.text).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        for at in 0..words.len() {
            if let Some((span, used)) = relative(&words[at..], today) {
                return Some((span, words[at..at + used].iter().map(|word| (*word).to_owned()).collect()));
            }
            // "march" and "may" are verbs too, unless a preposition makes them a month.
            if at > 0
                && ["in", "during", "since", "last", "this", "of"].contains(&words[at - 1])
                && let Some(month) = month_of(words[at])
            {
                let span = match words.get(at + 1).and_then(|year| number(year, 4)) {
                    Some(year) => Span::month(year, month),
                    None => latest_month(month, today),
                };
                return span.map(|span| (span, Vec::new()));
            }
        }
        None
    }

    /// Returns true if the span has a day, given as days since 1970.
    pub(crate) fn holds(&self, day: u16) -> bool {
        (days_of(self.first)..=days_of(self.last)).contains(&day)
    }
}

/// Returns the span at the start of some words, and how many of them name it.
fn relative(words: &[&str], today: Date) -> Option<(Span, usize)> {
    let weeks = |count: i64| {
        let day = today.saturating_sub(count.weeks());
        let monday = day.saturating_sub(i64::from(day.weekday().to_monday_zero_offset()).days());
        Span { first: monday, last: monday.saturating_add(6.days()) }
    };
    let months = |count: i64| {
        let day = today.first_of_month().saturating_sub(count.months());
        Span { first: day, last: day.last_of_month() }
    };
    let years = |count: i64| Span::year(today.year().saturating_sub(i16::try_from(count).ok()?));
    match *words {
        ["today", ..] => Some((Span::day(today), 1)),
        ["yesterday", ..] => Some((Span::day(today.saturating_sub(1.day())), 1)),
        ["this" | "last", "week", ..] => Some((weeks(i64::from(words[0] == "last")), 2)),
        ["this" | "last", "month", ..] => Some((months(i64::from(words[0] == "last")), 2)),
        ["this" | "last", "year", ..] => Some((years(i64::from(words[0] == "last"))?, 2)),
        ["last", day, ..] if weekday_of(day).is_some() => {
            let back = i64::from(today.weekday().since(weekday_of(day)?));
            let back = if back == 0 { 7 } else { back };
            Some((Span::day(today.saturating_sub(back.days())), 2))
        }
        [count, unit, "ago", ..] => {
            let count = count_of(count)?;
            let span = match unit.strip_suffix('s').unwrap_or(unit) {
                "day" => Span::day(today.saturating_sub(count.days())),
                "week" => weeks(count),
                "month" => months(count),
                "year" => years(count)?,
                _ => return None,
            };
            Some((span, 3))
        }
        _ => None,
    }
}

fn count_of(word: &str) -> Option<i64> {
    let written = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"];
    match word {
        "a" | "an" => Some(1),
        word => match written.iter().position(|known| *known == word) {
            Some(at) => i64::try_from(at + 1).ok(),
            None => word.parse().ok().filter(|count| (1..=1000).contains(count)),
        },
    }
}

/// Returns the last time that a month was or is.
fn latest_month(month: i8, today: Date) -> Option<Span> {
    Span::month(if month <= today.month() { today.year() } else { today.year() - 1 }, month)
}

/// Returns a day as days since 1970; days before 1970 and after 2149 are the first and the last.
pub(crate) fn days_of(date: Date) -> u16 {
    let epoch = jiff::civil::date(1970, 1, 1);
    let days = date.since(epoch).map_or(0, |span| span.get_days());
    u16::try_from(days.max(0)).unwrap_or(u16::MAX)
}

/// Returns the words under which a date is indexed.
pub(crate) fn words_of(date: Date) -> [String; 4] {
    let month = MONTHS[usize::try_from(date.month() - 1).unwrap_or_default()];
    let weekday = match date.weekday() {
        Weekday::Monday => "monday",
        Weekday::Tuesday => "tuesday",
        Weekday::Wednesday => "wednesday",
        Weekday::Thursday => "thursday",
        Weekday::Friday => "friday",
        Weekday::Saturday => "saturday",
        Weekday::Sunday => "sunday",
    };
    [date.year().to_string(), month.to_owned(), date.day().to_string(), weekday.to_owned()]
}

/// Returns the full dates in a text: `2026-11-18`, `2026/11/18`, `18.11.2026`, `18 November 2026`, `Nov 18, 2026`.
pub(crate) fn dates(text: &str) -> Vec<Date> {
    let mut dates = Vec::new();
    if !text.bytes().any(|byte| byte.is_ascii_digit()) {
        return dates;
    }
    let words = words(text);
    for three in words.windows(3) {
        let [one, two, three] = three else { continue };
        let separators = (two.before, three.before);
        let found = match separators {
            (Some('-'), Some('-')) | (Some('/'), Some('/')) => {
                // A word after a time stands behind a `T`: 2026-11-18T09:00.
                let day = three.text.split('t').next().unwrap_or_default();
                date_of(number(&one.text, 4), number(&two.text, 2), number(day, 2))
            }
            (Some('.'), Some('.')) => {
                date_of(number(&three.text, 4), number(&two.text, 2), number(&one.text, 2))
            }
            _ => {
                let year = number(&three.text, 4);
                let month = |word: &str| month_of(word).map(i16::from);
                date_of(year, month(&two.text), ordinal(&one.text))
                    .or_else(|| date_of(year, month(&one.text), ordinal(&two.text)))
            }
        };
        if let Some(date) = found
            && !dates.contains(&date)
            && dates.len() < MAX_DATES
        {
            dates.push(date);
        }
    }
    dates
}

fn date_of(year: Option<i16>, month: Option<i16>, day: Option<i16>) -> Option<Date> {
    let small = |number: i16| i8::try_from(number).ok();
    Date::new(year.filter(|year| (1900..2200).contains(year))?, small(month?)?, small(day?)?).ok()
}

/// Returns a number of at most so many digits; a year has exactly four.
fn number(word: &str, digits: usize) -> Option<i16> {
    let is_number = word.bytes().all(|byte| byte.is_ascii_digit())
        && word.len() <= digits
        && (digits < 4 || word.len() == 4);
    if is_number { word.parse().ok() } else { None }
}

fn ordinal(word: &str) -> Option<i16> {
    let digits = ["st", "nd", "rd", "th"].iter().find_map(|ending| word.strip_suffix(ending)).unwrap_or(word);
    number(digits, 2)
}

fn month_of(word: &str) -> Option<i8> {
    let at = MONTHS.iter().position(|month| {
        *month == word
            || (word.len() == 3 && month.starts_with(word))
            || (word == "sept" && *month == "september")
    })?;
    i8::try_from(at + 1).ok()
}

fn weekday_of(word: &str) -> Option<Weekday> {
    let at = WEEKDAYS.iter().position(|day| *day == word)?;
    Weekday::from_monday_one_offset(i8::try_from(at + 1).ok()?).ok()
}

/// A word of a text in small letters, with the character before it if it is a single one.
struct Word {
    text: String,
    before: Option<char>,
}

fn words(text: &str) -> Vec<Word> {
    let mut words: Vec<Word> = Vec::new();
    let mut between: Vec<char> = Vec::new();
    let mut word = String::new();
    for c in text.chars().chain([' ']) {
        if c.is_alphanumeric() {
            word.extend(c.to_lowercase());
            continue;
        }
        if !word.is_empty() {
            let before = match between[..] {
                [one] => Some(one),
                _ => None,
            };
            words.push(Word { text: std::mem::take(&mut word), before });
            between.clear();
        }
        if between.len() < 2 {
            between.push(c);
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::civil::date;

    #[test]
    fn dates_of_all_forms_are_found() {
        for text in [
            "on 2026-11-18.",
            "2026/11/18 (Wed)",
            "18.11.2026",
            "1:56 pm on 18 November, 2026",
            "Nov 18th, 2026",
            "session_digest_2026-11-18.md",
            "{\"ts\":\"2026-11-18T09:00:00Z\"}",
        ] {
            assert_eq!(dates(text), [date(2026, 11, 18)], "{text}");
        }
        for text in
            ["2026-13-01", "version 1.2.3", "9999-01-01", "18-11-2026", "31 February 2026", "", "2026"]
        {
            assert!(dates(text).is_empty(), "{text}");
        }
    }

    #[test]
    fn times_of_options_are_understood() {
        let today = date(2026, 11, 18);
        let span = |first: &str, last: &str| Span {
            first: first.parse().expect("a date"),
            last: last.parse().expect("a date"),
        };
        for (text, expected) in [
            ("2026-11-18", span("2026-11-18", "2026-11-18")),
            ("yesterday", span("2026-11-17", "2026-11-17")),
            ("last week", span("2026-11-09", "2026-11-15")),
            ("this week", span("2026-11-16", "2026-11-22")),
            ("3 months ago", span("2026-08-01", "2026-08-31")),
            ("a year ago", span("2025-01-01", "2025-12-31")),
            ("last Friday", span("2026-11-13", "2026-11-13")),
            ("last wednesday", span("2026-11-11", "2026-11-11")),
            ("March", span("2026-03-01", "2026-03-31")),
            ("in December", span("2025-12-01", "2025-12-31")),
            ("2026-10", span("2026-10-01", "2026-10-31")),
            ("may 2024", span("2024-05-01", "2024-05-31")),
            ("2024", span("2024-01-01", "2024-12-31")),
        ] {
            assert_eq!(Span::parse(text, today), Ok(expected), "{text}");
        }
        for odd in
            ["", "soon", "last lighthouse", "99", "2026-13", "last week or so", "0 days ago", "2026-02-30"]
        {
            assert!(Span::parse(odd, today).is_err(), "{odd}");
        }
    }

    #[test]
    fn spans_of_queries_are_found() {
        let today = date(2026, 11, 18);
        let found = |text: &str| Span::in_query(text, today).map(|(span, _)| span.first.to_string());
        assert_eq!(found("what did we decide last week?").as_deref(), Some("2026-11-09"));
        assert_eq!(found("the release in March").as_deref(), Some("2026-03-01"));
        assert_eq!(found("decisions in may 2024").as_deref(), Some("2024-05-01"));
        assert_eq!(found("the user may march on"), None);
        assert_eq!(found("notes of 2026-10-02").as_deref(), Some("2026-10-02"));
    }
}
