//! Signed writes and secrets: the names under which writes are in the history, and the bytes that leave a device.

use std::collections::{BTreeMap, BTreeSet};

use haversack::ids::{CommitId, Position, ReplicaId};
use haversack::log::{Carried, Commit, Segment, What, layout};
use haversack::vault::Entry;
use haversack_store::Bytes;

use super::World;
use crate::sync::device::Device;
use crate::sync::failure::{Broken, Failure};
use crate::sync::schedule::{Homes, Meeting};
use crate::sync::unit::units_of;
use crate::sync::user::Edit;

/// The writes that agents signed.
#[derive(Default)]
pub(super) struct Signed {
    /// By unit, the signed writes that no commit has yet.
    unsent: BTreeMap<String, Write>,
    /// The commits that brought a signed write into the history, each with the agent.
    brought: BTreeMap<CommitId, &'static str>,
    /// All units that some commit has.
    known: BTreeSet<String>,
    /// The last position that was looked at.
    last: Option<Position>,
    /// In a folder: the number of entries of each log that were looked at.
    entries: BTreeMap<ReplicaId, u64>,
}

#[derive(Debug)]
struct Write {
    agent: &'static str,
    device: usize,
    file: &'static str,
}

impl Signed {
    /// Notes a write. It takes the place of what others signed in the same file and was not sent.
    pub(super) fn wrote(&mut self, device: usize, edit: &Edit, agent: Option<&'static str>) {
        self.unsent.retain(|_, write| {
            write.device != device || write.file != edit.file || Some(write.agent) == agent
        });
        if let (Some(agent), Some(unit)) = (agent, edit.added()) {
            self.unsent.insert(unit.to_owned(), Write { agent, device, file: edit.file });
        }
    }

    /// Forgets the writes on a device that were not sent: its directories are merged with others.
    pub(super) fn forget_unsent(&mut self, device: usize) {
        self.unsent.retain(|_, write| write.device != device);
    }

    /// Looks at a commit that is new in the history.
    fn look_at(&mut self, commit: &Commit) -> Result<(), Failure> {
        for change in &commit.changes {
            let text = match &change.what {
                What::Put { content: Carried::Inline(bytes), .. }
                | What::Append { added: Carried::Inline(bytes), .. } => String::from_utf8_lossy(bytes),
                What::Put { .. } | What::Append { .. } | What::Delete { .. } => continue,
            };
            for unit in units_of(&text) {
                if !self.known.insert(unit.clone()) {
                    continue;
                }
                let Some(write) = self.unsent.remove(&unit) else { continue };
                if commit.agent.as_deref() != Some(write.agent) {
                    let (agent, named) = (write.agent, &commit.agent);
                    let why = format!("{unit} by {agent} is under {named:?} at position {}", commit.position);
                    return Err(Broken::Misattributed.because(why));
                }
                self.brought.insert(commit.id, write.agent);
            }
        }
        Ok(())
    }
}

impl World<'_> {
    /// Looks at everything that devices sent to the remote since the last time.
    pub(super) fn check_sent(&mut self) -> Result<(), Failure> {
        let sent = self.wire.take_sent();
        if sent.is_empty() || self.schedule.homes == Homes::Plain && self.schedule.meeting != Meeting::Aged {
            return Ok(());
        }
        for (locator, bytes) in sent {
            if let Some(secret) = self.secrets.found_in(&bytes) {
                return Err(Broken::Leaked.because(format!("{secret} was sent in {locator}")));
            }
        }
        loop {
            let next = self.signed.last.map_or(Some(Position::FIRST), Position::next);
            let Some(next) = next else { return Ok(()) };
            let Some(bytes) = self.wire.object(&layout::commit(next)) else { return Ok(()) };
            self.signed.last = Some(next);
            if let Ok(commit) = Commit::decode(&bytes) {
                self.signed.look_at(&commit)?;
            }
        }
    }

    /// Looks at everything that a device has put into its copy of a folder.
    pub(super) fn check_folder(&mut self, number: usize) -> Result<(), Failure> {
        if self.schedule.homes == Homes::Plain || self.schedule.meeting != Meeting::Vault {
            return Ok(());
        }
        let Some(all) = self.devices.get(&number).and_then(Device::folder).map(|folder| folder.all()) else {
            return Ok(());
        };
        let mut entries: Vec<Entry> = Vec::new();
        for (locator, bytes) in &all {
            if let Some(secret) = self.secrets.found_in(bytes) {
                return Err(Broken::Leaked.because(format!("device {number} put {secret} into {locator}")));
            }
            entries.extend(Entry::decode(bytes));
        }
        entries.sort_by_key(|entry| (entry.replica, entry.number));
        for entry in entries {
            let seen = self.signed.entries.entry(entry.replica).or_default();
            // Entries that are folded already are not looked at, nor those after them.
            if entry.number != *seen + 1 {
                continue;
            }
            *seen += 1;
            if let Some(commit) = &entry.commit {
                self.signed.look_at(commit)?;
            }
        }
        Ok(())
    }

    /// Makes sure that the history of every device has signed writes under their agents.
    pub(super) fn check_histories(&self) -> Result<(), Failure> {
        for device in self.devices.values().filter(|_| !self.signed.brought.is_empty()) {
            let segments = device.state.all().into_iter();
            let segments = segments.filter(|(locator, _)| locator.as_str().starts_with("history/"));
            for bytes in segments.filter_map(|(_, bytes)| Segment::decode(&bytes).ok()).flat_map(commits) {
                let Ok(commit) = Commit::decode(&bytes) else { continue };
                let agent = self.signed.brought.get(&commit.id);
                if agent.is_some_and(|agent| commit.agent.as_deref() != Some(agent)) {
                    let (number, position, named) = (device.number, commit.position, commit.agent);
                    let why = format!("device {number} has position {position} under {named:?}");
                    return Err(Broken::Misattributed.because(why));
                }
            }
        }
        Ok(())
    }
}

fn commits(segment: Segment) -> Vec<Bytes> {
    segment.commits
}
