//! A backend on a simulated disk, and what must hold of it at any time.

use std::collections::BTreeSet;
use std::sync::Arc;

use haversack_sim::{Crash, Seen, SimDisk};
use haversack_store::device_local::fs::Fs;
use haversack_store::{BackendExt, Blocking, Condition, DeviceLocal, Error, Locator, Page, block_on};

use crate::cases::{Case, Files, key};

/// The directory of working names and kept content.
const OWN: &str = ".haversack";

/// Tells if a cut-short append may still show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tails {
    /// Only if the machine stopped.
    Repaired,
    /// After any crash: nothing told where to look.
    Torn,
}

/// Opens the backend on a disk as `wrap` makes it.
pub(crate) fn open<F: Fs>(wrap: &impl Fn(SimDisk) -> F, disk: &SimDisk) -> Result<Blocking, String> {
    let backend = DeviceLocal::on(wrap(disk.clone())).map_err(shown)?;
    Ok(Blocking::new(Arc::new(backend)))
}

/// Returns a disk with what is there before `case`, written while nothing went wrong.
pub(crate) fn prepared(case: Case) -> Result<SimDisk, String> {
    let disk = SimDisk::new(0);
    let store = open(&sound, &disk)?;
    case.prepare(&disk, &store).map_err(shown)?;
    Ok(disk)
}

/// Returns the disk without a flaw.
pub(crate) fn sound(disk: SimDisk) -> SimDisk {
    disk
}

pub(crate) fn shown(error: Error) -> String {
    format!("{error:?}")
}

/// Fails with `message` unless `holds`.
pub(crate) fn ensure(holds: bool, message: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(message()) }
}

/// Scans everything, which also cleans up.
pub(crate) fn scan(store: &Blocking) -> Result<Page, String> {
    block_on(store.backend().scan_all(&Locator::root())).map_err(shown)
}

/// Scans everything and returns all files as a reader sees them.
pub(crate) fn scanned(store: &Blocking) -> Result<Files, String> {
    let page = scan(store)?;
    ensure(page.odd.is_empty(), || format!("the scan met {:?}", page.odd))?;
    let read = |locator: &Locator| store.read(locator).map(|object| object.bytes.to_vec()).map_err(shown);
    page.infos.iter().map(|info| Ok((info.locator.to_string(), read(&info.locator)?))).collect()
}

/// Fails if a working name is left anywhere.
pub(crate) fn no_working_names(disk: &SimDisk) -> Result<(), String> {
    let tree = disk.tree();
    let left: Vec<&String> = tree.keys().filter(|path| path.contains(".haversack-")).collect();
    ensure(left.is_empty(), || format!("working names are left: {left:?}"))
}

/// Returns everything that was kept aside, by its path.
pub(crate) fn kept(disk: &SimDisk) -> Files {
    let below = |(path, seen): (String, Seen)| match seen {
        Seen::File(bytes) if path.starts_with(".haversack/kept/") => Some((path, bytes)),
        _ => None,
    };
    disk.tree().into_iter().filter_map(below).collect()
}

fn directories(disk: &SimDisk) -> BTreeSet<String> {
    let users =
        |(path, seen): (String, Seen)| (seen == Seen::Directory && !path.starts_with(OWN)).then_some(path);
    disk.tree().into_iter().filter_map(users).collect()
}

/// The observed end of an operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ending {
    pub(crate) case: Case,
    pub(crate) acknowledged: bool,
    pub(crate) crash: Crash,
    pub(crate) tails: Tails,
}

/// Opens the backend again and checks that nothing acknowledged is lost and nothing torn shows.
pub(crate) fn check<F: Fs>(
    wrap: &impl Fn(SimDisk) -> F,
    disk: &SimDisk,
    ending: Ending,
) -> Result<(), String> {
    let store = open(wrap, disk).map_err(|error| format!("cannot open again: {error}"))?;
    check_opened(&store, disk, ending)
}

/// Checks the same of a backend that is open.
pub(crate) fn check_opened(store: &Blocking, disk: &SimDisk, ending: Ending) -> Result<(), String> {
    let files = scanned(store).map_err(|error| format!("cannot scan: {error}"))?;
    check_files(&files, ending)?;
    check_directories(&directories(disk), ending)?;
    no_working_names(disk)?;
    let kept = kept(disk);
    ensure(kept.is_empty(), || format!("kept although nobody else wrote: {kept:?}"))?;
    check_follow_up(store, files, ending.case)
}

fn check_files(files: &Files, ending: Ending) -> Result<(), String> {
    let Ending { case, acknowledged, .. } = ending;
    let (before, after) = (case.before().files, case.after().files);
    if *files == after || !acknowledged && *files == before {
        return Ok(());
    }
    let mut untorn = files.clone();
    if let Some(tail) = torn_tail(files, &before, &after, ending) {
        untorn.insert(case.target().to_owned(), before[case.target()].clone());
        if !acknowledged && untorn == before {
            return Ok(());
        }
        return Err(format!("a torn tail {:?}", String::from_utf8_lossy(&tail)));
    }
    let wanted = if acknowledged { "the new state" } else { "the old or the new state" };
    Err(format!("not {wanted}: {}", difference(files, &after)))
}

/// Returns what an append that took no effect may have left behind the old content.
fn torn_tail(files: &Files, before: &Files, after: &Files, ending: Ending) -> Option<Vec<u8>> {
    let target = ending.case.target();
    let may_tear = ending.case.extends() && (ending.tails == Tails::Torn || ending.crash != Crash::Kill);
    let tail = files.get(target)?.strip_prefix(before.get(target)?.as_slice())?;
    let whole = after.get(target)?.strip_prefix(before.get(target)?.as_slice())?;
    let ours = |(found, written): (&u8, &u8)| *found == *written || *found == 0;
    (may_tear && tail.len() <= whole.len() && tail.iter().zip(whole).all(ours)).then(|| tail.to_vec())
}

/// Returns how the files differ from what they should be.
pub(crate) fn difference(found: &Files, wanted: &Files) -> String {
    let keys: BTreeSet<&String> = found.keys().chain(wanted.keys()).collect();
    let text = |bytes: Option<&Vec<u8>>| match bytes {
        Some(bytes) => format!("{:.60?}", String::from_utf8_lossy(bytes)),
        None => "nothing".to_owned(),
    };
    let differing = keys.into_iter().filter(|key| found.get(*key) != wanted.get(*key));
    let lines =
        differing.map(|key| format!("{key} is {} not {}", text(found.get(key)), text(wanted.get(key))));
    lines.collect::<Vec<_>>().join("; ")
}

fn check_directories(dirs: &BTreeSet<String>, ending: Ending) -> Result<(), String> {
    let (before, after) = (ending.case.before().dirs, ending.case.after().dirs);
    let all: BTreeSet<String> = before.union(&after).cloned().collect();
    let both: BTreeSet<String> = before.intersection(&after).cloned().collect();
    let expected = match ending.acknowledged {
        true => *dirs == after,
        // Some of the new ones may have been made.
        false => dirs.is_subset(&all) && dirs.is_superset(&both),
    };
    ensure(expected, || format!("the directories are {dirs:?}"))
}

fn check_follow_up(store: &Blocking, mut files: Files, case: Case) -> Result<(), String> {
    let content = b"written afterwards\n";
    let written = store.write(&key(&case.follow_up()), &content[..], Condition::Any);
    let written = written.map_err(|error| format!("cannot write afterwards: {error:?}"))?;
    ensure(written.displaced.is_none(), || "a later write displaced something".to_owned())?;
    files.insert(case.follow_up(), content.to_vec());
    let found = scanned(store)?;
    ensure(found == files, || format!("after a later write: {}", difference(&found, &files)))
}
