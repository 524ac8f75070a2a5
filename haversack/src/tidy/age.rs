//! The fields of a memory that speak of its age, for every part of the program that ranks, checks or leaves out old memories. Pure.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::day::Day;
use crate::document::Document;

/// The values of `status` that say that a memory is out of date. Some tools write other words than `deprecated`.
const OVER: [&str; 5] = ["deprecated", "superseded", "obsolete", "outdated", ARCHIVED];

/// The status of a project whose phase is over.
const ARCHIVED: &str = "archived";

/// The field that keeps a file as it is.
pub(super) const PINNED: &str = "pinned";

/// The fields `status`, `superseded_by`, `stale_after`, `verified` and `pinned` of a memory.
///
/// The field `sources` is for people: nothing here depends on it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgeFields {
    superseded_by: Option<String>,
    status: Option<String>,
    stale_after: Option<String>,
    #[serde(default)]
    is_pinned: bool,
}

/// Why a memory is out of date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outdated<'a> {
    /// The memory with this name replaces it.
    SupersededBy(&'a str),
    /// Its status says so.
    Status(&'a str),
    /// It was to be looked at after this day.
    StaleAfter(Day),
}

impl AgeFields {
    /// Reads the fields of a text.
    pub fn of(text: &str) -> AgeFields {
        AgeFields::in_document(&Document::read(text))
    }

    /// Reads the fields of a document.
    pub fn in_document(document: &Document<'_>) -> AgeFields {
        let field = |name: &str| {
            document.text(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
        };
        let day = |name: &str| day_in(&field(name)?);
        // A memory that was verified on the day or later has been looked at.
        let verified = day("verified");
        let stale_after = day("stale_after").filter(|after| verified.is_none_or(|seen| seen < *after));
        AgeFields {
            superseded_by: field("superseded_by"),
            status: field("status"),
            stale_after: stale_after.map(|day| day.to_string()),
            is_pinned: field(PINNED)
                .is_some_and(|value| value.eq_ignore_ascii_case("true") || value.eq_ignore_ascii_case("yes")),
        }
    }

    /// Returns why the memory is out of date; `None` if it is not.
    pub fn outdated(&self, today: Day) -> Option<Outdated<'_>> {
        let over = self.outdated_on_every_day();
        over.or_else(|| self.stale_after().filter(|day| today > *day).map(Outdated::StaleAfter))
    }

    /// Returns why the memory is out of date on every day.
    pub fn outdated_on_every_day(&self) -> Option<Outdated<'_>> {
        let is_over = |status: &&String| OVER.iter().any(|over| status.eq_ignore_ascii_case(over));
        let successor = self.superseded_by.as_deref().map(Outdated::SupersededBy);
        successor.or_else(|| self.status.as_ref().filter(is_over).map(|status| Outdated::Status(status)))
    }

    /// Returns the last day on which the memory is not stale, if it names one and was not verified then or later.
    pub fn stale_after(&self) -> Option<Day> {
        self.stale_after.as_deref().and_then(day_in)
    }

    /// Returns true if the memory is of a project whose phase is over. No session starts with it.
    pub fn is_archived(&self) -> bool {
        self.status.as_ref().is_some_and(|status| status.eq_ignore_ascii_case(ARCHIVED))
    }

    /// Returns true if tidying leaves the memory as it is.
    pub fn is_pinned(&self) -> bool {
        self.is_pinned
    }
}

/// Returns the day that a date or a moment begins with.
fn day_in(text: &str) -> Option<Day> {
    text.get(..10)?.parse().ok()
}

impl fmt::Display for Outdated<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Outdated::SupersededBy(by) => write!(f, "superseded by {by}"),
            Outdated::Status(status) => f.write_str(&status.to_lowercase()),
            Outdated::StaleAfter(day) => write!(f, "stale after {day}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_say_if_a_memory_is_out_of_date() {
        let today: Day = "2026-03-02".parse().expect("a day");
        for (fields, expected) in [
            ("status: stable", None),
            ("status: draft", None),
            ("status: Deprecated", Some("deprecated")),
            ("status: archived", Some("archived")),
            ("superseded_by: ports.md", Some("superseded by ports.md")),
            ("superseded_by: ' '", None),
            ("metadata:\n  superseded_by: ports.md", Some("superseded by ports.md")),
            ("stale_after: 2026-03-01", Some("stale after 2026-03-01")),
            ("stale_after: 2026-03-01T09:05:00Z", Some("stale after 2026-03-01")),
            ("stale_after: 2026-03-02", None),
            ("stale_after: soon", None),
            ("stale_after: 2026-03-01\nverified: 2026-03-01", None),
            ("stale_after: 2026-03-01\nverified: 2026-02-01", Some("stale after 2026-03-01")),
        ] {
            let age = AgeFields::of(&format!("---\n{fields}\n---\nx\n"));
            let outdated = age.outdated(today).map(|outdated| outdated.to_string());
            assert_eq!(outdated.as_deref(), expected, "{fields}");
        }
    }

    #[test]
    fn archived_and_pinned_are_told_apart() {
        let of = |fields: &str| AgeFields::of(&format!("---\n{fields}\n---\nx\n"));
        assert!(of("status: Archived").is_archived() && !of("status: deprecated").is_archived());
        assert!(of("pinned: yes").is_pinned() && !of("pinned: no").is_pinned());
        assert_eq!(AgeFields::of("status: archived\n"), AgeFields::default());
    }
}
