//! Devices that read each other's logs, and nothing else: no folder, no disk, nothing that goes wrong.
//!
//! The merge of logs is in [`merge_file()`](haversack::vault::merge_file) and the merges below it. A folder around it makes a schedule long and slow. Here
//! a device reads as much of another's log as it likes, changes a file, and tells of it. Hundreds of schedules take as long as one over a folder,
//! and the oracle is the same.
//!
//! If two contents cannot be merged, the engine puts one beside the other as a copy. Here the copy stays for ever.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use haversack::ids::{CommitId, ContentHash, Position, ReplicaId, StoreId, Timestamp};
use haversack::log::{Carried, Commit, FileChange, StateMark, What};
use haversack::vault::{Entry, FileOutcome, Heads, Logs, merge_file};
use haversack_store::{Bytes, Locator};

use super::failure::Failure;
use super::oracle::{Oracle, There};
use super::sheet::{FILES, Reading, Sheets};
use super::unit::units_of;
use super::user::{Change, Edit, Found, Intention};
use crate::random::Random;

/// A schedule of reads and writes of some devices.
#[derive(Clone, Debug)]
pub struct LogsOnlySchedule {
    devices: usize,
    sheets: Sheets,
    actions: Vec<Action>,
}

#[derive(Clone, Copy, Debug)]
struct Action {
    device: usize,
    /// Decides how much is read, or what is written.
    seed: u64,
    what: Act,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    /// Reads on in the log of another.
    Read,
    Write,
}

impl LogsOnlySchedule {
    /// Returns the schedule of a seed.
    pub fn at(seed: u64) -> LogsOnlySchedule {
        let mut random = Random::new(seed);
        let devices = random.between(2, 5);
        let sheets = Sheets::any(&mut random).crowded(random.between(1, FILES));
        let actions = (0..random.between(4, 40)).map(|_| {
            let what = if random.between(0, 9) < 4 { Act::Read } else { Act::Write };
            Action { device: random.between(0, devices - 1), seed: random.number(), what }
        });
        LogsOnlySchedule { devices, sheets, actions: actions.collect() }
    }

    /// Plays it; the error says which promise was broken.
    pub fn play(&self) -> Result<(), Failure> {
        self.play_in(&mut Devices::new(self))
    }

    /// Plays it and returns what happened, to be read.
    pub fn explain(&self) -> (String, Result<(), Failure>) {
        let mut devices = Devices { told: Some(String::new()), ..Devices::new(self) };
        let result = self.play_in(&mut devices);
        (devices.told.unwrap_or_default(), result)
    }

    /// Returns as little of it as breaks the same promise; `None` if it holds.
    pub fn shrink(&self) -> Option<LogsOnlySchedule> {
        let broken = self.play().err()?.broken;
        let mut least = self.clone();
        let mut at = 0;
        while at < least.actions.len() {
            let mut fewer = least.clone();
            fewer.actions.remove(at);
            match fewer.play() {
                Err(failure) if failure.broken == broken => (least, at) = (fewer, 0),
                _ => at += 1,
            }
        }
        Some(least)
    }

    fn play_in(&self, devices: &mut Devices) -> Result<(), Failure> {
        for (number, action) in self.actions.iter().enumerate() {
            match action.what {
                Act::Read => devices.read(action),
                Act::Write => devices.write(action, &self.sheets, number),
            }
        }
        devices.judge()
    }
}

/// The logs, and who has read what.
struct Devices {
    logs: Logs,
    contents: HashMap<ContentHash, Bytes>,
    /// The heads that each device has read.
    heads: Vec<Heads>,
    files: BTreeSet<Locator>,
    /// The copies of each file.
    copies: BTreeMap<String, BTreeSet<String>>,
    oracle: Oracle,
    told: Option<String>,
}

impl Devices {
    fn new(schedule: &LogsOnlySchedule) -> Devices {
        let files = schedule.sheets.iter().filter(|sheet| sheet.reading != Reading::Whole);
        let mut oracle = Oracle::default();
        for device in 0..schedule.devices {
            assert_eq!(oracle.actor(), device, "actors are numbered like devices");
        }
        Devices {
            logs: Logs::default(),
            contents: HashMap::new(),
            heads: vec![Heads::default(); schedule.devices],
            files: files.map(|sheet| Locator::parse(sheet.path).expect("a plain name")).collect(),
            copies: BTreeMap::new(),
            oracle,
            told: None,
        }
    }

    fn tell(&mut self, text: impl FnOnce() -> String) {
        if let Some(told) = &mut self.told {
            told.push_str(&text());
            told.push('\n');
        }
    }

    fn read(&mut self, action: &Action) {
        let mut random = Random::new(action.seed);
        let other = random.between(0, self.heads.len() - 1);
        let mut last = self.logs.last(replica(other));
        if other == action.device || last == 0 {
            return;
        }
        if random.coin() {
            last = random.between(1, usize::try_from(last).expect("a few")) as u64;
        }
        let known = self.logs.knows((replica(other), last));
        let heads = std::mem::take(&mut self.heads[action.device]);
        self.heads[action.device] = heads.join(&known);
        self.tell(|| format!("{}: reads the log of {other} up to {last}", action.device));
    }

    fn write(&mut self, action: &Action, sheets: &Sheets, number: usize) {
        let device = action.device;
        let intention = Intention::new(sheets, device, number, false, false, Random::new(action.seed));
        let locator = intention.locator();
        if !self.files.contains(&locator) {
            return;
        }
        let heads = self.heads[device].clone();
        let there = self.files.clone().into_iter().filter(|file| self.text(file, &heads).is_some()).count();
        let found = self.text(&locator, &heads).map(|text| Found { at: locator.to_string(), text });
        let Some(edit) = intention.decide(found, there) else { return };
        edit.tell(&mut self.oracle, device);
        self.tell(|| format!("{device}: {}", edit.shown()));
        self.publish(device, locator, &edit);
    }

    /// Returns the merged text of a file for a device with these heads.
    fn text(&mut self, locator: &Locator, heads: &Heads) -> Option<String> {
        let text = |bytes: &Bytes| String::from_utf8(bytes.to_vec()).expect("texts stay texts");
        match merge_file(&self.logs, locator, heads, &self.contents) {
            FileOutcome::Absent { .. } => None,
            FileOutcome::FromEntry { content, .. } => Some(text(&self.contents[&content.hash])),
            FileOutcome::Merged { bytes, copies } => {
                let beside = self.copies.entry(locator.to_string()).or_default();
                beside.extend(copies.iter().flat_map(|copy| units_of(&text(copy))));
                Some(text(&bytes))
            }
        }
    }

    fn publish(&mut self, device: usize, locator: Locator, edit: &Edit) {
        let what = match &edit.change {
            Change::Deleted | Change::Renamed(_) => What::Delete { before: None },
            Change::Saved(bytes, _) => {
                let (hash, size) = (ContentHash::of(bytes), bytes.len() as u64);
                self.contents.insert(hash, bytes.clone());
                What::Put { hash, size, content: Carried::Inline(bytes.clone()), from: None }
            }
        };
        let (replica, number) = (replica(device), self.logs.last(replica(device)) + 1);
        let id = u128::from(number) << 8 | device as u128;
        let commit = Commit {
            store: StoreId::from_bytes([9; 16]),
            position: Position::FIRST,
            id: CommitId::from_bytes(id.to_be_bytes()),
            previous: ContentHash::of(b""),
            replica,
            device: format!("device {device}"),
            agent: None,
            session: None,
            time: Timestamp(0),
            cause: String::new(),
            state: StateMark::empty(),
            changes: vec![FileChange { locator, what }],
            odd: Vec::new(),
            notice: None,
        };
        let seen = self.heads[device].clone();
        self.tell(|| format!("  which is its entry {number}, on {seen:?}: {:?}", edit.change));
        self.logs.add(&Entry {
            replica,
            number,
            seen: seen.clone(),
            commit: Some(commit),
            shown: Vec::new(),
        });
        self.heads[device] = seen.with(replica, number);
    }

    fn judge(&mut self) -> Result<(), Failure> {
        let all = std::mem::take(&mut self.heads);
        let all = all.iter().fold(Heads::default(), |heads, other| heads.join(other));
        let mut files = BTreeMap::new();
        for file in self.files.clone() {
            let text = self.text(&file, &all);
            self.tell(|| format!("{file} comes to {text:?}"));
            files.insert(file.to_string(), text.as_deref().map_or_else(BTreeSet::new, units_of));
        }
        let there = There { files, copies: std::mem::take(&mut self.copies) };
        self.oracle.judge(&there)
    }
}

fn replica(device: usize) -> ReplicaId {
    ReplicaId::from_bytes([u8::try_from(device + 1).expect("a few"); 16])
}
