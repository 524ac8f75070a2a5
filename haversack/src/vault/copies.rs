//! The names that sync clients give to a file which was changed in two places, pure.
//!
//! | family | its name for a copy of `name.md` | counts |
//! |---|---|---|
//! | Dropbox | `name (a teammate's conflicted copy 2026-11-16).md`, in the client's language | always |
//! | | `name (conflicted copy).md`, `name (Case Conflict).md` | beside its original |
//! | Nextcloud, ownCloud | `name (conflicted copy 2026-11-16 101112).md`, `name_conflict-20261116-101112.md` | always |
//! | | `name (case clash from 2026-11-16 101112).md` | beside its original |
//! | Obsidian Sync | `name (Conflicted copy laptop 202611161011).md` | always |
//! | Syncthing | `name.sync-conflict-20261116-101112-ABCDEFG.md` | always |
//! | Google Drive | `name [Conflict].md` | always |
//! | | `name (1).md`, `name_conf(1).md`, `Copy of name.md` | beside its original |
//! | iCloud Drive | `name 2.md` | beside its original |
//! | OneDrive | `name-DESKTOP-AB12CD3.md`, and with the name of a machine that is known | beside its original |
//! | | `name-ANYTHING.md` | never, but is reported |
//!
//! Clients put the mark before the last extension. What Haversack itself keeps beside a file ([`conflict`](crate::conflict)) is no
//! such copy.

use std::collections::HashMap;
use std::fmt;

use crate::conflict::original_name;
use crate::store::Locator;

/// The client that gives such names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Family {
    /// Dropbox.
    Dropbox,
    /// Google Drive.
    GoogleDrive,
    /// Apple's iCloud Drive.
    ICloud,
    /// Nextcloud and ownCloud.
    Nextcloud,
    /// Obsidian Sync.
    Obsidian,
    /// Microsoft OneDrive.
    OneDrive,
    /// Syncthing.
    Syncthing,
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Family::Dropbox => "Dropbox",
            Family::GoogleDrive => "Google Drive",
            Family::ICloud => "iCloud Drive",
            Family::Nextcloud => "Nextcloud",
            Family::Obsidian => "Obsidian Sync",
            Family::OneDrive => "OneDrive",
            Family::Syncthing => "Syncthing",
        })
    }
}

/// The strength of the evidence in a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// Only a client gives such a name.
    Name,
    /// It counts if its original is beside it, and is worth telling if not.
    Beside,
    /// It counts if its original is beside it, and is a name like any other if not.
    OnlyBeside,
    /// It may be one if its original is beside it; only its user can tell.
    Doubtful,
}

/// A copy, as its name describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Copy {
    /// The name of the file that it is a copy of.
    pub original: String,
    /// The client that gave the name.
    pub family: Family,
    /// The strength of the evidence.
    pub evidence: Evidence,
}

/// A copy that waits to be imported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    /// The copy.
    pub copy: Locator,
    /// The file it is a copy of, as it is spelled there; it may be gone.
    pub original: Locator,
    /// The client that made the copy.
    pub family: Family,
}

/// The copies in a folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Waiting {
    /// Copies that wait to be imported.
    pub copies: Vec<Pair>,
    /// Those that only look like copies, to be left alone and told.
    pub ambiguous: Vec<Locator>,
}

/// Returns the parts of a copy's name, if it is the name of a copy.
pub fn conflict_copy(name: &str) -> Option<Copy> {
    if Locator::from_stored_key(name).is_ok_and(|locator| original_name(&locator).is_some()) {
        return None;
    }
    splits(name).find_map(|(head, extension)| {
        let (stem, family, evidence) = marked(head)?;
        let original = format!("{stem}{extension}");
        // Only Syncthing takes all of `.profile` for its extension.
        let is_a_name = match stem {
            "" => family == Family::Syncthing && extension.len() > 1,
            stem => stem.trim() == stem && original != "..",
        };
        is_a_name.then_some(Copy { original, family, evidence })
    })
}

/// Finds the copies among the files of a folder, each with the file it belongs to.
///
/// `machines` are the names of the machines that share the folder: OneDrive adds them to the names of copies.
pub fn waiting<'a>(names: impl IntoIterator<Item = &'a Locator>, machines: &[&str]) -> Waiting {
    let names: Vec<&Locator> = names.into_iter().collect();
    // A client may spell the original in another case than it was.
    let by_fold: HashMap<String, &Locator> = names.iter().map(|name| (name.folded(), *name)).collect();
    let mut found = Waiting::default();
    for locator in names {
        let Some(copy) = of_known_machine(locator.name(), machines).or_else(|| conflict_copy(locator.name()))
        else {
            continue;
        };
        let key = match locator.parent() {
            Some(parent) if !parent.is_root() => format!("{parent}/{}", copy.original),
            _ => copy.original,
        };
        let Ok(original) = Locator::from_stored_key(&key) else { continue };
        let beside = by_fold.get(&original.folded()).filter(|beside| **beside != locator);
        match (copy.evidence, beside) {
            (Evidence::Name, None) => {
                found.copies.push(Pair { copy: locator.clone(), original, family: copy.family });
            }
            (Evidence::Name | Evidence::Beside | Evidence::OnlyBeside, Some(beside)) => {
                let original = (*beside).clone();
                found.copies.push(Pair { copy: locator.clone(), original, family: copy.family });
            }
            (Evidence::Beside, None) | (Evidence::Doubtful, Some(_)) => found.ambiguous.push(locator.clone()),
            (Evidence::OnlyBeside | Evidence::Doubtful, None) => {}
        }
    }
    found
}

/// Returns the name that Google Drive would give to a copy of a file, the first or a further one.
pub fn copy_name(original: &Locator, number: usize) -> Option<Locator> {
    let (stem, extension) = match original.as_str().rfind('.') {
        Some(at) if original.name().rfind('.') > Some(0) => original.as_str().split_at(at),
        _ => (original.as_str(), ""),
    };
    let mark = if number <= 1 { "Conflict".to_owned() } else { format!("Conflict {number}") };
    Locator::parse(&format!("{stem} [{mark}]{extension}")).ok()
}

/// A mark in a name: the text before it, the client, the strength of the evidence.
type Marked<'a> = (&'a str, Family, Evidence);

/// The most extensions that a name is taken to have, as in `archive.tar.gz`.
const MAX_EXTENSIONS: usize = 2;

/// Returns a name parted before each of its extensions, shortest first.
fn splits(name: &str) -> impl Iterator<Item = (&str, &str)> {
    let dots = name.rmatch_indices('.').map(|(at, _)| name.split_at(at));
    let has_letters_only = |(_, extension): &(&str, &str)| !extension.contains([' ', ')', ']']);
    std::iter::once((name, "")).chain(dots.take_while(has_letters_only).take(MAX_EXTENSIONS))
}

/// Reads the mark at the end of a name that has lost its extension.
fn marked(head: &str) -> Option<Marked<'_>> {
    let readings =
        [sync_conflict, underlined, bracketed, parenthesised, with_device, numbered, named_machine];
    readings.iter().find_map(|read| read(head)).or_else(|| prefixed(head))
}

/// `name.sync-conflict-20261116-101112-ABCDEFG`, of old versions without the last part.
fn sync_conflict(head: &str) -> Option<Marked<'_>> {
    let (stem, mark) = head.rsplit_once(".sync-conflict-")?;
    let (moment, device) = mark.split_at_checked(MOMENT.len())?;
    let is_device = match device.strip_prefix('-') {
        Some(device) => device.len() == 7 && device.bytes().all(|byte| byte.is_ascii_alphanumeric()),
        None => device.is_empty(),
    };
    (looks_like(moment, MOMENT) && is_device).then_some((stem, Family::Syncthing, Evidence::Name))
}

/// `name_conflict-20261116-101112` with or without a user, and `name_conf(1)`.
fn underlined(head: &str) -> Option<Marked<'_>> {
    if let Some((stem, mark)) = head.rsplit_once("_conflict-") {
        let moment = mark.get(mark.len().checked_sub(MOMENT.len())?..)?;
        return looks_like(moment, MOMENT).then_some((stem, Family::Nextcloud, Evidence::Name));
    }
    let (stem, number) = head.strip_suffix(')')?.rsplit_once("_conf(")?;
    is_number(number).then_some((stem, Family::GoogleDrive, Evidence::Beside))
}

/// `name [Conflict]` and `name [Conflict 2]`.
fn bracketed(head: &str) -> Option<Marked<'_>> {
    let (stem, inner) = head.strip_suffix(']')?.rsplit_once(" [")?;
    let rest = inner.to_lowercase().strip_prefix("conflict")?.to_owned();
    let is_mark = rest.is_empty() || rest.strip_prefix(' ').is_some_and(is_number);
    is_mark.then_some((stem, Family::GoogleDrive, Evidence::Name))
}

/// How clients say that it is a copy, in lower case: English, German, French, Spanish, Italian, Japanese.
const CONFLICTED: [&str; 8] = [
    "conflicted copy",
    "in konflikt stehende kopie",
    "konfliktkopie",
    "copie en conflit",
    "copia en conflicto",
    "copia conflictiva",
    "copia in conflitto",
    "問題のあるコピー",
];

/// Dropbox's words for two names that some disk cannot tell apart or store.
const CONFUSED: [&str; 4] =
    ["case conflict", "unicode encoding conflict", "whitespace conflict", "selective sync conflict"];

/// `name (…)`: decides by the text in the parentheses.
fn parenthesised(head: &str) -> Option<Marked<'_>> {
    let (stem, inner) = last_parentheses(head)?;
    if is_number(inner) {
        // A second copy of one day.
        let before = parenthesised(stem).filter(|(_, _, evidence)| *evidence == Evidence::Name);
        return before.or(Some((stem, Family::GoogleDrive, Evidence::Beside)));
    }
    let inner = inner.to_lowercase();
    if CONFLICTED.iter().any(|phrase| inner.contains(phrase)) {
        let (family, evidence) = match inner.rsplit(' ').next().unwrap_or_default() {
            last if looks_like(last, "000000000000") => (Family::Obsidian, Evidence::Name),
            last if looks_like(last, "000000") && has_day(&inner) => (Family::Nextcloud, Evidence::Name),
            _ if has_day(&inner) => (Family::Dropbox, Evidence::Name),
            _ => (Family::Dropbox, Evidence::Beside),
        };
        return Some((stem, family, evidence));
    }
    if inner.starts_with("case clash from ") {
        return Some((stem, Family::Nextcloud, Evidence::Beside));
    }
    let is_confused = |phrase: &str| {
        let rest = inner.strip_prefix(phrase);
        rest.is_some_and(|rest| rest.is_empty() || is_number(rest.trim_matches([' ', '(', ')'])))
    };
    CONFUSED.iter().any(|phrase| is_confused(phrase)).then_some((stem, Family::Dropbox, Evidence::Beside))
}

/// `name (conflicted copy 2026-11-16) - laptop`.
fn with_device(head: &str) -> Option<Marked<'_>> {
    let (before, device) = head.rsplit_once(") - ")?;
    if device.is_empty() || device.contains('.') {
        return None;
    }
    let marked = parenthesised(&head[..=before.len()])?;
    (marked.1 != Family::GoogleDrive).then_some(marked)
}

/// `name 2`.
fn numbered(head: &str) -> Option<Marked<'_>> {
    let (stem, number) = head.rsplit_once(' ')?;
    let is_copy = is_number(number) && number.len() <= 2 && number != "1" && !stem.ends_with(' ');
    is_copy.then_some((stem, Family::ICloud, Evidence::OnlyBeside))
}

/// `name-DESKTOP-AB12CD3`, and for those who look closer `name-ANYTHING`.
fn named_machine(head: &str) -> Option<Marked<'_>> {
    /// Windows' prefix for a machine without a chosen name, before letters and digits.
    const UNNAMED: [&str; 3] = ["DESKTOP-", "LAPTOP-", "WIN-"];
    /// The longest name that all of Windows can use for a machine.
    const MAX_MACHINE: usize = 15;
    let is_upper = |text: &str| text.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit());
    head.match_indices('-').find_map(|(at, _)| {
        let (stem, machine) = (&head[..at], without_counter(&head[at + 1..]));
        let rest = UNNAMED.iter().find_map(|unnamed| machine.strip_prefix(unnamed));
        if rest.is_some_and(|rest| (5..=11).contains(&rest.len()) && is_upper(rest)) {
            return Some((stem, Family::OneDrive, Evidence::OnlyBeside));
        }
        let is_machine = (2..=MAX_MACHINE).contains(&machine.len())
            && machine.starts_with(|first: char| first.is_ascii_uppercase())
            && machine.split('-').all(|part| !part.is_empty() && is_upper(part));
        // If the whole name is in capitals, capitals prove nothing.
        let stands_out = stem.chars().any(char::is_lowercase);
        (is_machine && stands_out).then_some((stem, Family::OneDrive, Evidence::Doubtful))
    })
}

/// `Copy of name`.
fn prefixed(head: &str) -> Option<Marked<'_>> {
    let stem = head.strip_prefix("Copy of ")?;
    Some((stem, Family::GoogleDrive, Evidence::Beside))
}

/// Returns the parts of a copy's name that ends with the name of a known machine.
fn of_known_machine(name: &str, machines: &[&str]) -> Option<Copy> {
    splits(name).find_map(|(head, extension)| {
        let head = without_counter(head);
        let stem = machines.iter().filter(|machine| !machine.is_empty()).find_map(|machine| {
            let (stem, end) = head.split_at_checked(head.len().checked_sub(machine.len())?)?;
            let stem = stem.strip_suffix('-')?;
            (!stem.is_empty() && end.to_lowercase() == machine.to_lowercase()).then_some(stem)
        })?;
        let original = format!("{stem}{extension}");
        Some(Copy { original, family: Family::OneDrive, evidence: Evidence::OnlyBeside })
    })
}

/// Returns a name without the number that a second copy of one machine has.
fn without_counter(text: &str) -> &str {
    match text.rsplit_once('-') {
        Some((before, number)) if number.len() <= 2 && is_number(number) => before,
        _ => text,
    }
}

/// Returns the text before the last parentheses, and in them; they may contain others.
fn last_parentheses(head: &str) -> Option<(&str, &str)> {
    let inner = head.strip_suffix(')')?;
    let mut open = 1;
    for (at, character) in inner.char_indices().rev() {
        match character {
            ')' => open += 1,
            '(' => open -= 1,
            _ => {}
        }
        if open == 0 {
            let stem = inner[..at].strip_suffix(' ')?;
            return Some((stem, &inner[at + 1..]));
        }
    }
    None
}

/// A day and a time of day.
const MOMENT: &str = "00000000-000000";

/// A day.
const DAY: &str = "0000-00-00";

fn has_day(text: &str) -> bool {
    (0..text.len()).any(|at| text.get(at..at + DAY.len()).is_some_and(|part| looks_like(part, DAY)))
}

/// Returns true if a text has digits where `shape` has zeros, and is the same otherwise.
fn looks_like(text: &str, shape: &str) -> bool {
    let fits = |(byte, shape): (u8, u8)| if shape == b'0' { byte.is_ascii_digit() } else { byte == shape };
    text.len() == shape.len() && text.bytes().zip(shape.bytes()).all(fits)
}

/// Returns true if a text is a small number as a counter has it.
fn is_number(text: &str) -> bool {
    (1..=3).contains(&text.len()) && !text.starts_with('0') && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use Evidence::{Beside, Doubtful, Name, OnlyBeside};
    use Family::{Dropbox, GoogleDrive, ICloud, Nextcloud, Obsidian, OneDrive, Syncthing};

    const COPIES: &[(&str, &str, Family, Evidence)] = &[
        ("notes (a teammate's conflicted copy 2026-11-16).md", "notes.md", Dropbox, Name),
        ("notes (laptop’s conflicted copy 2026-11-16).md", "notes.md", Dropbox, Name),
        ("notes (conflicted copy 2026-11-16).md", "notes.md", Dropbox, Name),
        ("notes (Conflicted Copy 2026-11-16).md", "notes.md", Dropbox, Name),
        ("notes (a teammate's conflicted copy 2026-11-16) (1).md", "notes.md", Dropbox, Name),
        ("notes (a teammate's conflicted copy 2026-11-16 (1)).md", "notes.md", Dropbox, Name),
        ("notes (the laptop (old)'s conflicted copy 2026-11-16).md", "notes.md", Dropbox, Name),
        ("notes (conflicted copy 2026-11-16) - laptop.md", "notes.md", Dropbox, Name),
        ("notes (laptop.local's conflicted copy 2026-11-16).md", "notes.md", Dropbox, Name),
        ("plan (draft) (laptop's conflicted copy 2026-11-16).md", "plan (draft).md", Dropbox, Name),
        ("archive.tar (laptop's conflicted copy 2026-11-16).gz", "archive.tar.gz", Dropbox, Name),
        ("archive (laptop's conflicted copy 2026-11-16).tar.gz", "archive.tar.gz", Dropbox, Name),
        ("Makefile (laptop's conflicted copy 2026-11-16)", "Makefile", Dropbox, Name),
        (".profile (laptop's conflicted copy 2026-11-16)", ".profile", Dropbox, Name),
        ("日記 (laptop's conflicted copy 2026-11-16).md", "日記.md", Dropbox, Name),
        ("notes (In Konflikt stehende Kopie von laptop 2026-11-16).md", "notes.md", Dropbox, Name),
        ("notes (laptops in Konflikt stehende Kopie 2026-11-16).md", "notes.md", Dropbox, Name),
        ("notes (Copie en conflit de laptop 2026-11-16).md", "notes.md", Dropbox, Name),
        ("notes (Copia en conflicto de laptop 2026-11-16).md", "notes.md", Dropbox, Name),
        ("notes (Copia conflictiva de laptop 2026-11-16).md", "notes.md", Dropbox, Name),
        ("notes (Copia in conflitto di laptop.fritz.box 2026-11-16).md", "notes.md", Dropbox, Name),
        ("notes (laptop 上の問題のあるコピー 2026-11-16).md", "notes.md", Dropbox, Name),
        ("notes (conflicted copy).md", "notes.md", Dropbox, Beside),
        ("notes (laptop's conflicted copy).md", "notes.md", Dropbox, Beside),
        ("Notes (Case Conflict).md", "Notes.md", Dropbox, Beside),
        ("Notes (Case Conflict 1).md", "Notes.md", Dropbox, Beside),
        ("Notes (case conflict (2)).md", "Notes.md", Dropbox, Beside),
        ("café (Unicode Encoding Conflict).md", "café.md", Dropbox, Beside),
        ("notes (conflicted copy 2026-11-16 101112).md", "notes.md", Nextcloud, Name),
        ("notes (conflicted copy user 2026-11-16 101112).md", "notes.md", Nextcloud, Name),
        ("notes_conflict-20261116-101112.md", "notes.md", Nextcloud, Name),
        ("notes_conflict-user-20261116-101112.md", "notes.md", Nextcloud, Name),
        ("notes (case clash from 2026-11-16 101112).md", "notes.md", Nextcloud, Beside),
        ("notes (Conflicted copy laptop 202611161011).md", "notes.md", Obsidian, Name),
        ("notes (Conflicted copy the user's phone 202611161011).md", "notes.md", Obsidian, Name),
        ("notes.sync-conflict-20261116-101112-ABCDEFG.md", "notes.md", Syncthing, Name),
        ("notes.sync-conflict-20261116-101112.md", "notes.md", Syncthing, Name),
        ("archive.tar.sync-conflict-20261116-101112-ABCDEFG.gz", "archive.tar.gz", Syncthing, Name),
        ("Makefile.sync-conflict-20261116-101112-ABCDEFG", "Makefile", Syncthing, Name),
        (".sync-conflict-20261116-101112-ABCDEFG.profile", ".profile", Syncthing, Name),
        (
            "a.sync-conflict-20261116-101112-ABCDEFG.sync-conflict-20261117-101112-ABCDEFG.md",
            "a.sync-conflict-20261116-101112-ABCDEFG.md",
            Syncthing,
            Name,
        ),
        ("notes [Conflict].md", "notes.md", GoogleDrive, Name),
        ("notes [conflict 2].md", "notes.md", GoogleDrive, Name),
        ("notes (1).md", "notes.md", GoogleDrive, Beside),
        ("notes (12).md", "notes.md", GoogleDrive, Beside),
        ("archive.tar (1).gz", "archive.tar.gz", GoogleDrive, Beside),
        ("archive (1).tar.gz", "archive.tar.gz", GoogleDrive, Beside),
        ("notes (1) (2).md", "notes (1).md", GoogleDrive, Beside),
        ("Makefile (1)", "Makefile", GoogleDrive, Beside),
        ("notes_conf(1).md", "notes.md", GoogleDrive, Beside),
        ("Copy of notes.md", "notes.md", GoogleDrive, Beside),
        ("Copy of Copy of notes.md", "Copy of notes.md", GoogleDrive, Beside),
        ("notes 2.md", "notes.md", ICloud, OnlyBeside),
        ("archive.tar 3.gz", "archive.tar.gz", ICloud, OnlyBeside),
        ("日記 2.md", "日記.md", ICloud, OnlyBeside),
        ("Makefile 2", "Makefile", ICloud, OnlyBeside),
        ("notes-DESKTOP-AB12CD3.md", "notes.md", OneDrive, OnlyBeside),
        ("TODO-DESKTOP-AB12CD3.md", "TODO.md", OneDrive, OnlyBeside),
        ("notes-LAPTOP-0A1B2C3D-2.md", "notes.md", OneDrive, OnlyBeside),
        ("my-notes-WIN-0A1B2C3D4E5.md", "my-notes.md", OneDrive, OnlyBeside),
        ("notes-MACHINE.md", "notes.md", OneDrive, Doubtful),
        ("my-notes-MUC-L-123.md", "my-notes.md", OneDrive, Doubtful),
        // A client's copy of our own conflict copy is a copy too.
        ("a.conflict-1a2b3c4d (1).png", "a.conflict-1a2b3c4d.png", GoogleDrive, Beside),
    ];

    const OTHERS: &[&str] = &[
        "",
        ".",
        "notes.md",
        ".profile",
        "archive.tar.gz",
        "notes.conflict-1a2b3c4d.md",
        "notes.conflict-12345678",
        "conflict.md",
        "conflicted copy 2026-11-16.md",
        "how a conflicted copy happens.md",
        "(conflicted copy 2026-11-16).md",
        " (1).md",
        "(1).md",
        "notes(1).md",
        "notes (0).md",
        "notes (01).md",
        "notes (2026).md",
        "notes (a).md",
        "notes ().md",
        "notes 1.md",
        "notes 02.md",
        "notes 2026.md",
        "notes  2.md",
        "notes v2.md",
        "2.md",
        "2026-11-16.md",
        "notes-2026-11-16.md",
        "notes-2.md",
        "feedback-rust.md",
        "user-preferences.md",
        "TODO-ARCHIVE.md",
        "notes-Desktop-ab12cd3.md",
        "notes-A.md",
        "notes-.md",
        "notes-AVERYLONGMACHINENAME.md",
        "notes.sync-conflict-2026.md",
        "notes.sync-conflict-20261116-101112-abc.md",
        "notes sync-conflict-20261116-101112-abcdefg.md",
        "sync-conflict-20261116-101112.md",
        "notes_conflict-today.md",
        "my_conflict-resolution.md",
        "notes_conf.md",
        "Copy of ",
        "Copy of.md",
        "copying.md",
        "notes [Conflicting].md",
        "notes [1].md",
        "notes (case closed).md",
        "Chapter 2. The lens.md",
        "notes (1). And more.md",
        "notes)(1.md",
        "((((((1).md",
        "notes (1)).md",
    ];

    #[test]
    fn names_of_copies() {
        for (name, original, family, evidence) in COPIES {
            let expected = Copy { original: (*original).to_owned(), family: *family, evidence: *evidence };
            assert_eq!(conflict_copy(name), Some(expected), "{name}");
        }
    }

    #[test]
    fn names_of_anything_else() {
        for name in OTHERS {
            assert_eq!(conflict_copy(name), None, "{name}");
        }
    }

    proptest! {
        /// For every name, the result is a name, and a shorter one.
        #[test]
        fn any_name_can_be_asked_about(name in "(\\PC|[ ()\\[\\]._0-9-]|conflict|copy|Copy of |é){0,30}") {
            if let Some(copy) = conflict_copy(&name) {
                prop_assert!(!copy.original.is_empty() && copy.original.len() < name.len());
            }
            of_known_machine(&name, &["é", "copy", "1"]);
        }
    }

    #[test]
    fn a_copy_that_we_name_is_one() {
        for original in ["notes.md", "a/b.c/notes.md", "Makefile", "a.b/Makefile", ".profile", "a.tar.gz"] {
            for number in [1, 2, 12] {
                let original = Locator::parse(original).expect("a locator");
                let copy = copy_name(&original, number).expect("a name");
                let found = waiting([&copy, &original], &[]).copies;
                let family = GoogleDrive;
                assert_eq!(found, [Pair { copy, original, family }]);
            }
        }
    }

    fn locators(names: &[&str]) -> Vec<Locator> {
        names.iter().map(|name| Locator::from_stored_key(name).expect("a locator")).collect()
    }

    /// Returns the copies with their originals, and those that are only told.
    fn found(names: &[&str], machines: &[&str]) -> (Vec<(String, String)>, Vec<String>) {
        let Waiting { copies, ambiguous } = waiting(&locators(names), machines);
        let pair = |pair: Pair| (pair.copy.to_string(), pair.original.to_string());
        (copies.into_iter().map(pair).collect(), ambiguous.iter().map(Locator::to_string).collect())
    }

    #[test]
    fn copies_are_told_from_look_alikes_by_what_is_beside_them() {
        let names = [
            "a/notes.md",
            "a/notes (1).md",
            "b/notes (1).md",
            "a/notes 2.md",
            "b/notes 2.md",
            "a/notes-DESKTOP-AB12CD3.md",
            "b/notes-DESKTOP-AB12CD3.md",
            "a/notes-AWS.md",
            "b/notes-AWS.md",
            "b/notes (laptop's conflicted copy 2026-11-16).md",
            "notes.sync-conflict-20261116-101112-ABCDEFG.md",
            "a/NOTES (Case Conflict).md",
            ".haversack/log/r/0001",
            ".haversack/log/r/0001 (1)",
        ];
        let (copies, ambiguous) = found(&names, &[]);
        let copies: Vec<(&str, &str)> = copies.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
        assert_eq!(
            copies,
            [
                ("a/notes (1).md", "a/notes.md"),
                ("a/notes 2.md", "a/notes.md"),
                ("a/notes-DESKTOP-AB12CD3.md", "a/notes.md"),
                ("b/notes (laptop's conflicted copy 2026-11-16).md", "b/notes.md"),
                ("notes.sync-conflict-20261116-101112-ABCDEFG.md", "notes.md"),
                ("a/NOTES (Case Conflict).md", "a/notes.md"),
                (".haversack/log/r/0001 (1)", ".haversack/log/r/0001"),
            ]
        );
        assert_eq!(ambiguous, ["b/notes (1).md", "a/notes-AWS.md"]);
    }

    #[test]
    fn a_machine_that_is_known_makes_copies() {
        let names = [
            "notes.md",
            "notes-laptop.md",
            "notes-The user’s MacBook.md",
            "notes-Laptop-2.md",
            "b-laptop.md",
        ];
        let (copies, ambiguous) = found(&names, &["laptop", "the user’s macbook", ""]);
        let copies: Vec<&str> = copies.iter().map(|(copy, _)| copy.as_str()).collect();
        assert_eq!(copies, ["notes-laptop.md", "notes-The user’s MacBook.md", "notes-Laptop-2.md"]);
        assert!(ambiguous.is_empty());
        assert_eq!(found(&names, &[]), (vec![], vec![]));
    }
}
