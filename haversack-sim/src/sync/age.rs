//! A tidy of a device: plan and application of the engine, as the command line calls them.

use std::sync::{Mutex, PoisonError};

use haversack::Memory;
use haversack::day::Day;
use haversack::kind::Kinds;
use haversack::sync::Gate;
use haversack::tidy::{self, Action, Decision};
use haversack_store::{Bytes, Locator};

use super::unit::{units, units_of};

/// Tidies the files of a device, and notes the units that its decisions drop. A tidy that is refused changes nothing more.
pub(crate) async fn tidy(
    memory: &Memory,
    today: Day,
    gate: &dyn Gate,
    dropped: &Mutex<Vec<(String, Decision)>>,
) {
    let kinds = Kinds::built_in();
    let Ok(files) = tidy::read(memory.files(), kinds, today).await else { return };
    let may_not_leave = |locator: &Locator, bytes: &[u8]| gate.holds(locator, bytes).map(|hold| hold.why);
    let plan = tidy::plan(kinds, &files, today, &may_not_leave);
    dropped.lock().unwrap_or_else(PoisonError::into_inner).extend(plan.actions.iter().flat_map(dropped_by));
    drop(tidy::apply(memory, &plan).await);
}

/// Returns the units of lines that a decision drops by their id.
fn dropped_by(action: &Action) -> Vec<(String, Decision)> {
    let mut all = Vec::new();
    for decision in &action.decisions {
        let edit = action.edits.iter().find(|edit| edit.locator.as_str() == decision.source);
        let before = edit.and_then(|edit| edit.before.clone()).unwrap_or_default();
        let is_dropped = |line: &&str| {
            line.rsplit_once(" ^").is_some_and(|(_, id)| decision.dropped.iter().any(|line| line.id == id))
        };
        let text = String::from_utf8_lossy(&before);
        let found = text.lines().filter(is_dropped).flat_map(units);
        all.extend(found.map(|unit| (unit.to_owned(), decision.clone())));
    }
    // A day that is dropped whole is represented by its decision.
    all
}

/// Returns true if a plan finds nothing to do in these files.
pub(crate) fn is_tidy(files: &[(Locator, Bytes)], today: Day) -> Result<(), String> {
    let kinds = Kinds::built_in();
    let names = tidy::select(kinds, files.iter().map(|(locator, _)| locator), today);
    let files = files.iter().filter(|(locator, _)| names.contains(locator)).cloned().collect();
    let plan = tidy::plan(kinds, &files, today, &|_, _| None);
    match plan.actions.first() {
        None => Ok(()),
        Some(action) => Err(format!("{:?} of {:?} is left to do", action.what, action.decisions)),
    }
}

/// Returns how many lines of a text have a unit.
pub(crate) fn lines_with(text: &str, unit: &str) -> usize {
    text.lines().filter(|line| units_of(line).contains(unit)).count()
}
