//! A line on the terminal with the progress of a sync; nothing if the sync is quick or there is no terminal.

use std::io::{IsTerminal, Write, stderr};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use haversack::sync::{Progress, Stage};

/// A sync that takes less than this is not worth a line.
const QUIET: Duration = Duration::from_millis(250);

/// The shortest interval between two drawings.
const REDRAW: Duration = Duration::from_millis(80);

/// How wide the bar is.
const WIDTH: usize = 16;

/// Draws how far a sync is.
pub(crate) struct Bar {
    is_watched: bool,
    started: Instant,
    /// The name of the work, if it is not a sync.
    work: Option<&'static str>,
    drawn: Mutex<Drawn>,
}

#[derive(Default)]
struct Drawn {
    last: Option<Instant>,
    stage: Option<Stage>,
    /// The largest total of the stage. A large stage comes in parts, each with the total of the rest.
    largest: usize,
}

impl Drawn {
    /// Returns the progress of the whole stage.
    fn of_whole(&mut self, stage: Stage, done: usize, total: usize) -> (usize, usize) {
        if self.stage != Some(stage) {
            (self.stage, self.largest) = (Some(stage), 0);
        }
        self.largest = self.largest.max(total);
        (done + (self.largest - total), self.largest)
    }
}

impl Bar {
    pub(super) fn new() -> Bar {
        Bar {
            is_watched: stderr().is_terminal(),
            started: Instant::now(),
            work: None,
            drawn: Mutex::default(),
        }
    }

    /// Returns one for other work than a sync, by its name.
    pub(crate) fn of(work: &'static str) -> Bar {
        Bar { work: Some(work), ..Bar::new() }
    }

    /// Takes the line away again.
    pub(crate) fn end(&self) {
        let mut drawn = self.drawn.lock().unwrap_or_else(PoisonError::into_inner);
        if std::mem::take(&mut *drawn).last.is_some() {
            // A line that cannot be drawn is no reason to fail.
            drop(write!(stderr(), "\r\x1b[K"));
        }
    }
}

impl Progress for Bar {
    fn at(&self, stage: Stage, done: usize, total: Option<usize>) {
        let now = Instant::now();
        if !self.is_watched || now.duration_since(self.started) < QUIET {
            return;
        }
        let mut drawn = self.drawn.lock().unwrap_or_else(PoisonError::into_inner);
        let (done, total) = match total {
            Some(total) => {
                let (done, total) = drawn.of_whole(stage, done, total);
                (done, Some(total))
            }
            None => (done, None),
        };
        if drawn.last.is_some_and(|last| now.duration_since(last) < REDRAW) {
            return;
        }
        drawn.last = Some(now);
        drop(write!(stderr(), "\r\x1b[K{}", line(self.work.unwrap_or(name(stage)), done, total)));
    }
}

fn name(stage: Stage) -> &'static str {
    match stage {
        Stage::Reading => "reading the log",
        Stage::Fetching => "receiving",
        Stage::Sending => "sending",
        Stage::Mirroring => "writing plain copies",
        Stage::Looking => "looking",
        Stage::Copying => "copying",
        _ => "syncing",
    }
}

fn line(what: &str, done: usize, total: Option<usize>) -> String {
    match total.filter(|total| *total > 0) {
        Some(total) => {
            let full = done.min(total) * WIDTH / total;
            format!("  {what} {}{} {done}/{total}", "█".repeat(full), "░".repeat(WIDTH - full))
        }
        None => format!("  {what} {done}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines() {
        assert_eq!(line(name(Stage::Sending), 5, Some(10)), "  sending ████████░░░░░░░░ 5/10");
        assert_eq!(line(name(Stage::Fetching), 12, Some(10)), "  receiving ████████████████ 12/10");
        assert_eq!(line(name(Stage::Reading), 7, None), "  reading the log 7");
    }

    #[test]
    fn stage_in_parts_does_not_begin_again() {
        let mut drawn = Drawn::default();
        assert_eq!(drawn.of_whole(Stage::Sending, 9_999, 25_000), (9_999, 25_000));
        assert_eq!(drawn.of_whole(Stage::Sending, 0, 15_000), (10_000, 25_000));
        assert_eq!(drawn.of_whole(Stage::Fetching, 1, 3), (1, 3));
    }
}
