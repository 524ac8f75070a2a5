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
    drawn: Mutex<Option<Instant>>,
}

impl Bar {
    pub(super) fn new() -> Bar {
        Bar { is_watched: stderr().is_terminal(), started: Instant::now(), drawn: Mutex::new(None) }
    }

    /// Returns one that is never drawn.
    pub(crate) fn silent() -> Bar {
        Bar { is_watched: false, ..Bar::new() }
    }

    /// Takes the line away again.
    pub(crate) fn end(&self) {
        let mut drawn = self.drawn.lock().unwrap_or_else(PoisonError::into_inner);
        if drawn.take().is_some() {
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
        if drawn.is_some_and(|last| now.duration_since(last) < REDRAW) {
            return;
        }
        *drawn = Some(now);
        drop(write!(stderr(), "\r\x1b[K{}", line(stage, done, total)));
    }
}

fn line(stage: Stage, done: usize, total: Option<usize>) -> String {
    let what = match stage {
        Stage::Reading => "reading the log",
        Stage::Fetching => "receiving",
        Stage::Sending => "sending",
        Stage::Mirroring => "writing plain copies",
        Stage::Looking => "looking",
        Stage::Copying => "copying",
        _ => "syncing",
    };
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
        assert_eq!(line(Stage::Sending, 5, Some(10)), "  sending ████████░░░░░░░░ 5/10");
        assert_eq!(line(Stage::Fetching, 12, Some(10)), "  receiving ████████████████ 12/10");
        assert_eq!(line(Stage::Reading, 7, None), "  reading the log 7");
    }
}
