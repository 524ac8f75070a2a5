//! A sync client, as Dropbox, OneDrive, iCloud, Google Drive, Syncthing and Obsidian have one: it carries files between folders, one path at
//! a time, in any order.
//!
//! It compares what a folder has with what both sides last agreed on and with what the others have. Where only one side changed, that is
//! carried, sometimes half of it first. Where both did, one of them keeps the name and the other becomes a conflict copy, under the
//! name that some client would give it.

use std::collections::BTreeMap;

use haversack_store::{Bytes, Locator};

use super::storage::{Saving, Storage};
use crate::random::Random;

/// What the client knows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Client {
    /// What everybody is to have.
    server: BTreeMap<Locator, Bytes>,
    /// By device, what its folder and the server last agreed on.
    agreed: BTreeMap<usize, BTreeMap<Locator, Bytes>>,
    /// By device, files of which only the beginning has arrived.
    halves: BTreeMap<usize, BTreeMap<Locator, Bytes>>,
    /// How often something was changed anywhere.
    changes: usize,
}

/// How a client names the copy of a file that lost.
fn copy_name(locator: &Locator, device: usize, random: &mut Random) -> Option<Locator> {
    let (directory, name) = locator.as_str().rsplit_once('/').unwrap_or(("", locator.as_str()));
    let (stem, extension) = match name.rsplit_once('.').filter(|(stem, _)| !stem.is_empty()) {
        Some((stem, extension)) => (stem, format!(".{extension}")),
        None => (name, String::new()),
    };
    let copy = match random.between(0, 5) {
        0 => format!("{stem} (device {device}'s conflicted copy 2026-11-16){extension}"),
        1 => format!("{stem}.sync-conflict-20261116-10111{device}-ABCDEF{device}{extension}"),
        2 => format!("{stem} (conflicted copy 2026-11-16 10111{device}){extension}"),
        3 => format!("{stem} [Conflict {}]{extension}", device + 1),
        4 => format!("{stem} {}{extension}", device + 2),
        _ => format!("{stem}-DESKTOP-{device}AB12CD{extension}"),
    };
    let copy = if directory.is_empty() { copy } else { format!("{directory}/{copy}") };
    let parse = if locator.is_reserved() { Locator::reserved } else { Locator::parse };
    parse(&copy).ok()
}

/// How a client names a further copy of a plain file.
fn another_copy_name(locator: &Locator, number: usize) -> Option<Locator> {
    let (stem, extension) = match locator.as_str().rsplit_once('.') {
        Some((stem, extension)) => (stem, format!(".{extension}")),
        None => (locator.as_str(), String::new()),
    };
    Locator::parse(&format!("{stem}.sync-conflict-20261116-{number:06}-ABCDEFG{extension}")).ok()
}

impl Client {
    /// Lets a device that is a copy of another have the other's folder.
    pub(crate) fn copy(&mut self, from: usize, to: usize) {
        for known in [&mut self.agreed, &mut self.halves] {
            let copied = known.get(&from).cloned().unwrap_or_default();
            known.insert(to, copied);
        }
    }

    /// Returns what everybody is to have.
    pub(crate) fn server(&self) -> &BTreeMap<Locator, Bytes> {
        &self.server
    }

    /// Tells whether only the beginning of a file has arrived in a device's folder.
    pub(crate) fn has_half(&self, device: usize, locator: &Locator) -> bool {
        self.halves.get(&device).is_some_and(|halves| halves.contains_key(locator))
    }

    /// Carries one path to or from a device's folder; returns what it did, if there was anything to do.
    pub(crate) fn step(
        &mut self,
        device: usize,
        folder: &Storage,
        whole: Whole,
        random: &mut Random,
    ) -> Option<String> {
        let here = folder.all();
        let agreed = self.agreed.entry(device).or_default();
        let halves = self.halves.entry(device).or_default();
        // Half a file is no change: the rest of it follows.
        let local = |locator: &Locator| match (here.get(locator), halves.get(locator)) {
            (Some(bytes), Some(half)) if bytes == half => agreed.get(locator),
            (bytes, _) => bytes,
        };
        let mut open: Vec<Locator> = here
            .keys()
            .chain(agreed.keys())
            .chain(self.server.keys())
            .filter(|locator| {
                let (mine, theirs) = (local(locator), self.server.get(*locator));
                mine != theirs || agreed.get(*locator) != theirs || halves.contains_key(*locator)
            })
            .cloned()
            .collect();
        open.sort_unstable();
        open.dedup();
        let last = open.len().checked_sub(1)?;
        let locator = &open[random.between(0, last)];
        let (mine, theirs, base) =
            (local(locator).cloned(), self.server.get(locator).cloned(), agreed.get(locator).cloned());
        self.changes += 1;
        if mine == theirs && !halves.contains_key(locator) {
            set(agreed, locator, theirs);
            return Some(format!("client of {device}: {locator} is the same"));
        }
        if theirs == base && mine != base {
            set(&mut self.server, locator, mine.clone());
            set(agreed, locator, mine);
            halves.remove(locator);
            return Some(format!("client of {device}: sends {locator}"));
        }
        if mine == base {
            if let Some(bytes) = &theirs
                && whole == Whole::Sometimes
                && bytes.len() > 1
                && random.between(0, 4) == 0
            {
                let half = bytes.slice(..random.between(0, bytes.len() - 1));
                folder.save(locator, half.clone(), Saving::InPlace);
                halves.insert(locator.clone(), half);
                return Some(format!("client of {device}: half of {locator} arrives"));
            }
            match &theirs {
                Some(bytes) => folder.save(locator, bytes.clone(), Saving::Replacing),
                None => folder.remove(locator),
            }
            halves.remove(locator);
            set(agreed, locator, theirs);
            return Some(format!("client of {device}: {locator} arrives"));
        }
        // Both changed it. A deletion never wins.
        halves.remove(locator);
        match (mine, theirs) {
            (Some(mine), None) => {
                set(&mut self.server, locator, Some(mine.clone()));
                set(agreed, locator, Some(mine));
            }
            (None, theirs) => {
                if let Some(bytes) = &theirs {
                    folder.save(locator, bytes.clone(), Saving::Replacing);
                }
                set(agreed, locator, theirs);
            }
            (Some(mine), Some(theirs)) => {
                let (kept, lost) = if random.coin() { (mine, theirs) } else { (theirs, mine) };
                let is_free = |copy: &Locator| !here.contains_key(copy);
                let copy = copy_name(locator, device, random).filter(is_free);
                // Of what people wrote no client loses a word.
                let another = || (0..).find_map(|number| another_copy_name(locator, number).filter(is_free));
                if let Some(copy) = copy.or_else(|| if locator.is_reserved() { None } else { another() }) {
                    folder.save(&copy, lost, Saving::Replacing);
                }
                folder.save(locator, kept.clone(), Saving::Replacing);
                set(&mut self.server, locator, Some(kept.clone()));
                set(agreed, locator, Some(kept));
            }
        }
        Some(format!("client of {device}: {locator} was changed on both sides"))
    }
}

/// Whether files arrive whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whole {
    Always,
    Sometimes,
}

fn set(map: &mut BTreeMap<Locator, Bytes>, locator: &Locator, bytes: Option<Bytes>) {
    match bytes {
        Some(bytes) => drop(map.insert(locator.clone(), bytes)),
        None => drop(map.remove(locator)),
    }
}
