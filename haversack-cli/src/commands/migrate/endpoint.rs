//! The sources and targets of a migration, and the reasons to refuse one.
//!
//! - A **directory** is a path; this home's own memory is one with its bound directories in their places. A source that is not there is
//!   skipped and counted, unless no source is there. A target is made when something is copied into it.
//! - A **remote** is `file://`, a cloud, or a directory that other machines see: with keep-memory-local none is touched.
//! - Every target but this home's own memory is behind the gate: a file that looks like it holds a secret is not copied. A directory may be
//!   in a synced folder, on a share or in a backup, which we cannot always recognise.
//! - A **memory store of Anthropic's** holds texts only. It is never a store of ours and never a remote.
//! - A **source that holds a store** is read through its log, so that what is copied is what the store holds, whether its plain copies are
//!   complete or not.
//! - A **target that holds a store**, or is part of one, or is this memory's remote, is refused: plain files beside a log would be taken
//!   for edits by hand. The way in is the memory: migrate into its directory, then sync.
//! - A source that contains the target, or the other way round, is refused: running it again would copy the copies.

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use haversack::migrate::Why;
use haversack::store::cloud::{ANTHROPIC, ANTHROPIC_KEY, Refusal};
use haversack::store::{
    Backend, Capabilities, DeviceLocal, Error, ErrorKind, InMemory, Locator, OpenOptions, Operation,
    Prefixed, Registry, block_on, directory_of, recognise,
};
use haversack::sync::{Author, Context, Fetching, Progress, Replica, SyncError, store_at};
use haversack_system::{Backoff, RandomIds, SystemClock};

use crate::error::CommandError;
use crate::home::{mounts, store};
use crate::remote::address::refuse_mistyped;
use crate::remote::credential::{Cloud, Source};
use crate::remote::{Remote, is_vault};
use crate::settings::{Settings, shown};

/// The most that a store may hold to be read through its log: all of it is held in memory.
const MAX_STORE_BYTES: u64 = 1 << 30;

/// The file that identifies a store.
const STORE_FILE: &str = ".haversack/store.json";

/// How the address of a memory store of Anthropic's begins.
const MEMORY_STORE: &str = "anthropic:";

/// A source or target.
pub(super) struct Endpoint {
    /// As the user wrote it.
    text: String,
    what: What,
}

enum What {
    /// A directory, by its real path.
    Directory(PathBuf),
    /// A directory as a remote.
    File(PathBuf),
    /// A container or bucket.
    Cloud(Box<InCloud>),
    /// A memory store of Anthropic's.
    MemoryStore,
}

struct InCloud {
    remote: Remote,
    cloud: Cloud,
    /// Whose it is; empty if that is not told.
    account: String,
    container: String,
    prefix: String,
}

/// A source that can be read.
pub(super) struct Opened {
    pub(super) backend: Arc<dyn Backend>,
    /// Its entries that it cannot serve.
    pub(super) odd: Vec<(String, Why)>,
}

impl Endpoint {
    /// Parses `SOURCE[=PREFIX]`; the last `=` separates.
    pub(super) fn with_prefix(
        settings: &Settings,
        text: &str,
        credential: Option<&str>,
    ) -> Result<(Endpoint, Locator), CommandError> {
        let (place, prefix) = text.rsplit_once('=').unwrap_or((text, ""));
        let locator = Locator::parse(prefix).map_err(|reason| {
            CommandError::user(reason.to_string(), "Name a place in the target: SOURCE=behavioral")
        })?;
        Ok((Endpoint::parse(settings, place, credential)?, locator))
    }

    pub(super) fn parse(
        settings: &Settings,
        text: &str,
        credential: Option<&str>,
    ) -> Result<Endpoint, CommandError> {
        if !text.contains("://") && !text.is_empty() && !text.starts_with(MEMORY_STORE) {
            refuse_mistyped(text)?;
        }
        let what = if text.starts_with(MEMORY_STORE) {
            What::MemoryStore
        } else if let Some(cloud) = Cloud::of(text) {
            What::Cloud(Box::new(InCloud::parse(settings, text, cloud, credential)?))
        } else if text.starts_with("file://") {
            What::File(real(&directory_of(text).map_err(failed)?)?)
        } else if text.contains("://") || text.is_empty() {
            return Err(CommandError::user(
                format!("\"{}\" is no directory and no address of a storage", text.escape_debug()),
                "Name a directory, file:///a/directory, s3://BUCKET/PREFIX, az://CONTAINER/PREFIX or gs://BUCKET/PREFIX",
            ));
        } else {
            What::Directory(real(Path::new(text))?)
        };
        Ok(Endpoint { text: text.to_owned(), what })
    }

    /// Returns the place of this home's remote. A synced folder is a directory like any other here.
    fn of_remote(settings: &Settings, url: &str) -> Result<Endpoint, CommandError> {
        if !is_vault(url) {
            return Endpoint::parse(settings, url, None);
        }
        let directory = real(&directory_of(url).map_err(failed)?)?;
        Ok(Endpoint { text: url.to_owned(), what: What::Directory(directory) })
    }

    /// Returns true if what goes there leaves the memory of this machine.
    pub(super) fn is_remote(&self) -> bool {
        !matches!(self.what, What::Directory(_))
    }

    /// Returns true if other machines see what goes there: a remote, or a directory that is replicated.
    pub(super) fn is_seen_elsewhere(&self, settings: &Settings) -> bool {
        match &self.what {
            What::Directory(directory) => {
                recognise(directory, settings.surroundings.user.as_deref())
                    != haversack::store::DirectoryKind::Local
            }
            What::File(_) | What::Cloud(_) | What::MemoryStore => true,
        }
    }

    /// Returns true if it is this home's own memory, or a part of it: nothing leaves by being copied there.
    pub(super) fn is_own_memory(&self, settings: &Settings) -> Result<bool, CommandError> {
        let What::Directory(directory) = &self.what else { return Ok(false) };
        let mounts = mounts::of(settings)?;
        Ok(is_in_memory(settings, directory)
            || mounts.iter().any(|mount| directory.starts_with(&mount.directory)))
    }

    pub(super) fn is_cloud(&self) -> bool {
        matches!(self.what, What::Cloud(_))
    }

    /// Returns true if it is a memory store of Anthropic's, whose readers know no index of ours.
    pub(super) fn is_memory_store(&self) -> bool {
        matches!(self.what, What::MemoryStore)
    }

    fn directory(&self) -> Option<&Path> {
        match &self.what {
            What::Directory(directory) | What::File(directory) => Some(directory),
            What::Cloud(_) | What::MemoryStore => None,
        }
    }

    /// Returns true if one is in the other, or they are the same.
    fn overlaps(&self, other: &Endpoint) -> bool {
        match (&self.what, &other.what) {
            (What::Cloud(one), What::Cloud(other)) => one.overlaps(other),
            (What::MemoryStore, What::MemoryStore) => self.text == other.text,
            _ => match (self.directory(), other.directory()) {
                (Some(one), Some(other)) => one.starts_with(other) || other.starts_with(one),
                _ => false,
            },
        }
    }

    /// Returns true if it is a directory that does not exist.
    pub(super) fn is_missing(&self) -> bool {
        self.directory().is_some_and(|directory| !directory.exists())
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Opens a source; one that holds a store is read through its log.
    pub(super) fn open_source(
        &self,
        settings: &Settings,
        progress: &dyn Progress,
    ) -> Result<Opened, CommandError> {
        if self.is_missing() {
            return Ok(Opened { backend: Arc::new(InMemory::new()), odd: Vec::new() });
        }
        let backend = match self.directory() {
            Some(directory) => open_directory(settings, directory)?,
            None => self.open(settings)?,
        };
        match block_on(store_at(backend.clone(), &Backoff::new())).map_err(asked)? {
            Some(_) => read_store(self, backend, progress),
            None => Ok(Opened { backend, odd: Vec::new() }),
        }
    }

    /// Opens a target to look at it; one that is not there yet is empty, and is not made.
    pub(super) fn look(&self, settings: &Settings) -> Result<Arc<dyn Backend>, CommandError> {
        if self.is_missing() {
            return Ok(Arc::new(InMemory::new()));
        }
        let backend = self.open(settings)?;
        let mut found = block_on(store_at(backend.clone(), &Backoff::new())).map_err(asked)?;
        if let What::Cloud(place) = &self.what {
            let mut above = place.above();
            while let (None, Some(url)) = (&found, above.next()) {
                found = store_above(settings, &Remote { url, ..place.remote.clone() })?;
            }
        }
        match found {
            None => Ok(backend),
            Some(_) => Err(self.is_a_store(settings, "join it first (haversack join), then ")),
        }
    }

    /// Opens a target, making it if need be.
    pub(super) fn open(&self, settings: &Settings) -> Result<Arc<dyn Backend>, CommandError> {
        let (name, remote) = match &self.what {
            What::Directory(directory) => return open_directory(settings, directory),
            What::File(_) => ("file", Remote::new(self.text.clone(), "")),
            What::Cloud(place) => (place.cloud.backend(), place.remote.clone()),
            What::MemoryStore => return open_memory_store(settings, &self.text),
        };
        open_remote(settings, name, &remote)
    }

    fn is_a_store(&self, settings: &Settings, first: &str) -> CommandError {
        CommandError::user(
            format!(
                "{} belongs to a store: plain files beside its log would be taken for edits by hand",
                self.text
            ),
            format!(
                "Bring them into the memory, and it syncs them: {first}haversack migrate SOURCE {}, then haversack sync",
                shown(&settings.memory())
            ),
        )
    }
}

impl InCloud {
    fn parse(
        settings: &Settings,
        url: &str,
        cloud: Cloud,
        credential: Option<&str>,
    ) -> Result<InCloud, CommandError> {
        let mut remote = match credential {
            // A remote of this home is opened as its syncs open it.
            None => Remote::at(settings, url)?,
            Some(_) => Remote { settings: cloud.place(&settings.cloud), ..Remote::new(url, "") },
        };
        match credential {
            None => {}
            // Use the credential that the home stores; do not store this shell's.
            Some("file") => remote.credential = Some(Source::File),
            Some(asked) => remote.credential = Some(Source::choose(settings, cloud, Some(asked))?),
        }
        let (scheme, rest) = url.split_once("://").unwrap_or_default();
        let (account, path) = match scheme {
            "https" => {
                let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
                (host.split('.').next(), path)
            }
            "az" => (settings.cloud.get(&["AZURE_STORAGE_ACCOUNT_NAME", "AZURE_STORAGE_ACCOUNT"]), rest),
            _ => (None, rest),
        };
        let (container, prefix) = path.split_once('/').unwrap_or((path, ""));
        // A prefix that cannot be parsed is refused on opening.
        let prefix = Locator::parse(prefix).unwrap_or_else(|_| Locator::root());
        Ok(InCloud {
            cloud,
            account: account.unwrap_or_default().to_owned(),
            container: container.to_owned(),
            prefix: prefix.as_str().to_owned(),
            remote,
        })
    }

    fn overlaps(&self, other: &InCloud) -> bool {
        let is_one_account =
            self.account == other.account || self.account.is_empty() || other.account.is_empty();
        // With credentials of different servers one name is two buckets.
        let is_one_server = self.cloud == Cloud::Azure || self.remote.credential == other.remote.credential;
        let is_within = |one: &str, other: &str| {
            one.strip_prefix(other)
                .is_some_and(|rest| other.is_empty() || rest.is_empty() || rest.starts_with('/'))
        };
        self.cloud == other.cloud
            && self.container == other.container
            && is_one_account
            && is_one_server
            && (is_within(&self.prefix, &other.prefix) || is_within(&other.prefix, &self.prefix))
    }

    /// Returns the addresses of what it is in, from the nearest on.
    fn above(&self) -> impl Iterator<Item = String> {
        let depth = self.prefix.split('/').filter(|segment| !segment.is_empty()).count();
        let address = self.remote.url.trim_end_matches('/').to_owned();
        std::iter::successors(Some(address), |url| Some(url.rsplit_once('/')?.0.to_owned()))
            .skip(1)
            .take(depth)
    }
}

/// Refuses what cannot be migrated, before anything is opened.
pub(super) fn refuse<'a>(
    settings: &Settings,
    sources: impl Iterator<Item = &'a Endpoint> + Clone,
    target: &Endpoint,
) -> Result<(), CommandError> {
    if let Some(remote) = Remote::of(settings)?
        && Endpoint::of_remote(settings, &remote.url)?.overlaps(target)
    {
        return Err(target.is_a_store(settings, ""));
    }
    if let Some(directory) = target.directory() {
        if directory.ancestors().any(|above| above.join(STORE_FILE).exists()) {
            return Err(target.is_a_store(settings, "join it first (haversack join), then "));
        }
        if directory.exists() && !directory.is_dir() {
            return Err(CommandError::user(
                format!("{} is a file", target.text),
                "Name a directory for the copies",
            ));
        }
        refuse_homes(settings, directory)?;
    }
    let is_one_there = sources.clone().any(|source| !source.is_missing());
    for source in sources {
        if let Some(directory) = source.directory() {
            let is_skipped = source.is_missing() && is_one_there;
            if !directory.is_dir() && !is_skipped {
                return Err(CommandError::user(
                    format!("there is no directory {}", source.text),
                    "Name one that is there; in SOURCE=PREFIX the last = separates, so a name with one is written \"a=b=\"",
                ));
            }
            refuse_homes(settings, directory)?;
            if target.is_remote()
                && !is_in_memory(settings, directory)
                && let Some(why) = mounts::refused(settings, directory)
            {
                return Err(CommandError::user(
                    format!("{} is not sent anywhere: {why}", source.text),
                    "Name the directory with the memory files alone",
                ));
            }
        }
        if source.overlaps(target) {
            return Err(CommandError::user(
                format!(
                    "{} and {} are in each other, so copies would be copied again",
                    source.text, target.text
                ),
                "Name a target outside of the source",
            ));
        }
    }
    Ok(())
}

/// Returns an error with its cure.
pub(super) fn failed(error: Error) -> CommandError {
    let hint = match (error.operation(), error.kind()) {
        _ if Refusal::of(&error).is_some() => None,
        (Operation::Open, ErrorKind::Invalid) => Some(
            "Correct it: an address is a directory, file:///a/directory, s3://BUCKET/PREFIX, az://CONTAINER/PREFIX or gs://BUCKET/PREFIX",
        ),
        (Operation::Open, ErrorKind::Denied) => {
            Some("Sign in, or say where the credential comes from: --from-credential or --to-credential")
        }
        _ => None,
    };
    let error = CommandError::from(error);
    CommandError { hint: hint.map(str::to_owned).or(error.hint), ..error }
}

/// Returns why a storage could not be asked which store it holds, or for that store's files.
fn asked(trouble: SyncError) -> CommandError {
    match trouble {
        SyncError::Remote(error) => failed(error),
        trouble => trouble.into(),
    }
}

/// Refuses a home: it holds credentials, ids and journals that are this machine's alone.
fn refuse_homes(settings: &Settings, directory: &Path) -> Result<(), CommandError> {
    let home = real(&settings.home)?;
    let is_home = |place: &Path| place.join("state").join("locks").is_dir() && place.join("memory").is_dir();
    let is_around = home.starts_with(directory) || directory.starts_with(&home);
    if is_around && !is_in_memory(settings, directory) || is_home(directory) {
        let memory = if is_home(directory) { directory.join("memory") } else { settings.memory() };
        return Err(CommandError::user(
            format!("{} is a home of Haversack, or around it, and is no memory", shown(directory)),
            format!("The memory is in {}", shown(&memory)),
        ));
    }
    Ok(())
}

fn is_in_memory(settings: &Settings, directory: &Path) -> bool {
    real(&settings.memory()).is_ok_and(|memory| directory.starts_with(memory))
}

/// Opens a directory as everybody opens it who writes to it, so that all of them have the same locks.
fn open_directory(settings: &Settings, directory: &Path) -> Result<Arc<dyn Backend>, CommandError> {
    let mounts = mounts::of(settings)?;
    let own = real(&settings.memory())?;
    let opened = |root: &Path, locks: PathBuf| -> Result<Arc<dyn Backend>, CommandError> {
        Ok(Arc::new(DeviceLocal::open(root, locks).map_err(failed)?))
    };
    for root in directory.ancestors() {
        let locks_of_home = root.parent().map(|home| home.join("state").join("locks"));
        let is_memory = root.file_name().is_some_and(|name| name == "memory");
        let backend = if root == own {
            store::files(settings)
        } else if let Some(locks) = locks_of_home.filter(|locks| is_memory && locks.is_dir()) {
            opened(root, locks)
        } else if mounts.iter().any(|mount| mount.directory == root) || root.join(".haversack").is_dir() {
            opened(root, settings.shared_locks())
        } else {
            continue;
        };
        let below = directory.strip_prefix(root).ok().and_then(Path::to_str);
        return match below.map(Locator::parse) {
            Some(Ok(below)) if below.is_root() => backend,
            Some(Ok(below)) => Ok(Arc::new(Prefixed::new(backend?, below))),
            // It has no name in there; alone it has one.
            Some(Err(_)) | None => break,
        };
    }
    opened(directory, settings.shared_locks())
}

/// Opens a memory store of Anthropic's, with the key of this shell.
fn open_memory_store(settings: &Settings, address: &str) -> Result<Arc<dyn Backend>, CommandError> {
    let locks = shown(&settings.shared_locks());
    let options = OpenOptions { address: address.to_owned(), locks, settings: settings.cloud.clone() };
    let opened = Registry::standard().select(ANTHROPIC, &options, &Capabilities::default());
    opened.map_err(|error| {
        let hint = format!(
            "Name the store as anthropic:memstore_…, and set {ANTHROPIC_KEY} to a key that may use it"
        );
        CommandError { hint: Some(hint), ..CommandError::from(error) }
    })
}

fn open_remote(settings: &Settings, name: &str, remote: &Remote) -> Result<Arc<dyn Backend>, CommandError> {
    let required = Capabilities { create_if_absent: true, ..Capabilities::default() };
    Registry::standard().select(name, &remote.options(settings)?, &required).map_err(failed)
}

/// Returns the store that a part of a container is in, if that can be seen with its credential.
fn store_above(
    settings: &Settings,
    remote: &Remote,
) -> Result<Option<haversack::log::StoreFile>, CommandError> {
    let Some(cloud) = Cloud::of(&remote.url) else { return Ok(None) };
    let backend = open_remote(settings, cloud.backend(), remote)?;
    match block_on(store_at(backend, &Backoff::new())) {
        // A credential for this part only does not see the objects around it.
        Err(SyncError::Remote(error)) if error.kind() == ErrorKind::Denied => Ok(None),
        found => found.map_err(asked),
    }
}

/// Reads the files of a store, and leaves nothing there.
fn read_store(
    place: &Endpoint,
    backend: Arc<dyn Backend>,
    progress: &dyn Progress,
) -> Result<Opened, CommandError> {
    let patience = Backoff::new();
    let author = Author::default();
    let context = Context {
        patience: &patience,
        progress,
        fetching: Fetching::WhenAsked,
        ..Context::new(&SystemClock, &RandomIds, &author)
    };
    let files: Arc<dyn Backend> = Arc::new(InMemory::new());
    block_on(async {
        let mut replica = Replica::open(files.clone(), Arc::new(InMemory::new()), backend, &RandomIds)
            .await
            .map_err(asked)?;
        let mut reports = vec![replica.pull(context).await.map_err(asked)?];
        if replica.log_files().values().map(|content| content.size).sum::<u64>() > MAX_STORE_BYTES {
            return Err(CommandError::user(
                format!("the store at {} holds more than {} GiB", place.text, MAX_STORE_BYTES >> 30),
                "Join it (haversack --home DIRECTORY join URL), and migrate DIRECTORY/memory",
            ));
        }
        let unfetched = replica.unfetched();
        reports.push(replica.fetch(context, &unfetched).await.map_err(asked)?);
        let mut odd = Vec::new();
        for report in reports {
            let refused = report.refused.into_iter();
            odd.extend(refused.map(|locator| {
                (locator.to_string(), Why::Name("not every disk could hold the name".to_owned()))
            }));
            let missing = report.missing.into_iter();
            odd.extend(missing.map(|locator| {
                (locator.to_string(), Why::Failed("the store does not have its content".to_owned()))
            }));
            odd.extend(report.odd.into_iter().map(|(name, why)| (name, Why::Name(why))));
        }
        Ok(Opened { backend: files.clone(), odd })
    })
}

/// Returns the real path of a directory, of which the last parts may not be there yet.
fn real(path: &Path) -> Result<PathBuf, CommandError> {
    let whole = std::path::absolute(path).map_err(|error| CommandError {
        source: Some(error.into()),
        ..CommandError::user(format!("{} cannot be found", shown(path)), "Name the whole path")
    })?;
    for there in whole.ancestors() {
        let Ok(mut real) = there.canonicalize() else { continue };
        for part in whole.strip_prefix(there).unwrap_or(Path::new("")).components() {
            match part {
                Component::ParentDir => {
                    real.pop();
                }
                part => real.push(part),
            }
        }
        return Ok(real);
    }
    Ok(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_cloud(url: &str, account: &str, credential: Option<Source>) -> InCloud {
        let (_, path) = url.split_once("://").expect("an address");
        let (container, prefix) = path.split_once('/').unwrap_or((path, ""));
        InCloud {
            remote: Remote { credential, ..Remote::new(url, "") },
            cloud: Cloud::of(url).expect("a cloud"),
            account: account.to_owned(),
            container: container.to_owned(),
            prefix: prefix.to_owned(),
        }
    }

    #[test]
    fn places_in_one_container_overlap() {
        let cases = [
            ("s3://a", "s3://a", true),
            ("s3://a", "s3://a/x", true),
            ("s3://a/x", "s3://a/x/y", true),
            ("s3://a/x", "s3://a/xy", false),
            ("s3://a/x", "s3://a/y", false),
            ("s3://a", "s3://b", false),
            ("s3://a", "gs://a", false),
            ("az://a", "az://a/x", true),
        ];
        for (one, other, expected) in cases {
            let (one, other) = (in_cloud(one, "", None), in_cloud(other, "", None));
            assert_eq!((one.overlaps(&other), other.overlaps(&one)), (expected, expected));
        }
        let azure = |account| in_cloud("az://a", account, None);
        assert!(azure("mine").overlaps(&azure("")) && !azure("mine").overlaps(&azure("yours")));
        let s3 = in_cloud("s3://a", "", Some(Source::File));
        assert!(!s3.overlaps(&in_cloud("s3://a", "", Some(Source::None))), "two servers");
    }

    #[test]
    fn what_a_place_is_in() {
        let above = |url: &str| in_cloud(url, "", None).above().collect::<Vec<_>>();
        assert_eq!(above("s3://a/x/y/"), ["s3://a/x", "s3://a"]);
        assert!(above("s3://a").is_empty() && above("s3://a/").is_empty());
    }
}
