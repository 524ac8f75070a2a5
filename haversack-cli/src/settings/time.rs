//! The clock and the calendar of one run.

use haversack::clock::Clock;
use haversack::day::{Day, Zone};
use haversack::ids::Timestamp;
use haversack_system::SystemClock;
use jiff::tz::TimeZone;

use super::Settings;

/// Returns a time zone by its name, or by its rules as POSIX writes them; the system's if the name is empty, `None` if there is none.
pub(super) fn zone_of(name: &str) -> Option<Zone> {
    let zone = match name {
        "" => TimeZone::try_system().unwrap_or(TimeZone::UTC),
        name => TimeZone::get(name).or_else(|_| TimeZone::posix(name)).ok()?,
    };
    Some(zone.into())
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
