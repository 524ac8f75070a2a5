//! The clock and the calendar of one run.

use std::fs;
use std::path::Path;

use haversack::clock::Clock;
use haversack::day::{Day, Zone};
use haversack::ids::Timestamp;
use haversack_system::SystemClock;
use jiff::tz::TimeZone;

use super::{Settings, environment};

/// The file with the rules of the system's time zone. Most systems make it a link to the file of a named zone.
const SYSTEM_ZONE: &str = "/etc/localtime";

/// The directory with one file for each named zone.
const NAMED_ZONES: &str = "/usr/share/zoneinfo";

/// Returns a time zone by its name, or by its rules as POSIX writes them; the system's if the name is empty, `None` if there is none.
pub(super) fn zone_of(name: &str) -> Option<Zone> {
    let zone = match name {
        "" => of_the_system(),
        name => match of_file(name) {
            Some(zone) => zone,
            None => TimeZone::get(name).or_else(|_| TimeZone::posix(name)).ok()?,
        },
    };
    Some(zone.into())
}

/// Returns the system's time zone.
///
/// jiff reads the names of all zones before it opens the file of one. That took half of the time in which a command starts. So we read the one file
/// ourselves. jiff does the rest: the variable TZ, systems that keep their zone elsewhere, and names in another case.
fn of_the_system() -> TimeZone {
    let read = || TimeZone::tzif("system", &fs::read(SYSTEM_ZONE).ok()?).ok();
    let zone = if environment::names_time_zone() { None } else { read() };
    zone.or_else(|| TimeZone::try_system().ok()).unwrap_or(TimeZone::UTC)
}

/// Returns a named time zone if the system has a file of just this name.
fn of_file(name: &str) -> Option<TimeZone> {
    let is_part = |part: &str| {
        let is_letter = |letter: char| letter.is_ascii_alphanumeric() || "+-_".contains(letter);
        !part.is_empty() && part.chars().all(is_letter)
    };
    if !name.split('/').all(is_part) {
        return None;
    }
    TimeZone::tzif(name, &fs::read(Path::new(NAMED_ZONES).join(name)).ok()?).ok()
}

impl Settings {
    /// Returns the moment of this run: `--now`, or else the time of the system.
    pub(crate) fn now(&self) -> Timestamp {
        self.fixed_now.unwrap_or_else(|| SystemClock.now())
    }

    /// Returns the day of this run in the user's time zone.
    pub(crate) fn today(&self) -> Day {
        self.zone.day_of(self.now())
    }
}

/// Parses the moment of `--now`.
pub(crate) fn parse_moment(text: &str) -> Result<Timestamp, String> {
    let moment: jiff::Timestamp =
        text.parse().map_err(|_| "write a moment as 2026-11-18T20:15:00Z".to_owned())?;
    Ok(Timestamp(moment.as_millisecond()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The hours of two years: every change of the clocks is among them.
    fn hours() -> impl Iterator<Item = Timestamp> {
        (0..2 * 366 * 24).map(|hour| Timestamp(1_767_225_600_000 + hour * 3_600_000))
    }

    #[test]
    fn zone_of_a_file_counts_days_as_the_library_does() {
        let named = |name: &str| Some((zone_of(name)?, TimeZone::get(name).ok()?));
        let zones = ["Europe/Lisbon", "America/St_Johns", "Asia/Kathmandu", "Etc/GMT+12", "europe/lisbon"];
        for (zone, expected) in zones.into_iter().filter_map(named) {
            let expected = Zone::from(expected);
            assert!(hours().all(|hour| zone.day_of(hour) == expected.day_of(hour)), "{zone:?}");
        }
        let (zone, expected) = (zone_of("").expect("the system's"), Zone::from(TimeZone::system()));
        assert!(hours().all(|hour| zone.day_of(hour) == expected.day_of(hour)), "{zone:?}");
    }

    #[test]
    fn only_names_of_zones_lead_to_files() {
        for name in ["../../../etc/localtime", "/etc/localtime", "Europe", "Europe/", "Europe/../UTC", "."] {
            assert!(of_file(name).is_none(), "{name}");
        }
        assert!(zone_of("PST8PDT,M3.2.0,M11.1.0").is_some() && zone_of("Europe/Atlantis").is_none());
    }
}
