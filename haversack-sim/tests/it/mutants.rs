//! The tests must notice a broken disk, or they prove nothing about a sound one.

use haversack_sim::{Flaw, Mutant, SimDisk};

use crate::cases::Case;
use crate::crash::crash_sweep;
use crate::editor::editor_sweep;
use crate::world::Tails;

fn with(flaw: Flaw) -> impl Fn(SimDisk) -> Mutant<SimDisk> {
    move |disk| Mutant::new(disk, flaw)
}

fn crashes_notice(flaw: Flaw, case: Case) -> bool {
    crash_sweep(&with(flaw), &[case], |_| {}, Tails::Repaired).is_err()
}

/// Every case that writes content must need its sync.
#[test]
fn skipped_file_syncs_are_noticed() {
    let writes = |case: &Case| case.before().files.len() <= case.after().files.len();
    let moves = |case: &Case| {
        let names_only = [Case::RenameFile, Case::RenameDirectory, Case::Exchange, Case::MkdirNested];
        names_only.contains(case) || *case == Case::TouchMark
    };
    for case in Case::ALL.into_iter().filter(|case| writes(case) && !moves(case)) {
        assert!(crashes_notice(Flaw::SkipFileSync, case), "{case:?}");
    }
}

/// Every case that changes names must need its sync.
#[test]
fn skipped_directory_syncs_are_noticed() {
    for case in Case::ALL.into_iter().filter(|case| !case.extends() && *case != Case::TouchMark) {
        assert!(crashes_notice(Flaw::SkipDirSync, case), "{case:?}");
    }
}

#[test]
fn an_exchange_that_destroys_is_noticed() {
    for case in [Case::WriteMatches, Case::AppendLinked] {
        assert!(editor_sweep(&with(Flaw::ExchangeAsReplace), &[case]).is_err(), "{case:?}");
    }
}

#[test]
fn a_free_name_that_is_not_is_noticed() {
    for case in [Case::CreateAbsent, Case::AppendCreating] {
        assert!(editor_sweep(&with(Flaw::FreeAsReplace), &[case]).is_err(), "{case:?}");
    }
}

/// The note only saves a search, apart from the tail of an append.
#[test]
fn a_forgotten_note_loses_nothing() -> Result<(), String> {
    crash_sweep(&with(Flaw::ForgetNote), &Case::ALL, |_| {}, Tails::Torn)
}

#[test]
fn a_forgotten_note_leaves_torn_tails() {
    assert!(crashes_notice(Flaw::ForgetNote, Case::AppendExisting));
}
