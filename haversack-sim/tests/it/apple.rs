//! The disk of a Mac: names that differ only by case or by how letters are composed are one name.

use haversack_sim::{Crash, Exchange, Names, SimDisk};
use haversack_store::{Condition, ErrorKind, Version};

use crate::cases::{Case, LINE, NEW, OLD, key};
use crate::crash::crash_sweep;
use crate::world::{Tails, ensure, open, scanned, shown, sound};

/// A name as Macs of old wrote it: the accent is a letter of its own.
const DECOMPOSED: &str = "cafe\u{301}.md";
const COMPOSED: &str = "caf\u{e9}.md";

fn mac() -> SimDisk {
    let disk = SimDisk::new(0);
    disk.set_names(Names::Folded);
    disk
}

#[test]
fn every_operation_survives_a_crash_on_a_mac() -> Result<(), String> {
    crash_sweep(&sound, &Case::ALL, |disk| disk.set_names(Names::Folded), Tails::Repaired)
}

/// An external disk with FAT: no exchange, and names of a Mac.
#[test]
fn every_operation_survives_a_crash_on_a_mac_without_exchange() -> Result<(), String> {
    let adjust = |disk: &SimDisk| {
        disk.set_names(Names::Folded);
        disk.set_exchange(Exchange::Refused);
    };
    crash_sweep(&sound, &[Case::CreateAbsent, Case::WriteAny, Case::WriteMatches], adjust, Tails::Repaired)
}

#[test]
fn decomposed_name_is_one_file_and_keeps_its_spelling() -> Result<(), String> {
    let disk = mac();
    disk.edit(|editor| editor.replace(DECOMPOSED, OLD));
    let store = open(&sound, &disk)?;
    let read = store.read(&key(COMPOSED)).map_err(shown)?;
    ensure(&read.bytes[..] == OLD, || format!("read {read:?}"))?;
    let written =
        store.write(&key(COMPOSED), NEW, Condition::Matches(Version::of_content(OLD))).map_err(shown)?;
    ensure(written.displaced.is_none(), || format!("displaced {:?}", written.displaced))?;
    let tree = disk.tree();
    ensure(disk.read(DECOMPOSED).as_deref() == Some(NEW), || {
        format!("the file is spelled otherwise: {tree:?}")
    })?;
    let files = scanned(&store)?;
    ensure(files.len() == 1 && files.contains_key(COMPOSED), || format!("listed {files:?}"))?;
    store.delete(&key(COMPOSED), Condition::Any).map_err(shown)?;
    ensure(scanned(&store)?.is_empty(), || "it is still there".to_owned())
}

/// On such a disk a second name would silently replace the first file.
#[test]
fn new_name_that_differs_by_case_is_refused() -> Result<(), String> {
    let disk = mac();
    let store = open(&sound, &disk)?;
    let _ = store.write(&key("notes.md"), OLD, Condition::Absent).map_err(shown)?;
    let refused = store.write(&key("Notes.md"), NEW, Condition::Absent).map_err(|error| error.kind());
    let is_refused = matches!(refused, Err(ErrorKind::Invalid | ErrorKind::Conflict));
    ensure(is_refused, || format!("{refused:?}"))?;
    // After a restart the names are not remembered any more.
    drop(store);
    disk.restart(Crash::Kill);
    let store = open(&sound, &disk)?;
    let refused = store.write(&key("NOTES.md"), NEW, Condition::Absent).map_err(|error| error.kind());
    ensure(refused.is_err(), || format!("after a restart: {refused:?}"))?;
    ensure(disk.read("notes.md").as_deref() == Some(OLD), || format!("replaced: {:?}", disk.tree()))
}

/// FIXME: a write that asks for nothing about the present content takes the other name for its own file and replaces its content. It should be refused as
/// on a disk that tells the names apart; the disk would have to be asked how it spells every name that is opened.
#[test]
fn write_under_any_condition_replaces_the_file_of_another_case() -> Result<(), String> {
    let disk = mac();
    let store = open(&sound, &disk)?;
    let _ = store.write(&key("notes.md"), OLD, Condition::Absent).map_err(shown)?;
    let _ = store.write(&key("Notes.md"), NEW, Condition::Any).map_err(shown)?;
    ensure(disk.read("notes.md").as_deref() == Some(NEW), || {
        format!("today's result changed: {:?}", disk.tree())
    })
}

#[test]
fn editor_that_saves_another_spelling_is_noticed() -> Result<(), String> {
    let disk = mac();
    let store = open(&sound, &disk)?;
    let _ = store.write(&key(COMPOSED), OLD, Condition::Absent).map_err(shown)?;
    // The editor replaces the file under the spelling that it prefers.
    disk.edit(|editor| {
        editor.remove(COMPOSED);
        editor.replace(DECOMPOSED, LINE);
    });
    let stale = store.write(&key(COMPOSED), NEW, Condition::Matches(Version::of_content(OLD)));
    let stale = stale.map_err(|error| error.kind());
    ensure(stale.is_err(), || format!("the editor's save was replaced: {stale:?}"))?;
    let read = store.read(&key(COMPOSED)).map_err(shown)?;
    ensure(&read.bytes[..] == LINE, || format!("read {read:?}"))
}
