//! Leaves out of a schedule whatever it does not need to break the same promise.

use haversack::planted::Planted;

use super::failure::{Broken, Failure};
use super::memory::Outside;
use super::schedule::{Begins, DeviceStorage, Homes, Renames, Schedule, TimeLimits, What};
use super::{Run, play};

/// The most shorter schedules that are tried.
const MAX_TRIES: usize = 20_000;

/// A schedule that breaks a promise and cannot be made much shorter.
#[derive(Clone, Debug)]
pub struct Shrunk {
    /// The remaining schedule.
    pub schedule: Schedule,
    /// How it fails.
    pub failure: Failure,
}

/// Shrinks the schedule of a run that fails; `None` if it does not.
pub fn shrink(run: Run) -> Option<Shrunk> {
    let schedule = Schedule::at(run.meeting, run.seed);
    let failure = play(&schedule, run.planted).err()?;
    let broken = failure.broken;
    let mut search = Search { best: Shrunk { schedule, failure }, broken, planted: run.planted, tries: 0 };
    while search.pass() && search.tries < MAX_TRIES {}
    Some(search.best)
}

struct Search {
    best: Shrunk,
    broken: Broken,
    planted: Option<Planted>,
    tries: usize,
}

impl Search {
    /// Tries everything once; returns whether something could be left out.
    fn pass(&mut self) -> bool {
        let before = self.best.schedule.clone();
        self.fewer_actions();
        self.fewer_devices();
        self.fewer_faults();
        self.fewer_effects();
        self.best.schedule != before
    }

    /// Tries a shorter schedule; it stays if it fails in the same way.
    fn keeps_failing(&mut self, change: impl FnOnce(&mut Schedule)) -> bool {
        let mut schedule = self.best.schedule.clone();
        change(&mut schedule);
        if schedule == self.best.schedule || self.tries >= MAX_TRIES {
            return false;
        }
        self.tries += 1;
        match play(&schedule, self.planted) {
            Err(failure) if failure.broken == self.broken => {
                self.best = Shrunk { schedule, failure };
                true
            }
            _ => false,
        }
    }

    /// Leaves out halves, quarters, and so on down to single actions.
    fn fewer_actions(&mut self) {
        let mut size = self.best.schedule.actions.len().div_ceil(2);
        while size > 0 {
            let mut from = 0;
            while from < self.best.schedule.actions.len() {
                let to = self.best.schedule.actions.len().min(from + size);
                if !self.keeps_failing(|schedule| drop(schedule.actions.drain(from..to))) {
                    from = to;
                }
            }
            size /= 2;
        }
    }

    fn fewer_devices(&mut self) {
        for number in (0..self.best.schedule.devices.len()).rev() {
            self.keeps_failing(|schedule| {
                schedule.devices[number].begins = Begins::Never;
                schedule.actions.retain(|action| !action.what.concerns(number));
            });
            self.keeps_failing(|schedule| schedule.devices[number].processes = 1);
        }
    }

    fn fewer_faults(&mut self) {
        for kind in 0..self.best.schedule.weather.kinds().len() {
            self.keeps_failing(|schedule| *schedule.weather.kinds()[kind] = 0);
        }
        self.keeps_failing(|schedule| schedule.outside = Outside::Versions);
        self.keeps_failing(|schedule| schedule.ground = DeviceStorage::Memory);
        self.keeps_failing(|schedule| schedule.haste = TimeLimits::Never);
        self.keeps_failing(|schedule| schedule.renames = Renames::Never);
        self.keeps_failing(|schedule| schedule.homes = Homes::Plain);
    }

    fn fewer_effects(&mut self) {
        for at in 0..self.best.schedule.actions.len() {
            let effects = |schedule: &Schedule| match schedule.actions[at].what {
                What::GoOn { effects, .. } => effects,
                _ => 0,
            };
            let set = |schedule: &mut Schedule, fewer: usize| {
                if let What::GoOn { effects, .. } = &mut schedule.actions[at].what {
                    *effects = fewer;
                }
            };
            let mut cut = effects(&self.best.schedule) / 2;
            while cut > 0 {
                let fewer = effects(&self.best.schedule).saturating_sub(cut).max(1);
                if !self.keeps_failing(|schedule| set(schedule, fewer)) {
                    cut /= 2;
                }
            }
        }
    }
}
