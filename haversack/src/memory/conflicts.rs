//! Conflicts among the files, and how they are settled.

use haversack_store::{BackendExt, EntryKind, ErrorKind, Info, Locator, Object};

use super::redo::{self, OtherWriters, Step};
use super::{MAX_TEXT_BYTES, Memory, Turn};
use crate::conflict::{Conflict, Copy, Keep, find, of_copy, original_name, settle};
use crate::error::{Error, Reason, Result, Verb};
use crate::merge::conflict_name;
use crate::text::NewText;

/// The most names that are tried for a copy that becomes a file of its own.
const MAX_NAMES: usize = 10_000;

/// The conflicts among some files.
#[derive(Debug, Default)]
pub struct Conflicts {
    /// Those that were found, in the order of their locators and places.
    pub found: Vec<Conflict>,
    /// Why files could not be looked at: there may be more in them.
    pub unread: Vec<Error>,
}

/// The result of resolving a conflict.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resolved {
    /// The new name of a copy that stays beside its file.
    pub renamed: Option<Locator>,
    /// The places of texts that another program saved at the same moment.
    pub kept: Vec<Locator>,
}

impl Memory {
    /// Returns the conflicts in a file, or in all files of a directory.
    pub async fn conflicts(&self, below: &Locator) -> Result<Conflicts> {
        let failed = |error| Error::storage(Verb::View, below, error);
        let infos: Vec<Info> = match self.files.scan_all(below).await.map_err(failed)?.infos {
            infos if infos.is_empty() && !below.is_root() => match self.info(Verb::View, below).await? {
                info if info.kind == EntryKind::File => vec![info],
                _ => Vec::new(),
            },
            infos => infos,
        };
        let mut conflicts = Conflicts::default();
        for Info { locator, size_bytes, .. } in infos {
            let is_named = original_name(&locator).is_some();
            if !is_named && size_bytes > MAX_TEXT_BYTES {
                continue;
            }
            let bytes = match self.files.read(&locator).await {
                Ok(object) => object.bytes,
                // It went away meanwhile.
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                Err(error) => {
                    conflicts.unread.push(Error::storage(Verb::View, &locator, error));
                    continue;
                }
            };
            if is_named {
                match self.conflict_of_copy(&locator, &bytes).await {
                    Ok(conflict) => conflicts.found.extend(conflict),
                    Err(error) => conflicts.unread.push(error),
                }
            }
            if let Ok(text) = std::str::from_utf8(&bytes) {
                conflicts.found.extend(find(&locator, text));
            }
        }
        conflicts.found.sort_by(|one, other| one.locator.cmp(&other.locator));
        Ok(conflicts)
    }

    /// Settles a conflict: what is to stay stays, everything else of it goes.
    ///
    /// If its passages have changed when it was found, nothing is done ([`Reason::NoConflict`]); whatever else changed
    /// in the file meanwhile is kept. A copy that is to stay beside its file gets a name of its own.
    pub async fn resolve(&self, conflict: &Conflict, keep: Keep) -> Result<Resolved> {
        match &conflict.copy {
            Some(copy) => self.resolve_copy(conflict, copy, keep).await,
            None => self.resolve_passages(conflict, keep).await,
        }
    }

    async fn resolve_passages(&self, conflict: &Conflict, keep: Keep) -> Result<Resolved> {
        let locator = &conflict.locator;
        let change = |text: &str| {
            let found = find(locator, text).into_iter().find(|found| found.id == conflict.id);
            let found = found.ok_or(Reason::NoConflict)?;
            let passages = found.passages.len();
            let settled = settle(text, &found, keep).ok_or(Reason::NoPassage { passages })?;
            let same = text.bytes().zip(settled.bytes()).take_while(|(one, other)| one == other).count();
            let line = text.as_bytes()[..same].iter().filter(|byte| **byte == b'\n').count() + 1;
            Ok(NewText { text: settled, line })
        };
        self.edit(Verb::Resolve, locator, change).await?;
        Ok(Resolved::default())
    }

    async fn resolve_copy(&self, conflict: &Conflict, copy: &Copy, keep: Keep) -> Result<Resolved> {
        let (verb, locator) = (Verb::Resolve, &conflict.locator);
        let turn = self.turn(verb, locator).await?;
        let there =
            self.object(&copy.locator).await?.ok_or_else(|| Error::new(verb, locator, Reason::NoConflict))?;
        let original = self.object(locator).await?;
        let found = of_copy(
            &copy.locator,
            &there.bytes,
            locator,
            original.as_ref().map(|original| &original.bytes[..]),
        );
        if found.is_none_or(|found| found.id != conflict.id) {
            return Err(Error::new(verb, locator, Reason::NoConflict));
        }
        let gone = Step::Remove { locator: copy.locator.clone(), expected: there.version };
        let steps = match keep {
            Keep::Passage(1) => vec![gone],
            Keep::Passage(2) => {
                let expected = original.map(|original| original.version);
                vec![Step::Put { locator: locator.clone(), expected, bytes: there.bytes }, gone]
            }
            Keep::Passage(_) => return Err(Error::new(verb, locator, Reason::NoPassage { passages: 2 })),
            Keep::Both => {
                let name = self.free_name(&turn, locator).await?;
                let renamed = self.files.rename(&copy.locator, &name).await;
                renamed.map_err(|error| Error::storage(verb, locator, error))?;
                return Ok(Resolved { renamed: Some(name), kept: Vec::new() });
            }
        };
        let report = redo::commit(self, &turn, steps, OtherWriters::PutAside).await?;
        if !report.stayed.is_empty() {
            return Err(Error::new(verb, locator, Reason::Restless));
        }
        Ok(Resolved { renamed: None, kept: report.kept })
    }

    /// Returns a name like `sketch-2.png` that is free.
    async fn free_name(&self, _turn: &Turn, locator: &Locator) -> Result<Locator> {
        let name = locator.name();
        let (stem, extension) = name.split_at(name.rfind('.').filter(|dot| *dot > 0).unwrap_or(name.len()));
        let parent = locator.parent().unwrap_or_else(Locator::root);
        for number in 2..MAX_NAMES {
            let Ok(free) = parent.child(&format!("{stem}-{number}{extension}")) else { break };
            match self.files.info(&free).await {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(free),
                Err(error) => return Err(Error::storage(Verb::Resolve, locator, error)),
            }
        }
        Err(Error::new(Verb::Resolve, locator, Reason::Exists))
    }

    /// Returns the conflict of a file that is named like a copy, if it is one.
    async fn conflict_of_copy(&self, copy: &Locator, content: &[u8]) -> Result<Option<Conflict>> {
        let is_copy_of =
            |original: &Locator| conflict_name(original, content).is_ok_and(|name| name == *copy);
        let mut original = original_name(copy).filter(is_copy_of);
        let is_there = match &original {
            Some(original) => self.object(original).await?.is_some(),
            None => false,
        };
        if !is_there {
            // The name of the copy may be shorter than that of its file.
            let parent = copy.parent().unwrap_or_else(Locator::root);
            let listing = self.files.list(&parent).await;
            let listing = listing.map_err(|error| Error::storage(Verb::View, &parent, error))?;
            let mut files = listing.entries.into_iter().map(|entry| entry.locator);
            original = files.find(is_copy_of).or(original);
        }
        let Some(original) = original else { return Ok(None) };
        let there = self.object(&original).await?;
        Ok(of_copy(copy, content, &original, there.as_ref().map(|there| &there.bytes[..])))
    }

    /// Returns what is at a place; `None` if no file is there.
    async fn object(&self, locator: &Locator) -> Result<Option<Object>> {
        match self.files.read(locator).await {
            Ok(object) => Ok(Some(object)),
            Err(error) => match self.explain(Verb::Resolve, locator, error).await {
                error if matches!(error.reason(), Reason::NotFound | Reason::IsDirectory) => Ok(None),
                error => Err(error),
            },
        }
    }
}
