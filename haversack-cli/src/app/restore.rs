//! Brings files back: an older version of a file, or files that were deleted.

use haversack::Change;
use haversack::store::{Bytes, ErrorKind, Locator, block_on};
use haversack_system::Backoff;

use crate::error::{CommandError, Fault};
use crate::home::Home;
use crate::home::history::{
    AtHand, ChangeNumber, Deletion, Enough, HistoryReader, NumberedChange, Waiting, open_home,
};
use crate::home::store::{is_project_record, open, open_because};
use crate::settings::Settings;

/// The version that a restore brings back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    /// The version after the change with this number.
    After(ChangeNumber),
    /// The version before the newest change; of a directory, the files that were deleted last.
    Previous,
    /// The files that were deleted last.
    Deleted,
}

/// The result of a restore.
pub(crate) struct Restored {
    /// Files that another machine deleted and that were still here: the next sync sends them again.
    pub(crate) kept: Vec<Locator>,
    /// The files that were written; `None` if keeping files was all there was to do.
    pub(crate) written: Option<Result<Written, CommandError>>,
}

/// The files that a restore wrote.
#[derive(Debug, Default)]
pub(crate) struct Written {
    /// The files that are back.
    pub(crate) files: Vec<Locator>,
    /// The reasons why other files are not.
    pub(crate) failed: Vec<String>,
    /// The deletion that was taken back: its number, and the machine that deleted.
    pub(crate) deletion: Option<(ChangeNumber, String)>,
    /// True if a deletion was looked for and older changes could not be read.
    pub(crate) is_incomplete: bool,
}

/// Brings back a version of a file, or deleted files below a directory.
pub(crate) fn restore(
    settings: &Settings,
    locator: &Locator,
    version: Version,
) -> Result<Restored, CommandError> {
    let patience = Backoff::new();
    let home = open_home(settings)?;
    let mut history = HistoryReader::open(settings, &home, &patience)?;
    if let Version::After(number) = version {
        let change = history.change(number)?;
        let held = history.held_after(locator, &change)?;
        let written = write(settings, held.map(|bytes| (locator.clone(), bytes)).into_iter().collect());
        return Ok(Restored { kept: Vec::new(), written: Some(written) });
    }
    if version == Version::Previous && locator.is_root() {
        return Err(CommandError::user(
            "a file or directory has to be named",
            "Give a path, or bring back all files that were deleted last: haversack restore --deleted",
        ));
    }
    let kept = home.keep_held(settings, |file| file.is_within(locator))?;
    let written = match kept.contains(locator) {
        true => None,
        false => write_wanted(settings, &home, &mut history, locator, version, &kept).transpose(),
    };
    Ok(Restored { kept, written })
}

/// Writes the files that are wanted besides those that were kept; `None` if there is no need.
fn write_wanted(
    settings: &Settings,
    home: &Home,
    history: &mut HistoryReader<'_>,
    locator: &Locator,
    version: Version,
    kept: &[Locator],
) -> Result<Option<Written>, CommandError> {
    let waiting: Vec<Waiting> =
        history.waiting(home)?.into_iter().filter(|file| file.locator.is_within(locator)).collect();
    if version == Version::Previous
        && let Named::File(content) = look_up(history, &waiting, locator)?
    {
        let found = content.map(|bytes| (locator.clone(), bytes)).into_iter().collect();
        return write(settings, found).map(Some);
    }
    let unsent: Vec<(Locator, Bytes)> = waiting
        .into_iter()
        .filter(|file| file.now.is_none())
        .filter_map(|file| Some((file.locator, file.before?)))
        .collect();
    if !unsent.is_empty() {
        return write(settings, unsent).map(Some);
    }
    if !kept.is_empty() {
        return Ok(None);
    }
    write_last_deletion(settings, history, locator).map(Some)
}

/// The thing that a path names in the history.
enum Named {
    /// A file, with its content before its newest change.
    File(Option<Bytes>),
    /// A directory, or nothing.
    Directory,
}

/// Looks a path up: the newest change at it or below it decides.
fn look_up(
    history: &mut HistoryReader<'_>,
    waiting: &[Waiting],
    locator: &Locator,
) -> Result<Named, CommandError> {
    if let Some(file) = waiting.iter().find(|file| file.locator == *locator)
        && let Some(before) = &file.before
    {
        return Ok(Named::File(Some(before.clone())));
    }
    let mut newest: Option<NumberedChange> = None;
    history.each(|commit| {
        let is_about = commit.changes.iter().any(|change| change.locator.is_within(locator));
        if is_about {
            newest = Some(commit.clone());
        }
        if is_about { Enough::Yes } else { Enough::No }
    })?;
    match newest {
        Some(commit) if commit.changes.iter().any(|change| change.locator == *locator) => {
            history.held_before(locator, &commit).map(Named::File)
        }
        Some(_) | None => Ok(Named::Directory),
    }
}

/// Brings back the files below a place that were deleted last and are not there now.
fn write_last_deletion(
    settings: &Settings,
    history: &mut HistoryReader<'_>,
    within: &Locator,
) -> Result<Written, CommandError> {
    let memory = open(settings)?;
    let is_there = |file: &Locator| block_on(memory.files().info(file)).is_ok();
    // The records of projects are ours: the user deletes and restores memories.
    let is_wanted = |file: &Locator| file.is_within(within) && !is_project_record(file) && !is_there(file);
    let (deletion, at_hand) = history.last_deletion(is_wanted)?;
    let Some(Deletion { change, files }) = deletion else {
        return Ok(Written { is_incomplete: at_hand == AtHand::Some, ..Written::default() });
    };
    let deletion = Some((change.number, change.device.clone()));
    Ok(Written { deletion, ..write(settings, files)? })
}

/// Writes contents, except those that are there already.
fn write(settings: &Settings, found: Vec<(Locator, Bytes)>) -> Result<Written, CommandError> {
    let memory = open_because(settings, "restore")?;
    let mut changes = Vec::new();
    for (locator, bytes) in found {
        let expected = match block_on(memory.files().read(&locator)) {
            Ok(object) => Some(object.bytes),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(error.into()),
        };
        if expected.as_ref() != Some(&bytes) {
            changes.push(Change::Put { locator, expected, bytes: Some(bytes) });
        }
    }
    if changes.is_empty() {
        return Ok(Written::default());
    }
    let (mut failed, count) = (Vec::new(), changes.len());
    // A file that has no place does not keep the others from coming back.
    while !changes.is_empty()
        && let Err(error) = block_on(memory.batch(&changes))
    {
        match error.change().filter(|number| *number < changes.len() && count > 1) {
            Some(number) => {
                changes.remove(number);
                failed.push(CommandError::caused(Fault::User, &error, None).in_one_line());
            }
            None => return Err(error.into()),
        }
    }
    let files = changes.into_iter().filter_map(|change| match change {
        Change::Put { locator, .. } => Some(locator),
        _ => None,
    });
    Ok(Written { files: files.collect(), failed, ..Written::default() })
}
