//! The mirror: the store's files as plain objects beside the log, for people and other tools.
//!
//! The mirror is derived from the log. A device writes it after a commit ([`write`], [`objects`]), and the next device that writes it
//! repairs missing and stale objects. Only a full reconcile reads the mirror: it lists all objects once ([`listing`]), imports the edits
//! that people made there ([`foreign_edits`]), then the conflict copies of sync clients ([`copies`]). [`log_search`] tells edits from old
//! versions.
//!
//! # Invariants
//! - We overwrite or remove only objects that we wrote: every write names the version that it replaces
//!   (`sync::mirror::foreign_edit_is_not_overwritten`, `sync::mirror::manifest_of_another_program_is_left_alone`).
//! - We import only files at places of ours ([`places`](super::places)). Other files beside the memory stay where they are, and we do
//!   not send them (`sync::mirror::unrelated_files_are_left_alone`, `vault::unrelated_copies_are_left_alone`).
//! - If an object's content matches any past version of the file in the log, it is a stale mirror object, not a user's edit
//!   (`sync::mirror::old_object_is_no_edit`).
//! - A device imports edits only when it has read the whole log. A device that is behind could mistake another device's newer mirror
//!   object for an edit.
//! - We import an edit exactly once, even if the process is killed at any step (`sync::mirror::mirror_edit_is_imported_once`). It stays where it is until the log has it
//!   (`vault::mirror_edit_is_kept_until_published`); so does a copy (`vault::conflict_copy_is_kept_until_published`).
//! - Lines missing from an edit count as deletions only if we know the version the user edited. Otherwise, as with a sync client's
//!   replacement or conflict copy, the edit may only add lines (`vault::conflict_copy_removes_no_line`, `vault::replacing_file_removes_no_line`,
//!   `vault::edit_of_another_devices_file_removes_no_line`).
//! - A conflict copy is merged exactly once and then removed, even if the process is killed at any step (`haversack-sim: copies`).
//! - A missing object is not a deletion (`sync::mirror::deleted_mirror_object_is_rewritten`).

mod copies;
mod foreign_edits;
mod listing;
mod log_search;
mod objects;
mod write;

use haversack_store::Locator;

pub(super) use self::log_search::SEARCHED_AT_ONCE;

/// The number of attempts at an object or the manifest that another device writes at the same time.
const MAX_ROUNDS: usize = 4;

/// The device name of an edit in the mirror.
const THE_MIRROR: &str = "the mirror";

/// The result of writing the mirror.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mirrored {
    /// The number of written objects.
    pub written: usize,
    /// The number of removed objects.
    pub removed: usize,
    /// The number of stale objects that are left, because [`Context::mirrored_at_once`](super::Context) limits one call.
    pub left: usize,
    /// Objects of other programs at places of mirror objects. They stay as they are until a full reconcile imports them. If
    /// `manifest.json` is among them, it belongs to another program and we wrote no mirror.
    pub foreign: Vec<Locator>,
    /// Files whose names the remote cannot hold beside the others.
    pub refused: Vec<Locator>,
}

/// Returns the locator of the manifest.
pub(super) fn manifest_locator() -> Locator {
    Locator::reserved("manifest.json").expect("one of our own names")
}
