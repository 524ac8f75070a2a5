//! Makes the summary of a day from its interaction log, as data and as a page.

use haversack::day::{Day, Period};
use haversack::event;
use haversack::store::{Backend, BackendExt, ErrorKind, Locator, block_on};
use haversack::summary::{self, DaySummary};
use haversack::{Memory, Rewritten, rewrite};

use crate::error::CommandError;
use crate::home::store::open;
use crate::settings::Settings;

/// A day that was summarized.
pub(crate) struct Summarized {
    /// The summary; `None` if nothing was said on that day.
    pub(crate) summary: Option<DaySummary>,
    /// True if a file was written: there was none, or the day went on.
    pub(crate) is_written: bool,
    /// The lines of the log that are no events.
    pub(crate) unread: Vec<usize>,
}

/// Summarizes a day. Calling it again writes nothing unless the log of the day has grown.
///
/// If the log is gone, because it was only kept for some days, the summary that was made stays, and its page is made from it.
pub(crate) fn summarize(settings: &Settings, memory: &Memory, day: Day) -> Result<Summarized, CommandError> {
    let data_file = summary::data_of(day);
    let before = block_on(memory.files().read_text(&data_file))?;
    let is_of_day = |summary: &DaySummary| summary.day == day.to_string();
    let known = before.as_deref().map(|text| DaySummary::read(text.as_bytes()).filter(is_of_day));
    if let Some(None) = known {
        return Err(CommandError::user(
            format!("{data_file} is no summary of a day, so nothing was written"),
            format!("Move it away: haversack rename {data_file} NEW_NAME"),
        ));
    }
    let known = known.flatten();
    let log = match block_on(Backend::read(memory.files(), &event::log_of(day))) {
        Ok(object) => event::read(&object.bytes),
        Err(error) if error.kind() == ErrorKind::NotFound => event::EventLog::default(),
        Err(error) => return Err(error.into()),
    };
    let summary = match log.events.is_empty() {
        true => known,
        false => Some(summary::summarize(day, &log.events, &settings.zone)),
    };
    let mut is_written = false;
    if let Some(summary) = &summary {
        for (file, text) in [(data_file, summary.data()), (summary::page_of(day), summary.page())] {
            let done = block_on(rewrite(memory, &file, |_| Some(text.clone())))?;
            is_written |= done == Rewritten::Changed;
        }
    }
    Ok(Summarized { summary, is_written, unread: log.unread })
}

/// Makes the pages of the days again whose logs or summaries a sync changed. Returns the days that failed, and why.
pub(crate) fn refresh<'l>(
    settings: &Settings,
    changed: impl IntoIterator<Item = &'l Locator>,
) -> Vec<(Day, CommandError)> {
    let days: std::collections::BTreeSet<Day> = changed.into_iter().filter_map(day_of).collect();
    if days.is_empty() {
        return Vec::new();
    }
    let mut failed = Vec::new();
    for day in days {
        let done = open(settings).and_then(|memory| {
            // A day without a summary stays so.
            let is_summarized = block_on(memory.files().exists(&summary::data_of(day)))?;
            if is_summarized { summarize(settings, &memory, day).map(drop) } else { Ok(()) }
        });
        failed.extend(done.err().map(|error| (day, error)));
    }
    failed
}

/// Returns the day of a log or a summary.
fn day_of(file: &Locator) -> Option<Day> {
    let parent = file.parent()?;
    if !["summaries", "interactions"].contains(&parent.as_str()) {
        return None;
    }
    match Period::of_name(file.name())? {
        Period::Day(day) => Some(day),
        Period::Week { .. } | Period::Month { .. } | Period::Year(_) => None,
    }
}

/// Parses a day as a user names it.
pub(crate) fn parse_day(settings: &Settings, text: &str) -> Result<Day, CommandError> {
    match text {
        "today" => Ok(settings.today()),
        "yesterday" => Ok(settings.today().plus(-1)),
        text => text.parse().map_err(|error: haversack::day::InvalidDay| {
            CommandError::user(error.to_string(), "Name a day as 2026-11-18, today or yesterday")
        }),
    }
}
