//! The actions of other programs on a remote: they change plain objects, or put forged objects there.

use std::collections::BTreeMap;

use haversack::ids::ContentHash;
use haversack::log::layout::{self, Item};
use haversack::log::{Checkpoint, Commit, ContentLocation, FileState, StateMark};
use haversack_store::{Bytes, Locator};

use super::World;
use crate::sync::device::Device;
use crate::sync::schedule::{Action, Meeting, Renames, Stream, stream};
use crate::sync::sheet::Wish;
use crate::sync::storage::Saving;
use crate::sync::unit::{MEDDLER, unit, units};

impl World<'_> {
    /// Adds something to a plain object, as it is there, or makes one.
    pub(super) fn meddle(&mut self, action: Action) {
        // A program that writes under the old name in the mirror makes another file: both names stay.
        if self.schedule.renames == Renames::Sometimes {
            return;
        }
        let mut random = stream(action.seed, Stream::Users);
        let sheet = self.schedule.sheets.pick(&mut random);
        let locator = Locator::parse(sheet.path).expect("a plain name");
        let writer = self.writer(&locator, action);
        let there = match (self.schedule.meeting, &writer) {
            (Meeting::Log | Meeting::Lost | Meeting::Aged | Meeting::Shortened, _) => {
                self.wire.all(&locator).into_iter().find(|(other, _)| *other == locator)
            }
            (Meeting::Vault, None) => return,
            (Meeting::Vault, Some(number)) => {
                let folder = self.devices.get(number).and_then(Device::folder);
                folder.and_then(|folder| folder.all().remove_entry(&locator))
            }
        };
        let text = there.map(|(_, bytes)| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
        let unit = unit(action.number, MEDDLER);
        let Some(draft) = sheet.edit(Wish::Add, Some(&text), &unit, &mut random) else { return };
        self.oracle.added(self.meddler, sheet.path, &unit);
        if let Some(about) = &draft.about {
            self.oracle.said_about(sheet.path, about, &unit, &draft.removed);
        }
        self.oracle.carried(sheet.path, units(&draft.text));
        let text = Bytes::from(draft.text);
        match writer {
            None => {
                self.note(format!("somebody adds {unit} to {} in the mirror", sheet.path));
                self.wire.put(&locator, text, &mut random);
            }
            Some(number) => {
                self.note(format!("{number}: adds {unit} to {} in the folder", sheet.path));
                let how = if random.coin() { Saving::InPlace } else { Saving::Replacing };
                if let Some(device) = self.devices.get_mut(&number) {
                    device.write_by_hand(&locator, text, how);
                }
            }
        }
    }

    /// Returns the device whose user writes a plain file into its copy of the folder: if there is room, and the file is there whole or not
    /// at all.
    fn writer(&self, locator: &Locator, action: Action) -> Option<usize> {
        if self.schedule.meeting != Meeting::Vault {
            return None;
        }
        let last = self.schedule.devices.len().checked_sub(1)?;
        let number = stream(action.seed, Stream::Store).between(0, last);
        let device = self.devices.get(&number)?;
        (!device.is_full() && !self.client.has_half(number, locator)).then_some(number)
    }

    /// Puts a checkpoint there that is whole, but not the state after its commit.
    pub(super) fn forge(&mut self, action: Action) {
        let mut random = stream(action.seed, Stream::Users);
        let commits = self.wire.all(&layout::commits());
        let known = commits.iter().filter_map(|(locator, bytes)| match Item::at(locator)? {
            Item::Commit(position) => Some((position, Commit::decode(bytes).ok()?.store)),
            _ => None,
        });
        let known: Vec<_> = known.collect();
        let Some(last) = known.len().checked_sub(1) else { return };
        let (position, store) = known[random.between(0, last)];
        let content = Bytes::from_static(b"forged\n");
        let (hash, size) = (ContentHash::of(&content), content.len() as u64);
        let locator = Locator::parse("notes.md").expect("a plain name");
        let mut state = StateMark::empty();
        state.add(&locator, &hash);
        let file = FileState { hash, size, place: ContentLocation::Inline(content) };
        let files = BTreeMap::from([(locator, file)]);
        let commit = ContentHash::of(b"another commit");
        let forged = Checkpoint { store, position, commit, state, files, odd: Vec::new() };
        let forged = forged.encode().expect("a small checkpoint");
        self.wire.put(&layout::checkpoint(position), forged, &mut random);
        self.note(format!("somebody forges the checkpoint of position {position}"));
    }
}
