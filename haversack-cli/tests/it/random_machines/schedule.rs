//! A schedule: operations of users, agents and programs on several homes, all decided by one number before anything happens.
//!
//! An operation names its file and its word. Leaving one out changes nothing about the others, so a failing schedule can be made shorter.

use std::fmt;

use super::{Chance, NAMES};

/// Operations that schedules have. A kind that is not in here is never played.
pub(super) const SWITCHED_ON: [Kind; 26] = [
    Kind::Append,
    Kind::Save,
    Kind::RemoveLine,
    Kind::Delete,
    Kind::Remove,
    Kind::Rename,
    Kind::Move,
    Kind::AddCaseTwin,
    Kind::MoveToOtherCase,
    Kind::AddUnicodeTwin,
    Kind::MoveToOtherUnicode,
    Kind::FileToDirectory,
    Kind::DirectoryToFile,
    Kind::EmptyDirectory,
    Kind::PutLink,
    Kind::PutPipe,
    Kind::MakeImmutable,
    Kind::MakeUnreadable,
    Kind::ClearObstacles,
    Kind::AddSecret,
    Kind::Sync,
    Kind::KillSync,
    Kind::SyncTwice,
    Kind::BackUpRemote,
    Kind::RestoreRemote,
    Kind::WipeRemote,
];

/// A kind of operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// An agent adds a line with the verb.
    Append,
    /// An editor adds a line and saves the whole file under a new inode.
    Save,
    /// An editor takes a line out, in place.
    RemoveLine,
    /// An agent deletes a file with the verb.
    Delete,
    /// A user deletes the file itself.
    Remove,
    /// An agent renames a file with the verb.
    Rename,
    /// A user renames the file itself.
    Move,
    /// A user makes a second file whose name differs by case only.
    AddCaseTwin,
    /// A user renames the file itself to a name that differs by case only.
    MoveToOtherCase,
    /// A user makes a second file whose name differs by its Unicode form only.
    AddUnicodeTwin,
    /// A user renames the file itself to another Unicode form of its name.
    MoveToOtherUnicode,
    /// A user puts a directory, with a file in it, in the place of a file.
    FileToDirectory,
    /// A user puts a file in the place of a directory.
    DirectoryToFile,
    /// A user loses a bound directory, and a session writes a new file into it.
    EmptyDirectory,
    /// A user moves a file aside and puts a link to it in its place.
    PutLink,
    /// A user moves a file aside and puts a pipe in its place.
    PutPipe,
    /// A file becomes immutable.
    MakeImmutable,
    /// A file may not be read any more.
    MakeUnreadable,
    /// The user puts every file of this home back that is aside, immutable or unreadable.
    ClearObstacles,
    /// An agent writes something that looks like a secret.
    AddSecret,
    Sync,
    /// A sync is killed.
    KillSync,
    /// Two processes sync at once.
    SyncTwice,
    /// The user makes a backup of the directory where the homes meet.
    BackUpRemote,
    /// The user puts the backup back. The homes have synced since.
    RestoreRemote,
    /// The directory where the homes meet is emptied.
    WipeRemote,
}

impl Kind {
    /// Its share of all operations.
    fn weight(self) -> usize {
        match self {
            Kind::Sync => 14,
            Kind::Append | Kind::Save => 8,
            Kind::KillSync | Kind::RemoveLine => 4,
            Kind::Move | Kind::MoveToOtherCase | Kind::ClearObstacles | Kind::SyncTwice => 3,
            Kind::Delete
            | Kind::Remove
            | Kind::Rename
            | Kind::AddCaseTwin
            | Kind::AddUnicodeTwin
            | Kind::MoveToOtherUnicode
            | Kind::FileToDirectory
            | Kind::DirectoryToFile
            | Kind::PutLink
            | Kind::PutPipe
            | Kind::MakeImmutable => 2,
            Kind::EmptyDirectory
            | Kind::MakeUnreadable
            | Kind::AddSecret
            | Kind::BackUpRemote
            | Kind::RestoreRemote
            | Kind::WipeRemote => 1,
        }
    }
}

/// A directory of a home that holds memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Area {
    /// The home's own `memory`.
    Memory,
    /// A directory bound to a project.
    Lighthouse,
    /// Another one.
    Harbour,
}

pub(super) const AREAS: [Area; 3] = [Area::Memory, Area::Lighthouse, Area::Harbour];

impl Area {
    /// Returns where its files are in the memory.
    pub(super) fn prefix(self) -> &'static str {
        match self {
            Area::Memory => "",
            Area::Lighthouse => "claude_memory/lighthouse/",
            Area::Harbour => "claude_memory/harbour/",
        }
    }
}

/// A file of a home.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct File {
    pub(super) area: Area,
    pub(super) name: String,
}

impl File {
    /// Returns its place in the memory.
    pub(super) fn locator(&self) -> String {
        format!("{}{}", self.area.prefix(), self.name)
    }

    /// Returns the file whose name differs by case only.
    pub(super) fn case_twin(&self) -> File {
        let (directory, name) = self.name.rsplit_once('/').map_or(("", &*self.name), |split| split);
        let (stem, extension) = name.split_once('.').map_or((name, ""), |split| split);
        let stem =
            if stem.chars().any(char::is_lowercase) { stem.to_uppercase() } else { stem.to_lowercase() };
        let dot = if extension.is_empty() { "" } else { "." };
        let slash = if directory.is_empty() { "" } else { "/" };
        File { area: self.area, name: format!("{directory}{slash}{stem}{dot}{extension}") }
    }

    /// Returns the file whose name differs by its Unicode form only, if it has another form.
    pub(super) fn unicode_twin(&self) -> Option<File> {
        let composed = composed(&self.name);
        let decomposed = FORMS.iter().fold(composed.clone(), |name, (one, two)| name.replace(one, two));
        let name = if self.name == composed { decomposed } else { composed };
        (name != self.name).then_some(File { area: self.area, name })
    }
}

/// Characters in both Unicode forms.
const FORMS: [(&str, &str); 2] = [("\u{e9}", "e\u{301}"), ("\u{c9}", "E\u{301}")];

/// Returns a name as any disk could have it: in one Unicode form.
pub(super) fn composed(name: &str) -> String {
    FORMS.iter().fold(name.to_owned(), |name, (one, two)| name.replace(two, one))
}

/// Returns a name without case and Unicode form.
pub(super) fn folded(name: &str) -> String {
    composed(name).to_lowercase()
}

/// One operation.
#[derive(Clone, Debug)]
pub(super) struct Operation {
    /// Its number in the schedule.
    pub(super) number: usize,
    pub(super) home: &'static str,
    pub(super) kind: Kind,
    pub(super) file: File,
    /// The new name, of a rename.
    pub(super) to: File,
    /// A word that is nowhere else.
    pub(super) token: String,
    /// Decides which line, how long until the kill, and the like.
    pub(super) lot: usize,
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Operation { number, home, kind, file, to, token, lot } = self;
        write!(f, "{number:>3} {home}: {kind:?}")?;
        match kind {
            Kind::Sync
            | Kind::SyncTwice
            | Kind::ClearObstacles
            | Kind::BackUpRemote
            | Kind::RestoreRemote
            | Kind::WipeRemote => Ok(()),
            Kind::KillSync => write!(f, " after {} µs", kill_after(*lot)),
            Kind::Rename | Kind::Move => write!(f, " {} to {}", file.locator(), to.locator()),
            Kind::RemoveLine => write!(f, " {} of {}", lot % 8, file.locator()),
            Kind::EmptyDirectory => write!(f, " {:?}, then write {token} to {}", file.area, file.locator()),
            Kind::Append
            | Kind::Save
            | Kind::AddCaseTwin
            | Kind::AddUnicodeTwin
            | Kind::FileToDirectory
            | Kind::DirectoryToFile
            | Kind::AddSecret => write!(f, " {} with {token}", file.locator()),
            _ => write!(f, " {}", file.locator()),
        }
    }
}

/// Returns after how many microseconds a sync is killed.
pub(super) fn kill_after(lot: usize) -> u64 {
    700 * (lot % 128) as u64
}

/// The storage where the homes meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meeting {
    /// One directory with one log.
    Directory,
    /// A folder that a sync client replicates.
    Folder,
}

/// Homes and what happens to them.
#[derive(Clone, Debug)]
pub(super) struct Schedule {
    pub(super) seed: u64,
    pub(super) homes: &'static [&'static str],
    pub(super) meeting: Meeting,
    pub(super) operations: Vec<Operation>,
}

/// Files that every home begins with. `keeper` becomes a directory and `deep` a file.
pub(super) const FILES: [&str; 6] =
    ["MEMORY.md", "notes.md", "log.jsonl", "caf\u{e9}.md", "deep/ideas.md", "keeper"];

/// New names of renamed files.
const NEW_NAMES: [&str; 4] = ["renamed.md", "deep/moved.md", "plans.md", "lamp/oil.md"];

impl Schedule {
    pub(super) fn of(seed: u64, steps: usize, kinds: &[Kind]) -> Schedule {
        let mut chance = Chance::new(seed);
        // The first numbers of neighbouring seeds are alike.
        for _ in 0..8 {
            chance.below(2);
        }
        let homes = &NAMES[..2 + chance.below(3)];
        let meeting = if chance.below(3) == 0 { Meeting::Folder } else { Meeting::Directory };
        // Few files, so that operations meet.
        let mut pick = |all: &[&'static str], count: usize| -> Vec<&'static str> {
            (0..count).map(|_| all[chance.below(all.len())]).collect()
        };
        let (names, new_names) = (pick(&FILES, 3), pick(&NEW_NAMES, 2));
        let areas = [AREAS[chance.below(AREAS.len())], AREAS[chance.below(AREAS.len())]];
        let lots: Vec<Kind> =
            kinds.iter().flat_map(|kind| std::iter::repeat_n(*kind, kind.weight())).collect();
        let operations = (0..steps)
            .map(|number| {
                let home = homes[chance.below(homes.len())];
                let kind = lots[chance.below(lots.len())];
                let area = areas[chance.below(areas.len())];
                let among = if chance.below(5) == 0 { &new_names } else { &names };
                let name = among[chance.below(among.len())];
                let mut file = File { area, name: name.to_owned() };
                if chance.below(6) == 0 {
                    file = file.case_twin();
                }
                if chance.below(2) == 0
                    && let Some(twin) = file.unicode_twin()
                {
                    file = twin;
                }
                let to = File { area, name: new_names[chance.below(new_names.len())].to_owned() };
                let lot = chance.below(1 << 16);
                Operation { number, home, kind, file, to, token: format!("{home}-{number:04}"), lot }
            })
            .collect();
        Schedule { seed, homes, meeting, operations }
    }
}
