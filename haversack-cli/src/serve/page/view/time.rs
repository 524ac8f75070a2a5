//! Time: every machine has a line, every day, week, month or year a dot on it. The dot's size is the number of changes.

use std::collections::BTreeMap;
use std::sync::Arc;

use haversack::day::Zone;
use haversack::display::one_line;
use haversack::ids::Timestamp;
use jiff::ToSpan;
use jiff::civil::Date;
use maud::{Markup, html};

use super::change_row;
use crate::app::history::ChangeSummary;
use crate::error::CommandError;
use crate::serve::page::data::PageData;
use crate::serve::page::form::{Fields, encoded};
use crate::serve::page::shell::{Section, View};
use crate::ui::moments::counted;

/// The most changes that are drawn.
const MAX_CHANGES: usize = 5_000;

/// The most changes that are listed below the picture.
const MAX_LISTED: usize = 60;

/// The most machines that have a line.
const MAX_LANES: usize = 12;

/// The picture, in its own units.
const WIDTH: usize = 960;
const LEFT: usize = 130;
const LANE: usize = 56;
const TOP: usize = 16;

/// Words in the cause of a change that brought two versions together.
const MERGES: [&str; 3] = ["merge", "resolve", "two contents"];

/// The length of time that a dot stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scale {
    Day,
    Week,
    Month,
    Year,
}

impl Scale {
    const ALL: [(Scale, &'static str, &'static str); 4] = [
        (Scale::Day, "day", "By day"),
        (Scale::Week, "week", "By week"),
        (Scale::Month, "month", "By month"),
        (Scale::Year, "year", "By year"),
    ];

    fn of(name: &str) -> Scale {
        Scale::ALL.iter().find(|(_, known, _)| *known == name).map_or(Scale::Day, |(scale, ..)| *scale)
    }

    fn name(self) -> &'static str {
        Scale::ALL.iter().find(|(scale, ..)| *scale == self).map_or("day", |(_, name, _)| name)
    }

    /// Returns the first day of the dot that a day belongs to.
    fn start(self, date: Date) -> Date {
        match self {
            Scale::Day => date,
            Scale::Week => {
                let after_monday = i64::from(date.weekday().to_monday_zero_offset());
                date.saturating_sub(after_monday.days())
            }
            Scale::Month => date.first_of_month(),
            Scale::Year => date.first_of_year(),
        }
    }

    fn before(self, date: Date) -> Date {
        self.start(date.saturating_sub(1.days()))
    }

    fn dots(self) -> usize {
        match self {
            Scale::Day => 28,
            Scale::Week => 26,
            Scale::Month => 24,
            Scale::Year => 10,
        }
    }

    fn label(self, date: Date) -> String {
        let format = match self {
            Scale::Day | Scale::Week => "%-d %b",
            Scale::Month => "%b %Y",
            Scale::Year => "%Y",
        };
        date.strftime(format).to_string()
    }
}

/// The changes of one machine in one span.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Dot {
    changes: usize,
    undos: usize,
    merges: usize,
}

/// The picture as data: for each machine, its dots by the first day.
#[derive(Debug, Default, PartialEq, Eq)]
struct Timeline {
    starts: Vec<Date>,
    lanes: BTreeMap<String, BTreeMap<Date, Dot>>,
}

fn date_of(zone: &Zone, time: Timestamp) -> Option<Date> {
    zone.day_of(time).to_string().parse().ok()
}

fn timeline(zone: &Zone, scale: Scale, today: Date, changes: &[(String, Timestamp, String)]) -> Timeline {
    let mut starts = vec![scale.start(today)];
    while starts.len() < scale.dots() {
        let before = scale.before(starts[starts.len() - 1]);
        starts.push(before);
    }
    starts.reverse();
    let mut lanes: BTreeMap<String, BTreeMap<Date, Dot>> = BTreeMap::new();
    for (device, time, cause) in changes {
        let Some(start) = date_of(zone, *time).map(|date| scale.start(date)) else { continue };
        let lane = lanes.entry(device.clone()).or_default();
        if !starts.contains(&start) {
            continue;
        }
        let dot = lane.entry(start).or_default();
        dot.changes += 1;
        dot.undos += usize::from(cause.contains("undo"));
        dot.merges += usize::from(MERGES.iter().any(|merge| cause.contains(merge)));
    }
    Timeline { starts, lanes }
}

pub(in crate::serve::page) fn view(data: &PageData, fields: &Fields) -> Result<View, CommandError> {
    let zone = &data.settings().zone;
    let scale = Scale::of(fields.get("by"));
    let (at, device) = (fields.get("at"), fields.get("machine"));
    let changes = match data.changes() {
        Ok(known) => known,
        Err(error) => {
            let body = html! { h1 { "Time" } p.dim { (one_line(&error.message)) } };
            return Ok(View { section: Section::Time, title: "Time".to_owned(), body });
        }
    };
    let changes: Vec<&ChangeSummary> = changes.changes.iter().take(MAX_CHANGES).map(Arc::as_ref).collect();
    let facts: Vec<(String, Timestamp, String)> =
        changes.iter().map(|change| (change.device.clone(), change.time, change.cause.clone())).collect();
    let timeline = timeline(zone, scale, date_of(zone, data.now()).unwrap_or_default(), &facts);
    let is_chosen = |change: &&ChangeSummary| {
        let is_then = at.is_empty()
            || date_of(zone, change.time).is_some_and(|date| scale.start(date).to_string() == at);
        is_then && (device.is_empty() || change.device == device)
    };
    let chosen: Vec<&ChangeSummary> = changes.iter().copied().filter(is_chosen).collect();
    let names = data.names();
    let body = html! {
        h1 { "Time" }
        div.row {
            nav.tabs aria-label="Length of time" {
                @for (of, name, title) in Scale::ALL {
                    a href=(format!("time?by={name}")) aria-current=[(of == scale).then_some("page")] { (title) }
                }
            }
            a.button href="undo" { "Undo the last change of this machine" }
        }
        div.card.scroll tabindex="0" { (picture(scale, &timeline)) }
        h2 {
            @if at.is_empty() { "Newest changes" } @else { (counted(chosen.len(), "change")) " " @if !device.is_empty() { "of " (one_line(device)) " " } "from " (one_line(at)) }
        }
        @if !at.is_empty() { p { a href=(format!("time?by={}", scale.name())) { "Show all" } } }
        ol.plain.rows.card { @for change in chosen.iter().take(MAX_LISTED) { (change_row(&names, data.now(), change)) } }
        @if chosen.len() > MAX_LISTED { p.dim { "And " (chosen.len() - MAX_LISTED) " more: " code { "haversack log" } } }
    };
    Ok(View { section: Section::Time, title: "Time".to_owned(), body })
}

fn picture(scale: Scale, timeline: &Timeline) -> Markup {
    let lanes: Vec<_> = timeline.lanes.iter().take(MAX_LANES).collect();
    let height = TOP + lanes.len().max(1) * LANE + 30;
    let step = (WIDTH - LEFT - 30) / timeline.starts.len().max(1);
    let x = |at: usize| LEFT + 20 + at * step;
    let y = |lane: usize| TOP + lane * LANE + LANE / 2;
    let every = timeline.starts.len().div_ceil(9).max(1);
    html! {
        svg role="group" aria-label="Changes by machine and time" viewBox=(format!("0 0 {WIDTH} {height}")) width=(WIDTH) height=(height) {
            @for (lane, (device, dots)) in lanes.iter().enumerate() {
                text x="0" y=(y(lane) + 4) { (one_line(device).chars().take(16).collect::<String>()) }
                line.lane x1=(LEFT) x2=(WIDTH) y1=(y(lane)) y2=(y(lane)) {}
                @for (at, start) in timeline.starts.iter().enumerate() {
                    @if let Some(dot) = dots.get(start) {
                        @let told = told(device, &scale.label(*start), *dot);
                        a href=(format!("time?by={}&at={start}&machine={}", scale.name(), encoded(device))) aria-label=(told) {
                            circle class=(format!("s{}", lane % 6)) cx=(x(at)) cy=(y(lane)) r=(radius(dot.changes)) { title { (told) } }
                            @if dot.undos > 0 { circle.ring cx=(x(at)) cy=(y(lane)) r=(radius(dot.changes) + 4) {} }
                            @if dot.merges > 0 { path.merge d=(diamond(x(at), y(lane))) {} }
                        }
                    }
                }
            }
            @for (at, start) in timeline.starts.iter().enumerate().rev().step_by(every) {
                text text-anchor="middle" x=(x(at)) y=(height - 8) { (scale.label(*start)) }
            }
        }
        p.dim.small { "A larger dot has more changes. A ring stands for an undo, a diamond for a merge of two versions." }
    }
}

/// Returns the path of the mark of a merge, in the middle of a dot.
fn diamond(x: usize, y: usize) -> String {
    format!("M{x} {} l4 4 l-4 4 l-4 -4 z", y - 4)
}

fn radius(changes: usize) -> usize {
    (4 + changes.isqrt() * 2).min(20)
}

fn told(device: &str, start: &str, dot: Dot) -> String {
    let undos = if dot.undos > 0 { format!(", {}", counted(dot.undos, "undo")) } else { String::new() };
    let merges = if dot.merges > 0 { format!(", {}", counted(dot.merges, "merge")) } else { String::new() };
    format!("{}, {start}: {}{undos}{merges}", one_line(device), counted(dot.changes, "change"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merges_and_undos_have_marks_of_their_own() {
        let today = jiff::civil::date(2026, 11, 18);
        let lane = |dot: Dot| BTreeMap::from([("laptop".to_owned(), BTreeMap::from([(today, dot)]))]);
        let drawn =
            |dot: Dot| picture(Scale::Day, &Timeline { starts: vec![today], lanes: lane(dot) }).into_string();
        let plain = Dot { changes: 3, undos: 0, merges: 0 };
        let marks = |text: String| (text.contains("class=\"ring\""), text.contains("class=\"merge\""));
        assert_eq!(marks(drawn(plain)), (false, false));
        assert_eq!(marks(drawn(Dot { undos: 1, ..plain })), (true, false));
        assert_eq!(marks(drawn(Dot { merges: 1, ..plain })), (false, true));
    }

    #[test]
    fn changes_of_a_week_are_one_dot() {
        let today = jiff::civil::date(2026, 11, 18);
        let at = |day| {
            let moment = jiff::civil::date(2026, 11, day).at(12, 0, 0, 0).to_zoned(jiff::tz::TimeZone::UTC);
            Timestamp(moment.expect("a moment").timestamp().as_millisecond())
        };
        let changes = [
            ("laptop".to_owned(), at(16), "sync".to_owned()),
            ("laptop".to_owned(), at(18), "undo".to_owned()),
            ("desktop".to_owned(), at(15), "sync".to_owned()),
        ];
        let timeline = timeline(&Zone::from(jiff::tz::TimeZone::UTC), Scale::Week, today, &changes);
        assert_eq!(timeline.starts.len(), 26);
        let monday = jiff::civil::date(2026, 11, 16);
        assert_eq!(timeline.starts.last(), Some(&monday));
        assert_eq!(timeline.lanes["laptop"][&monday], Dot { changes: 2, undos: 1, merges: 0 });
        assert_eq!(timeline.lanes["desktop"].keys().next(), Some(&jiff::civil::date(2026, 11, 9)));
    }
}
