//! Losses of a whole remote: it is wiped, restored from a backup, or replaced by another store.
//!
//! No device syncs at that moment, and requests on their way never arrive. A remote is lost only while all devices follow the log in it:
//! a device that never synced would begin a store of its own, and one that missed a loss knows another past under the same positions.

use std::collections::BTreeMap;

use haversack::ids::{StoreId, Timestamp};
use haversack::log::{StoreFile, layout};
use haversack_store::{Bytes, Locator};

use super::World;
use crate::random::Random;
use crate::sync::failure::{Broken, Failure};
use crate::sync::schedule::{Loss, Stream, stream};

/// All objects of a remote.
type Objects = BTreeMap<Locator, Bytes>;

/// A remote in whose place another store is.
pub(super) struct Swapped {
    ours: Objects,
    theirs: Objects,
}

impl World<'_> {
    pub(super) fn lose(&mut self, loss: Loss, seed: u64) -> Result<(), Failure> {
        let mut random = stream(seed, Stream::Store);
        let numbers: Vec<usize> = self.devices.keys().copied().collect();
        for number in numbers {
            self.stop(number, &mut random);
        }
        let is_known = self.strangers.is_empty() && self.apart.is_empty();
        match loss {
            Loss::Swap if self.swapped.is_some() => return self.swap_back(&mut random),
            Loss::Swap if !is_known => {}
            Loss::Swap => {
                let store = StoreFile {
                    store: StoreId::from_bytes([0xee; 16]),
                    created: Timestamp(0),
                    name: "somebody else".to_owned(),
                    predecessor: None,
                };
                let theirs = Objects::from([(layout::store_file(), store.encode())]);
                let ours = self.wire.replace(&theirs, &mut random);
                self.swapped = Some(Swapped { ours, theirs });
                self.note("another store is in the place of the remote");
            }
            // The owner of the remote acts only while it is there.
            Loss::BackUp | Loss::Wipe | Loss::RollBack if self.swapped.is_some() => {}
            Loss::BackUp | Loss::Wipe | Loss::RollBack if !is_known => {}
            Loss::BackUp => {
                self.backup = Some(self.wire.all(&Locator::root()).into_iter().collect());
                self.note("the remote is backed up");
            }
            Loss::Wipe => {
                let _ = self.wire.replace(&Objects::new(), &mut random);
                self.backup = None;
                self.apart = self.devices.keys().copied().collect();
                self.note("the remote is wiped");
            }
            Loss::RollBack => {
                if let Some(backup) = &self.backup {
                    let _ = self.wire.replace(backup, &mut random);
                    self.apart = self.devices.keys().copied().collect();
                    self.note("the backup of the remote is put back");
                }
            }
        }
        Ok(())
    }

    /// Puts the replaced remote back: no device may have written to the other one.
    pub(super) fn swap_back(&mut self, random: &mut Random) -> Result<(), Failure> {
        let Some(Swapped { ours, theirs }) = self.swapped.take() else { return Ok(()) };
        let there = self.wire.replace(&ours, random);
        self.note("the remote is back in its place");
        match there == theirs {
            true => Ok(()),
            false => Err(Broken::NotConverged.because("somebody wrote to another store")),
        }
    }
}
