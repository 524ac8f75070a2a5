//! Other programs that take no lock, at every call.

use std::io;

use haversack_sim::{Crash, Descriptor, Editor, Seen, SimDisk, Verb};
use haversack_store::device_local::fs::Fs;
use haversack_store::{Blocking, Displaced, Error, ErrorKind};

use crate::cases::{Case, LINE};
use crate::world::{difference, ensure, kept, no_working_names, open, prepared, scan, shown, sound};

/// The text that the other program saves.
pub(crate) const THEIRS: &[u8] = b"what somebody else saved\n";

/// The other program's action on the target of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    /// Saves by renaming another file over it.
    Replace,
    /// Saves in place, through its name.
    Overwrite,
    /// Saves in place, through a descriptor opened before the operation began.
    Descriptor,
    /// Adds to its end.
    Append,
    /// Removes it.
    Remove,
    /// Puts a symbolic link in its place.
    Link,
}

impl Act {
    const ALL: [Act; 6] =
        [Act::Replace, Act::Overwrite, Act::Descriptor, Act::Append, Act::Remove, Act::Link];
    pub(crate) const SAVES: [Act; 4] = [Act::Replace, Act::Overwrite, Act::Descriptor, Act::Append];

    fn possible(self, case: Case) -> bool {
        let exists = case.before().files.contains_key(case.target());
        exists || !matches!(self, Act::Descriptor | Act::Remove)
    }

    /// Plans to act just before the `call`-th call from now.
    pub(crate) fn plan(self, disk: &SimDisk, case: Case, call: usize) {
        let descriptor = (self == Act::Descriptor).then(|| disk.edit(|editor| editor.open(case.target())));
        disk.at_call(call, move |editor| self.act(editor, case.target(), descriptor));
    }

    fn act(self, editor: &mut Editor<'_>, target: &str, descriptor: Option<Descriptor>) {
        match self {
            Act::Replace => editor.replace(target, THEIRS),
            Act::Overwrite => editor.overwrite(target, THEIRS),
            Act::Descriptor => editor.write(descriptor.expect("opened when it was planned"), THEIRS),
            Act::Append => editor.append(target, THEIRS),
            Act::Remove => editor.remove(target),
            Act::Link => editor.replace_by_link(target),
        }
    }
}

/// Returns how many calls an undisturbed `case` makes, and which of them lets it take effect.
pub(crate) fn effect_of<F: Fs>(
    wrap: &impl Fn(SimDisk) -> F,
    start: &SimDisk,
    case: Case,
) -> Result<(usize, usize), String> {
    let disk = start.fork(0);
    let store = open(wrap, &disk)?;
    disk.mark();
    case.run(&store).map_err(shown)?;
    let calls = disk.calls();
    let renames = |verb| matches!(verb, Verb::Exchange | Verb::RenameFree | Verb::RenameReplaced);
    let last = calls.iter().rposition(|call| renames(call.verb));
    let effect = last.or_else(|| calls.iter().position(|call| call.verb == Verb::Append));
    Ok((calls.len(), effect.ok_or("the operation changes nothing")? + 1))
}

/// When the other program acted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum When {
    BeforeEffect,
    AfterEffect,
}

/// Lets another program do everything at every call of every case, and looks for what it saved.
pub(crate) fn editor_sweep<F: Fs>(wrap: &impl Fn(SimDisk) -> F, cases: &[Case]) -> Result<(), String> {
    for case in cases {
        let start = prepared(*case)?;
        let (calls, effect) = effect_of(wrap, &start, *case)?;
        for act in Act::ALL.into_iter().filter(|act| act.possible(*case)) {
            for call in 1..=calls {
                let when = if call <= effect { When::BeforeEffect } else { When::AfterEffect };
                let disk = start.fork(0);
                let store = open(wrap, &disk)?;
                disk.mark();
                act.plan(&disk, *case, call);
                let result = case.run(&store);
                let trace = disk.calls();
                scan(&store)
                    .and_then(|_| judge(&disk, &store, *case, act, when, &result))
                    .map_err(|error| format!("{case:?}, {act:?} before call {call} of {trace:?}: {error}"))?;
            }
        }
    }
    Ok(())
}

type Outcome = Result<Option<Displaced>, Error>;

fn judge(
    disk: &SimDisk,
    store: &Blocking,
    case: Case,
    act: Act,
    when: When,
    result: &Outcome,
) -> Result<(), String> {
    no_working_names(disk)?;
    others_are_intact(disk, case)?;
    let target = disk.look(case.target());
    let unexpected =
        || format!("{:?} at the target, {:?} kept after {result:?}", disk.look(case.target()), kept(disk));
    // Through an old descriptor what was taken away can still turn out to be another program's.
    // An append that finds its file replaced is done again, and then a link is in its way.
    let may_fail = when == When::BeforeEffect
        || (case, act) == (Case::DeleteMatches, Act::Descriptor)
        || case.extends() && act == Act::Link;
    ensure(may_fail || result.is_ok(), unexpected)?;
    let theirs = Some(Seen::File(THEIRS.to_vec()));
    match act {
        Act::Remove => {
            // An append may come after it and make the file anew; nothing else may bring it back.
            let anew = case == Case::AppendLinked || case == Case::AppendExisting;
            let gone = target.is_none() || anew && target == Some(Seen::File(LINE.to_vec()));
            ensure(gone, unexpected)
        }
        Act::Link => ensure(target == Some(Seen::Link), unexpected),
        Act::Descriptor if when == When::AfterEffect && !case.extends() => {
            // The documented window: what it wrote to is no longer the target.
            let after = case.after().files.get(case.target()).cloned().map(Seen::File);
            ensure(target == after || result.is_err() && target == theirs, unexpected)
        }
        Act::Replace | Act::Overwrite | Act::Descriptor | Act::Append => {
            // An append that finds its file replaced is done again on the new one.
            let again = Some(Seen::File([THEIRS, LINE].concat()));
            let exact = match (when, act) {
                (When::AfterEffect, Act::Replace) => target == theirs || case.extends() && target == again,
                (When::AfterEffect, Act::Overwrite) => target == theirs,
                _ => true,
            };
            ensure(exact, unexpected)?;
            ensure(is_saved(disk, store, case, when, result)?, unexpected)
        }
    }
}

/// Returns true if what the other program saved is at the target or was handed over.
fn is_saved(
    disk: &SimDisk,
    store: &Blocking,
    case: Case,
    when: When,
    result: &Outcome,
) -> Result<bool, String> {
    if disk.read(case.target()).is_some_and(|bytes| holds(&bytes)) {
        let refused = result.as_ref().err().map(Error::kind);
        // A condition that no longer holds must be told, not ignored.
        let conditional = matches!(case, Case::CreateAbsent | Case::WriteMatches | Case::DeleteMatches);
        let told = !conditional || when == When::AfterEffect || refused == Some(ErrorKind::Conflict);
        ensure(told, || format!("not told of the conflict: {result:?}"))?;
        return Ok(true);
    }
    match result {
        Ok(Some(displaced)) => {
            let back = store.read(&displaced.kept).map_err(shown)?;
            Ok(holds(&displaced.bytes) && back.bytes == displaced.bytes)
        }
        _ => Ok(false),
    }
}

pub(crate) fn holds(bytes: &[u8]) -> bool {
    bytes.windows(THEIRS.len()).any(|window| window == THEIRS)
}

/// Fails if a file that should be untouched has changed.
pub(crate) fn others_are_intact(disk: &SimDisk, case: Case) -> Result<(), String> {
    let others = |mut files: crate::cases::Files| {
        files.remove(case.target());
        // The other program may have written through the second name's file.
        files.remove("other name of linked.md");
        files
    };
    let users = disk.tree().into_iter().filter_map(|(path, seen)| match seen {
        Seen::File(bytes) if !path.starts_with(".haversack/") => Some((path, bytes)),
        _ => None,
    });
    let (found, wanted) = (others(users.collect()), others(case.before().files));
    ensure(found == wanted, || difference(&found, &wanted))
}

/// Lets another program save at every call and the process die at every later one.
fn saved_then_killed<F: Fs>(wrap: &impl Fn(SimDisk) -> F, case: Case) -> Result<(), String> {
    let start = prepared(case)?;
    let (calls, effect) = effect_of(wrap, &start, case)?;
    for act in Act::SAVES.into_iter().filter(|act| act.possible(case)) {
        for call in 1..=calls {
            if act == Act::Descriptor && call > effect {
                continue;
            }
            for crash in call.. {
                let disk = start.fork((crash + call) as u64);
                let store = open(wrap, &disk)?;
                disk.mark();
                act.plan(&disk, case, call);
                disk.crash_after(crash);
                drop(case.run(&store));
                drop(store);
                let (crashed, trace) = (disk.has_crashed(), disk.calls());
                disk.restart(Crash::Kill);
                let store = open(wrap, &disk)?;
                let found = scan(&store).and_then(|_| {
                    no_working_names(&disk)?;
                    others_are_intact(&disk, case)?;
                    let saved = disk.read(case.target()).is_some_and(|bytes| holds(&bytes))
                        || call <= effect && kept(&disk).values().any(|bytes| holds(bytes));
                    ensure(saved, || format!("lost; the tree is {:?}", disk.tree()))
                });
                found.map_err(|error| {
                    format!("{case:?}, {act:?} before call {call}, killed at {crash} of {trace:?}: {error}")
                })?;
                if !crashed {
                    break;
                }
            }
        }
    }
    Ok(())
}

/// Lets another program save at every call and every later call fail once.
pub(crate) fn saved_then_fault(case: Case) -> Result<(), String> {
    let start = prepared(case)?;
    let (calls, effect) = effect_of(&sound, &start, case)?;
    for act in Act::SAVES.into_iter().filter(|act| act.possible(case)) {
        let last = if act == Act::Descriptor { effect } else { calls };
        for call in 1..=last {
            for failing in call.. {
                let disk = start.fork(0);
                let store = open(&sound, &disk)?;
                disk.mark();
                act.plan(&disk, case, call);
                disk.fail_at(failing, io::ErrorKind::Other);
                let result = case.run(&store);
                let trace = disk.calls();
                disk.mark();
                scan(&store).and_then(|_| is_safe(&disk, case)).map_err(|error| {
                    format!("{case:?}, {act:?} before call {call}, fault at {failing} of {trace:?}: {result:?}: {error}")
                })?;
                if trace.len() < failing {
                    break;
                }
            }
        }
    }
    Ok(())
}

/// Fails unless what the other program saved is at the target or kept aside.
fn is_safe(disk: &SimDisk, case: Case) -> Result<(), String> {
    no_working_names(disk)?;
    others_are_intact(disk, case)?;
    let at_target = disk.read(case.target()).is_some_and(|bytes| holds(&bytes));
    let found = at_target || kept(disk).values().any(|bytes| holds(bytes));
    ensure(found, || format!("lost; {:?} at the target", disk.look(case.target())))
}

const DISTURBED: [Case; 6] = [
    Case::CreateAbsent,
    Case::WriteMatches,
    Case::AppendExisting,
    Case::AppendCreating,
    Case::AppendLinked,
    Case::DeleteMatches,
];

#[test]
fn editor_at_every_call() -> Result<(), String> {
    editor_sweep(&sound, &DISTURBED)
}

#[test]
fn editor_at_every_call_then_killed() -> Result<(), String> {
    DISTURBED.iter().try_for_each(|case| saved_then_killed(&sound, *case))
}

/// Appends in place have a test of their own.
#[test]
fn editor_at_every_call_then_a_fault() -> Result<(), String> {
    let cases = [Case::CreateAbsent, Case::WriteMatches, Case::AppendLinked, Case::DeleteMatches];
    cases.into_iter().try_for_each(saved_then_fault)
}

/// A state that is gone is not the state that was named.
#[test]
fn a_conditional_change_of_what_was_removed_is_a_conflict() -> Result<(), String> {
    for case in [Case::WriteMatches, Case::DeleteMatches] {
        let start = prepared(case)?;
        let (_, effect) = effect_of(&sound, &start, case)?;
        for call in 1..=effect {
            let disk = start.fork(0);
            let store = open(&sound, &disk)?;
            disk.mark();
            Act::Remove.plan(&disk, case, call);
            let kind = case.run(&store).err().map(|error| error.kind());
            ensure(kind == Some(ErrorKind::Conflict), || {
                format!("{case:?}, removed before call {call} of {:?}: {kind:?}", disk.calls())
            })?;
        }
    }
    Ok(())
}
