//! Days in the user's time zone, from a table that was written by hand.

use haversack::day::{Day, Zone};
use haversack::ids::Timestamp;
use jiff::tz::TimeZone;

const BOUNDARIES: &str = include_str!("../fixtures/days/boundaries.txt");

#[test]
fn boundaries_of_days_are_as_written_by_hand() {
    let rows = BOUNDARIES.lines().filter(|line| !line.starts_with('#'));
    let mut count = 0;
    for row in rows {
        let [moment, zone, day, time] =
            row.split('|').map(str::trim).collect::<Vec<_>>().try_into().expect("four columns");
        let moment: jiff::Timestamp = moment.parse().expect("a moment");
        let moment = Timestamp(moment.as_millisecond());
        let zone = Zone::from(TimeZone::posix(zone).expect("a zone"));
        let day: Day = day.parse().expect("a day");
        assert_eq!((zone.day_of(moment), zone.time_of(moment).as_str()), (day, time), "{row}");
        count += 1;
    }
    assert_eq!(count, 26);
}
