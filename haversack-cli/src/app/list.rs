//! Lists projects, directories and files, of this machine and of the remote.

use std::collections::BTreeMap;
use std::sync::Arc;

use haversack::store::{BackendExt, DeviceLocal, EntryKind, ErrorKind, Info, Locator, Odd, block_on};
use haversack::sync::remote_files;
use haversack::{Memory, View};

use crate::error::CommandError;
use crate::home::kinds;
use crate::home::store::{PROJECT_RECORDS, is_project_record, open_to_look};
use crate::projects::names::{Names, holds_projects};
use crate::remote::Remote;
use crate::settings::Settings;

/// The entries of a directory, and the names in it that are no files of a memory.
pub(crate) struct Listing {
    pub(crate) infos: Vec<Info>,
    pub(crate) odd: Vec<Odd>,
}

/// The directories that are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Depth {
    /// The named one.
    One,
    /// The named one and all below it.
    All,
}

/// Lists a place of the memory. Files of one kind are listed in all directories below it.
pub(crate) fn list(
    settings: &Settings,
    names: &Names,
    locator: &Locator,
    depth: Depth,
    kind: Option<&str>,
) -> Result<Listing, CommandError> {
    let memory = open_to_look(settings)?;
    let Some(kind) = kind else { return block_on(entries(&memory, names, locator, depth)) };
    let Listing { infos, odd } = block_on(entries(&memory, names, locator, Depth::All))?;
    let kinds = kinds::load(settings)?;
    let kind = kinds::named(&kinds, kind)?;
    let mut of_kind = Vec::new();
    for info in infos {
        let content = block_on(memory.files().read(&info.locator))?;
        if kinds.of(&info.locator, &content.bytes).name == kind.name {
            of_kind.push(info);
        }
    }
    Ok(Listing { infos: of_kind, odd })
}

/// Lists the files that the remote had at the last sync, with their sizes. The name tells the kind of a file, or the `type` of the file that is here.
pub(crate) fn list_of_remote(
    settings: &Settings,
    below: &Locator,
    kind: Option<&str>,
) -> Result<Vec<(Locator, u64)>, CommandError> {
    if Remote::for_looking(settings)?.is_none() {
        return Err(CommandError::user(
            "there is no remote, so there is nothing to list",
            "Connect this machine: haversack init URL. List its own files: haversack ls -R",
        ));
    }
    let is_asked_for = |name: &Locator| name.is_within(below) && (is_ours(below) || !is_project_record(name));
    let mut files = match settings.state().is_dir() {
        true => block_on(remote_files(Arc::new(DeviceLocal::open(settings.state(), settings.locks())?)))?,
        // A look makes no home.
        false => Vec::new(),
    };
    files.retain(|(name, _)| is_asked_for(name));
    if let Some(kind) = kind {
        let memory = open_to_look(settings)?;
        let kinds = kinds::load(settings)?;
        let kind = kinds::named(&kinds, kind)?;
        files.retain(|(name, _)| {
            let here = block_on(memory.files().read(name)).map(|object| object.bytes).unwrap_or_default();
            kinds.of(name, &here).name == kind.name
        });
    }
    Ok(files)
}

/// Returns true if a place belongs to the records of projects, which are shown only if they are asked for.
fn is_ours(place: &Locator) -> bool {
    place.as_str() == "state" || place.as_str() == PROJECT_RECORDS || is_project_record(place)
}

/// Returns the entries of a directory, or those of all directories below it. A file is its own only entry.
///
/// The whole memory shows its projects beside its other directories.
async fn entries(
    memory: &Memory,
    names: &Names,
    locator: &Locator,
    depth: Depth,
) -> Result<Listing, CommandError> {
    if depth == Depth::All
        && memory.files().info(locator).await.is_ok_and(|info| info.kind == EntryKind::Directory)
    {
        let page = memory.files().scan_all(locator).await?;
        let is_asked_for = is_ours(locator);
        let infos = page.infos.into_iter().filter(|info| is_asked_for || !is_project_record(&info.locator));
        return Ok(Listing { infos: infos.collect(), odd: page.odd });
    }
    let is_above_projects = locator.is_root() || holds_projects(locator);
    let (entries, odd) = match memory.view(locator).await {
        Ok(View::File(_)) => {
            return Ok(Listing { infos: vec![memory.files().info(locator).await?], odd: Vec::new() });
        }
        Ok(View::Directory(listing)) => (listing.entries, listing.odd),
        Err(error) if error.kind() == ErrorKind::NotFound && is_above_projects => (Vec::new(), Vec::new()),
        Err(error) => return Err(error.into()),
    };
    let mut infos = BTreeMap::new();
    let entries = entries.into_iter().map(|entry| entry.locator).filter(|entry| !holds_projects(entry));
    let entries = entries.filter(|entry| !locator.is_root() || !is_ours(entry));
    let projects = names.places().filter(|_| is_above_projects);
    for place in entries.chain(projects) {
        match memory.files().info(&place).await {
            Ok(info) => drop(infos.insert(names.show(&place), info)),
            // It was deleted meanwhile, or its directory is not there.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(Listing { infos: infos.into_values().collect(), odd })
}
