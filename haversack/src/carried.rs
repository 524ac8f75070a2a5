//! Brings a directory of a memory together with a storage that has no log: a memory store of Anthropic's.
//!
//! For each file that the memory, the storage or the last agreement has:
//!
//! 1. Equal on both sides: they agree on it.
//! 2. Changed on one side only: the other side gets it, if it is still what we saw.
//! 3. Changed on both sides: both get the merge by kind. A change wins over a deletion.
//!
//! The last agreement is a copy of each file, in the device's own state, with the version that the storage had. A process that dies in between repeats
//! what it did: files that are equal then agree without a merge.
//!
//! # Invariants
//! 1. A change of either side is on both sides afterwards, or is reported as held back (`both_sides_edits_are_merged`, `secrets_stay_here`).
//! 2. A storage that is read only is never written (`read_only_storage_is_never_written`).
//! 3. Very many deletions wait (`emptied_storage_deletes_nothing`).
//! 4. A write that was overtaken is left for the next time, and overwrites nothing.

use std::collections::{BTreeMap, BTreeSet};

use haversack_store::{
    Backend, BackendExt, Bytes, Condition, Error as StoreError, ErrorKind, Locator, Operation, Version,
};

use crate::error::Reason;
use crate::kind::Kinds;
use crate::memory::{Change, Memory};
use crate::merge::{Side, conflict_name, merge};
use crate::sync::Gate;

/// The record of the storage's versions.
const VERSIONS: &str = "versions.json";

/// The directory of the last agreement's files.
const FILES: &str = "files";

/// As many deletions are always made; more only if they are no more than a quarter of the files.
const FEW_DELETIONS: usize = 8;

/// The permitted access to a storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Changes go both ways.
    ReadAndWrite,
    /// The storage is only read.
    ReadOnly,
}

/// The two sides, and what they agreed on.
#[derive(Clone, Copy)]
pub struct Carried<'a> {
    /// The memory.
    pub memory: &'a Memory,
    /// The directory of the memory.
    pub prefix: &'a Locator,
    /// The storage.
    pub storage: &'a dyn Backend,
    /// A place of this device for the last agreement.
    pub agreement: &'a dyn Backend,
    /// The kinds of memory, which decide how files merge.
    pub kinds: &'a Kinds,
    /// Holds files back that may not leave.
    pub gate: &'a dyn Gate,
    /// The access to the storage.
    pub access: Access,
    /// The names of this device and the storage in notes of merges.
    pub names: [&'a str; 2],
}

/// The result. Files have their names in the memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CarryReport {
    /// Files that the storage got.
    pub sent: Vec<Locator>,
    /// Files that the memory got.
    pub received: Vec<Locator>,
    /// Files that were deleted, on either side.
    pub deleted: Vec<Locator>,
    /// Files that stay where they are, with the reason.
    pub held: Vec<(Locator, String)>,
    /// Files that were changed meanwhile: the next time takes them.
    pub overtaken: Vec<Locator>,
}

/// One file: what the sides and the last agreement have.
struct File {
    below: Locator,
    here: Option<Bytes>,
    there: Option<(Bytes, Version)>,
    base: Option<Bytes>,
}

/// The step for one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Agree,
    Send,
    Receive,
    DeleteHere,
    DeleteThere,
    Merge,
}

fn decide(file: &File) -> Step {
    let there = file.there.as_ref().map(|(bytes, _)| bytes);
    let (here, base) = (file.here.as_ref(), file.base.as_ref());
    match (here, there) {
        _ if here == there => Step::Agree,
        (None, Some(_)) if there == base => Step::DeleteThere,
        (Some(_), None) if here == base => Step::DeleteHere,
        (Some(_), Some(_)) if there == base => Step::Send,
        (Some(_), Some(_)) if here == base => Step::Receive,
        (Some(_), Some(_)) => Step::Merge,
        // A change wins over a deletion, and a new file over nothing.
        (Some(_), None) => Step::Send,
        (None, _) => Step::Receive,
    }
}

/// Brings both sides together.
pub async fn carry(carried: Carried<'_>) -> Result<CarryReport, StoreError> {
    let mut versions = remembered(carried.agreement).await?;
    let mut files = Vec::new();
    let listed = listed(&carried).await?;
    for below in names(&carried, &listed).await? {
        files.push(read(&carried, &versions, &listed, below).await?);
    }
    let mut report = CarryReport::default();
    let known = files.iter().filter(|file| file.base.is_some()).count();
    let too_many = |step: Step| {
        let deletions = files.iter().filter(|file| decide(file) == step).count();
        deletions > FEW_DELETIONS && deletions * 4 > known
    };
    let (waits_here, waits_there) = (too_many(Step::DeleteHere), too_many(Step::DeleteThere));
    for file in files {
        let at = carried.at(&file.below)?;
        let step = decide(&file);
        let writes = matches!(step, Step::Send | Step::DeleteThere | Step::Merge);
        if step == Step::DeleteHere && waits_here || step == Step::DeleteThere && waits_there {
            let why = "very many files are gone on the other side, so none of them was deleted".to_owned();
            report.held.push((at, why));
            continue;
        }
        if writes && carried.access == Access::ReadOnly && step != Step::Merge {
            report.held.push((at, "the memory store is only read".to_owned()));
            continue;
        }
        let done = match carried.carry_out(step, &file, &at, &mut report).await {
            Ok(done) => done,
            Err(error) if error.kind() == ErrorKind::Conflict => {
                report.overtaken.push(at);
                continue;
            }
            Err(error) if error.kind() == ErrorKind::Invalid => {
                report.held.push((at, error.message().to_owned()));
                continue;
            }
            Err(error) => return Err(error),
        };
        let Some((content, version)) = done else { continue };
        carried.agree(&file, content.as_ref()).await?;
        match version {
            Some(version) => versions.insert(file.below.to_string(), version.to_string()),
            None => versions.remove(file.below.as_str()),
        };
    }
    remember(carried.agreement, &versions).await?;
    Ok(report)
}

/// The common content of both sides after a step; `None` if they do not agree.
type Agreed = Option<(Option<Bytes>, Option<Version>)>;

impl Carried<'_> {
    fn at(&self, below: &Locator) -> Result<Locator, StoreError> {
        self.prefix
            .child(below.as_str())
            .map_err(|reason| StoreError::invalid(Operation::Write, below, reason))
    }

    async fn carry_out(
        &self,
        step: Step,
        file: &File,
        at: &Locator,
        report: &mut CarryReport,
    ) -> Result<Agreed, StoreError> {
        let version = file.there.as_ref().map(|(_, version)| version.clone());
        match step {
            Step::Agree => Ok(Some((file.here.clone(), version))),
            Step::Send => {
                let Some(content) = &file.here else { return Ok(None) };
                if let Some(hold) = self.gate.holds(at, content) {
                    report.held.push((at.clone(), hold.why));
                    return Ok(None);
                }
                let version = self.write_there(&file.below, content.clone(), version).await?;
                report.sent.push(at.clone());
                Ok(Some((Some(content.clone()), Some(version))))
            }
            Step::Receive => {
                let content = file.there.as_ref().map(|(content, _)| content.clone());
                self.write_here(at, file.here.clone(), content.clone()).await?;
                report.received.push(at.clone());
                Ok(Some((content, version)))
            }
            Step::DeleteHere => {
                self.write_here(at, file.here.clone(), None).await?;
                report.deleted.push(at.clone());
                Ok(Some((None, None)))
            }
            Step::DeleteThere => {
                let condition = version.map_or(Condition::Any, Condition::Matches);
                self.storage.delete(&file.below, condition).await?;
                report.deleted.push(at.clone());
                Ok(Some((None, None)))
            }
            Step::Merge => self.merge(file, at, report).await,
        }
    }

    async fn merge(&self, file: &File, at: &Locator, report: &mut CarryReport) -> Result<Agreed, StoreError> {
        let (Some(here), Some((there, version))) = (&file.here, &file.there) else { return Ok(None) };
        let all = [Some(here), Some(there), file.base.as_ref()];
        let rule = self.kinds.rule(at, all.into_iter().flatten().map(|bytes| &bytes[..]));
        let [ours, theirs] = self.names;
        let (ours, theirs) =
            (Side { bytes: &here[..], device: ours }, Side { bytes: &there[..], device: theirs });
        let merged = merge(rule, file.base.as_deref(), ours, theirs);
        if let Some(hold) = self.gate.holds(at, &merged.bytes) {
            report.held.push((at.clone(), hold.why));
            return Ok(None);
        }
        if let Some(copy) = merged.copy {
            let beside = conflict_name(at, &copy)
                .map_err(|reason| StoreError::invalid(Operation::Write, at, reason))?;
            match self.write_here(&beside, None, Some(copy)).await {
                // It is there since an earlier time.
                Err(error) if error.kind() == ErrorKind::Conflict => {}
                written => written?,
            }
        }
        if merged.bytes != *here {
            self.write_here(at, Some(here.clone()), Some(merged.bytes.clone())).await?;
            report.received.push(at.clone());
        }
        if merged.bytes == *there {
            return Ok(Some((Some(merged.bytes), Some(version.clone()))));
        }
        if self.access == Access::ReadOnly {
            // The storage's version is what both know; the rest of the merge stays here.
            return Ok(Some((Some(there.clone()), Some(version.clone()))));
        }
        let version = self.write_there(&file.below, merged.bytes.clone(), Some(version.clone())).await?;
        report.sent.push(at.clone());
        Ok(Some((Some(merged.bytes), Some(version))))
    }

    async fn write_there(
        &self,
        below: &Locator,
        content: Bytes,
        seen: Option<Version>,
    ) -> Result<Version, StoreError> {
        let condition = seen.map_or(Condition::Absent, Condition::Matches);
        Ok(self.storage.write(below, content, condition).await?.version)
    }

    /// Writes a file of the memory if it is still what we saw.
    async fn write_here(
        &self,
        at: &Locator,
        seen: Option<Bytes>,
        content: Option<Bytes>,
    ) -> Result<(), StoreError> {
        let change = Change::Put { locator: at.clone(), expected: seen, bytes: content };
        match self.memory.batch(&[change]).await {
            Ok(_) => Ok(()),
            Err(error) if matches!(error.reason(), Reason::Changed | Reason::Exists) => {
                let message = "it was changed meanwhile";
                Err(StoreError::new(ErrorKind::Conflict, Operation::Write, at, message))
            }
            Err(error) => Err(error.into_store_error()),
        }
    }

    /// Remembers what both sides have.
    async fn agree(&self, file: &File, content: Option<&Bytes>) -> Result<(), StoreError> {
        if file.base.as_ref() == content {
            return Ok(());
        }
        let place = agreed(&file.below)?;
        match content {
            Some(content) => self.agreement.write(&place, content.clone(), Condition::Any).await.map(drop),
            None => self.agreement.delete(&place, Condition::Any).await,
        }
    }
}

fn agreed(below: &Locator) -> Result<Locator, StoreError> {
    let place = Locator::parse(&format!("{FILES}/{below}"));
    place.map_err(|reason| StoreError::invalid(Operation::Write, below, reason))
}

/// Files of the storage, with their versions.
type Listed = BTreeMap<Locator, Option<Version>>;

async fn listed(carried: &Carried<'_>) -> Result<Listed, StoreError> {
    let page = carried.storage.scan_all(&Locator::root()).await?;
    Ok(page.infos.into_iter().map(|info| (info.locator, info.version)).collect())
}

/// Returns the names of all files, seen from the directory.
async fn names(carried: &Carried<'_>, listed: &Listed) -> Result<BTreeSet<Locator>, StoreError> {
    let files = Locator::parse(FILES).expect("a plain name");
    let mut names: BTreeSet<Locator> = listed.keys().cloned().collect();
    for (backend, prefix) in [(carried.memory.files(), carried.prefix), (carried.agreement, &files)] {
        for locator in backend.list_all(prefix).await? {
            let key = locator.as_str().strip_prefix(prefix.as_str()).unwrap_or(locator.as_str());
            names.extend(Locator::parse(key));
        }
    }
    Ok(names)
}

async fn read(
    carried: &Carried<'_>,
    versions: &BTreeMap<String, String>,
    listed: &Listed,
    below: Locator,
) -> Result<File, StoreError> {
    let base = content(carried.agreement, &agreed(&below)?).await?.map(|(bytes, _)| bytes);
    let here = content(carried.memory.files(), &carried.at(&below)?).await?.map(|(bytes, _)| bytes);
    let known = versions.get(below.as_str());
    let there = match (listed.get(&below), &base) {
        (None, _) => None,
        // A version that both know is not read again.
        (Some(Some(version)), Some(base)) if known.is_some_and(|known| known == version.as_str()) => {
            Some((base.clone(), version.clone()))
        }
        (Some(_), _) => content(carried.storage, &below).await?,
    };
    Ok(File { below, here, there, base })
}

async fn content(backend: &dyn Backend, locator: &Locator) -> Result<Option<(Bytes, Version)>, StoreError> {
    match backend.read(locator).await {
        Ok(object) => Ok(Some((object.bytes, object.version))),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

async fn remembered(agreement: &dyn Backend) -> Result<BTreeMap<String, String>, StoreError> {
    let place = Locator::parse(VERSIONS).expect("a plain name");
    let read = content(agreement, &place).await?;
    // Without it every file is read again, and nothing else.
    Ok(read.and_then(|(bytes, _)| serde_json::from_slice(&bytes).ok()).unwrap_or_default())
}

async fn remember(agreement: &dyn Backend, versions: &BTreeMap<String, String>) -> Result<(), StoreError> {
    let place = Locator::parse(VERSIONS).expect("a plain name");
    let text = serde_json::to_string(versions).unwrap_or_default();
    agreement.write(&place, text.into(), Condition::Any).await.map(drop)
}
