//! Giving objects other names: a batch of them under one lock, each directory synced once.

use super::core::Core;
use super::fs::{Fs, NodeKind, Target};
use super::note::{self, UnderWay};
use super::trust::Owed;
use super::walk::{self, EntryHandle, Opened, expect_file};
use crate::backend::Condition;
use crate::error::{Error, ErrorKind, Operation, Result};
use crate::locator::Locator;
use crate::refuse::{check_rename, condition_failed, is_a_directory};

/// A change of names.
#[derive(Clone, Debug)]
pub(super) enum Relocation {
    /// An object or a directory moves to a free name.
    Move { from: Locator, to: Locator },
    /// Two objects change places.
    Exchange { one: Locator, other: Locator },
}

impl Relocation {
    /// Returns the names that it is about.
    fn names(&self) -> [&Locator; 2] {
        match self {
            Relocation::Move { from, to } => [from, to],
            Relocation::Exchange { one, other } => [one, other],
        }
    }

    /// Returns what it is called, and the place that an error names.
    fn operation(&self) -> (Operation, &Locator) {
        match self {
            Relocation::Move { from, .. } => (Operation::Rename, from),
            Relocation::Exchange { one, .. } => (Operation::Exchange, one),
        }
    }
}

/// The common data of one batch's changes.
struct Batch<F: Fs> {
    owed: Owed<F>,
    /// Directories that something is taken from.
    sources: Opened<F>,
    /// Directories that something is moved to: they are there to stay.
    targets: Opened<F>,
}

impl<F: Fs> Core<F> {
    /// Carries out changes of names one after the other and makes them durable together.
    pub(super) fn relocate(&self, relocations: &[Relocation]) -> Vec<Result<()>> {
        let mut results = Vec::new();
        let locked = self.locked(|| {
            let (sources, targets) = (Opened::default(), Opened::default());
            let mut batch = Batch { owed: Owed::default(), sources, targets };
            let names = relocations.iter().flat_map(Relocation::names);
            let under_way: Vec<UnderWay> = names.map(|at| UnderWay::Name { at: at.clone() }).collect();
            let noting = |error| Error::from_io(Operation::Rename, "the note", error);
            self.fs.set_note(&note::encode(&under_way)).map_err(noting)?;
            results.extend(relocations.iter().map(|relocation| match relocation {
                Relocation::Move { from, to } => self.move_to(from, to, &mut batch),
                Relocation::Exchange { one, other } => self.exchange_places(one, other, &mut batch),
            }));
            let settled = self.trust.settle(&self.fs, batch.owed);
            settled.map_err(|error| Error::from_io(Operation::Rename, "", error))?;
            self.fs.set_note(&[]).map_err(noting)
        });
        let Err(error) = locked else { return results };
        // Report no move as durable; refused moves stay refused.
        results.resize_with(relocations.len(), || Ok(()));
        let answers = results.into_iter().zip(relocations).map(|(result, relocation)| {
            let (operation, place) = relocation.operation();
            let refused = || Error::new(error.kind(), operation, place, error.message());
            result.and_then(|()| Err(refused().with_source(error.to_string())))
        });
        answers.collect()
    }

    fn move_to(&self, from: &Locator, to: &Locator, batch: &mut Batch<F>) -> Result<()> {
        check_rename(from, to)?;
        let operation = Operation::Rename;
        let source = self.find(operation, from, &mut batch.sources)?;
        let stat = self.fs.stat(&source.dir, &source.name);
        let stat = stat.map_err(|error| source.failed(&self.fs, operation, error))?;
        if stat.kind != NodeKind::Directory {
            expect_file(operation, from, stat.kind)?;
        }
        let mut way = Vec::new();
        let target = match batch.targets.find(&self.fs, operation, to) {
            Some(target) => target?,
            None => walk::find_or_make(&self.fs, &self.twins, operation, to, &mut way)?,
        };
        if self.fs.stat(&target.dir, &target.name).is_ok() {
            return Err(condition_failed(operation, to, &Condition::Absent));
        }
        let moving = (from.parent() == to.parent()).then_some(source.name.as_str());
        let now = self.fs.stat_dir(&target.dir).map_err(|error| target.failed(&self.fs, operation, error))?;
        self.check_new(operation, &target, &now, moving)?;
        // Before the old name goes, the directories that lead to the new one must be there to stay.
        self.settle(operation, to, &way, None)?;
        batch.targets.note(&target);
        self.fs
            .rename(&source.dir, &source.name, &target.dir, &target.name, Target::Free)
            .map_err(|error| target.failed(&self.fs, operation, error))?;
        if stat.kind == NodeKind::Directory {
            batch.sources.forget();
            batch.targets.forget();
        }
        let now = batch.owed.add(&self.fs, &target.dir);
        self.twins.created(to, now.as_ref().ok(), &target.name);
        now.map_err(|error| target.failed(&self.fs, operation, error))?;
        batch.owed.add(&self.fs, &source.dir).map_err(|error| source.failed(&self.fs, operation, error))?;
        Ok(())
    }

    /// Returns the place of `locator`, opening its directory only once for the batch.
    fn find(
        &self,
        operation: Operation,
        locator: &Locator,
        opened: &mut Opened<F>,
    ) -> Result<EntryHandle<F>> {
        if let Some(place) = opened.find(&self.fs, operation, locator) {
            return place;
        }
        let place = walk::find(&self.fs, operation, locator)?;
        opened.note(&place);
        Ok(place)
    }

    fn exchange_places(&self, one: &Locator, other: &Locator, batch: &mut Batch<F>) -> Result<()> {
        let operation = Operation::Exchange;
        let mut find = |locator: &Locator| -> Result<EntryHandle<F>> {
            if locator.is_root() {
                return Err(is_a_directory(operation, locator));
            }
            let place = self.find(operation, locator, &mut batch.sources)?;
            let stat = self.fs.stat(&place.dir, &place.name);
            let stat = stat.map_err(|error| place.failed(&self.fs, operation, error))?;
            expect_file(operation, locator, stat.kind)?;
            Ok(place)
        };
        let (first, second) = (find(one)?, find(other)?);
        if !self.fs.can_exchange() {
            let message = "the filesystem cannot exchange files";
            return Err(Error::new(ErrorKind::Unsupported, operation, one, message));
        }
        self.fs
            .rename(&first.dir, &first.name, &second.dir, &second.name, Target::Exchanged)
            .map_err(|error| second.failed(&self.fs, operation, error))?;
        for place in [&first, &second] {
            batch.owed.add(&self.fs, &place.dir).map_err(|error| place.failed(&self.fs, operation, error))?;
        }
        Ok(())
    }
}
