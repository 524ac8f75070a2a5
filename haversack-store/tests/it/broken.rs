//! The suite is tested too: every case must fail a backend that is broken on purpose.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use async_trait::async_trait;
use futures_lite::StreamExt;
use haversack_store::conformance::{CASES, Outcome};
use haversack_store::{
    Appended, Backend, BackendExt, Bytes, Capabilities, Condition, Durability, Error, ErrorKind, Fingerprint,
    Guard, InMemory, Info, Listing, Locator, Object, Operation, Page, Pages, Result, Version, Written,
    forward_backend,
};

/// The defect of a backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Defect {
    StripsCarriageReturns,
    KeepsLongerTails,
    ReadsNothingAsEmpty,
    GivesOneVersion,
    AppendsByReplacing,
    DropsUnsyncedAppends,
    PreparesInHalves,
    TruncatesLargeObjects,
    ForgetsOnReopening,
    FingerprintsBySize,
    IgnoresConditions,
    RefusesRepeatedDeletes,
    ListsRecursively,
    RefusesToListNothing,
    CountsCharacters,
    RefusesRepeatedMkdir,
    PretendsSuccess,
    ReadsDirectories,
    RenamesByCopying,
    RenamesOverOthers,
    RenamesNothing,
    ExchangesByWriting,
    ScansBackwards,
    ForgetsWhereToResume,
    StopsAfterOnePage,
    ShowsOwnNames,
    SpeaksAsciiOnly,
    HoldsShortNamesOnly,
    ChecksThenWrites,
    AppendsWithoutLock,
    WritesInHalves,
    LocksNobodyOut,
}

/// The broken backend that each case is known to catch.
const CAUGHT_BY: &[(Defect, &[&str])] = &[
    (Defect::StripsCarriageReturns, &["exact_bytes", "text"]),
    (Defect::KeepsLongerTails, &["overwriting"]),
    (Defect::ReadsNothingAsEmpty, &["reading_nothing"]),
    (Defect::GivesOneVersion, &["versions"]),
    (Defect::AppendsByReplacing, &["appending"]),
    (Defect::DropsUnsyncedAppends, &["barrier"]),
    (Defect::PreparesInHalves, &["preparing"]),
    (Defect::TruncatesLargeObjects, &["large_object"]),
    (Defect::ForgetsOnReopening, &["survives_reopening"]),
    (Defect::FingerprintsBySize, &["fingerprints"]),
    (
        Defect::IgnoresConditions,
        &["create_if_absent", "update_if_match", "conditional_delete", "deleting_only_directories"],
    ),
    (Defect::RefusesRepeatedDeletes, &["deleting"]),
    (Defect::ListsRecursively, &["listing_children"]),
    (Defect::RefusesToListNothing, &["listing_nothing"]),
    (Defect::CountsCharacters, &["informing"]),
    (Defect::RefusesRepeatedMkdir, &["making_directories"]),
    (Defect::PretendsSuccess, &["full_directories_stay", "case_twins", "unportable_names"]),
    (Defect::ReadsDirectories, &["files_are_not_directories"]),
    (Defect::RenamesByCopying, &["renaming", "renaming_directories"]),
    (Defect::RenamesOverOthers, &["renaming_never_clobbers"]),
    (Defect::RenamesNothing, &["renaming_nothing"]),
    (Defect::ExchangesByWriting, &["exchanging"]),
    (Defect::ScansBackwards, &["scanning"]),
    (Defect::ForgetsWhereToResume, &["scanning_resumes"]),
    (Defect::StopsAfterOnePage, &["scanning_many"]),
    (Defect::ShowsOwnNames, &["own_names_are_hidden"]),
    (Defect::SpeaksAsciiOnly, &["unicode_is_one", "odd_names_are_literal"]),
    (Defect::HoldsShortNamesOnly, &["longest_names"]),
    (Defect::ChecksThenWrites, &["counter_of_sixteen", "racing_creates"]),
    (Defect::AppendsWithoutLock, &["racing_appends"]),
    (Defect::WritesInHalves, &["readers_never_see_half"]),
    (Defect::LocksNobodyOut, &["locks_exclude"]),
];

#[test]
fn every_case_fails_a_broken_backend() {
    for case in CASES {
        let (defect, _) = CAUGHT_BY
            .iter()
            .find(|(_, cases)| cases.contains(&case.name))
            .unwrap_or_else(|| panic!("no broken backend is known to fail {}", case.name));
        let shared = Arc::new(InMemory::new());
        let subject = move || -> Arc<dyn Backend> {
            let inner = match defect {
                Defect::ForgetsOnReopening => Arc::new(InMemory::new()),
                _ => shared.clone(),
            };
            Arc::new(Broken { inner, defect: *defect })
        };
        let outcome = case.run(&subject);
        assert!(matches!(outcome, Outcome::Failed(_)), "{} on {defect:?}: {outcome:?}", case.name);
    }
}

#[test]
fn every_defect_is_caught_by_a_case_that_exists() {
    for (defect, cases) in CAUGHT_BY {
        for name in *cases {
            assert!(CASES.iter().any(|case| case.name == *name), "{defect:?} names {name}");
        }
    }
}

/// A memory that breaks one promise.
#[derive(Debug)]
struct Broken {
    inner: Arc<InMemory>,
    defect: Defect,
}

impl Broken {
    fn has(&self, defect: Defect) -> bool {
        self.defect == defect
    }

    fn refuse<T>(&self, operation: Operation, locator: &Locator) -> Result<T> {
        Err(Error::new(ErrorKind::Internal, operation, locator, format!("{:?}", self.defect)))
    }
}

/// Long enough for another thread to get in between.
fn pause() {
    thread::sleep(Duration::from_micros(200));
}

#[async_trait]
impl Backend for Broken {
    async fn read(&self, locator: &Locator) -> Result<Object> {
        let empty = Object { bytes: Bytes::new(), version: Version::new("none") };
        let mut object = match self.inner.read(locator).await {
            Err(error) if error.kind() == ErrorKind::NotFound && self.has(Defect::ReadsNothingAsEmpty) => {
                empty
            }
            Err(error) if error.kind() == ErrorKind::Invalid && self.has(Defect::ReadsDirectories) => empty,
            result => result?,
        };
        if self.has(Defect::StripsCarriageReturns) {
            object.bytes = object.bytes.iter().copied().filter(|byte| *byte != b'\r').collect();
        }
        if self.has(Defect::GivesOneVersion) {
            object.version = Version::new("1");
        }
        Ok(object)
    }

    async fn write(&self, locator: &Locator, mut bytes: Bytes, mut condition: Condition) -> Result<Written> {
        match self.defect {
            Defect::IgnoresConditions => condition = Condition::Any,
            Defect::KeepsLongerTails => {
                if let Ok(old) = self.inner.read(locator).await
                    && old.bytes.len() > bytes.len()
                {
                    bytes = [&bytes[..], &old.bytes[bytes.len()..]].concat().into();
                }
            }
            Defect::TruncatesLargeObjects => bytes.truncate(32 << 20),
            Defect::HoldsShortNamesOnly if locator.as_str().len() > 255 => {
                return self.refuse(Operation::Write, locator);
            }
            Defect::ChecksThenWrites => {
                let current = self.inner.read(locator).await.ok().map(|object| object.version);
                let holds = match &condition {
                    Condition::Any => true,
                    Condition::Absent => current.is_none(),
                    Condition::Matches(version) => current.as_ref() == Some(version),
                };
                if !holds {
                    return Err(Error::new(ErrorKind::Conflict, Operation::Write, locator, "not so"));
                }
                pause();
                condition = Condition::Any;
            }
            Defect::WritesInHalves => {
                let half = bytes.slice(..bytes.len() / 2);
                let _ = self.inner.write(locator, half, condition).await?;
                pause();
                condition = Condition::Any;
            }
            _ => {}
        }
        let mut written = match self.inner.write(locator, bytes, condition).await {
            Err(error) if error.kind() == ErrorKind::Invalid && self.has(Defect::PretendsSuccess) => {
                Written { version: Version::new("pretended"), displaced: None }
            }
            result => result?,
        };
        if self.has(Defect::GivesOneVersion) {
            written.version = Version::new("1");
        }
        Ok(written)
    }

    async fn prepare(&self, mut objects: Vec<(Locator, Bytes)>) -> Result<()> {
        if self.has(Defect::PreparesInHalves) {
            objects.iter_mut().for_each(|(_, bytes)| bytes.truncate(bytes.len() / 2));
        }
        self.inner.prepare(objects).await
    }

    async fn append(&self, locator: &Locator, bytes: Bytes, durability: Durability) -> Result<Appended> {
        match self.defect {
            Defect::AppendsByReplacing => {
                let _ = self.inner.write(locator, bytes, Condition::Any).await?;
                Ok(Appended { offset: 0, displaced: None })
            }
            Defect::DropsUnsyncedAppends if durability == Durability::AtBarrier => {
                Ok(Appended { offset: 0, displaced: None })
            }
            Defect::AppendsWithoutLock => {
                let old = self.inner.read(locator).await.map(|object| object.bytes).unwrap_or_default();
                pause();
                let whole = [&old[..], &bytes[..]].concat();
                let _ = self.inner.write(locator, whole.into(), Condition::Any).await?;
                Ok(Appended { offset: old.len() as u64, displaced: None })
            }
            Defect::PretendsSuccess => Ok(Appended { offset: 0, displaced: None }),
            _ => self.inner.append(locator, bytes, durability).await,
        }
    }

    async fn list(&self, locator: &Locator) -> Result<Listing> {
        let mut listing = self.inner.list(locator).await?;
        if self.has(Defect::ListsRecursively) {
            let mut at = 0;
            while at < listing.entries.len() {
                let below = self.inner.list(&listing.entries[at].locator.clone()).await?;
                listing.entries.extend(below.entries);
                at += 1;
            }
        }
        if self.has(Defect::RefusesToListNothing) && listing.entries.is_empty() {
            return self.refuse(Operation::List, locator);
        }
        Ok(listing)
    }

    fn scan<'a>(&'a self, prefix: &Locator, after: Option<&Locator>) -> Pages<'a> {
        let after = after.filter(|_| !self.has(Defect::ForgetsWhereToResume));
        let pages = self.inner.scan(prefix, after);
        let own = Locator::reserved(".haversack").expect("ours");
        match self.defect {
            Defect::StopsAfterOnePage => Box::pin(pages.take(1)),
            Defect::ShowsOwnNames => Box::pin(pages.chain(self.inner.scan(&own, None))),
            defect => Box::pin(pages.map(move |page| {
                let Page { mut infos, odd } = page?;
                if defect == Defect::ScansBackwards {
                    infos.reverse();
                }
                if defect == Defect::SpeaksAsciiOnly {
                    for info in &mut infos {
                        let ascii: String = info.locator.as_str().chars().filter(char::is_ascii).collect();
                        info.locator = Locator::parse(&ascii).expect("still a locator");
                    }
                }
                Ok(Page { infos, odd })
            })),
        }
    }

    async fn info(&self, locator: &Locator) -> Result<Info> {
        let mut info = self.inner.info(locator).await?;
        if self.has(Defect::FingerprintsBySize) {
            info.fingerprint = Fingerprint::new(&[info.size_bytes], i64::MIN);
        }
        if self.has(Defect::CountsCharacters)
            && let Ok(Some(text)) = self.inner.read_text(locator).await
        {
            info.size_bytes = text.chars().count() as u64;
        }
        Ok(info)
    }

    async fn delete(&self, locator: &Locator, condition: Condition) -> Result<()> {
        if self.has(Defect::RefusesRepeatedDeletes) && !self.inner.exists(locator).await? {
            return self.refuse(Operation::Delete, locator);
        }
        let condition = if self.has(Defect::IgnoresConditions) { Condition::Any } else { condition };
        match self.inner.delete(locator, condition).await {
            Err(_) if self.has(Defect::PretendsSuccess) => Ok(()),
            result => result,
        }
    }

    async fn rename(&self, from: &Locator, to: &Locator) -> Result<()> {
        match self.defect {
            Defect::RenamesByCopying => {
                let object = self.inner.read(from).await?;
                self.inner.write(to, object.bytes, Condition::Absent).await.map(drop)
            }
            Defect::RenamesOverOthers if self.inner.exists(to).await? && from != to => {
                self.inner.delete(to, Condition::Any).await?;
                self.inner.rename(from, to).await
            }
            Defect::RenamesNothing => Ok(()),
            _ => self.inner.rename(from, to).await,
        }
    }

    async fn exchange(&self, one: &Locator, other: &Locator) -> Result<()> {
        match self.defect {
            Defect::ExchangesByWriting => {
                let (first, second) = (self.inner.read(one).await?, self.inner.read(other).await?);
                let _ = self.inner.write(one, second.bytes, Condition::Any).await?;
                self.inner.write(other, first.bytes, Condition::Any).await.map(drop)
            }
            _ => self.inner.exchange(one, other).await,
        }
    }

    async fn mkdir(&self, locator: &Locator) -> Result<()> {
        if self.has(Defect::RefusesRepeatedMkdir) && self.inner.exists(locator).await? {
            return self.refuse(Operation::Mkdir, locator);
        }
        self.inner.mkdir(locator).await
    }

    async fn lock(&self, name: &str, wait: Duration) -> Result<Guard> {
        if self.has(Defect::LocksNobodyOut) {
            return Ok(Guard::new(()));
        }
        self.inner.lock(name, wait).await
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { durable: true, ..self.inner.capabilities() }
    }

    forward_backend!(self => self.inner; barrier, touch_mark, conflict_strategy);
}
