//! The end of a schedule: everything calms down, and what is there is compared with what must be.

use std::collections::BTreeMap;

use haversack::log::{Carried, Commit, What as Change};
use haversack::sync::{Deletions, Mirror};
use haversack::vault::Entry;
use haversack::vault::copies::{Evidence, conflict_copy};
use haversack_store::Locator;

use super::{Ended, Found, Whole, World};
use crate::random::Random;
use crate::sync::device::Device;
use crate::sync::failure::{Broken, Failure};
use crate::sync::oracle::There;
use crate::sync::schedule::{Action, DeviceStorage, Meeting, Stream, Task, Time, What, stream};
use crate::sync::sheet::path_of_sheet;
use crate::sync::unit::units_of;

/// More effects than a sync makes.
const MAX_EFFECTS: usize = 100_000;

/// The most rounds of syncs of all devices without faults.
const MAX_ROUNDS: usize = 3;

/// The most rounds in a folder until every file in it is in a log or its wait is over.
const MAX_FOLDER_ROUNDS: usize = 4;

impl World<'_> {
    /// Lets everything calm down and looks at what there is.
    pub(super) fn settle(&mut self) -> Result<Ended, Failure> {
        let mut random = stream(self.schedule.seed, Stream::Store);
        let numbers: Vec<usize> = self.devices.keys().copied().collect();
        for number in &numbers {
            self.stop(*number, &mut random);
            self.come_back(*number, &mut random);
            if let Some(device) = self.devices.get_mut(number) {
                device.calm_down();
            }
        }
        self.deletions = Deletions::Allowed;
        self.wire.clear_up();
        while self.wire.deliver_late(&mut random).is_some() {}
        self.bring_back();
        self.secrets.allow_all();
        self.note("all is calm");
        if self.schedule.meeting == Meeting::Lost {
            self.swap_back(&mut random)?;
            // A user runs the command on every device, starting with any of them.
            let first = random.between(0, numbers.len() - 1);
            for number in numbers.iter().cycle().skip(first).take(numbers.len()) {
                self.run(*number, Task::Rebuild, &mut random)?;
            }
        }
        // Import the edits by hand, before the rounds and after them.
        self.reconcile(&numbers, &mut random)?;
        self.sync_all(&numbers, &mut random)?;
        self.rename_held_twins();
        self.tidy_all(&numbers, &mut random)?;
        for _ in 0..MAX_ROUNDS {
            self.sync_all(&numbers, &mut random)?;
        }
        let files = self.agreed()?;
        check_spellings(&files)?;
        self.reconcile(&numbers, &mut random)?;
        self.check_mirror(&files)?;
        self.check_copies(&files)?;
        self.carry_all(&mut random)?;
        let changes = (self.wire.changes(), self.client.server().clone());
        self.sync_all(&numbers, &mut random)?;
        self.carry_all(&mut random)?;
        if (self.wire.changes(), self.client.server().clone()) != changes {
            return Err(Broken::NotConverged.because("one more round still writes"));
        }
        if self.agreed()? != files {
            return Err(Broken::NotConverged.because("one more round still changes files"));
        }
        if self.schedule.meeting == Meeting::Shortened {
            self.join_late(&files, &mut random)?;
        }
        let judged = match self.schedule.meeting {
            Meeting::Aged => self.judge_aged(&numbers, &files, &mut random),
            Meeting::Log | Meeting::Vault | Meeting::Lost | Meeting::Shortened => {
                self.oracle.judge(&there(&files))
            }
        };
        match judged {
            // A device that merges without a base cannot know what was deleted, and says so. The same holds for a file that is newer than
            // the device which completed the rebuild of another one (docs/adr/0029).
            Err(failure)
                if failure.broken == Broken::Resurrected
                    && (self.is_rebuild_cut || self.devices.values().any(Device::has_lost_base)) => {}
            judged => judged?,
        }
        for device in self.devices.values() {
            // The roll-up of a tidy that died stays aside if a user has changed the file since. Its sources are still there.
            let is_aside = |left: &Locator| {
                self.schedule.meeting == Meeting::Aged && left.as_str().starts_with(".haversack/kept/")
            };
            if let Some(left) = device.left_over().filter(|left| !is_aside(left)) {
                return Err(Broken::LeftOver.because(format!("device {} has {left}", device.number)));
            }
        }
        for device in self.devices.values() {
            if let Some(trespassed) = device.trespassed() {
                return Err(Broken::Trespassed.because(format!("device {}: {trespassed}", device.number)));
            }
        }
        self.check_histories()?;
        let trace = self.trace.finalize().to_hex()[..16].to_owned();
        let entries = self.client.server().keys().filter(|locator| locator.is_within(&log())).count();
        Ok(Ended { trace, effects: self.effects, commits: self.wire.all(&log()).len() + entries })
    }

    /// Lets a new device join: it must get every file, though the log has not all contents any more.
    fn join_late(&mut self, files: &BTreeMap<String, String>, random: &mut Random) -> Result<(), Failure> {
        const LATE: usize = 99;
        let (actor, ground) = (self.oracle.actor(), DeviceStorage::Memory);
        let late = Device::new(LATE, actor, 1, ground, self.schedule.meeting, &self.numbers);
        self.devices.insert(LATE, late);
        self.run(LATE, Task::Sync, random)?;
        let found = self.devices.remove(&LATE).map(|late| late.texts()).unwrap_or_default();
        match found == *files {
            true => Ok(()),
            false => {
                Err(Broken::Lost.because(format!("a new device gets {found:?}, the others have {files:?}")))
            }
        }
    }

    /// Returns the files that all devices have.
    pub(super) fn agreed(&self) -> Result<BTreeMap<String, String>, Failure> {
        let mut all = self.devices.values().map(|device| (device.number, device.texts()));
        let Some((one, first)) = all.next() else { return Ok(BTreeMap::new()) };
        match all.find(|(_, texts)| *texts != first) {
            None => Ok(first),
            Some((other, texts)) => {
                let why = format!("device {one} has {first:?}, device {other} has {texts:?}");
                Err(Broken::NotConverged.because(why))
            }
        }
    }

    /// Lets users rename the files that sync holds back because their names differ only by case from another file there, as it asks them to.
    fn rename_held_twins(&mut self) {
        let mut renamed = Vec::new();
        for device in self.devices.values() {
            let texts = device.texts();
            for held in &device.held {
                let is_twin =
                    |path: &&String| *path != held.as_str() && path.eq_ignore_ascii_case(held.as_str());
                if texts.contains_key(held.as_str()) && texts.keys().any(|path| is_twin(&path)) {
                    let (stem, extension) = held.as_str().rsplit_once('.').unwrap_or((held.as_str(), ""));
                    let to = format!("{stem}.case-{:08}.{extension}", device.number);
                    device.files.rename(held, &Locator::parse(&to).expect("a plain name"));
                    renamed
                        .push(format!("{}: renames {held}, which sync holds back, to {to}", device.number));
                }
            }
        }
        renamed.into_iter().for_each(|renamed| self.note(renamed));
    }

    pub(super) fn sync_all(&mut self, numbers: &[usize], random: &mut Random) -> Result<(), Failure> {
        for number in numbers {
            self.carry_all(random)?;
            self.run(*number, Task::Sync, random)?;
        }
        Ok(())
    }

    /// Lets the client carry everything.
    pub(super) fn carry_all(&mut self, random: &mut Random) -> Result<(), Failure> {
        let mut found = Found::default();
        for _ in 0..MAX_EFFECTS {
            if !self.carry_one(&mut found, Whole::Always, random) {
                return Ok(());
            }
        }
        Err(Broken::NotConverged.because("the client does not come to an end"))
    }

    pub(super) fn run(&mut self, number: usize, task: Task, random: &mut Random) -> Result<(), Failure> {
        self.start(number, 0, task, random.number(), Time::Enough);
        let mut effects = 0;
        while self.step(number, 0)? {
            effects += 1;
            if effects > MAX_EFFECTS {
                return Err(Broken::Stuck.because(format!("device {number} does not come to an end")));
            }
        }
        Ok(())
    }

    /// Lets one device look at everything, if there is a mirror; in a folder all of them, hour by hour.
    fn reconcile(&mut self, numbers: &[usize], random: &mut Random) -> Result<(), Failure> {
        if self.schedule.mirror == Mirror::Off {
            return Ok(());
        }
        if self.schedule.meeting != Meeting::Vault {
            return numbers.first().map_or(Ok(()), |first| self.run(*first, Task::Reconcile, random));
        }
        for _ in 0..MAX_FOLDER_ROUNDS {
            self.hours += 1;
            for number in numbers {
                self.carry_all(random)?;
                self.run(*number, Task::Reconcile, random)?;
            }
        }
        self.carry_all(random)
    }

    /// Makes sure that the plain objects are what the devices have.
    fn check_mirror(&self, files: &BTreeMap<String, String>) -> Result<(), Failure> {
        if self.schedule.mirror == Mirror::Off || self.devices.is_empty() {
            return Ok(());
        }
        let folders =
            self.devices.values().filter_map(|device| Some((device.number, device.folder()?.all())));
        let shown = match self.schedule.meeting {
            Meeting::Log | Meeting::Lost | Meeting::Aged | Meeting::Shortened => {
                vec![("the mirror".to_owned(), self.wire.all(&Locator::root()))]
            }
            Meeting::Vault => folders
                .map(|(number, all)| (format!("the folder of device {number}"), all.into_iter().collect()))
                .collect(),
        };
        for (name, all) in shown {
            let plain: BTreeMap<String, String> = all
                .into_iter()
                .filter(|(locator, _)| !locator.is_reserved())
                .map(|(locator, bytes)| (locator.to_string(), String::from_utf8_lossy(&bytes).into_owned()))
                .collect();
            if plain != *files {
                let why = format!("{name} has {plain:?}, devices have {files:?}");
                return Err(Broken::NotConverged.because(why));
            }
        }
        Ok(())
    }

    /// Makes sure that what only a client calls a file was merged, and is gone; a device that was put back may have forgotten that it was at it.
    fn check_copies(&self, files: &BTreeMap<String, String>) -> Result<(), Failure> {
        let forgets = |action: &Action| matches!(action.what, What::Restore { .. } | What::Copy { .. });
        if self.schedule.actions.iter().any(forgets) {
            return Ok(());
        }
        let is_copy = |path: &&String| {
            let name = path.rsplit('/').next().unwrap_or(path);
            conflict_copy(name).is_some_and(|copy| copy.evidence == Evidence::Name)
        };
        match files.keys().find(is_copy) {
            Some(copy) => Err(Broken::LeftOver.because(format!("{copy} is a file of its own"))),
            None => Ok(()),
        }
    }

    /// Returns what is in the log, to be read.
    pub(super) fn commits(&self) -> String {
        let mut shown = String::new();
        for (locator, bytes) in self.client.server() {
            let Ok(entry) = Entry::decode(bytes) else { continue };
            shown.push_str(&format!("{locator} on {:?}\n", entry.seen));
            for change in entry.commit.map(|commit| commit.changes).unwrap_or_default() {
                shown.push_str(&format!("  {} {}\n", change.locator, brought(change.what)));
            }
        }
        for (locator, bytes) in self.wire.all(&log()) {
            match Commit::decode(&bytes) {
                Ok(commit) => {
                    let (position, device) = (commit.position.number(), &commit.device);
                    shown.push_str(&format!("position {position} by {device}\n"));
                    for change in commit.changes {
                        shown.push_str(&format!("  {} {}\n", change.locator, brought(change.what)));
                    }
                }
                Err(error) => shown.push_str(&format!("{locator}: {error}\n")),
            }
        }
        shown
    }
}

/// Makes sure that no two names differ only by case.
fn check_spellings(files: &BTreeMap<String, String>) -> Result<(), Failure> {
    let mut by_fold: BTreeMap<String, &String> = BTreeMap::new();
    for path in files.keys() {
        if let Some(twin) = by_fold.insert(path.to_ascii_lowercase(), path) {
            return Err(Broken::NotConverged.because(format!("devices have both {twin} and {path}")));
        }
    }
    Ok(())
}

/// Returns what is in each file, under either spelling of its name, and in the copies beside it.
fn there(files: &BTreeMap<String, String>) -> There {
    let mut there = There::default();
    for (path, text) in files {
        match original(path) {
            Some(path) => there.copies.entry(path_of_sheet(&path)).or_default().extend(units_of(text)),
            None => there.files.entry(path_of_sheet(path)).or_default().extend(units_of(text)),
        }
    }
    there
}

/// Returns the file beside which a copy lies: `sketch.bin` for `sketch.conflict-1a2b3c4d.bin`, for `sketch.case-1a2b3c4d.bin`, or for what a sync client calls a copy of it
/// that cannot be told from a file of that name.
fn original(path: &str) -> Option<String> {
    for mark in [".conflict-", ".case-"] {
        if let Some((stem, rest)) = path.split_once(mark) {
            let path = format!("{stem}{}", rest.get(8..)?);
            return Some(original(&path).unwrap_or(path));
        }
    }
    let at = path.rfind('/').map_or(0, |slash| slash + 1);
    let copy = conflict_copy(&path[at..])?;
    Some(format!("{}{}", &path[..at], original(&copy.original).unwrap_or(copy.original)))
}

fn log() -> Locator {
    Locator::reserved(".haversack/log").expect("one of ours")
}

fn brought(what: Change) -> String {
    match what {
        Change::Put { content: Carried::Inline(bytes), .. } => {
            format!("= {:?}", String::from_utf8_lossy(&bytes))
        }
        Change::Append { added: Carried::Inline(bytes), .. } => {
            format!("+ {:?}", String::from_utf8_lossy(&bytes))
        }
        Change::Put { .. } | Change::Append { .. } => "an object".to_owned(),
        Change::Delete { .. } => "deleted".to_owned(),
    }
}
