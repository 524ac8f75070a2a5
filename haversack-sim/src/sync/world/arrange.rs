//! Bound directories: users bind, unbind and move them, directories go away and come back, and agents and users write into them.

use haversack::Memory;
use haversack_store::{Bytes, Locator, block_on};

use super::World;
use crate::random::Random;
use crate::sync::device::{Bound, SLOTS, below};
use crate::sync::failure::{Broken, Failure};
use crate::sync::schedule::{Action, Homes, Stream, stream};
use crate::sync::storage::Storage;
use crate::sync::unit::units;
use crate::sync::user::{Change, Edit, Intention};

impl World<'_> {
    /// Binds the directories that devices have from the beginning.
    pub(super) fn bind_first(&mut self) {
        if self.schedule.homes == Homes::Plain {
            return;
        }
        let mut random = stream(self.schedule.seed.rotate_left(7), Stream::Homes);
        for number in self.devices.keys().copied().collect::<Vec<_>>() {
            for (slot, one_in) in [2, 3, 6, 6].into_iter().enumerate() {
                if random.between(1, one_in) == 1 {
                    self.bind(number, slot);
                }
            }
        }
    }

    /// Lets a user bind, unbind or move a directory, or lets one go away or be back.
    pub(super) fn arrange(&mut self, number: usize, seed: u64) -> Result<(), Failure> {
        let mut random = stream(seed, Stream::Homes);
        self.stop(number, &mut random);
        let slot = random.between(0, SLOTS.len() - 1);
        let Some(device) = self.devices.get_mut(&number) else { return Ok(()) };
        let Some(at) = device.bound.iter().position(|bound| bound.slot == slot) else {
            return self.bind_again(number, slot);
        };
        if random.coin() {
            let bound = &mut device.bound[at];
            bound.is_absent = !bound.is_absent;
            let (name, is_absent) = (bound.name(), bound.is_absent);
            self.note(format!("{number}: {name} is {}", if is_absent { "not there" } else { "back" }));
            return Ok(());
        }
        if !self.is_told(number) {
            return Ok(());
        }
        match random.coin() {
            true => self.unbind(number, at),
            false => self.relocate(number, at),
        }
        Ok(())
    }

    /// Returns true if a device has sent everything: an edit in a directory that is unbound stays there.
    fn is_told(&self, number: usize) -> bool {
        self.devices.get(&number).is_some_and(|device| {
            let bound = device.bound.iter().map(|bound| bound.actor);
            !device.is_full() && bound.chain([device.actor]).all(|actor| self.oracle.is_told(actor))
        })
    }

    fn bind_again(&mut self, number: usize, slot: usize) -> Result<(), Failure> {
        if !self.is_told(number) {
            return Ok(());
        }
        if let Some((files, before)) = self.devices.get(&number).and_then(|device| device.unbound.get(&slot))
            && files.all() != *before
        {
            let why = format!("directory {slot} of device {number} was changed after it was unbound");
            return Err(Broken::Trespassed.because(why));
        }
        self.bind(number, slot);
        Ok(())
    }

    /// Binds a directory: the one that was unbound there before, with its files, or an empty one.
    fn bind(&mut self, number: usize, slot: usize) {
        let actor = self.oracle.actor();
        let Some(device) = self.devices.get_mut(&number) else { return };
        let files = device.unbound.remove(&slot).map(|(files, _)| files);
        let files = files.unwrap_or_else(|| device.empty_storage());
        let (prefix, state) = (Locator::parse(SLOTS[slot]).expect("a plain name"), device.empty_storage());
        let (is_absent, outside) = (false, None);
        let bound = Bound { slot, prefix, actor, files, state, is_absent, outside };
        let name = bound.name();
        device.bound.push(bound);
        self.rearranged(number);
        self.note(format!("{number}: binds {name}"));
    }

    fn unbind(&mut self, number: usize, at: usize) {
        self.rearranged(number);
        let Some(device) = self.devices.get_mut(&number) else { return };
        let bound = device.bound.remove(at);
        let name = bound.name();
        let before = bound.files.all();
        device.unbound.insert(bound.slot, (bound.files, before));
        self.rearranged(number);
        self.note(format!("{number}: unbinds {name}"));
    }

    /// Lets a user move a directory and bind it at its new place: same files and prefix, another state.
    fn relocate(&mut self, number: usize, at: usize) {
        let actor = self.oracle.actor();
        let Some(device) = self.devices.get_mut(&number) else { return };
        let state = device.empty_storage();
        let bound = &mut device.bound[at];
        (bound.state, bound.actor) = (state, actor);
        let name = bound.name();
        self.rearranged(number);
        self.note(format!("{number}: moves {name}"));
    }

    /// Tells the oracle that directories meet other texts without a base: every text in them counts as written anew.
    fn rearranged(&mut self, number: usize) {
        let Some(device) = self.devices.get_mut(&number) else { return };
        device.note_outside();
        let mut texts: Vec<(&'static str, Bytes)> = Vec::new();
        for sheet in self.schedule.sheets.iter() {
            let path = Locator::parse(sheet.path).expect("a plain name");
            let unbound = device.unbound.iter().map(|(slot, (files, _))| (SLOTS[*slot], files));
            let bound = device.bound.iter().map(|bound| (SLOTS[bound.slot], &bound.files));
            for (prefix, files) in bound.chain(unbound) {
                let prefix = Locator::parse(prefix).expect("a plain name");
                let Some(below) = below(&path, &prefix) else { continue };
                texts.extend(files.all().remove(&below).map(|text| (sheet.path, text)));
            }
            if path.as_str().contains('/') {
                texts.extend(device.files.all().remove(&path).map(|text| (sheet.path, text)));
            }
        }
        self.signed.forget_unsent(number);
        for (path, text) in texts {
            self.oracle.carried(path, units(&String::from_utf8_lossy(&text)));
        }
    }

    /// Lets all directories be there.
    pub(super) fn bring_back(&mut self) {
        for device in self.devices.values_mut() {
            device.bound.iter_mut().for_each(|bound| bound.is_absent = false);
        }
    }

    /// Lets a user or an agent do something to a file in the directory where it belongs.
    pub(super) fn edit_in_directories(&mut self, number: usize, action: Action) {
        let Some(device) = self.devices.get(&number) else { return };
        let (agent, is_secret) = (self.schedule.agent(action), self.schedule.is_secret(action));
        let random = stream(action.seed, Stream::Users);
        let intention =
            Intention::new(&self.schedule.sheets, number, action.number, device.is_full(), false, random);
        // The verbs use the first directory of a prefix.
        let choice = match agent {
            Some(_) => 0,
            None => stream(action.seed, Stream::Homes).between(0, 3),
        };
        let Some(place) = device.place(intention.sheet.path, choice) else { return };
        let found = intention.find(|at| place.files.text(&place.name_of(at)));
        let before = found.as_ref().map(|found| found.text.clone());
        let Some(edit) = intention.decide(found, place.count()) else { return };
        match agent {
            Some(agent) => {
                let memory = device.memory_of(agent);
                if !block_on(write(&memory, &edit, before.as_deref(), &mut stream(action.seed, Stream::Disk)))
                {
                    return;
                }
            }
            None => save(&place.files, &place.name_of(&edit.at), &edit),
        }
        let actor = place.actor;
        // The verbs sign a content. A sync under way may merge it at the same moment, and then the merge has no signature.
        let agent_of_history = agent.filter(|_| !device.is_syncing());
        let waits = actor == device.actor && device.bound.iter().any(|bound| bound.is_around(edit.file));
        if let Some(unit) = edit.added().filter(|_| is_secret) {
            self.secrets.hold(unit);
            self.note(format!("{number}: the next line is a secret"));
        }
        self.signed.wrote(number, &edit, agent_of_history);
        edit.tell(&mut self.oracle, actor);
        // A text that waits in the memory directory for a bound directory is merged into it without a base.
        if let Change::Saved(text, _) = &edit.change
            && waits
        {
            self.oracle.carried(edit.file, units(&String::from_utf8_lossy(text)));
        }
        let by = agent.map(|agent| format!(" by {agent}")).unwrap_or_default();
        self.note(format!("{number}: {}{by}", edit.shown()));
    }
}

/// Does an edit as a user's editor does.
fn save(files: &Storage, at: &Locator, edit: &Edit) {
    match &edit.change {
        Change::Saved(text, how) => files.save(at, text.clone(), *how),
        Change::Deleted => files.remove(at),
        Change::Renamed(_) => {}
    }
}

/// Does an edit with the verbs of an agent; returns false if another process was in the way.
async fn write(memory: &Memory, edit: &Edit, before: Option<&str>, random: &mut Random) -> bool {
    let at = Locator::parse(&edit.at).expect("a plain name");
    let done = match (&edit.change, before) {
        (Change::Deleted, _) => memory.delete(&at, haversack::Depth::Single).await,
        (Change::Saved(text, _), None) => memory.create(&at, text.clone()).await.map(drop),
        (Change::Saved(text, _), Some(before)) => {
            let added = text.strip_prefix(before.as_bytes()).filter(|_| random.coin());
            match added {
                Some(added) => memory.append(&at, Bytes::copy_from_slice(added)).await.map(drop),
                None => memory.str_replace(&at, before, &String::from_utf8_lossy(text)).await.map(drop),
            }
        }
        (Change::Renamed(_), _) => return false,
    };
    done.is_ok()
}
