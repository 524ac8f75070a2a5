//! A sync client, as Dropbox, OneDrive, iCloud, Google Drive, Syncthing and Obsidian have one: it carries files between folders, one path at
//! a time, in any order.
//!
//! It compares what a folder has with what both sides last agreed on and with what the others have. Where only one side changed, that is
//! carried, sometimes half of it first. Where both did, one of them keeps the name and the other becomes a conflict copy, under the
//! name that some client would give it.

use std::collections::{BTreeMap, BTreeSet};

use haversack_store::{Bytes, Locator};

use super::storage::{Saving, Storage};
use crate::random::Random;

/// The state of the client.
#[derive(Clone, Debug, Default)]
pub(crate) struct Client {
    /// The files that every device is to have.
    server: BTreeMap<Locator, Bytes>,
    /// By device, what its folder and the server last agreed on.
    agreed: BTreeMap<usize, BTreeMap<Locator, Bytes>>,
    /// By device, files of which only the beginning has arrived.
    halves: BTreeMap<usize, BTreeMap<Locator, Bytes>>,
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

    /// Returns true if only the beginning of a file has arrived in a device's folder.
    pub(crate) fn has_half(&self, device: usize, locator: &Locator) -> bool {
        self.halves.get(&device).is_some_and(|halves| halves.contains_key(locator))
    }

    /// Carries one path to or from a device's folder; returns what it did, if there was anything to do.
    pub(crate) fn step(
        &mut self,
        found: &mut Found,
        device: usize,
        folder: &Storage,
        whole: Whole,
        random: &mut Random,
    ) -> Option<String> {
        let at = found.0.entry(device).or_insert_with(|| {
            let here = folder.all();
            let agreed = self.agreed.get(&device).into_iter().flat_map(BTreeMap::keys);
            let all = here.keys().chain(agreed).chain(self.server.keys());
            let open = all.filter(|locator| self.is_open(device, &here, locator)).cloned().collect();
            Folder { here, open }
        });
        let last = at.open.len().checked_sub(1)?;
        let locator = at.open.iter().nth(random.between(0, last))?.clone();
        let (done, copy) = self.carry(device, folder, &mut at.here, &locator, whole, random);
        for (device, at) in &mut found.0 {
            for changed in [Some(&locator), copy.as_ref()].into_iter().flatten() {
                match self.is_open(*device, &at.here, changed) {
                    true => drop(at.open.insert(changed.clone())),
                    false => drop(at.open.remove(changed)),
                }
            }
        }
        Some(format!("client of {device}: {done}"))
    }

    /// Returns what a folder has at a path. Half a file is no change: the rest of it follows.
    fn local<'a>(
        &'a self,
        device: usize,
        here: &'a BTreeMap<Locator, Bytes>,
        locator: &Locator,
    ) -> Option<&'a Bytes> {
        match (here.get(locator), of(&self.halves, device, locator)) {
            (Some(bytes), Some(half)) if bytes == half => of(&self.agreed, device, locator),
            (bytes, _) => bytes,
        }
    }

    /// Returns true if there is something to carry.
    fn is_open(&self, device: usize, here: &BTreeMap<Locator, Bytes>, locator: &Locator) -> bool {
        let (mine, theirs) = (self.local(device, here, locator), self.server.get(locator));
        let agreed = of(&self.agreed, device, locator);
        mine != theirs || agreed != theirs || of(&self.halves, device, locator).is_some()
    }

    /// Carries what is at a path; returns what it did, and the copy that it made.
    fn carry(
        &mut self,
        device: usize,
        folder: &Storage,
        here: &mut BTreeMap<Locator, Bytes>,
        locator: &Locator,
        whole: Whole,
        random: &mut Random,
    ) -> (String, Option<Locator>) {
        let mine = self.local(device, here, locator).cloned();
        let theirs = self.server.get(locator).cloned();
        let agreed = self.agreed.entry(device).or_default();
        let halves = self.halves.entry(device).or_default();
        let base = agreed.get(locator).cloned();
        if mine == theirs && !halves.contains_key(locator) {
            set(agreed, locator, theirs);
            return (format!("{locator} is the same"), None);
        }
        if theirs == base && mine != base {
            set(&mut self.server, locator, mine.clone());
            set(agreed, locator, mine);
            halves.remove(locator);
            return (format!("sends {locator}"), None);
        }
        if mine == base {
            if let Some(bytes) = &theirs
                && whole == Whole::Sometimes
                && bytes.len() > 1
                && random.between(0, 4) == 0
            {
                let half = bytes.slice(..random.between(0, bytes.len() - 1));
                save(folder, here, locator, Some(half.clone()), Saving::InPlace);
                halves.insert(locator.clone(), half);
                return (format!("half of {locator} arrives"), None);
            }
            save(folder, here, locator, theirs.clone(), Saving::Replacing);
            halves.remove(locator);
            set(agreed, locator, theirs);
            return (format!("{locator} arrives"), None);
        }
        // Both changed it. A deletion never wins.
        halves.remove(locator);
        let mut made = None;
        match (mine, theirs) {
            (Some(mine), None) => {
                set(&mut self.server, locator, Some(mine.clone()));
                set(agreed, locator, Some(mine));
            }
            (None, theirs) => {
                if theirs.is_some() {
                    save(folder, here, locator, theirs.clone(), Saving::Replacing);
                }
                set(agreed, locator, theirs);
            }
            (Some(mine), Some(theirs)) => {
                let (kept, lost) = if random.coin() { (mine, theirs) } else { (theirs, mine) };
                let copy = copy_name(locator, device, random).filter(|copy| !here.contains_key(copy));
                // Of what people wrote no client loses a word.
                let mut others = (0..).filter_map(|number| another_copy_name(locator, number));
                made = match copy {
                    None if !locator.is_reserved() => others.find(|copy| !here.contains_key(copy)),
                    copy => copy,
                };
                if let Some(copy) = &made {
                    save(folder, here, copy, Some(lost), Saving::Replacing);
                }
                save(folder, here, locator, Some(kept.clone()), Saving::Replacing);
                set(&mut self.server, locator, Some(kept.clone()));
                set(agreed, locator, Some(kept));
            }
        }
        (format!("{locator} was changed on both sides"), made)
    }
}

/// The folders that the client has read: no other program acts while it carries.
#[derive(Debug, Default)]
pub(crate) struct Found(BTreeMap<usize, Folder>);

#[derive(Debug)]
struct Folder {
    here: BTreeMap<Locator, Bytes>,
    /// The files that differ.
    open: BTreeSet<Locator>,
}

/// Returns what is known of a path in a device's folder.
fn of<'a>(
    known: &'a BTreeMap<usize, BTreeMap<Locator, Bytes>>,
    device: usize,
    locator: &Locator,
) -> Option<&'a Bytes> {
    known.get(&device)?.get(locator)
}

/// Puts something into a folder, or takes it out.
fn save(
    folder: &Storage,
    here: &mut BTreeMap<Locator, Bytes>,
    locator: &Locator,
    bytes: Option<Bytes>,
    how: Saving,
) {
    match &bytes {
        Some(bytes) => folder.save(locator, bytes.clone(), how),
        None => folder.remove(locator),
    }
    set(here, locator, bytes);
}

/// Tells if files arrive whole.
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
