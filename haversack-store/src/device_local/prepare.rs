//! Writes objects of our own before any reader looks for them: no drafts, and one sync for many of them.
//!
//! A process that dies in the middle leaves some of them, also in part. Their owner knows their names, so nothing is noted
//! and nothing is recovered here.

use std::io;

use bytes::Bytes;

use super::MAX_BATCH_EDITS;
use super::core::{Core, FILE_MODE};
use super::edit::{Edit, How};
use super::fs::Fs;
use super::memo::HashedContent;
use super::trust::Owed;
use super::walk::{self, EntryHandle, Opened};
use crate::backend::Condition;
use crate::error::{Error, Operation, Result};
use crate::locator::Locator;

/// The most files that are prepared before they are made durable; each is open until then.
const MAX_OPEN: usize = 2 * MAX_BATCH_EDITS;

impl<F: Fs> Core<F> {
    /// Writes objects under names of our own, whatever is there.
    pub(super) fn prepare(&self, objects: Vec<(Locator, Bytes)>) -> Result<()> {
        // If no half of a file may be visible, they are written like all others.
        if !self.fs.grows_in_place() {
            return self.write_all(objects);
        }
        let prepared = objects.chunks(MAX_OPEN).try_for_each(|objects| self.prepare_some(objects));
        if prepared.is_err() {
            // If the disk is full, remove the unneeded parts.
            for (locator, _) in &objects {
                if let Ok(place) = walk::find(&self.fs, Operation::Write, locator) {
                    drop(self.fs.unlink(&place.dir, &place.name));
                }
            }
        }
        prepared
    }

    /// Prepares no more than may be open at a time.
    fn prepare_some(&self, objects: &[(Locator, Bytes)]) -> Result<()> {
        let (mut owed, mut opened) = (Owed::default(), Opened::default());
        let create = |(locator, bytes): &(Locator, Bytes)| {
            let place = self.place_to_prepare(locator, &mut owed, &mut opened)?;
            let failed = |error| place.failed(&self.fs, Operation::Write, error);
            let file = self.create_anew(&place).map_err(failed)?;
            self.append_all(&file, bytes).map_err(failed)?;
            Ok(file)
        };
        let files = objects.iter().map(create).collect::<Result<Vec<F::File>>>()?;
        let files: Vec<&F::File> = files.iter().collect();
        for (synced, (locator, _)) in self.fs.sync_files(&files).into_iter().zip(objects) {
            synced.map_err(|error| Error::from_io(Operation::Write, locator.as_str(), error))?;
        }
        let settled = self.trust.settle(&self.fs, owed);
        settled.map_err(|error| Error::from_io(Operation::Write, "", error))
    }

    /// Returns the place of an object, opening its directory only once.
    fn place_to_prepare(
        &self,
        locator: &Locator,
        owed: &mut Owed<F>,
        opened: &mut Opened<F>,
    ) -> Result<EntryHandle<F>> {
        if let Some(place) = opened.find(&self.fs, Operation::Write, locator) {
            return place;
        }
        let mut way = Vec::new();
        let place = walk::find_or_make(&self.fs, &self.twins, Operation::Write, locator, &mut way)?;
        let known = self.trust.question(&self.fs, &way, owed).and_then(|_| owed.add(&self.fs, &place.dir));
        known.map_err(|error| place.failed(&self.fs, Operation::Write, error))?;
        opened.note(&place);
        Ok(place)
    }

    fn create_anew(&self, place: &EntryHandle<F>) -> io::Result<F::File> {
        let create = || self.fs.create(&place.dir, &place.name, FILE_MODE);
        match create() {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                self.fs.unlink(&place.dir, &place.name).and_then(|()| create())
            }
            created => created,
        }
    }

    fn write_all(&self, objects: Vec<(Locator, Bytes)>) -> Result<()> {
        let edit = |(locator, bytes)| {
            let HashedContent { bytes, digest: wrote, version, .. } = HashedContent::by_hashing(bytes);
            Edit { locator, bytes, how: How::Write { wrote, version, condition: Condition::Any } }
        };
        let edits: Vec<Edit> = objects.into_iter().map(edit).collect();
        for edits in edits.chunks(MAX_BATCH_EDITS) {
            for ended in self.apply(edits) {
                ended.result?;
            }
        }
        Ok(())
    }
}
