//! Ageing: nothing leaves the store that no roll-up and no decision in it represents.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::PoisonError;

use haversack::day::Day;
use haversack::ids::Position;
use haversack::log::{Carried, Commit, What, layout};
use haversack::tidy::{Decision, log_of, read_log};
use haversack_store::{Bytes, Locator};

use super::World;
use crate::random::Random;
use crate::sync::age;
use crate::sync::device::Device;
use crate::sync::failure::{Broken, Failure};
use crate::sync::schedule::{Jumps, Meeting, Task};
use crate::sync::unit::{units, units_of};

/// The store while it ages.
#[derive(Default)]
pub(super) struct Aged {
    /// The day that the next tidy's clock shows; the last day if none.
    pub(super) today: Option<Day>,
    /// The last position that was looked at.
    last: Option<Position>,
    /// The files after it.
    files: BTreeMap<Locator, Bytes>,
    /// All decisions that the store ever had.
    decisions: Vec<Decision>,
}

impl Aged {
    fn units(&self) -> BTreeSet<String> {
        let texts = self.files.iter().filter(|(locator, _)| log_of(locator).is_none());
        texts.flat_map(|(_, bytes)| units_of(&String::from_utf8_lossy(bytes))).collect()
    }

    /// Makes the changes of a commit.
    fn replay(&mut self, commit: Commit) {
        for change in commit.changes {
            let (locator, what) = (change.locator, change.what);
            let bytes = match what {
                What::Put { content: Carried::Inline(bytes), .. } => Some(bytes),
                What::Append { added: Carried::Inline(bytes), .. } => {
                    let before = self.files.get(&locator).cloned().unwrap_or_default();
                    Some(Bytes::from([&before[..], &bytes[..]].concat()))
                }
                What::Put { .. } | What::Append { .. } | What::Delete { .. } => None,
            };
            if log_of(&locator).is_some() {
                let new = read_log(bytes.as_deref().unwrap_or_default());
                let new: Vec<Decision> =
                    new.into_iter().filter(|decision| !self.decisions.contains(decision)).collect();
                self.decisions.extend(new);
            }
            match bytes {
                Some(bytes) => drop(self.files.insert(locator, bytes)),
                None => drop(self.files.remove(&locator)),
            }
        }
    }
}

impl World<'_> {
    /// Looks at every new position of the log: a unit may leave the store only if a user removed it, or a decision in the store names it.
    pub(super) fn check_store(&mut self) -> Result<(), Failure> {
        if self.schedule.meeting != Meeting::Aged {
            return Ok(());
        }
        loop {
            let next = self.aged.last.map_or(Some(Position::FIRST), Position::next);
            let Some(next) = next else { return Ok(()) };
            let Some(bytes) = self.wire.object(&layout::commit(next)) else { return Ok(()) };
            self.aged.last = Some(next);
            let Ok(commit) = Commit::decode(&bytes) else { continue };
            let before = self.aged.units();
            self.aged.replay(commit);
            let after = self.aged.units();
            if let Some(unit) = before.difference(&after).find(|unit| !self.is_accounted_for(unit)) {
                let why =
                    format!("{unit} left the store at position {next}, and nothing there represents it");
                return Err(Broken::Lost.because(why));
            }
        }
    }

    /// Returns true if a user removed a unit, or a decision that the store has drops it.
    fn is_accounted_for(&self, unit: &str) -> bool {
        let is_stored = |(dropped, decision): &(String, Decision)| {
            dropped == unit && self.aged.decisions.contains(decision)
        };
        self.oracle.is_removed(unit)
            || self.devices.values().any(|device| {
                device.dropped.lock().unwrap_or_else(PoisonError::into_inner).iter().any(is_stored)
            })
    }

    /// Lets every device tidy, twice: the first time it may take in what others left.
    pub(super) fn tidy_all(&mut self, numbers: &[usize], random: &mut Random) -> Result<(), Failure> {
        self.aged.today = None;
        if self.schedule.meeting == Meeting::Aged {
            for number in numbers.iter().chain(numbers) {
                self.run(*number, Task::Tidy, random)?;
            }
        }
        Ok(())
    }

    /// Compares what is there with what users wrote, and lets every device tidy once more: that must change nothing.
    pub(super) fn judge_aged(
        &mut self,
        numbers: &[usize],
        files: &BTreeMap<String, String>,
        random: &mut Random,
    ) -> Result<(), Failure> {
        let today = self.schedule.last_day();
        let plain = |path: &String| Locator::parse(path).expect("a plain name");
        let all: Vec<(Locator, Bytes)> =
            files.iter().map(|(path, text)| (plain(path), Bytes::from(text.clone()))).collect();
        age::is_tidy(&all, today).map_err(|why| Broken::NotConverged.because(why))?;
        self.tidy_all(numbers, random)?;
        if self.agreed()? != *files {
            return Err(Broken::NotConverged.because("one more tidy still changes files"));
        }
        let texts: Vec<&String> =
            files.iter().filter(|(path, _)| log_of(&plain(path)).is_none()).map(|(_, text)| text).collect();
        // A process that dies before it writes another program's text back leaves that text aside.
        let aside: Vec<String> = self.devices.values().flat_map(Device::put_aside).collect();
        let there: BTreeSet<&str> =
            texts.iter().copied().chain(&aside).flat_map(|text| units(text)).collect();
        for (unit, file) in self.oracle.units() {
            if !there.contains(unit) && !self.is_accounted_for(unit) {
                return Err(Broken::Lost.because(format!("{unit:?} of {file}")));
            }
            let counts = texts.iter().map(|text| age::lines_with(text, unit));
            // A clock that was ahead makes a longer roll-up before its time, and the shorter one can still be there.
            let count: usize = match self.schedule.ageing.jumps {
                Jumps::Never => counts.sum(),
                Jumps::Sometimes => counts.max().unwrap_or_default(),
            };
            if count > 1 && file.starts_with("interactions/") && !self.oracle.is_removed(unit) {
                return Err(Broken::Resurrected.because(format!("{unit:?} of {file} is there {count} times")));
            }
        }
        Ok(())
    }
}
