//! The store's files as plain objects beside the log, for people and other tools.
//!
//! The mirror is derived: it is written after a commit, never read to decide, and whatever is missing or stale in it is mended by the
//! next device that writes it. Only a full reconcile looks at what somebody changed there by hand.
//!
//! # Invariants
//! - Nothing that we did not write ourselves is overwritten or removed: every write names the version it replaces
//!   (`sync::mirror::a_foreign_edit_is_not_overwritten`, `sync::mirror::manifest_of_another_program_is_left_alone`).
//! - Only files at places of ours are taken in ([`places`](super::places)): files that the user keeps beside the memory stay
//!   where they are and are not sent (`sync::mirror::unrelated_files_are_left_alone`, `vault::unrelated_copies_are_left_alone`).
//! - A content that the log ever had for a file is an old mirror of ours, not somebody's edit
//!   (`sync::mirror::an_old_object_is_no_edit`).
//! - Nor is one that the log has had since this device read it: who is behind takes nothing in.
//! - An edit is taken in once, whatever happens in between (`sync::mirror::an_edit_is_taken_in_once`), and stays where it is until the log has it
//!   (`vault::an_edit_stays_until_it_was_told`); so does a copy (`vault::a_copy_stays_until_it_was_told`).
//! - What an edit lacks was taken out only if it is known what it was made from: what a sync client put in the place of a file, or made a copy
//!   of, adds and takes nothing away (`vault::a_copy_takes_nothing_away`, `vault::what_took_the_place_of_a_file_takes_nothing_away`,
//!   `vault::an_edit_of_what_another_device_wrote_takes_nothing_away`).
//! - A copy is merged once, and goes, wherever whoever takes it in is killed (`haversack-sim: copies`).
//! - That an object is not there is no deletion (`sync::mirror::what_is_gone_from_the_mirror_comes_back`).

mod copies;
mod foreign_edits;
mod log_search;
mod objects;
mod write;

use haversack_store::Locator;

pub(super) use self::log_search::SEARCHED_AT_ONCE;

/// How often an object or the manifest is written anew because another device wrote it in between.
const MAX_ROUNDS: usize = 4;

/// What whoever changes the mirror is called.
const THE_MIRROR: &str = "the mirror";

/// What bringing the mirror up to date came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mirrored {
    /// How many objects were written.
    pub written: usize,
    /// How many objects were removed.
    pub removed: usize,
    /// How many objects are still not up to date: there were more than were to be written at once.
    pub left: usize,
    /// Objects that we did not write, at places where plain copies belong: they stay as they are until a full reconcile takes them in.
    /// `manifest.json` is one of them if it is the file of another program; then no plain copy was written.
    pub foreign: Vec<Locator>,
    /// Files whose names the remote cannot hold beside the others.
    pub refused: Vec<Locator>,
}

fn place() -> Locator {
    Locator::reserved("manifest.json").expect("one of our own names")
}
